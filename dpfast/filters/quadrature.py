r"""Integrals over the unit circle: :math:`\langle f \rangle = \frac{1}{2\pi}\int_{-\pi}^{\pi} f(\omega)\,d\omega`."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from dpfast._support.validation import Array

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(16)  # of a panel
ON_CIRCLE = 1e-9  # |F| with a zero so near to the circle has a kink there
_FINEST = 1e-14  # distance of a root from the circle below which it is on it


class QuadratureGrid(NamedTuple):
    """Quadrature nodes on [0, π] and weights, so that ``grid.mean(f(grid.omega))`` is <f>."""

    omega: Array
    weights: Array

    def mean(self, values: ArrayLike) -> float:
        """Return <f> from the values of an even f at the nodes."""
        return float((self.weights * np.asarray(values)).sum())  # pairwise, and no threads wait for each other


def graded_grid(
    roots: ArrayLike = (), *, kinks: ArrayLike = (), breaks: Iterable[float] = (), degree: int = 0
) -> QuadratureGrid:
    """Make Gauss-Legendre panels, dyadically graded around the angle of every pole and zero.

    Parameters
    ----------
    roots : array_like of complex
        Poles and zeros of the integrand. Panels shrink towards the angle of a root down to half its distance
        from the circle, and to half of 1e-14 where it is nearer, or on it.
    kinks : array_like of complex
        Zeros of a factor that is integrated as its magnitude, |F|: one nearer than 1e-9 to the circle is a mere
        breakpoint. (Never so a zero of what is divided by, or of what a logarithm is taken of.)
    breaks : iterable of float
        Further breakpoints in [0, π], such as water-filling cutoffs.
    degree : int
        Largest lag or number of taps in the integrand: panels become short enough for its oscillation.
    """
    n_panels = max(8, math.ceil(degree / 4))
    points = [np.linspace(0, np.pi, n_panels + 1), np.clip(np.fromiter(breaks, float), 0, np.pi)]
    for zeros, is_kink in ((roots, False), (kinks, True)):
        every = np.atleast_1d(np.asarray(zeros, dtype=np.complex128))
        for root in every[every != 0]:
            angle, distance = abs(np.angle(root)), abs(math.log(abs(root)))
            smallest = np.pi if is_kink and distance < ON_CIRCLE else max(distance, _FINEST) / 2
            steps = np.pi * 0.5 ** np.arange(1, max(2, math.ceil(math.log2(np.pi / smallest)) + 1))
            points.append(np.concatenate([[angle], angle - steps, angle + steps]))
    edges = np.unique(np.concatenate(points))
    edges = edges[(edges >= 0) & (edges <= np.pi)]
    edges = edges[np.concatenate([[True], np.diff(edges) > 1e-15])]
    middle, half = (edges[1:] + edges[:-1]) / 2, np.diff(edges) / 2
    omega = (middle[:, None] + half[:, None] * _NODES).ravel()
    return QuadratureGrid(omega, (half[:, None] * _WEIGHTS).ravel() / np.pi)
