"""Mechanisms of the literature for a horizon, as designs to compare with."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from dpfast import _validate
from dpfast.design.transforms import (
    SparseDecoder,
    check_basis,
    check_steps,
    fourier_basis,
    random_signs,
    rows_of_product,
)
from dpfast.filters import Filter
from dpfast.matrix import MatrixMechanism, Noise
from dpfast.operators import Dense
from dpfast.privacy import Privacy
from dpfast.toeplitz import Toeplitz

Target = Filter | Toeplitz | Sequence[float]


def fourier_perturbation(
    target: Target,
    privacy: Privacy,
    *,
    horizon: int | None = None,
    n_coefficients: int,
    noise: Noise = "laplace",
    name: str = "FPA",
) -> MatrixMechanism:
    r"""Noise on the first Fourier coefficients of the output, the others left out. It needs the whole series.

    Model
    -----
    The Fourier perturbation algorithm FPA_k of Rastogi and Nath 2010, in real numbers: with P the first k real
    orthonormal Fourier vectors on n steps (the constant, cos, sin, cos of twice the frequency, ...), C = P A, B = Pᵀ.
    An error of two parts: k/n times the variance of the noise, the mean over the horizon, and what the left out
    coefficients of the output were, ‖y - PᵀP y‖²/n, for which :meth:`MatrixMechanism.predict` takes a model.

    The source scales Laplace noise by √k Δ₂/ε, Δ₂ the ℓ₂ sensitivity of the output: with it, the first part is
    2 k² Δ₂²/(n ε²), in its words an error of Θ(k) a step in place of Θ(n). Here it is scaled by Δ₁(PA)/ε, the exact
    largest ℓ₁ norm of a column of P A, which is never more than √k Δ₂. Its Δ₂ is that of a person's whole series;
    here adjacency is that of `privacy`.

    Parameters
    ----------
    target : Filter, Toeplitz or sequence of float
        F, or what it is over the horizon.
    privacy : Privacy
    horizon : int, optional
        n, at most 4096 as the matrices are dense; by default that of the target. Needed for a Filter.
    n_coefficients : int
        k, from 1 to n. n of them leave nothing out.
    noise : {"laplace", "gaussian"}
        Laplace as published, with pure ε: δ is not used. Gaussian with the ℓ₂ sensitivity of P A.
    name : str

    Returns
    -------
    MatrixMechanism
        Of lag None.

    Raises
    ------
    ValueError
        For n_coefficients above the horizon.
    DesignError
        For a horizon above 4096.

    Notes
    -----
    *Privacy.* The noise is that of the sensitivity of P A. `n_coefficients` must not be chosen by looking at the data
    that are to be released: say where it comes from by :meth:`MatrixMechanism.with_sources`. The choice of k by the
    exponential mechanism, which the source has, spends a part of ε and is not built.

    Examples
    --------
    >>> from dpfast import MarkovChain
    >>> from dpfast.toeplitz import running_sum
    >>> mechanism = fourier_perturbation(running_sum(256), Privacy(1, 1e-6), n_coefficients=5)
    >>> round(mechanism.sensitivity, 3), round(math.sqrt(5 * 256), 3)  # exact, and the bound of the source
    (23.634, 35.777)
    >>> round(mechanism.predict(MarkovChain([[0.9, 0.1], [0.1, 0.9]], levels=[-0.5, 0.5])) ** 0.5, 3)
    6.38
    """
    f = _checked(target, privacy, horizon)
    k = _validate.integer("n_coefficients", n_coefficients, 1, f.horizon)
    basis = fourier_basis(f.horizon, k)
    return MatrixMechanism(
        name,
        f,
        privacy,
        Dense(rows_of_product(basis, f)),
        Dense(basis.T.copy()),
        noise=noise,
        lag=None,
        unbiased=k == f.horizon,
        options=(("n_coefficients", k),),
    )


def compressive(
    target: Target,
    privacy: Privacy,
    *,
    horizon: int | None = None,
    n_measurements: int,
    basis: str = "dct",
    noise: Noise = "laplace",
    phi_seed: int = 0,
    name: str = "compressive",
) -> MatrixMechanism:
    r"""Noise on a few random projections of the output, which is taken to be sparse. It needs the whole series.

    Model
    -----
    The compressive mechanism of Li, Zhang, Winslett and Yang 2011: C = Φ A, Φ (m, n) of ±1/√m, and ŷ = Ψ x̂,

        x̂ = argmin ½‖ΦΨx - v‖₂² + λ‖x‖₁,  λ = σ √(2 ln n),

    σ the standard deviation of the noise. For A = 1 and a series of a fixed number of coefficients that are not zero,
    m = O(log n) projections have in the source an error ‖ŷ - y‖₂ of O(log n)/ε, where noise on every step has O(√n)/ε.
    The receiver is not linear: ``predicted_mse`` is None, and the error is found by simulation.

    The source bounds ‖ΦΨx - v‖₂ by a constant where here its square has a price (the same solutions, by another
    parameter), and projects the data themselves, where here the target's output is projected.

    Parameters
    ----------
    target : Filter, Toeplitz or sequence of float
        F, or what it is over the horizon.
    privacy : Privacy
    horizon : int, optional
        n, from 2 to 4096 as the matrices are dense; by default that of the target. Needed for a Filter.
    n_measurements : int
        m, from 1 to n.
    basis : {"dct", "haar"}
        Ψ, in which the target's output is sparse: cosines, or wavelets (for a horizon that is a power of two).
    noise : {"laplace", "gaussian"}
        Laplace as published, with pure ε: δ is not used. Gaussian with the ℓ₂ sensitivity of Φ A.
    phi_seed : int
        Of Φ, which is public, and is kept with the mechanism: NumPy may draw another in a later version.
    name : str

    Returns
    -------
    MatrixMechanism
        Of lag None.

    Raises
    ------
    ValueError
        For n_measurements above the horizon.
    DesignError
        For a horizon that is too short or too long, or not a power of two with Haar's wavelets.

    Notes
    -----
    *Privacy.* The noise is that of the exact sensitivity of Φ A, whatever Φ is (for Laplace never more than √m times
    the ℓ₁ norm of F over the horizon, for which the source's √m is the case A = 1). `n_measurements` and `basis` must
    not be chosen by looking at the data that are to be released.

    Examples
    --------
    >>> mechanism = compressive([1.0], Privacy(1, 1e-6), horizon=64, n_measurements=16)
    >>> round(mechanism.sensitivity, 9), mechanism.predicted_rmse is None
    (4.0, True)
    >>> mechanism.simulate([0] * 64, seed=1).estimate.shape
    (64,)
    """
    f = _checked(target, privacy, horizon, shortest=2)
    n = f.horizon
    m = _validate.integer("n_measurements", n_measurements, 1, n)
    basis = check_basis(basis, n)
    seed = _validate.integer("phi_seed", phi_seed, 0)
    phi = random_signs(m, n, seed)
    decoder = SparseDecoder(phi, basis, penalty=1.0)
    mechanism = MatrixMechanism(
        name,
        f,
        privacy,
        Dense(rows_of_product(phi, f)),
        decoder,
        noise=noise,
        lag=None,
        unbiased=False,
        options=(("n_measurements", m), ("basis", basis), ("phi_seed", seed)),
    )
    penalty = mechanism.noise_std * math.sqrt(2 * math.log(n))
    return replace(mechanism, reconstruction=decoder._replace(penalty=penalty))


def _checked(target: Target, privacy: Privacy, horizon: int | None, shortest: int = 1) -> Toeplitz:
    """The target over a horizon for which dense matrices are not too large."""
    _validate.instance("privacy", privacy, Privacy, "a Privacy")
    f = Toeplitz.of(target, horizon)
    check_steps(f.horizon, shortest)
    return f
