"""The example of Le Ny 2013, Section VI: its target, privacy and signal, and every mechanism for them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product

from dpfast.design.catalogue import family_label
from dpfast.design.decision_feedback import decision_feedback
from dpfast.design.lmmse import lmmse
from dpfast.design.optimal import optimal
from dpfast.design.perturbation import input_perturbation, output_perturbation
from dpfast.design.zero_forcing import zero_forcing
from dpfast.filters.filter import Filter
from dpfast.mechanisms.mechanism import Mechanism
from dpfast.mechanisms.receivers.decision_feedback import Decision
from dpfast.privacy.privacy import Calibration, Privacy
from dpfast.signals.arma import ARMA
from dpfast.signals.markov_chain import MarkovChain
from dpfast.signals.model import Model

TARGET = Filter([1, 0.995], [1, -0.995])
EPSILON, DELTA = math.log(3), 0.05
CHAIN = MarkovChain([[0.75, 0.25], [0.25, 0.75]], levels=[-0.5, 0.5])
PRINTED = ARMA([math.sqrt(3) / 2], [1, -0.5])  # the numerator 3/4 of the paper: variance 1
CALIBRATIONS: tuple[Calibration, ...] = ("paper", "exact")
LAGS = (None, 0, 5, 20)
DECISIONS: tuple[Decision, ...] = ("sign", "soft")
LAG = 5  # of the paper's decision feedback
LZF, LMMSE, DFE, OPTIMAL = map(family_label, ("zero_forcing", "lmmse", "decision_feedback", "optimal"))
INPUT, OUTPUT = map(family_label, ("input_perturbation", "output_perturbation"))
OWN = "decision feedback"  # the prefilter that is designed for it


@dataclass(frozen=True)
class PaperMechanism:
    """A mechanism of the example, and what tells it apart from the others."""

    calibration: Calibration
    spectrum: str
    family: str
    prefilter: str
    mechanism: Mechanism

    @property
    def decision(self) -> str | None:
        """The kind of decision, None for a linear mechanism."""
        return self.mechanism.receiver.decision_kind


def design_mechanisms(calibration: Calibration) -> list[PaperMechanism]:
    """Design every mechanism of the paper, and the optimum, at one calibration of the noise."""
    privacy = Privacy(EPSILON, DELTA, calibration=calibration)
    rows = [
        _name_mechanism(calibration, "any", INPUT, "1", input_perturbation(TARGET, privacy)),
        _name_mechanism(calibration, "any", OUTPUT, "F", output_perturbation(TARGET, privacy)),
        _name_mechanism(calibration, "any", LZF, LZF, zero_forcing(TARGET, privacy)),
    ]
    prefilters = {LZF: rows[-1].mechanism.prefilter}
    models: dict[str, Model] = {"printed": PRINTED, "chain": CHAIN}
    for spectrum, model in models.items():
        causal = [lag for lag in LAGS if lag is not None]  # the smoother of the optimum is that of LMMSE
        rows += [
            _name_mechanism(calibration, spectrum, OPTIMAL, OPTIMAL, optimal(TARGET, privacy, model, lag=lag))
            for lag in causal
        ]
        rows += [
            _name_mechanism(calibration, spectrum, LMMSE, LMMSE, lmmse(TARGET, privacy, model, lag=lag)) for lag in LAGS
        ]
        prefilters[f"{LMMSE}, {spectrum}"] = rows[-len(LAGS)].mechanism.prefilter
    own = decision_feedback(TARGET, privacy, CHAIN, lag=LAG, prefilter="decision-feedback")
    prefilters[OWN] = own.prefilter
    for (name, prefilter), decision in product(prefilters.items(), DECISIONS):
        feedback = decision_feedback(TARGET, privacy, CHAIN, lag=LAG, prefilter=prefilter, decision=decision)
        rows.append(_name_mechanism(calibration, "chain", DFE, name, feedback))
    return rows


def _name_mechanism(
    calibration: Calibration, spectrum: str, family: str, prefilter: str, mechanism: Mechanism
) -> PaperMechanism:
    """Give the mechanism a name that no other one of the example has."""
    name = f"{calibration}, {spectrum}: {mechanism.name}, {prefilter}"
    return PaperMechanism(calibration, spectrum, family, prefilter, replace(mechanism, name=name))


def find_mechanism(
    rows: Sequence[PaperMechanism], family: str, prefilter: str, decision: str | None = None, lag: int | None = 0
) -> Mechanism:
    """Find a mechanism among those for the paper's κ and the chain's spectrum."""
    for row in rows:
        found = row.calibration, row.family, row.prefilter, row.decision, row.mechanism.lag
        if row.spectrum != "printed" and found == ("paper", family, prefilter, decision, lag):
            return row.mechanism
    raise LookupError(f"no mechanism of {family} with the prefilter {prefilter}, decision {decision} and lag {lag}")
