"""Zero forcing of several streams by prefilters that mix inputs: all of a target behind the inverse of one factor."""

from __future__ import annotations

import math

import numpy as np

from dpfast._support.errors import DesignError, ToleranceWarning, warn
from dpfast._support.progress import report_step
from dpfast._support.validation import Array, Complex
from dpfast.design.mimo.channel_designs import check_channels, force_column
from dpfast.design.mimo.undistorted_bound import WorstMixture, undistorted_bound
from dpfast.design.prefilter.ideal_mechanism import IdealFamily
from dpfast.filters.conversion import StateSpace
from dpfast.filters.few_states import MinimumPhaseStates, divide_left
from dpfast.filters.fft_grid import fft_angles, fft_length
from dpfast.filters.filter import MAX_SECTION_POLES, Filter
from dpfast.filters.filter_matrix import FilterMatrix
from dpfast.filters.quadrature import graded_grid
from dpfast.filters.state_space import frequency_response
from dpfast.mechanisms.channels_mechanism import ChannelsMechanism
from dpfast.privacy.privacy import Privacy
from dpfast.privacy.sensitivity_of_matrix import Adjacency, sampled_sensitivity

_MOST_STATES = 16  # of the factor, for each of its channels
_SOFTENED = 0.25  # of the tolerance: the most that noise in all directions may cost
_KNOWN = 0.05  # of the tolerance: how near the ideal is known
_QUIETER = 0.1  # noise of that is divided by what every input is spread by, where no person is
_PROPORTIONAL = 1e-12  # of the largest gain
_SINGULAR = 1e-10  # of the largest singular value: a direction that the target does not have
_DECAY = 20.0  # of the slowest mode over the grid of a measure, in powers of e


def mix_channels(
    target: FilterMatrix, privacy: Privacy, family: IdealFamily, tolerance: float, name: str
) -> ChannelsMechanism:
    r"""Design zero forcing by a G that mixes inputs, within the tolerance of the best without distortion.

    With Φ the worst mixture of what a person may do, the best has G*G = F*W⁻¹F for W = (FΦF*)^½ with p ≤ m outputs:
    W = HH* with a minimum-phase H, and G = H⁻¹F. With more outputs G*G = Φ^{-½}(Φ^½F*FΦ^½)^½Φ^{-½}, and H = FG⁻¹. So
    there is no distortion with any minimum-phase factor, and one of few states is found whose error is near enough.
    Gains times one filter need that of the gains, which has no states, and that of the filter; `family` finds it.
    """
    used = check_channels(target, privacy)
    changes, kind = privacy.changes(target.shape[1])[used], privacy.adjacency or "one_input"
    seen = _take_inputs(target, used)
    worst = undistorted_bound(seen, changes, kind, _KNOWN * tolerance)
    at_once = not worst.mixture.atoms.delays.any()
    if at_once and seen.order > 0 and (common := _common_filter(seen)) is not None:
        shape, gains = common
        static = _Mixing(
            gains, changes, kind, undistorted_bound(gains, changes, kind, _KNOWN * tolerance), _SOFTENED * tolerance
        )
        left = tolerance if static.channels == 1 else (1 - _SOFTENED) * tolerance  # one channel loses nothing
        alone = force_column(shape, family, left).prefilter
        g, h = (x * each for x, each in zip(_mix(static, tolerance), (alone, shape * alone.inverse()), strict=True))
    else:
        if seen.order > 0:
            _check_mixable(seen)
        g, h = _mix(_Mixing(seen, changes, kind, worst, _SOFTENED * tolerance), tolerance)
    noise = privacy.noise_multiplier
    return ChannelsMechanism(
        name,
        target,
        privacy,
        _put_inputs(g, used, target.shape[1]),
        h,
        (noise * privacy.max_events) ** 2 * worst.bound,
        noise**2 * worst.bound,
        (("prefilter", "general"), ("tolerance", tolerance)),
    )


def _check_mixable(target: FilterMatrix) -> None:
    """Refuse what a matrix of few states does not hold, and what has a singular factor."""
    largest = 0 if target.shares_states else max(entry.n_states for row in target.rows for entry in row)
    if largest > MAX_SECTION_POLES:
        raise DesignError(
            f"target must have at most {MAX_SECTION_POLES} states an entry for a prefilter that mixes inputs, unless "
            f"all entries are multiples of one filter, got {largest}: smooth it by poles, or take prefilter='diagonal'"
        )
    sizes = np.linalg.svd(target.response(graded_grid(target.poles).omega), compute_uv=False)
    rank = int((sizes > _SINGULAR * sizes.max(axis=1, keepdims=True)).sum(axis=1).max())
    if rank < min(target.shape):
        raise DesignError(
            f"target must have the rank {min(target.shape)} for a prefilter that mixes inputs, got {rank}, as outputs "
            "or inputs are combinations of others: leave out such an output, give inputs that all outputs see in the "
            "same way as one, or take prefilter='diagonal'"
        )


def _common_filter(target: FilterMatrix) -> tuple[Filter, FilterMatrix] | None:
    """Return f and gains with F = f · gains, if all entries are multiples of one filter."""
    entries = [entry for row in target.rows for entry in row if entry.b.any()]
    grid = graded_grid(target.poles, degree=max(x.order for x in entries))
    first = entries[0].response(grid.omega)
    every = target.response(grid.omega)
    gains = np.einsum("w,w,wij->ij", grid.weights, first.conj(), every).real / grid.mean(np.abs(first) ** 2)
    if np.abs(every - gains * first[:, None, None]).max() > _PROPORTIONAL * np.abs(every).max():
        return None
    return entries[0], FilterMatrix(gains)


def _mix(problem: _Mixing, tolerance: float) -> tuple[FilterMatrix, FilterMatrix]:
    """Return G and H by the factor of fewest states whose error is within the tolerance; else by the best, and warn."""
    states = MinimumPhaseStates(problem.spectrum, problem.target.poles, _MOST_STATES * problem.channels)
    found, best = math.inf, states.reduce(0)
    for order in range(states.most + 1):
        report_step(f"{order} states of the prefilter")
        factor = states.reduce(order)
        q = frequency_response(*factor, problem.omega)
        excess = problem.error(q @ np.swapaxes(q, 1, 2).conj()) / problem.ideal - 1
        if excess < found:
            found, best = excess, factor
        if found <= tolerance:
            return problem.realize(best)
    warn(
        f"the realised prefilter has an MSE {found:.2g} (relative) above the ideal, tolerance is {tolerance:g}: no "
        f"factor of up to {states.most} states was found that reaches it; raise tolerance, smooth the target, or take "
        "prefilter='diagonal'",
        ToleranceWarning,
    )
    return problem.realize(best)


class _Mixing:
    """Zero forcing of a target behind the factor of a spectrum W; all errors are MSE/κ² of one event."""

    def __init__(
        self, target: FilterMatrix, changes: Array, adjacency: Adjacency, worst: WorstMixture, softened: float
    ) -> None:
        self.target, self._changes, self._adjacency = target, changes, adjacency
        p, m = target.shape
        self.channels, self._by_outputs = min(p, m), p <= m
        self._mixture, self._spread = worst.mixture, 0.0 if self._by_outputs else softened
        self.omega = fft_angles(fft_length(float(np.abs(target.poles).max(initial=0.0)), decay=_DECAY))
        self._response = target.response(self.omega)
        self._softening = softened * math.sqrt(worst.bound) / self.channels * (1.0 if self._by_outputs else _QUIETER)
        self.ideal = worst.bound

    def spectrum(self, omega: Array) -> Complex:
        """Return W, softened: the least noise in every direction keeps it positive."""
        f, mixture = self.target.response(omega), self._mixture.at(omega)
        if self._by_outputs:
            return _root(f @ mixture @ _adjoint(f), self._softening)
        half = _root(_spread(mixture, self._changes, self._spread))
        inner = _root(half @ _adjoint(f) @ f @ half, self._softening)
        back = np.linalg.inv(half)
        return np.swapaxes(back @ inner @ back, 1, 2)  # of Gᵀ, whose left factor is a right one of G

    def error(self, w: Complex) -> float:
        """Return the error behind the factor of a spectrum W, which is given at the angles."""
        f = self._response
        if self._by_outputs:
            gram, noise = _adjoint(f) @ np.linalg.solve(w, f), w
        else:
            gram = np.swapaxes(w, 1, 2)
            noise = f @ np.linalg.solve(gram, _adjoint(f))
        powers = np.einsum("wii->w", noise).real
        mean = (powers.sum() - (powers[0] + powers[-1]) / 2) / (len(powers) - 1)
        return float(sampled_sensitivity(gram, self._changes, self._adjacency) ** 2 * mean)

    def realize(self, factor: StateSpace) -> tuple[FilterMatrix, FilterMatrix]:
        """Return G and H behind a factor of W."""
        f = self.target.state_space()
        if self._by_outputs:
            return _filters(divide_left(factor, f)), _filters(factor)
        return _filters(_transposed(factor)), _filters(_transposed(divide_left(factor, _transposed(f))))


def _filters(system: StateSpace) -> FilterMatrix:
    """Return a system as a matrix of filters; of gains, which stay short behind a filter, as its entries."""
    if len(system[0]):
        return FilterMatrix.from_state_space(*system)
    return FilterMatrix([[Filter.from_factors([x]) for x in row] for row in system[3]])


def _transposed(system: StateSpace) -> StateSpace:
    a, b, c, d = system
    return a.T, c.T, b.T, d.T


def _take_inputs(target: FilterMatrix, used: list[int]) -> FilterMatrix:
    """Return the target of some inputs."""
    if target.shares_states:
        a, b, c, d = target.state_space()
        return FilterMatrix.from_state_space(a, b[:, used], c, d[:, used])
    return FilterMatrix([[row[j] for j in used] for row in target.rows])


def _put_inputs(prefilter: FilterMatrix, used: list[int], m: int) -> FilterMatrix:
    """Return a prefilter of some of m inputs as one of all, which does not see the others."""
    if prefilter.shares_states:
        a, b, c, d = prefilter.state_space()
        places = np.eye(m)[used]
        return FilterMatrix.from_state_space(a, b @ places, c, d @ places)
    return FilterMatrix([[row[used.index(j)] if j in used else 0.0 for j in range(m)] for row in prefilter.rows])


def _spread(mixture: Complex, changes: Array, share: float) -> Complex:
    """Add a share of every input to a mixture, whose inverse root is wanted."""
    return np.asarray(mixture + share * np.diag(changes**2) / len(changes))


def _root(matrices: Array | Complex, least: float = 0.0) -> Complex:
    """Return the root of matrices, with eigenvalues that are not below the least one."""
    values, vectors = np.linalg.eigh(matrices)
    sizes = np.sqrt(np.maximum(values, 0) + least**2)
    return np.asarray((vectors * sizes[..., None, :]) @ _adjoint(vectors))


def _adjoint(x: Complex) -> Complex:
    return np.swapaxes(x, -1, -2).conj()
