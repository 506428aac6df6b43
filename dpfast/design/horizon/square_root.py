"""Mechanisms of the literature over a horizon, without a model of the signal."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from dpfast._support import validation
from dpfast._support.errors import DesignError
from dpfast.design.horizon import binary_tree as trees
from dpfast.design.horizon import buffered_toeplitz as blt
from dpfast.design.horizon import decayed_sum as decays
from dpfast.design.horizon.transforms import (
    SparseDecoder,
    check_basis,
    check_steps,
    fourier_basis,
    random_signs,
    rows_of_product,
)
from dpfast.filters.filter import Filter
from dpfast.filters.toeplitz import Toeplitz, square_root_series
from dpfast.mechanisms.matrix_mechanism import MatrixMechanism, Noise
from dpfast.mechanisms.operators.operators import Convolution, Dense, Operator
from dpfast.privacy.privacy import Privacy

Target = Filter | Toeplitz | Sequence[float]
_LARGEST_GROWTH = 1e7  # from here on rounding would spoil the first steps


def square_root(
    target: Target, privacy: Privacy, *, horizon: int | None = None, name: str = "square root"
) -> MatrixMechanism:
    r"""Square-root factorisation of a Toeplitz target: C and B both have the power series of √f.

    Model
    -----
    c² = f as power series; with Gaussian noise of standard deviation κ d‖c‖₂ the squared error of step t is
    κ² d² ‖c‖₂² Σ_{k ≤ t} c_k². For the running sum c_k = Π_{j ≤ k} (1 - 1/2j), and no factorisation has a largest error
    smaller by more than a constant (Fichtenberger, Henzinger and Upadhyay 2023). Leading zeros of f and the sign of the
    first coefficient go to B.

    Parameters
    ----------
    target : Filter, Toeplitz or sequence of float
        f.
    privacy : Privacy
    horizon : int, optional
        n; a Filter needs it.
    name : str

    Returns
    -------
    MatrixMechanism
        Its predicted error is exact.

    Raises
    ------
    DesignError
        Where √f grows so much that rounding spoils the estimates: targets with a zero outside of the unit circle, where
        the error is useless long before. That of 1 - 2z⁻¹ is 9.6, 3.9e4 and 1.7e13 κ d over 8, 16 and 32 steps.

    Notes
    -----
    *Privacy.* The noise is that of the largest column of C; see :class:`MatrixMechanism`. To several events it is exact
    where no coefficient of √f is negative and none larger than the one before, as for the running sum.

    Examples
    --------
    >>> from dpfast import running_sum
    >>> mechanism = square_root(running_sum(1024), Privacy.from_gdp(1, 1e-6))
    >>> round(mechanism.predicted_rmse, 4), round(math.sqrt(mechanism.max_mse), 4)
    (3.1098, 3.2726)
    """
    whole = _over_horizon(target, privacy, horizon)
    f = whole.coefficients
    delay = int(np.argmax(f != 0))
    sign = math.copysign(1.0, f[delay])
    with np.errstate(over="ignore", invalid="ignore"):
        root = square_root_series(sign * f[delay:])
        bounded = bool(root @ root <= (_LARGEST_GROWTH * root[0]) ** 2)
    if not bounded:
        raise DesignError(
            f"target must have a square root that grows to at most {_LARGEST_GROWTH:.0e} times its first coefficient "
            f"over the horizon, got {whole.horizon} steps: with a zero outside of the unit circle it grows "
            "geometrically, and so does the error; use zero_forcing, buffered_toeplitz or a short horizon"
        )
    strategy = Convolution(np.concatenate([root, np.zeros(delay)]))
    return MatrixMechanism(name, whole, privacy, strategy, Convolution(np.concatenate([np.zeros(delay), sign * root])))


def buffered_toeplitz(
    target: Target,
    privacy: Privacy,
    *,
    horizon: int | None = None,
    n_buffers: int | None = None,
    error: str = "mean",
    name: str = "BLT",
) -> MatrixMechanism:
    r"""Buffered linear Toeplitz mechanism (BLT): a strategy of few decaying exponentials, fitted to the target.

    Model
    -----
    C(z) = Π (1 - p_i z⁻¹)/(1 - q_i z⁻¹), p and q real and inside of the unit circle, B = F/C. With Gaussian noise of
    standard deviation κ d‖c‖₂ the squared error of step t is κ² d² ‖c‖₂² Σ_{k ≤ t} b_k², b = f/c; its mean or its
    largest over the horizon is minimised by BFGS from several starts (Dvijotham, McMahan, Pillutla, Steinke and
    Thakurta 2024; McMahan, Xu and Zhang 2024, who fit the running sum). It is fitted for one event a person; the noise
    is that of as many as `privacy` says. Targets with complex zeros or poles near the circle need more exponentials
    than real ones can be; `square_root` is better there.

    ``mechanism.strategy.filter()`` gives C as a stable :class:`Filter` with a state for every buffer, which runs step
    by step.

    Parameters
    ----------
    target : Filter, Toeplitz or sequence of float
        f.
    privacy : Privacy
    horizon : int, optional
        n; a Filter needs it.
    n_buffers : int, optional
        Exponentials, 1 to 12. By default as many as reduce the mean squared error by 1 % or more, one more or two.
    error : {"mean", "max"}
        Which error over the steps is minimised.
    name : str

    Returns
    -------
    MatrixMechanism
        Its predicted error is exact; that its parameters are the best is not certified.

    Notes
    -----
    *Privacy.* The noise is that of the largest column of C; see :class:`MatrixMechanism`. To several events it is exact
    where c is non-negative and non-increasing, as for the running sum.

    Examples
    --------
    >>> from dpfast import running_sum
    >>> mechanism = buffered_toeplitz(running_sum(256), Privacy.from_gdp(1, 1e-6), error="max")
    >>> round(math.sqrt(mechanism.max_mse), 4), len(mechanism.strategy.poles)
    (2.8318, 3)
    """
    whole = _over_horizon(target, privacy, horizon)
    if n_buffers is not None:
        n_buffers = validation.integer("n_buffers", n_buffers, 1, blt.MAX_BUFFERS)
    error = validation.choice("error", error, ("mean", "max"))
    strategy = blt.fit(whole.coefficients, error, n_buffers)
    reconstruction = Convolution(blt.cascade(strategy.poles, strategy.zeros, whole.coefficients))
    options = (("n_buffers", n_buffers), ("error", error))
    return MatrixMechanism(name, whole, privacy, strategy, reconstruction, options=options)


def binary_tree(
    target: Target,
    privacy: Privacy,
    *,
    horizon: int | None = None,
    estimator: str = "honaker",
    noise: Noise = "gaussian",
    name: str | None = None,
) -> MatrixMechanism:
    r"""Binary tree mechanism for running sums: noise on the sums of dyadic nodes.

    Model
    -----
    v are the sums over the nodes [j 2^l, (j + 1) 2^l) inside of [0, n), each with noise; every step is in at most
    L = ⌊log₂ n⌋ + 1 of them, so that Δ₂ = d√L and Δ₁ = d L (Dwork, Naor, Pitassi and Rothblum 2010; Chan, Shi and Song
    2011). Plain: the sum of t + 1 steps is that of its nodes, one for each digit 1 of t + 1 in base two, with the
    squared error σ² popcount(t + 1). Honaker (2015), bottom up: a node of level l is estimated from its whole subtree,
    with the variance σ² v_l, v_l = 1/(1 + 1/(2 v_{l-1})), v_0 = 1, which tends to σ²/2; still causal.

    Parameters
    ----------
    target : Toeplitz or sequence of float
        A running sum, times a gain: all coefficients alike.
    privacy : Privacy
    horizon : int, optional
        n, by default that of the target.
    estimator : {"honaker", "plain"}
    noise : {"gaussian", "laplace"}
        Laplace noise of scale Δ₁/ε is private with δ = 0.
    name : str, optional

    Returns
    -------
    MatrixMechanism
        ``ideal_mse`` is σ² times the mean of the sum of v_l (plain: 1) over the digits 1 of 1, ..., n, in closed form.

    Raises
    ------
    DesignError
        For other targets.

    Notes
    -----
    *Privacy.* The noise is that of the largest column of the tree; see :class:`MatrixMechanism`.

    Examples
    --------
    >>> from dpfast import running_sum
    >>> mechanism = binary_tree(running_sum(1024), Privacy.from_gdp(1, 1e-6), estimator="plain")
    >>> round(mechanism.predicted_rmse, 3), round(math.sqrt(mechanism.max_mse), 3)
    (7.417, 10.488)
    """
    whole = _over_horizon(target, privacy, horizon)
    estimator = validation.choice("estimator", estimator, ("honaker", "plain"))
    n, gain = whole.horizon, float(whole.coefficients[0])
    if not (whole.coefficients == gain).all():
        raise DesignError(
            "target must be a running sum, all of its coefficients alike: use decayed_sum, which has trees for others, "
            "or square_root"
        )
    alike = np.ones(trees.n_levels(n))
    reconstruction: Operator
    if estimator == "honaker":
        reconstruction, variances = trees.TreeEstimator(n, gain), trees.honaker_variances(n)
    else:
        reconstruction, variances = trees.DecayedPrefixes(n, alike, 1.0, gain), alike
    if name is None:
        name = f"binary tree ({estimator}{', Laplace' * (noise == 'laplace')})"
    options = (("estimator", estimator),)
    strategy = trees.tree_strategy(n, alike)
    mechanism = MatrixMechanism(name, whole, privacy, strategy, reconstruction, noise=noise, options=options)
    ideal = (mechanism.noise_std * gain) ** 2 * trees.mean_prefix_variance(variances, n)
    return replace(mechanism, ideal_mse=ideal)


def decayed_sum(
    target: Target,
    privacy: Privacy,
    *,
    horizon: int | None = None,
    noise: Noise = "gaussian",
    name: str = "decayed sum",
) -> MatrixMechanism:
    r"""Decayed sums by dyadic trees: windows, exponential decay, and any other (Bolot et al. 2011, 2013).

    Model
    -----
    A tree of dyadic nodes with noise that differs from level to level. *Exponential*, f_k = f_0 ρ^k: a node holds the
    sum decayed to its own end, Σ ρ^{end-k} u_k; the sum at t is that of the nodes of [0, t + 1), each decayed since its
    end, with no level above the best one, at most about log₂ 1/(1 - ρ): what is older comes from all the nodes of that
    level. (Where the best one is that of the leaves, at about ρ < 0.95, this is input perturbation.) *Window of W
    steps*: the sum of the window's at most 2⌊log₂ W⌋ + 1 nodes, of ⌊log₂ W⌋ + 1 levels. *Any other f*: the windows
    [s, t + 1) of all lengths, with weights f_{t-s} - f_{t-s+1}, from the same nodes.

    With E_l the squared weights of level l in B before noise is shared out, as the mean over the steps, the best shares
    give the mean squared errors κ² d² (Σ_l √E_l)² with Gaussian and 2 d²/ε² (Σ_l E_l^{1/3})³ with Laplace noise. For a
    window of W = 2^k steps, behind the first, E_l is 1 below the top and 1/W there, and the first is κ² d² (k + 1/√W)²:
    the error grows with log W and log 1/(1 - ρ), and not with the horizon.

    *As far as it is the paper's*: trees of decayed sums, windows as a suffix and a prefix of blocks, noise that differs
    between nodes, and other decays as sums of windows that run in parallel are, as its abstract and its patent (US
    9471791) describe them; it has pure ε (Laplace) alone. Here all windows share one tree; blocks are powers of two;
    the shares of the noise are the best for the mean error rather than those of a bound; and every step of a polynomial
    decay is a window, where the paper keeps few of them and has a relative error 1 ± β: here there is none.

    Parameters
    ----------
    target : Filter, Toeplitz or sequence of float
        f; any causal target, though the fewer and smaller its changes, the better.
    privacy : Privacy
    horizon : int, optional
        n; a Filter needs it.
    noise : {"gaussian", "laplace"}
        Laplace noise of scale Δ₁/ε is private with δ = 0.
    name : str

    Returns
    -------
    MatrixMechanism
        Unbiased; its predicted error is exact.

    Raises
    ------
    DesignError
        Where the reconstruction would have more than 10⁷ entries: a decay that is neither exponential nor a short
        window takes n²/2 of them.

    Notes
    -----
    *Privacy.* The noise is that of the largest column of the tree; see :class:`MatrixMechanism`.

    Examples
    --------
    >>> privacy = Privacy.from_gdp(1, 1e-6)
    >>> [round(decayed_sum(Filter([1], [1, -0.9]), privacy, horizon=n).predicted_rmse, 3) for n in (1024, 4096)]
    [2.289, 2.293]
    >>> round(decayed_sum([1] * 16, privacy, horizon=1024).predicted_rmse, 3)
    4.234
    """
    whole = _over_horizon(target, privacy, horizon)
    validation.choice("noise", noise, ("gaussian", "laplace"))
    strategy, reconstruction = decays.decayed_factors(whole.coefficients, noise)
    return MatrixMechanism(name, whole, privacy, strategy, reconstruction, noise=noise)


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
    f = _over_horizon(target, privacy, horizon)
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
    f = _over_horizon(target, privacy, horizon)
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


def _over_horizon(target: Target, privacy: Privacy, horizon: int | None) -> Toeplitz:
    validation.instance("privacy", privacy, Privacy, "a Privacy")
    return Toeplitz.of(target, horizon)
