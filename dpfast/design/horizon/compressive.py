"""The compressive mechanism (Li et al. 2011): random projections, decoded by sparsity."""

from __future__ import annotations

import math
from dataclasses import replace

from dpfast._support import validation
from dpfast._support.design_calls import public_design
from dpfast.design.argument_checks import Target, check_real_noise, target_over_horizon
from dpfast.design.horizon.transform_matrices import check_steps, random_signs, rows_of_product
from dpfast.mechanisms.matrix_mechanism import MatrixMechanism, Noise
from dpfast.mechanisms.operators.dense import Dense
from dpfast.mechanisms.operators.sparse_decoder import SparseDecoder, check_basis
from dpfast.privacy.privacy import Privacy


@public_design
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
    r"""Put noise on a few random projections of the output, and decode them as a sparse series.

    The estimate needs the whole series.

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
        The guarantee that is asked for.
    horizon : int, optional
        n, from 2 to 4096 as the matrices are dense; by default that of the target. Needed for a Filter.
    n_measurements : int
        m, from 1 to n.
    basis : {"dct", "haar"}
        Ψ, the basis in which the target's output is sparse: cosines, or wavelets, for which the horizon must be a power
        of two.
    noise : {"laplace", "gaussian"}
        Laplace as published, with pure ε: δ is not used. Gaussian with the ℓ₂ sensitivity of Φ A.
    phi_seed : int
        The seed of Φ. Φ is public and kept with the mechanism, as NumPy may draw another in a later version.
    name : str
        What tables and pictures call it.

    Returns
    -------
    MatrixMechanism
        Its lag is None.

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
    >>> import dpfast as dp
    >>> mechanism = dp.compressive([1.0], dp.Privacy(1, 1e-6), horizon=64, n_measurements=16)
    >>> round(mechanism.sensitivity, 9), mechanism.predicted_rmse is None
    (4.0, True)
    >>> mechanism.simulate([0] * 64, seed=1).estimate.shape
    (64,)
    """
    f = target_over_horizon(target, privacy, horizon)
    check_real_noise(noise)
    check_steps(f.horizon, shortest=2)
    n = f.horizon
    m = validation.integer("n_measurements", n_measurements, 1, n)
    basis = check_basis(basis, n)
    seed = validation.integer("phi_seed", phi_seed, 0)
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
