"""Publish filtered event streams under differential privacy, and know what accuracy it costs.

The names below are public. Behind them are rooms, of which each uses those above it and none below::

    _support, _kernels         what knows nothing of privacy; what is compiled
    filters                    targets
    privacy                    guarantees, and the noise that they take
    signals                    models of the private stream
    mechanisms                 what is published, how it is estimated, with what error
    design                     from target, privacy and signal to a mechanism
    simulation    releases     errors of mechanisms, simulated; real data, published
    reports                    pages and pictures of what was found
    cli                        the command
"""

from dpfast._support.errors import (
    AccuracyWarning,
    ConvergenceWarning,
    DataError,
    DesignError,
    MissingExtraError,
    PaleyWienerError,
    ReleaseError,
    ToleranceWarning,
    UnstableFilterError,
)
from dpfast._support.version import __version__ as __version__
from dpfast.design.adaptive.adapt import Adaptation, adapt
from dpfast.design.adaptive_blocks import adaptive_blocks
from dpfast.design.block_sums import block_sums
from dpfast.design.bounds.additive import additive_bound
from dpfast.design.bounds.any_receiver import gaussian_bound
from dpfast.design.bounds.linear_mean import linear_mean_bound
from dpfast.design.bounds.of_mechanism import bounds_of
from dpfast.design.bounds.unbiased import unbiased_bound
from dpfast.design.decision_feedback import decision_feedback, ideal_feedback
from dpfast.design.horizon.binary_tree import binary_tree
from dpfast.design.horizon.buffered_toeplitz import buffered_toeplitz
from dpfast.design.horizon.compressive import compressive
from dpfast.design.horizon.decayed_sum import decayed_sum
from dpfast.design.horizon.fourier import fourier_perturbation
from dpfast.design.horizon.optimal_factorization import optimal_factorization
from dpfast.design.horizon.shared_noise import shared_noise
from dpfast.design.horizon.square_root import square_root
from dpfast.design.horizon.tree import tree
from dpfast.design.lmmse import lmmse
from dpfast.design.optimal import optimal
from dpfast.design.perturbation import input_perturbation, output_perturbation
from dpfast.design.programs.joint_program import JointProgram, JointVariables, optimal_program
from dpfast.design.programs.prefilter_program import Program, feedback_program, lmmse_program
from dpfast.design.randomized_response import randomized_response
from dpfast.design.robust import robust
from dpfast.design.unbounded_sum import unbounded_sum
from dpfast.design.zero_forcing import zero_forcing
from dpfast.filters.filter import Filter, Filtered
from dpfast.filters.toeplitz import Toeplitz, polynomial_decay, running_sum
from dpfast.mechanisms.adaptive_mechanism import AdaptiveBlockMechanism
from dpfast.mechanisms.best_choice import Choice, ChoiceRow
from dpfast.mechanisms.block_mechanism import BlockMechanism
from dpfast.mechanisms.bound import Bound
from dpfast.mechanisms.constant import Constant, constant
from dpfast.mechanisms.matrix_mechanism import MatrixMechanism
from dpfast.mechanisms.mechanism import Mechanism, Paths
from dpfast.mechanisms.serialization.mechanism_file import load, save
from dpfast.mechanisms.unbounded_mechanism import UnboundedMechanism
from dpfast.privacy.privacy import Privacy
from dpfast.releases.audit.all_attacks import audit
from dpfast.releases.audit.findings import Audit
from dpfast.releases.batch import Release, release
from dpfast.releases.guarantee import Guarantee
from dpfast.releases.integer.exact_mechanism import ExactMechanism, exact
from dpfast.releases.integer.inputs import Inputs
from dpfast.releases.reading import read_release
from dpfast.releases.stream import Published, Stream
from dpfast.releases.stream_opening import open_stream
from dpfast.reports.plot import plot
from dpfast.reports.sweep.sweep_page import report
from dpfast.signals.arma import ARMA
from dpfast.signals.independent_levels import IndependentLevels
from dpfast.signals.markov_chain import MarkovChain
from dpfast.signals.model import Model
from dpfast.simulation.best_mechanism import best
from dpfast.simulation.monte_carlo import monte_carlo
from dpfast.simulation.study import Comparison, Result, Study
from dpfast.simulation.sweep.result import Sweep
from dpfast.simulation.sweep.rows import Cell, Row
from dpfast.simulation.sweep.sweep import sweep

__all__ = [
    "ARMA",
    "AccuracyWarning",
    "Adaptation",
    "AdaptiveBlockMechanism",
    "Audit",
    "BlockMechanism",
    "Bound",
    "Cell",
    "Choice",
    "ChoiceRow",
    "Comparison",
    "Constant",
    "ConvergenceWarning",
    "DataError",
    "DesignError",
    "ExactMechanism",
    "Filter",
    "Filtered",
    "Guarantee",
    "IndependentLevels",
    "Inputs",
    "JointProgram",
    "JointVariables",
    "MarkovChain",
    "MatrixMechanism",
    "Mechanism",
    "MissingExtraError",
    "Model",
    "PaleyWienerError",
    "Paths",
    "Privacy",
    "Program",
    "Published",
    "Release",
    "ReleaseError",
    "Result",
    "Row",
    "Stream",
    "Study",
    "Sweep",
    "Toeplitz",
    "ToleranceWarning",
    "UnboundedMechanism",
    "UnstableFilterError",
    "adapt",
    "adaptive_blocks",
    "additive_bound",
    "audit",
    "best",
    "binary_tree",
    "block_sums",
    "bounds_of",
    "buffered_toeplitz",
    "compressive",
    "constant",
    "decayed_sum",
    "decision_feedback",
    "exact",
    "feedback_program",
    "fourier_perturbation",
    "gaussian_bound",
    "ideal_feedback",
    "input_perturbation",
    "linear_mean_bound",
    "lmmse",
    "lmmse_program",
    "load",
    "monte_carlo",
    "open_stream",
    "optimal",
    "optimal_factorization",
    "optimal_program",
    "output_perturbation",
    "plot",
    "polynomial_decay",
    "randomized_response",
    "read_release",
    "release",
    "report",
    "robust",
    "running_sum",
    "save",
    "shared_noise",
    "square_root",
    "sweep",
    "tree",
    "unbiased_bound",
    "unbounded_sum",
    "zero_forcing",
]


def __dir__() -> list[str]:
    """List the public names, without the modules that were imported for them."""
    return [*__all__, "__version__"]
