r"""Find what a genie who knows all other inputs leaves unknown of one input of a symmetric chain behind Gaussian noise.

For s_t = ±1 of flip probability p and v = G s/2 + n with ‖g‖₂ = 1 and n of standard deviation κ, ψ_i is s_i less its
mean given v and all other inputs. With ε and ε' the signs of s_i s_{i-1} and s_i s_{i+1}, independent with P(-1) = p,
and ξ a standard Gaussian,

    f = s_i ψ_i = 1 - tanh(½ ln((1-p)/p)(ε + ε') + (ξ + 1/(2κ))/(2κ)),  α_n(ε, ε') = E_ξ[f He_n(ξ)]/√n!.

By Cauchy and Schwarz every estimate of y = Σ f_k s_{t-k}/2 has an MSE of at least cᵀ V⁻¹ c, c = E[yψ] = C f,
C = E α_0/2, and V = E[ψψᵀ], of which Mehler's formula gives V_ij = Σ_n w_n(|i - j|) (R_ij)ⁿ, R the Gramian of G up to
now:

    w_n(0) = E α_n²,  w_n(1) = E[ε₂ⁿ⁺¹ α_n(ε₁, ε₂) α_n(ε₂, ε₃)],
    w_n(k) = (E α_n)² for odd n, (E ε'α_n)² (1 - 2p)^{k-2} for even n, k ≥ 2.

For odd n a matrix (E α_n)² (R_ij)ⁿ is taken out, which is what more outputs of a filter of norm 1 would give; the rest
of w_n is a Toeplitz matrix of a spectrum M_n, and its entries times (R_ij)ⁿ make a matrix below the largest M_n. So
cᵀ V⁻¹ c is at least the error of a Gaussian signal of spectrum P behind such a filter, with noise of standard deviation
σ: 1/σ² = Σ_{n odd} (E α_n)²/C² and 1/P(ω) = [M_0(ω) + Σ_{n ≥ 1} max M_n]/C².
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from dpfast._support.validation import Array

_REACH = 14.0  # of ξ on both sides
_STEP = 0.02  # of ξ, or a part of the distance πκ of the poles of f from the real line
_TERMS = 100
_TERMS_OF_QUIET = 5  # more of them, over κ²
_ROUNDING = 1e-13  # of E f², beside what is summed


class EquivalentSignal(NamedTuple):
    """A Gaussian signal of an autoregression of two and a moving average of one, for which errors are no larger.

    Attributes
    ----------
    b, a : array
        Coefficients of the filter that shapes it from white noise of variance one.
    noise_variance : float
        σ², for a filter of norm 1.
    """

    b: Array
    a: Array
    noise_variance: float


def equivalent_signal(flip: float, kappa: float) -> EquivalentSignal:
    """Return it for the chain ±½ that flips with a probability, and Gaussian noise of a multiplier."""
    alpha, rest = _hermite_coefficients(flip, kappa)
    chance, sign = np.array([flip, 1 - flip]), np.array([-1.0, 1.0])
    n, rho = np.arange(alpha.shape[-1]), 1 - 2 * flip
    odd = n % 2 == 1
    mean, own = (np.einsum("i,j,ijn->n", chance, chance, x) for x in (alpha, alpha**2))
    far = np.where(odd, 0.0, np.einsum("i,j,ijn->n", chance, chance * sign, alpha) ** 2)
    powers = np.where(odd, 1.0, sign[:, None])  # ε₂ⁿ⁺¹
    beside = np.einsum("i,j,k,jn,ijn,jkn->n", chance, chance, chance, powers, alpha, alpha)
    common = np.where(odd, mean**2, 0.0)
    own, beside = own - common, beside - common
    # as a function of cos ω the spectrum M_n is convex: it is largest at 0 or π
    largest = np.maximum(own + 2 * beside + 2 * far / (1 - rho), own - 2 * beside + 2 * far / (1 + rho))
    flat = float(largest[1:].sum()) + rest * (3 + 2 / (1 - abs(rho)))
    c = float(mean[0]) / 2
    a = _shaping_polynomial(float(own[0]) + flat, float(beside[0]), float(far[0]), rho)
    return EquivalentSignal(c * np.array([1.0, -rho]), a, c**2 / (float(common.sum()) + rest))


def _hermite_coefficients(flip: float, kappa: float) -> tuple[Array, float]:
    """Return α_n(ε, ε') as (ε, ε', n), and a bound of what all further n add to E f².

    The trapezoidal rule has an error of exp(-2π·πκ/step), as f is analytic up to the distance πκ.
    """
    step = min(_STEP, math.pi * kappa / 20)
    xi = np.arange(-_REACH, _REACH + step / 2, step)
    bias = math.log((1 - flip) / flip) * np.array([-1.0, 0.0, 1.0])
    f = 1 - np.tanh(bias[:, None] + (xi + 1 / (2 * kappa)) / (2 * kappa))
    root = np.exp(-(xi**2) / 4) * math.sqrt(step) / (2 * math.pi) ** 0.25
    last, here = np.zeros_like(xi), root
    found = np.empty((3, math.ceil(_TERMS + _TERMS_OF_QUIET / kappa**2)))
    for n in range(found.shape[1]):
        found[:, n] = f @ (here * root)
        last, here = here, (xi * here - math.sqrt(n) * last) / math.sqrt(n + 1)
    pairs = np.array([[0, 1], [1, 2]])  # ε + ε' = -2, 0, 2
    chance = np.array([flip**2, 2 * flip * (1 - flip), (1 - flip) ** 2])
    whole = chance @ ((f * root) ** 2).sum(axis=1)
    rest = max(0.0, whole - float(chance @ (found**2).sum(axis=1))) + _ROUNDING * whole
    return found[pairs], min(rest, _analytic_rest(found.shape[1], kappa))


def _analytic_rest(n_terms: int, kappa: float) -> float:
    """Bound Σ_{n ≥ N} α_n² by derivatives: Σ n!/(n-k)! α_n² = E (f⁽ᵏ⁾)², and |f⁽ᵏ⁾| ≤ k! (1 + tan 1)/(2κ)ᵏ (Cauchy)."""
    k = np.arange(1, n_terms + 1)
    factorial = np.array([math.lgamma(x + 1) for x in range(n_terms + 1)])
    logs = 2 * factorial[k] - 2 * k * math.log(2 * kappa) + factorial[n_terms - k] - factorial[n_terms]
    return (1 + math.tan(1.0)) ** 2 * math.exp(min(float(logs.min()), 0.0))


def _shaping_polynomial(own: float, beside: float, far: float, rho: float) -> Array:
    """Factor own + 2 beside cos ω + 2 far Re[z²/(1 - ρz)], z = e^{-iω}, times |1 - ρz|², as |a|² of minimum phase."""
    r = (
        own * (1 + rho**2) - 2 * rho * beside,
        beside * (1 + rho**2) - rho * (own + far),
        far - rho * beside,
    )
    cosines = np.roots([4 * r[2], 2 * r[1], r[0] - 2 * r[2]]).astype(np.complex128)
    root = np.sqrt(cosines - 1) * np.sqrt(cosines + 1)  # of c² - 1, of the sign of c
    zeros = 1 / (cosines + root)
    a = np.poly(zeros).real
    return np.asarray(a * math.sqrt(r[0] + 2 * r[1] + 2 * r[2]) / a.sum())
