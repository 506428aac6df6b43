"""Publish filtered event streams under differential privacy, and know what accuracy it costs."""

from dpfast.audit.result import Audit
from dpfast.audit.run import audit
from dpfast.design.feedback import decision_feedback, ideal_feedback
from dpfast.design.joint import JointProgram, JointVariables, optimal_program
from dpfast.design.linear import input_perturbation, lmmse, output_perturbation, zero_forcing
from dpfast.design.optimal import optimal
from dpfast.design.programs import Program, feedback_program, lmmse_program
from dpfast.design.robust import robust
from dpfast.errors import (
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
from dpfast.mechanism import Mechanism, Paths
from dpfast.models import ARMA, IndependentLevels, MarkovChain, Model
from dpfast.montecarlo import Comparison, Result, Study, monte_carlo
from dpfast.privacy import Privacy
from dpfast.release.inputs import Inputs

__version__ = "0.1.0"

__all__ = [
    "ARMA",
    "Audit",
    "Comparison",
    "ConvergenceWarning",
    "DataError",
    "DesignError",
    "Filter",
    "Filtered",
    "IndependentLevels",
    "Inputs",
    "JointProgram",
    "JointVariables",
    "MarkovChain",
    "Mechanism",
    "MissingExtraError",
    "Model",
    "PaleyWienerError",
    "Paths",
    "Privacy",
    "Program",
    "ReleaseError",
    "Result",
    "Study",
    "ToleranceWarning",
    "UnstableFilterError",
    "audit",
    "decision_feedback",
    "feedback_program",
    "ideal_feedback",
    "input_perturbation",
    "lmmse",
    "lmmse_program",
    "load",
    "monte_carlo",
    "optimal",
    "optimal_program",
    "output_perturbation",
    "robust",
    "save",
    "zero_forcing",
]
