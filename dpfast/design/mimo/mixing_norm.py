r"""How much noise behind K = H G costs, G any prefilter: a nuclear norm that is smoothed, its slope and its curvature.

K is given at the nodes of a circle. The least noise power of all H G = K is κ²γ(K)², γ the largest <‖KΦ^½‖_*> over
mixtures Φ = Σ λ_a a a* of what a person may change, a. Smoothed it is

    g(K) = max over λ of <tr Y> + μ Σ ln λ_a,   Y = (KΦK* + θ²)^½,

convex, with a slope and a curvature wherever singular values vanish, and no share is zero.
"""

from __future__ import annotations

import math
from functools import cached_property
from typing import NamedTuple

import numpy as np

from dpfast._support.validation import Array, Complex
from dpfast.design.mimo.channel_weights import SampledChannels, adjoint
from dpfast.design.mimo.event_atoms import EventAtoms, EventMixture

_BARRIER = 0.1  # of what is smoothed, for the shares
_MOST_STEPS = 50
_ROUNDING, _NEAR = 1e-13, 1e-5  # of g, and of μ: what a step of the shares gains, and none after it
_INSIDE = 0.95  # of the way to where a share is zero
_SUFFICIENT = 0.01  # of what the slope promises
_SHORTEST = 1e-8
_RIDGE = 1e-13  # of the diagonal of a curvature, which vanishes where spectra do
_STRONG = 100  # times the power of what an input tells: noise that its column of F would take


class Softness(NamedTuple):
    """The smoothing of singular values and of shares.

    Attributes
    ----------
    size : float
        θ.
    barrier : float
        μ.
    """

    size: float
    barrier: float


class _Mixture(NamedTuple):
    """Shares, the mixture Φ (nodes, m, m) or (1, m, m) that they make, and a root of it."""

    shares: Array
    spectrum: Complex
    root: Complex


class _Split(NamedTuple):
    """The eigenvalues (nodes, p) and eigenvectors (nodes, p, p) of Y at some mixture, and g there."""

    mixture: _Mixture
    sizes: Array
    basis: Complex
    value: float

    @property
    def shares(self) -> Array:
        """λ."""
        return self.mixture.shares


class MixingNorm:
    """g of a problem.

    Parameters
    ----------
    problem : SampledChannels
    atoms : EventAtoms
        What a person may change, which spans all directions.
    """

    def __init__(self, problem: SampledChannels, atoms: EventAtoms) -> None:
        self.problem, self.atoms = problem, atoms
        self.responses = atoms.response(problem.circle.grid.omega)
        across = np.moveaxis(self.responses, 0, -1)
        self._squares = across[:, :, None] * across[:, None].conj()  # a a*, (nodes, m, m, n_atoms)

    def whole(self, k: Complex, shares: Array) -> float:
        """Return the sum of the singular values of KΦ^½, averaged over the circle: <‖KΦ^½‖_*>."""
        sizes = np.linalg.svd(k @ np.linalg.cholesky(self.mixture(shares)), compute_uv=False)
        return float(self.problem.mean(sizes.sum(axis=1)))

    def first_guess(self) -> Complex:
        """Return F, but behind strong noise with columns times what errs least alone: F would be far off."""
        problem, columns = self.problem, np.linalg.norm(self.problem.wanted, axis=1)
        power: Array = problem.mean(columns**2 * np.einsum("wii->wi", problem.psd).real)
        noise = (problem.noise * problem.mean(columns)) ** 2
        strong = noise > _STRONG * power
        return np.asarray(problem.wanted * np.where(strong, power / np.where(strong, power + noise, 1.0), 1.0))

    def soften(self, amount: float) -> Softness:
        """Return what smooths all singular values together by an amount."""
        return Softness(amount / min(self.problem.wanted.shape[1:]), _BARRIER * amount / len(self.atoms.changes))

    def at(self, k: Complex, shares: Array, soft: Softness) -> NormPoint:
        """Return g at K (nodes, p, m), by Newton's method from shares that are near to the worst."""
        found = self.at_below(math.inf, k, shares, soft)
        assert found is not None
        return found

    def at_below(self, most: float, k: Complex, shares: Array, soft: Softness) -> NormPoint | None:
        """Return g at K if it is not above some value, else None as soon as shares are found that show it."""
        reached, found = k @ np.moveaxis(self.responses, 0, -1), self._split(k, self._mix(shares), soft)
        for _ in range(_MOST_STEPS):
            if found.value > most:
                return None
            slope, curvature = self.bend(reached, found, soft)
            step = self._newton_step(slope, curvature, found.shares)
            if slope @ step <= max(_ROUNDING * abs(found.value), _NEAR * soft.barrier):
                if (step > -_INSIDE * found.shares).all():  # what g does not tell, its slope does
                    found = self._split(k, self._mix(_normalize(found.shares + step)), soft)
                break
            longer = self._climb(k, found, step, float(slope @ step), soft)
            if longer is None:
                break
            found = longer
        if found.value > most:
            return None
        return NormPoint(self, k, soft, found, self._solve(self.bend(reached, found, soft)[1], found.shares))

    def at_shares(self, k: Complex, shares: Array, size: float) -> NormPoint:
        """Return g at K with these shares, as if no others were worse, and no barrier before zero."""
        return self.at_mixture(k, self._mix(shares), Softness(size, 0.0))

    def at_mixture(self, k: Complex, mixture: _Mixture, soft: Softness) -> NormPoint:
        """Return the same with a mixture that is at hand."""
        n_atoms = len(mixture.shares)
        return NormPoint(self, k, soft, self._split(k, mixture, soft), np.zeros((n_atoms, n_atoms)))

    def mixture(self, shares: Array) -> Complex:
        """Return Φ, (nodes, m, m), or one for all nodes, (1, m, m)."""
        return np.asarray(self._squares @ shares)

    def _mix(self, shares: Array) -> _Mixture:
        mixture = self.mixture(shares)
        return _Mixture(shares, mixture, np.linalg.cholesky(mixture).astype(np.complex128))

    def _split(self, k: Complex, mixture: _Mixture, soft: Softness) -> _Split:
        basis, values, _ = np.linalg.svd(k @ mixture.root)
        sizes = np.full(basis.shape[:2], soft.size)
        sizes[:, : values.shape[1]] = np.hypot(values, soft.size)
        value = float(self.problem.mean(sizes.sum(axis=1)) + soft.barrier * np.log(mixture.shares).sum())
        return _Split(mixture, sizes, basis, value)

    def bend(self, reached: Complex, at: _Split, soft: Softness) -> tuple[Array, Array]:
        """Return slope and curvature of g in the shares, from K a of all atoms (nodes, p, n_atoms)."""
        turned = adjoint(at.basis) @ reached
        squares = turned.real**2 + turned.imag**2
        slope = self.problem.mean((squares / at.sizes[:, :, None]).sum(axis=1)) / 2
        weights = np.sqrt(self.problem.circle.grid.weights[:, None, None] * divided(at.sizes))
        first, second = np.triu_indices(turned.shape[1], 1)
        products = turned[:, first] * turned[:, second].conj() * weights[:, first, second, None]
        own = squares * np.diagonal(weights, axis1=1, axis2=2)[:, :, None] / math.sqrt(2)
        rows = np.concatenate([own, products.real, products.imag], axis=1).reshape(-1, turned.shape[2])
        curvature = -(rows.T @ rows)
        return slope + soft.barrier / at.shares, curvature - np.diag(soft.barrier / at.shares**2)

    @staticmethod
    def _newton_step(slope: Array, curvature: Array, shares: Array) -> Array:
        """Return what `_solve` makes of a slope, in less time than the inverse takes."""
        pulled = shares * slope
        step, fixed = np.linalg.solve(-curvature * np.outer(shares, shares), np.stack([pulled, shares], axis=1)).T
        return np.asarray(shares * (step - fixed * (fixed @ pulled) / (shares @ fixed)))

    @staticmethod
    def _solve(curvature: Array, shares: Array) -> Array:
        """Return the inverse of a negative curvature, negated, among changes of the shares whose sum is zero.

        It is found of relative changes, as shares may be very small.
        """
        inverse = np.linalg.inv(-curvature * np.outer(shares, shares))
        fixed = inverse @ shares
        return np.asarray((inverse - np.outer(fixed, fixed) / (shares @ fixed)) * np.outer(shares, shares))

    def _climb(self, k: Complex, at: _Split, step: Array, promised: float, soft: Softness) -> _Split | None:
        """Go so far along a step that it pays; None where rounding leaves nothing to gain."""
        length = min(1.0, _INSIDE / float((-step / at.shares).max(initial=_INSIDE)))
        while length > _SHORTEST:
            found = self._split(k, self._mix(_normalize(at.shares + length * step)), soft)
            if found.value >= at.value + _SUFFICIENT * length * promised:
                return found
            length /= 2
        return None


class NormPoint:
    """g at a K.

    Attributes
    ----------
    k : array, (nodes, p, m)
    soft : Softness
    shares : array, (n_atoms,)
        λ, the worst.
    mixture : array, (nodes, m, m) or (1, m, m)
        Φ.
    sizes, basis : array, (nodes, p) and (nodes, p, p)
        Eigenvalues and eigenvectors of Y.
    value : float
        g.
    slope : array, (nodes, p, m)
        Y⁻¹KΦ: at every frequency ‖Y⁻¹KΦ^½‖ < 1.
    """

    def __init__(self, norm: MixingNorm, k: Complex, soft: Softness, split: _Split, inverse: Array) -> None:
        self.k, self.soft, (mixed, self.sizes, self.basis, self.value) = k, soft, split
        self.shares, self.mixture, _ = mixed
        self._norm, self._at, self._inverse = norm, split, inverse
        self._turned = adjoint(self.basis) @ k
        self._turned[:, k.shape[2] :] = 0  # but for rounding, which a small θ would raise
        self._mixed = self._turned @ self.mixture
        self._divided = divided(self.sizes)
        self.slope: Complex = np.asarray(self.basis @ (self._mixed / self.sizes[:, :, None]))

    def mixing(self) -> Complex:
        """Return C (directions, nodes, p, m): as the worst mixture changes with K, the curvature is larger by C*C."""
        sizes, basis = np.linalg.eigh(self._inverse)
        roots = basis * np.sqrt(np.maximum(sizes, 0))
        return np.moveaxis(self.couplings @ roots[:, 1:], -1, 0)  # the first is zero: shares sum to one

    def shares_along(self, e: Complex) -> Array:
        """Return about what the worst shares change by at K + E, relatively."""
        weighed = self._norm.problem.circle.grid.weights[:, None, None] * e
        joint = (weighed.conj().ravel() @ self.couplings.reshape(e.size, -1)).real
        return np.asarray(self._inverse @ joint / self.shares)

    def curve_alone(self, e: Complex) -> Complex:
        """Return what it changes by at each frequency, of this mixture; of many E (..., nodes, p, m) at once."""
        mixed = adjoint(self.basis) @ e @ self.mixture
        square = mixed @ adjoint(self._turned)
        square = square + adjoint(square)
        return np.asarray(self.basis @ (mixed / self.sizes[:, :, None] - (square * self._divided) @ self._mixed))

    def curvature(self, psd: Complex, noise: float) -> Array:
        """Return the matrices (nodes, 2pm, 2pm) of E → EP + ν times `curve_alone`, of real and imaginary parts.

        In the basis of Y the rows of E are taken by themselves, but for what is of the conjugate of E.
        """
        nodes, p, m = self.k.shape
        turn, mixed = self.basis, self._mixed
        outer = (mixed.conj()[..., None] * mixed[:, :, None]).reshape(nodes, p, m * m)
        rows = self.mixture[:, None] / self.sizes[..., None, None] - (self._divided @ outer).reshape(nodes, p, m, m)
        own = (psd[:, None] + noise * rows).reshape(nodes, p, m * m)
        turned_back = (turn[:, :, None] * turn.conj()[:, None]).reshape(nodes, p * p, p) @ own
        linear = turned_back.reshape(nodes, p, p, m, m).transpose(0, 1, 4, 2, 3)
        pairs = (turn[:, :, None] * np.swapaxes(mixed, 1, 2)[:, None]).reshape(nodes, p * m, p)
        crossed = (pairs @ (noise * self._divided) @ np.swapaxes(pairs, 1, 2)).reshape(nodes, p, m, p, m)
        conjugate = crossed.transpose(0, 1, 4, 3, 2)
        whole = np.empty((nodes, 2, p, m, 2, p, m))
        whole[:, 0, :, :, 0], whole[:, 0, :, :, 1] = (linear - conjugate).real, -(linear + conjugate).imag
        whole[:, 1, :, :, 0], whole[:, 1, :, :, 1] = (linear - conjugate).imag, (linear + conjugate).real
        return whole.reshape(nodes, 2 * p * m, 2 * p * m)

    def inverse_curvature(self, psd: Complex, noise: float) -> Array:
        """Return the inverse of `curvature`, a little less than it is, as it may be singular but for rounding."""
        curved = self.curvature(psd, noise)
        steps = np.arange(curved.shape[1])
        curved[:, steps, steps] *= 1 + _RIDGE
        return np.asarray(np.linalg.inv(curved))

    def elsewhere(self, k: Complex) -> NormPoint:
        """Return g at another K with the same shares, as `at_shares` does."""
        return self._norm.at_mixture(k, self._at.mixture, self.soft)

    @property
    def events(self) -> EventMixture:
        """The mixture of events, with shares that sum to one."""
        return EventMixture(self._norm.atoms, _normalize(self.shares))

    def bend(self) -> tuple[Array, Array]:
        """Return slope and curvature of <tr Y> in the shares."""
        return self._norm.bend(self.k @ np.moveaxis(self._norm.responses, 0, -1), self._at, Softness(0.0, 0.0))

    @cached_property
    def couplings(self) -> Complex:
        """The changes of the slope with each share, (nodes, p, m, n_atoms)."""
        (nodes, p, m), atoms = self.k.shape, np.moveaxis(self._norm.responses, 0, -1)
        own = np.eye(m) / self.sizes[..., None, None]
        crossed = np.swapaxes(self._mixed, 1, 2)[:, None] * self._divided[:, :, None] @ self._turned.conj()[:, None]
        parts = ((own - crossed).reshape(nodes, p * m, m) @ atoms.conj()).reshape(nodes, p, m, -1)
        parts *= (self._turned @ atoms)[:, :, None]
        return np.asarray(self.basis @ parts.reshape(nodes, p, -1)).reshape(nodes, p, m, -1)


def divided(sizes: Array) -> Array:
    """Return 1/(y_i y_j (y_i + y_j)): Y⁻¹ changes by less that times what Y² does, in the basis of Y."""
    first, second = sizes[:, :, None], sizes[:, None]
    return np.asarray(1 / (first * second * (first + second)))


def _normalize(shares: Array) -> Array:
    """Make their sum one, which rounding moves."""
    return np.asarray(shares / shares.sum())
