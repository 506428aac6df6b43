"""The Fourier perturbation algorithm (Rastogi and Nath 2010): noise on the first coefficients."""

from __future__ import annotations

from dpfast._support import validation
from dpfast._support.design_calls import public_design
from dpfast.design.argument_checks import Target, check_real_noise, target_over_horizon
from dpfast.design.horizon.transform_matrices import check_steps, fourier_basis, rows_of_product
from dpfast.mechanisms.matrix_mechanism import MatrixMechanism, Noise
from dpfast.mechanisms.operators.dense import Dense
from dpfast.privacy.privacy import Privacy


@public_design
def fourier_perturbation(
    target: Target,
    privacy: Privacy,
    *,
    horizon: int | None = None,
    n_coefficients: int,
    noise: Noise = "laplace",
    name: str = "FPA",
) -> MatrixMechanism:
    r"""Put noise on the first Fourier coefficients of the output, and leave out the others. It needs the whole series.

    Model
    -----
    The Fourier perturbation algorithm FPA_k of Rastogi and Nath 2010, in real numbers: with P the first k real
    orthonormal Fourier vectors on n steps (the constant, cos, sin, cos of twice the frequency, ...), C = P A, B = Pᵀ.
    The mean error over the horizon has two parts: k/n times the variance of the noise, and the coefficients of the
    output that are left out, ‖y - PᵀP y‖²/n, for which :meth:`MatrixMechanism.predict` takes a model.

    The source scales Laplace noise by √k Δ₂/ε, Δ₂ the ℓ₂ sensitivity of the output: with it, the first part is
    2 k² Δ₂²/(n ε²), in its words an error of Θ(k) a step in place of Θ(n). Here it is scaled by Δ₁(PA)/ε, the exact
    largest ℓ₁ norm of a column of P A, which is never more than √k Δ₂. Its Δ₂ is that of a person's whole series;
    here adjacency is that of `privacy`.

    Parameters
    ----------
    target : Filter, Toeplitz or sequence of float
        F, or what it is over the horizon.
    privacy : Privacy
        The guarantee that is asked for.
    horizon : int, optional
        n, at most 4096 as the matrices are dense; by default that of the target. Needed for a Filter.
    n_coefficients : int
        k, from 1 to n. n of them leave nothing out.
    noise : {"laplace", "gaussian"}
        Laplace as published, with pure ε: δ is not used. Gaussian with the ℓ₂ sensitivity of P A.
    name : str
        What tables and pictures call it.

    Returns
    -------
    MatrixMechanism
        Its lag is None.

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
    >>> import math
    >>> import dpfast as dp
    >>> mechanism = dp.fourier_perturbation(dp.running_sum(256), dp.Privacy(1, 1e-6), n_coefficients=5)
    >>> round(mechanism.sensitivity, 3), round(math.sqrt(5 * 256), 3)  # exact, and the bound of the source
    (23.634, 35.777)
    >>> round(mechanism.predict(dp.MarkovChain([[0.9, 0.1], [0.1, 0.9]], levels=[-0.5, 0.5])) ** 0.5, 3)
    6.38
    """
    f = target_over_horizon(target, privacy, horizon)
    check_real_noise(noise)
    check_steps(f.horizon)
    k = validation.integer("n_coefficients", n_coefficients, 1, f.horizon)
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
