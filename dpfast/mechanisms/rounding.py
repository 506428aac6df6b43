"""Find what rounding to multiples of a unit adds to inputs, and warn where a prediction of that is far off."""

from __future__ import annotations

import math

import numpy as np

from dpfast._support.errors import AccuracyWarning, warn
from dpfast.privacy.lattice import Lattice, is_whole
from dpfast.signals.model import Model

_N_ANGLES = 2**12
_NEAR = 0.99  # of it, so that the unit that the warning names is fine enough
_ENOUGH = 0.5  # of a unit: what is new in an input, from which on predictions were seen to be within 1 %


def rounding_variance(lattice: Lattice, model: Model) -> float:
    """Return the variance that rounding adds to inputs of a model: unit²/12, or none where all are multiples."""
    return 0.0 if _lies_on(lattice, model) else lattice.rounding_variance


def warn_of_rounding(lattice: Lattice | None, model: Model) -> None:
    """Warn where the error of rounding is nothing like the white noise that predictions take it for.

    It is white where an input may be anywhere between two multiples of the unit, whatever was before it: where what its
    past does not tell, the innovation, spreads over half a unit at least. Levels that are no multiples are always
    rounded alike.
    """
    if lattice is None or not lattice.rounds or _lies_on(lattice, model):
        return
    unit = lattice.unit
    if model.levels is not None:
        why = "the levels of the model are no multiples of it, and each is always rounded alike: choose one that "
        why += "divides them"
    elif (new := _innovation_std(model)) < _NEAR * _ENOUGH * unit:
        why = f"what is new in an input at each step has a standard deviation of {new:.3g} only: choose a unit of at "
        why += f"most {new / _ENOUGH:.3g}"
    else:
        return
    warn(
        f"the prediction takes the error of rounding to the unit {unit:g} for white noise, and may be far off, as "
        f"{why}, or simulate, by monte_carlo",
        AccuracyWarning,
    )


def _lies_on(lattice: Lattice, model: Model) -> bool:
    """Tell whether all inputs of a model are multiples of the unit that they would be rounded to."""
    return model.levels is not None and is_whole((model.levels - lattice.offset) / lattice.unit)


def _innovation_std(model: Model) -> float:
    """Return the standard deviation of the innovations: the geometric mean of the spectrum (Kolmogorov)."""
    psd = model.psd((np.arange(_N_ANGLES) + 0.5) * (math.pi / _N_ANGLES))
    return math.exp(0.5 * float(np.log(np.maximum(psd, np.finfo(float).tiny)).mean()))
