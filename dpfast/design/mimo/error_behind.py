"""What the best linear receiver errs behind a prefilter, at the nodes of a circle: without making that receiver."""

from __future__ import annotations

import numpy as np
from scipy import linalg

from dpfast._support.validation import Complex
from dpfast.design.mimo.channel_weights import SampledChannels, adjoint, invert
from dpfast.filters.conversion import StateSpace, chain_systems
from dpfast.filters.matrix_spectral_factor import matrix_minimum_phase
from dpfast.filters.riccati import find_predictor
from dpfast.filters.state_space import frequency_response

_MANY_STATES = 64  # of streams


def least_error(problem: SampledChannels, streams: StateSpace, prefilter: StateSpace) -> float:
    """Return the error of the Wiener filter of the problem's lag behind a prefilter.

    The receiver is made from a factor of the spectrum of v, and its error is a sum of squares: where rounding has moved
    the factor by a little, the error is not below the least, and above it by the square of that. The factor is that of
    the Kalman predictor. Taken at nodes it would need many more of them, and lose all digits where streams are one and
    loud beside the noise; so it is taken there only for streams of very many states, as a predictor takes much longer.
    """
    g = frequency_response(*prefilter, problem.circle.grid.omega)
    variance = _noise_variance(problem, g)
    if has_many_states(streams):
        white = invert(matrix_minimum_phase(_spectrum_of_seen(problem, g, variance)).factor)
    else:
        whitening = _whitening(chain_systems(streams, prefilter), variance)
        white = frequency_response(*whitening, problem.circle.grid.omega)
    receiver = problem.causal_part(problem.wanted @ problem.psd @ adjoint(g) @ adjoint(white)) @ white
    return _error_of(problem, receiver, g, variance)


def has_many_states(streams: StateSpace) -> bool:
    """It is true of streams with so many states that factors are taken at nodes: all nodes are needed then."""
    return len(streams[0]) > _MANY_STATES


def smoothed_error(problem: SampledChannels, g: Complex) -> float:
    """Return the error of the Wiener filter behind a prefilter G (nodes, q, m) that waits for all of v."""
    variance = _noise_variance(problem, g)
    told = g @ problem.psd @ adjoint(problem.wanted)
    receiver = adjoint(np.asarray(np.linalg.solve(_spectrum_of_seen(problem, g, variance), told)))
    return _error_of(problem, receiver, g, variance)


def _error_of(problem: SampledChannels, receiver: Complex, g: Complex, variance: float) -> float:
    """Return what a receiver errs, as a sum of squares."""
    noise = variance * float(problem.mean((np.abs(receiver) ** 2).sum(axis=(1, 2))))
    return problem.mean_power(problem.wanted - receiver @ g) + noise


def _spectrum_of_seen(problem: SampledChannels, g: Complex, variance: float) -> Complex:
    return np.asarray(g @ problem.psd @ adjoint(g) + variance * np.eye(g.shape[1]))


def _noise_variance(problem: SampledChannels, g: Complex) -> float:
    return problem.noise**2 * problem.squared_sensitivity(adjoint(g) @ g)


def _whitening(seen: StateSpace, variance: float) -> StateSpace:
    """Return what makes white, of variances one, what a system puts out with noise of a variance on it."""
    a, b, c, d = seen
    found = find_predictor(a, b, c, d, variance)
    root = linalg.cholesky(found.innovation, lower=True)
    whiten = linalg.solve_triangular(root, np.eye(len(root)), lower=True)
    return a - found.gain @ c, found.gain, -whiten @ c, whiten
