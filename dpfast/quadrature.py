r"""Integrals over the unit circle: :math:`\langle f \rangle = \frac{1}{2\pi}\int_{-\pi}^{\pi} f(\omega)\,d\omega`."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from dpfast._validate import Array

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(16)  # of a panel
ON_CIRCLE = 1e-9  # a zero so near to the circle is a kink, not a peak


class Grid(NamedTuple):
    """Quadrature nodes on [0, π] and weights, so that ``grid.mean(f(grid.omega))`` is <f>."""

    omega: Array
    weights: Array

    def mean(self, values: ArrayLike) -> float:
        """<f> from the values of an even f at the nodes."""
        return float((self.weights * np.asarray(values)).sum())  # pairwise, and no threads wait for each other


def graded_grid(
    roots: ArrayLike = (), *, breaks: Iterable[float] = (), degree: int = 0, logarithmic: bool = False
) -> Grid:
    """Gauss-Legendre panels, dyadically graded around the angle of every pole and zero.

    Parameters
    ----------
    roots : array_like of complex
        Poles and zeros of the integrand. Panels shrink towards the angle of a root down to half its distance
        from the circle; towards a root nearer than 1e-9 they do not shrink: it is a mere breakpoint
        (|F| has a kink there).
    breaks : iterable of float
        Further breakpoints in [0, π], such as water-filling cutoffs.
    degree : int
        Largest lag or number of taps in the integrand: panels become short enough for its oscillation.
    logarithmic : bool
        The logarithm of |F| is integrated: panels shrink towards roots on the circle too, down to 1e-14.
    """
    n_panels = max(8, math.ceil(degree / 4))
    points = [np.linspace(0, np.pi, n_panels + 1), np.clip(np.fromiter(breaks, float), 0, np.pi)]
    for root in np.atleast_1d(np.asarray(roots, dtype=np.complex128)):
        if root == 0:
            continue
        angle, distance = abs(np.angle(root)), abs(math.log(abs(root)))
        smallest = max(distance, 1e-14) / 2 if distance >= ON_CIRCLE or logarithmic else np.pi
        steps = np.pi * 0.5 ** np.arange(1, max(2, math.ceil(math.log2(np.pi / smallest)) + 1))
        points.append(np.concatenate([[angle], angle - steps, angle + steps]))
    edges = np.unique(np.concatenate(points))
    edges = edges[(edges >= 0) & (edges <= np.pi)]
    edges = edges[np.concatenate([[True], np.diff(edges) > 1e-15])]
    middle, half = (edges[1:] + edges[:-1]) / 2, np.diff(edges) / 2
    omega = (middle[:, None] + half[:, None] * _NODES).ravel()
    return Grid(omega, (half[:, None] * _WEIGHTS).ravel() / np.pi)
