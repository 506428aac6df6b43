"""Small sweeps, and all that they leave behind, to the bit."""

import functools

import dpfast as dp
from dpfast.simulation.sweep.executors import ThisProcess
from dpfast.simulation.sweep.sweep import sweep
from dpfast.simulation.sweep.sweep_store import SweepStore

# Four cases that are designed in milliseconds, and end after different numbers of blocks.
GRID = {
    "mechanism": ["input_perturbation", "output_perturbation"],
    "target": "moving-average:4",
    "stream": "levels:0,1@0.75,0.25",
    "epsilon": [0.5, 2],
    "delta": 1e-6,
}
OPTIONS = {"seed": 3, "n_samples": 50, "burn_in": 8, "width": 0.03, "budget": 1e6, "n_threads": 1}
TARGET, PRIVACY = dp.Filter([0.5], [1, -0.5]), dp.Privacy(1, 1e-6)
COIN = dp.IndependentLevels([0, 2], [0.75, 0.25])


def run(grid=GRID, **options):
    return sweep(grid, **(OPTIONS | options))


def rows(found):
    """All that a sweep says of its rows, with all bits."""
    return [
        (
            *(x.number, x.group, dict(x.settings), x.family, x.mechanism_name, x.lag, x.predicted_mse, x.ideal_mse),
            *(
                x.lower_bound_mse,
                str(x.noise_std),
                x.n_samples,
                x.confidence,
                x.batch_means.tobytes(),
                x.stopped,
                x.error,
            ),
            *(x.notes, x.packed),
        )
        for x in found
    ]


def blocks(path):
    """The table of blocks of a store, as bytes, under the digests of the sweeps, and the keys of its designs."""
    with SweepStore(path) as store:
        for entry in store.sweeps():
            assert len(list(store.all_means(entry.id))) == entry.n_blocks  # with the checksums that they should have
        connection = store._connection
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        table = connection.execute(
            "SELECT configuration, case_number, block, means FROM blocks JOIN sweeps ON sweep = id"
        )
        return sorted(table), sorted(connection.execute("SELECT key FROM designs"))


@functools.cache
def mechanisms():
    """One with each kind of receiver, for one target."""
    return (
        dp.zero_forcing(TARGET, PRIVACY),
        dp.lmmse(TARGET, PRIVACY, COIN, lag=2),
        dp.lmmse(TARGET, PRIVACY, COIN, lag=None),
        dp.decision_feedback(TARGET, PRIVACY, COIN, lag=1),
        dp.output_perturbation(TARGET, PRIVACY),
    )


class Faulty(ThisProcess):
    """This process, in which something else fails at the n-th answer: what would be the engine's."""

    def __init__(self, n):
        super().__init__(1)
        self.left = n

    def run(self, function, items):
        for x in super().run(function, items):
            self.left -= 1
            if self.left < 0:
                raise FaultError
            yield x


class FaultError(Exception):
    """Something that nobody expects."""
