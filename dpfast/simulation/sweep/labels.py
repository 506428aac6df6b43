"""Labels of targets, models and privacies that nobody named: as on the command line, if that is short."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import fields
from typing import Any

import numpy as np

from dpfast.filters.filter import Filter
from dpfast.filters.filter_matrix import FilterMatrix
from dpfast.filters.toeplitz import Toeplitz, polynomial_decay
from dpfast.privacy.privacy import Privacy
from dpfast.privacy.provenance import FITTED
from dpfast.signals.arma import ARMA
from dpfast.signals.independent_levels import IndependentLevels
from dpfast.signals.markov_chain import MarkovChain
from dpfast.signals.vector_arma import VectorARMA

_LONGEST = 40  # characters


def describe_value(value: Any) -> str | None:
    """Write a value as on the command line, or a privacy by its fields; None where that is not short.

    Examples
    --------
    >>> describe_value(Filter([1, 0.995], [1, -0.995])), describe_value(Filter(np.ones(12) / 12))
    ('ba:1,0.995/1,-0.995', 'moving-average:12')
    >>> describe_value(Privacy(1, 1e-6, max_events=2))
    'epsilon 1, delta 1e-06, max_events 2'
    """
    kinds: dict[type, Callable[[Any], str | None]] = {
        Filter: _filter_text,
        Toeplitz: _toeplitz_text,
        Privacy: _privacy_text,
    }
    text = kinds.get(type(value), _model_text)(value)
    return text if text is not None and len(text) <= _LONGEST else None


def number_label(name: str, number: int, value: Any) -> str:
    """Call a value by a number, and what can be said in short: "target 2, FIR of 30 taps"."""
    what = ""
    if isinstance(value, FilterMatrix):
        what = f", {value.shape[0]} outputs of {value.shape[1]} inputs"
    elif isinstance(value, tuple):
        what = f", of {len(value)} independent streams"
    elif isinstance(value, VectorARMA):
        what = f", of {value.n_channels} streams together"
    elif hasattr(value, "size_text"):  # of targets and prefilters
        what = f", {value.size_text()}"
    elif getattr(value, "source", None) == FITTED:
        what = ", fitted"
    return f"{name} {number}{what}"


def _filter_text(x: Filter) -> str:
    n = len(x.b)
    if x.is_fir and n > 1 and np.array_equal(x.b, np.full(n, 1 / n)):
        return f"moving-average:{n}"
    if n == 1 and len(x.a) == 2 and x.b[0] == 1 + x.a[1]:
        return f"exponential:{number_text(-x.a[1])}"
    return _ratio_text(x.b, x.a)


def _toeplitz_text(x: Toeplitz) -> str | None:
    f, n = x.coefficients, x.horizon
    if (f == 1).all():
        return f"running-sum:{n}"
    if n > 1 and f[0] == 1 and 0 < f[1] < 1:
        power = float(f"{-math.log2(f[1]):.12g}")
        if np.array_equal(polynomial_decay(power, n).coefficients, f):
            return f"polynomial-decay:{number_text(power)}:{n}"
    return None


def _privacy_text(x: Privacy) -> str:
    said = {each.name: getattr(x, each.name) for each in fields(Privacy) if getattr(x, each.name) != each.default}
    return ", ".join(
        f"{name} {value if isinstance(value, str) else number_text(value)}" for name, value in said.items()
    )


def _model_text(x: Any) -> str | None:
    if getattr(x, "source", FITTED) == FITTED:  # its numbers are as private as the data
        return None
    if isinstance(x, MarkovChain):
        return f"markov:{';'.join(map(_numbers_text, x.transition))}@{_numbers_text(x.states)}"
    if isinstance(x, IndependentLevels):
        return f"levels:{_numbers_text(x.levels)}@{_numbers_text(x.probabilities)}"
    if isinstance(x, ARMA) and x.levels is None:
        return f"arma:{_ratio_text(x.shaping.b, x.shaping.a)[3:]}" + (f"@{number_text(x.mean)}" if x.mean else "")
    return None


def _ratio_text(b: Iterable[float], a: Iterable[float]) -> str:
    return f"ba:{_numbers_text(b)}" + ("" if list(a) == [1.0] else f"/{_numbers_text(a)}")


def _numbers_text(values: Iterable[float]) -> str:
    return ",".join(map(number_text, values))


def number_text(x: float) -> str:
    """Write a number as short as it can be without a loss."""
    return short if float(short := f"{x:g}") == x else repr(float(x))
