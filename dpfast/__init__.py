"""Publish filtered event streams under differential privacy, and know what accuracy it costs."""

from dpfast.adapt import Adaptation, adapt
from dpfast.audit.result import Audit
from dpfast.audit.run import audit
from dpfast.baseline import Constant, constant
from dpfast.design.baselines import (
    binary_tree,
    buffered_toeplitz,
    compressive,
    decayed_sum,
    fourier_perturbation,
    square_root,
)
from dpfast.design.factorization import optimal_factorization
from dpfast.design.feedback import decision_feedback, ideal_feedback
from dpfast.design.joint import JointProgram, JointVariables, optimal_program
from dpfast.design.linear import input_perturbation, lmmse, output_perturbation, zero_forcing
from dpfast.design.optimal import optimal
from dpfast.design.programs import Program, feedback_program, lmmse_program
from dpfast.design.robust import robust
from dpfast.errors import (
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
from dpfast.files import load, save
from dpfast.filters import Filter, Filtered
from dpfast.matrix import MatrixMechanism
from dpfast.mechanism import Mechanism, Paths
from dpfast.models import ARMA, IndependentLevels, MarkovChain, Model
from dpfast.montecarlo import Comparison, Result, Study, monte_carlo
from dpfast.privacy import Privacy
from dpfast.release.batch import Release, release
from dpfast.release.exact import ExactMechanism, exact
from dpfast.release.guarantee import Guarantee
from dpfast.release.inputs import Inputs
from dpfast.release.reading import read_release
from dpfast.release.stream import Published, Stream, open_stream
from dpfast.studies.page import report
from dpfast.studies.plot import plot
from dpfast.studies.result import Sweep
from dpfast.studies.rows import Cell, Row
from dpfast.studies.run import sweep
from dpfast.toeplitz import Toeplitz, polynomial_decay, running_sum

__version__ = "0.1.0"

__all__ = [
    "ARMA",
    "AccuracyWarning",
    "Adaptation",
    "Audit",
    "Cell",
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
    "UnstableFilterError",
    "adapt",
    "audit",
    "binary_tree",
    "buffered_toeplitz",
    "compressive",
    "constant",
    "decayed_sum",
    "decision_feedback",
    "exact",
    "feedback_program",
    "fourier_perturbation",
    "ideal_feedback",
    "input_perturbation",
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
    "read_release",
    "release",
    "report",
    "robust",
    "running_sum",
    "save",
    "square_root",
    "sweep",
    "zero_forcing",
]


def __dir__() -> list[str]:
    """The public names, without the modules that were imported for them."""
    return [*__all__, "__version__"]
