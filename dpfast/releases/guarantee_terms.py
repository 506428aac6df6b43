"""What a release costs one person, and what a guarantee says of its noise: each kind of mechanism has its own words."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpfast.privacy.composition import Loss
from dpfast.privacy.discrete_gaussian_accounting import Shift, Sigma


class ReleaseTerms(NamedTuple):
    """Say what is particular to a kind of mechanism in its guarantee.

    Attributes
    ----------
    loss : Loss
        What a release costs one person.
    noise : mapping of str to str
        Lines on how much one person can change, and on the noise that hides it.
    proof : str
        How ε came about, of this release alone.
    published : mapping of str to str
        Lines on what is published.
    content : mapping
        The same for machines.
    """

    loss: Loss
    noise: Mapping[str, str]
    proof: str
    published: Mapping[str, str]
    content: Mapping[str, Any]


def gaussian_terms(taps: NDArray[np.int64], shift: Shift) -> ReleaseTerms:
    """Say what integer taps and discrete Gaussian noise cost a person, who moves their values so far."""
    digest = hashlib.sha256(taps.astype("<i8").tobytes()).hexdigest()
    return ReleaseTerms(
        Loss((shift,)),
        {
            "squared sensitivity": f"Δ² = {shift.squared_sensitivity}",
            "noise": f"{name_gaussian(shift.sigma)}, drawn exactly, once for every step",
        },
        "computed from this σ and rounded up",
        {"prefilter": f"{len(taps)} integer taps, SHA-256 {digest}"},
        {"prefilter": {"taps": len(taps), "sha256": digest}},
    )


def loss_words(loss: Loss) -> str:
    """Say in words of what parts a loss is."""
    words = [f"Δ² = {x.squared_sensitivity} and σ = {format_sigma(x.sigma)}" for x in loss.shifts] + [
        f"ε = {x}" for x in loss.pure
    ]
    return ", ".join([*words, *(f"(ε, δ) = ({epsilon}, {delta})" for epsilon, delta in loss.approximate)])


def loss_content(loss: Loss) -> list[dict[str, Any]]:
    """Return the parts of a loss for machines, with exact numbers as texts."""
    shifts = [
        {"squared_sensitivity": str(x.squared_sensitivity), "sigma": list(x.sigma), "numbers": x.n_coordinates}
        for x in loss.shifts
    ]
    pairs = [*((x, Fraction(0)) for x in loss.pure), *loss.approximate]
    return [*shifts, *({"epsilon": str(epsilon), "delta": str(delta)} for epsilon, delta in pairs)]


def name_gaussian(sigma: Sigma) -> str:
    """Name the law of the noise, with its standard deviation exactly and as people read it."""
    return f"discrete Gaussian, σ = {format_sigma(sigma)} (about {sigma.std:.4g})"


def format_sigma(sigma: Sigma) -> str:
    """Write the standard deviation of the noise exactly, as an integer over a power of two."""
    return f"{sigma.a}/2^{sigma.j}"
