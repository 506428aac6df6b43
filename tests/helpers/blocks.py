"""Small blocks and tasks of a sweep, for tests of several modules."""

from helpers.chains import FACTORS
from helpers.equalizers import equalizer

from dpfast import ARMA, MarkovChain, __version__
from dpfast._kernels.compiled_mechanisms import CompiledMechanism
from dpfast._kernels.compiled_receivers import CompiledDecisionFeedback, CompiledLinearReceiver, CompiledSmoother
from dpfast.simulation.sweep.stream_blocks import Block, BlockTask

PREFILTER, TARGET = FACTORS["delay and section"], FACTORS["section"]
RECEIVERS = [
    CompiledLinearReceiver(FACTORS["Wiener"], TARGET, 0.25, 5),
    CompiledSmoother(FACTORS["Wiener"], FACTORS["section"], TARGET, 0.25, 80),
    CompiledDecisionFeedback(equalizer("two", "soft", 3, level=0.25), TARGET, 0.25),
    CompiledLinearReceiver(FACTORS["nine taps"], TARGET, 0.0, 0),
    CompiledLinearReceiver(FACTORS["recursion"], FACTORS["all"], 0.25, 130),
]
LINKS = tuple(CompiledMechanism(0.25, PREFILTER, 0.3 + 0.1 * k, x) for k, x in enumerate(RECEIVERS))
SOURCES = {
    "levels": MarkovChain([[0.8, 0.2], [0.4, 0.6]], [0.0, 1.0]).compiled(),
    "Gaussian": ARMA([1.0, 0.4], [1.0, -0.9, 0.5]).compiled(),
}


def block(number=0, links=LINKS, source="levels", n_samples=60, **options):
    return Block(SOURCES[source], tuple(links), 20, n_samples, 7, number, **options)


def task(*blocks, version=__version__):
    return BlockTask(version, blocks, tuple(tuple(range(len(x.mechanisms))) for x in blocks), 1.0)


def tasks(n, n_samples=60):
    return [task(block(2 * k, n_samples=n_samples), block(2 * k + 1, LINKS[:2], n_samples=n_samples)) for k in range(n)]
