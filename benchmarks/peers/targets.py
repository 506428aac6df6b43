"""What everybody computes: the targets, the privacy, the model, the horizon, and how a row is written down.

    python -m benchmarks.peers.targets TASK.json

writes the task for the peers, who read it in environments of their own: the standard library and NumPy are all that
this module may import.
"""

import json
import math
import sys
import time
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

TRANSITION, LEVELS = [[0.75, 0.25], [0.25, 0.75]], [-0.5, 0.5]
HORIZON = 1024
N_STREAMS, SEED = 512, 1


class Level(NamedTuple):
    """A demand for privacy; `name` is short."""

    name: str
    epsilon: float
    delta: float


LEVELS_OF_PRIVACY = (
    Level("ε = ln 3, δ = .05", math.log(3), 0.05),
    Level("ε = 1, δ = 10⁻⁶", 1.0, 1e-6),
    Level("ε = 3, δ = 10⁻⁶", 3.0, 1e-6),
    Level("ε = 1, δ = 0", 1.0, 0.0),
)
PURE = "Gaussian noise gives no pure ε"  # why a row is missing where δ = 0


class Target(NamedTuple):
    """F(z) = b(z⁻¹)/a(z⁻¹)."""

    name: str
    b: list[float]
    a: list[float]

    @property
    def is_stable(self):
        """Every pole strictly inside the circle."""
        return bool((np.abs(np.roots(self.a)) < 1 - 1e-9).all())

    def coefficients(self, horizon):
        """The impulse response over the horizon."""
        f = np.zeros(horizon)
        for t in range(horizon):
            past = sum(self.a[k] * f[t - k] for k in range(1, min(t + 1, len(self.a))))
            f[t] = (self.b[t] if t < len(self.b) else 0.0) - past
        return f / self.a[0]


TARGETS = (
    Target("running sum", [1.0], [1.0, -1.0]),
    Target("moving average of 12", [1 / 12] * 12, [1.0]),
    Target("exponential smoothing .9", [0.1], [1.0, -0.9]),
    Target("(1 + .995z⁻¹)/(1 − .995z⁻¹)", [1.0, 0.995], [1.0, -0.995]),
    Target("resonator, poles .95 at ±30°", [1.0], [1.0, -2 * 0.95 * math.cos(math.pi / 6), 0.95**2]),
    Target("1 − 2z⁻¹", [1.0, -2.0], [1.0]),
)


class Task(NamedTuple):
    """The task as a peer reads it."""

    horizon: int
    n_streams: int
    seed: int
    targets: tuple[Target, ...]
    levels: tuple[Level, ...]

    @classmethod
    def read(cls, path):
        fields = json.loads(Path(path).read_text(encoding="utf-8"))
        whole = {name: tuple(kind(*x) for x in fields[name]) for name, kind in (("targets", Target), ("levels", Level))}
        return cls(**fields | whole)


TASK = Task(HORIZON, N_STREAMS, SEED, TARGETS, LEVELS_OF_PRIVACY)


class Row(NamedTuple):
    """One mechanism on one target, or the reason in words why there is none.

    `needs` is what it is given beyond u up to now: "", "model", "lag 5", "the whole horizon", or several of them.
    """

    by: str
    mechanism: str
    target: str
    needs: str = ""
    note: str = ""
    missing: str = ""
    seconds: float | None = None  # of the design
    step_mse: list[float] | None = None  # predicted, (horizon,)
    stream_mse: list[float] | None = None  # simulated, (streams,)
    level: str = ""


class Released(NamedTuple):
    """v = C u + n, the steps of n independent and of one standard deviation: what a receiver of v has to know.

    `strategy` is "input", C = 1; "output", C = A; or the key of an array with C⁻¹, or its first column where C is
    Toeplitz. Of an empty target it is that for all of them.
    """

    by: str
    mechanism: str
    target: str
    strategy: str
    std: dict[str, float]  # by level of privacy


def no_model(by, target):
    """What all peers lack."""
    return Row(by, "any that knows the law of u", target.name, "model", missing="no input model")


def timed(function):
    """What it returns, and the seconds that it took."""
    start = time.perf_counter()
    result = function()
    return result, time.perf_counter() - start


def floats(x):
    """Numbers for JSON."""
    return np.asarray(x, dtype=float).tolist()


def versions(*packages):
    """Of what ran."""
    return {"Python": sys.version.split()[0]} | {name: metadata.version(name) for name in packages}


def write(path, rows: Iterator[Row], packages, *, released=(), arrays=None, **facts: Any):
    """Rows, one after the other on the terminal too, as JSON; arrays beside it. All is read when the rows are made."""
    data = []
    for row in rows:
        seconds = "" if row.seconds is None else f" ({row.seconds:.1f} s)"
        print(f"{row.by}: {row.mechanism}, {row.target}, {row.level}{seconds} {row.missing}", flush=True)
        data.append(row._asdict())
    told = [x._asdict() for x in released]
    result = {"versions": versions(*packages), "facts": facts, "rows": data, "released": told}
    Path(path).write_text(json.dumps(result, ensure_ascii=False), encoding="utf-8")
    np.savez(arrays_of(path), **(arrays or {}))


def arrays_of(path):
    """Where the arrays beside a file of rows are."""
    return Path(path).with_suffix(".npz")


def main(path):
    Path(path).write_text(json.dumps(TASK._asdict(), ensure_ascii=False), encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
