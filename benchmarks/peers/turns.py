"""Contestants that take turns: here, or in a process of their own that answers a line of JSON with another.

NumPy and the standard library alone: it runs in the environments of the peers.
"""

import json
import subprocess
import sys
import time
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from benchmarks.peers.targets import versions

ROUNDS = 7


class Job(NamedTuple):
    """Something to call, the samples that a call processes, and what it computes, by which contestants are compared."""

    run: Callable[[], object]
    samples: int
    check: list[float]


class Here:
    """A contestant in this process; `prepare` turns the words of a case into a job, warmed up."""

    def __init__(self, prepare):
        self._prepare, self._job = prepare, None

    def begin(self, case):
        """What it computes."""
        self._job = None  # its arrays are done with before there are others
        self._job = self._prepare(**case)
        return self._job.check

    def seconds(self):
        """Of the process, all threads, for a sample: when others use the processor it stands still."""
        start = time.process_time()
        self._job.run()
        return (time.process_time() - start) / self._job.samples


class Elsewhere:
    """A contestant that serves in another process."""

    def __init__(self, python, module):
        command = [python, "-m", module]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.versions = self._answer()

    def begin(self, case):
        return self._asked(case)

    def seconds(self):
        return self._asked(None)

    def close(self):
        self._process.communicate()

    def _asked(self, case):
        self._process.stdin.write(json.dumps(case) + "\n")
        self._process.stdin.flush()
        return self._answer()

    def _answer(self):
        line = self._process.stdout.readline()
        if not line:
            self.close()
            raise RuntimeError(f"{' '.join(self._process.args)} ended: it says above why")
        return json.loads(line)


def serve(prepare, *packages):
    """Be a contestant elsewhere: answer requests from standard input until it ends."""
    answers, sys.stdout = sys.stdout, sys.stderr  # nobody else's words among the answers
    print(json.dumps(versions(*packages)), file=answers, flush=True)
    contestant = Here(prepare)
    for line in sys.stdin:
        case = json.loads(line)
        answer = contestant.seconds() if case is None else contestant.begin(case)
        print(json.dumps(answer), file=answers, flush=True)


def race(what, contestants, *, tolerance=None, rounds=ROUNDS):
    """Median and quartiles of the seconds a sample, and what was computed; `contestants`: name → (who, case).

    Within a tolerance, all must compute the same, or nobody races.
    """
    checks = {name: who.begin(case) for name, (who, case) in contestants.items()}
    first = next(iter(checks.values()))
    for name, check in checks.items():
        if tolerance is not None and not np.allclose(check, first, rtol=tolerance, atol=tolerance):
            raise ValueError(f"{what}: what {name} computes must be what all do, got {check} instead of {first}")
    seconds = {name: [] for name in contestants}
    for _ in range(rounds):
        for name, (who, _) in contestants.items():
            seconds[name].append(who.seconds())
    figures = {name: np.quantile(x, [0.25, 0.5, 0.75]).tolist() for name, x in seconds.items()}
    print(f"{what}: " + ", ".join(f"{name} {1e9 * x[1]:.3g} ns" for name, x in figures.items()), flush=True)
    return {"what": what, "seconds": figures, "checks": checks}
