"""A mechanism of several streams: a matrix of filters, noise of one deviation on its outputs, and what undoes it."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from dpfast._kernels import compiled_channels
from dpfast._support import validation
from dpfast._support.errors import DesignError
from dpfast._support.first_steps import SETTLED, distinct_steps, mean_of_first
from dpfast._support.validation import Array, Complex
from dpfast.filters.filter_matrix import FilterMatrix
from dpfast.filters.quadrature import QuadratureGrid
from dpfast.filters.toeplitz import convolve_series
from dpfast.mechanisms.base import Option
from dpfast.mechanisms.channels_base import ChannelsBase, compile_system, count_text
from dpfast.privacy.privacy import Privacy
from dpfast.signals.channel_models import (
    ChannelModels,
    channel_means,
    channels_grid,
    check_channel_models,
    passed_power,
    spectral_root,
)
from dpfast.signals.channel_outputs import autocovariance_of, channel_variances_by_step
from dpfast.signals.model import Model
from dpfast.signals.vector_arma import VectorARMA

_SAME = 1e-6  # of the largest gain: responses that are the same but for rounding


@dataclass(frozen=True)
class ChannelsMechanism(ChannelsBase):
    r"""Use what was designed for several streams together: v = G (u - mean) + n, ŷ = H v + F mean.

    G is q × m and H is p × q; n is white Gaussian noise of one standard deviation on all q channels. Without models
    there is no distortion, H G = F, and no mean is taken off.

    Attributes
    ----------
    name : str
    target : FilterMatrix
        F, p × m, whose outputs should be published.
    privacy : Privacy
        With the adjacency, which says which inputs one person reaches.
    prefilter : FilterMatrix
        G as realised, the only part that sees u.
    receiver : FilterMatrix
        H.
    ideal_mse : float or None
        The formula of the family, for ideal filters of any order.
    lower_bound_mse : float or None
        What no linear mechanism with Gaussian noise that does not distort goes below, whatever its G is; with models,
        what none with a prefilter for each input goes below: the optimum at its lag, the others whatever the lag is.
        Of an optimum that mixes inputs, what none goes below whatever its G is. It is for the streams of `models`:
        what was designed for independent ones may go below it on streams that depend on one another.
    options : tuple of (name, value)
        What else the design was given.
    models : tuple of Model, VectorARMA or None
        The streams that it was designed for: a model for each input, which are independent then, or one of all.
    lag : int
        The samples by which the estimate is late.

    Raises
    ------
    ValueError
        For parts whose channels do not fit.
    DesignError
        Where there are no models and H G is not F.

    Notes
    -----
    *Privacy.* v, and with it everything that is computed from v, is (epsilon, delta)-differentially private in exact
    arithmetic, for two inputs that are adjacent as `privacy` says. :meth:`simulate` is for studies: its seeded
    floating-point noise keeps no such promise, and :func:`dpfast.release` of its exact form does.

    Examples
    --------
    >>> import dpfast as dp
    >>> privacy = dp.Privacy.from_gdp(1, 1e-6)
    >>> privacy = dp.Privacy(privacy.epsilon, 1e-6, adjacency="one_input")
    >>> mechanism = dp.input_perturbation(dp.total(3), privacy)
    >>> round(mechanism.predicted_mse, 6)
    3.0
    """

    name: str
    target: FilterMatrix
    privacy: Privacy
    prefilter: FilterMatrix
    receiver: FilterMatrix
    ideal_mse: float | None = None
    lower_bound_mse: float | None = None
    options: tuple[tuple[str, Option], ...] = ()
    models: ChannelModels | None = None
    lag: int = 0
    exact_kind: ClassVar[str] = "channels"
    horizon: ClassVar[None] = None

    def __post_init__(self) -> None:
        (p, m), (q, inputs), (outputs, channels) = (x.shape for x in (self.target, self.prefilter, self.receiver))
        if (inputs, outputs, channels) != (m, p, q):
            raise ValueError(
                f"prefilter and receiver must be q × {m} and {p} × q for a target of shape {self.target.shape}, got "
                f"{self.prefilter.shape} and {self.receiver.shape}"
            )
        if self.models is None:
            self._check_product()
        else:
            object.__setattr__(self, "models", check_channel_models("models", self.models, m))

    def _check_product(self) -> None:
        omega = self._grid_on(()).omega
        wanted = np.abs(self.target.response(omega)).max()
        if np.abs(self._distortion(omega)).max() > _SAME * wanted:
            raise DesignError(
                "receiver must give the target behind the prefilter, H G = F, and does not: make it by zero_forcing"
            )

    def _grid_on(self, models: ChannelModels) -> QuadratureGrid:
        """Return a grid that resolves all parts, and the spectra of models."""
        parts = self.target, self.prefilter, self.receiver
        order = max(x.order for x in parts)
        return channels_grid(models, np.concatenate([x.poles for x in parts]), order + self.lag)

    def _distortion(self, omega: ArrayLike, received: Complex | None = None) -> Complex:
        """Return z^{-D} F - H G, from H if that is known: its many states take long."""
        late = np.exp(-1j * self.lag * np.asarray(omega))[..., None, None] * self.target.response(omega)
        h = self.receiver.response(omega) if received is None else received
        return np.asarray(late - h @ self.prefilter.response(omega))

    @functools.cached_property
    def noise_std(self) -> float:
        """The standard deviation of the noise on each channel behind the realised prefilter."""
        return self.privacy.noise_std(self.prefilter)

    @functools.cached_property
    def output_mse(self) -> Array:
        """The exact stationary error of each output, (p,), on the streams that it was designed for.

        It is :meth:`predict_outputs` of `models`. Without models it is of any input, as there is no distortion.
        """
        return validation.freeze(self._errors_on(() if self.models is None else self.models))

    def predict_outputs(self, models: Sequence[Model] | VectorARMA) -> Array:
        r"""Return the exact stationary error of each output, (p,), on other streams than those of the design.

        It is σ² Σ_q ‖H_pq‖² + <(z^{-D} F - H G) P (z^{-D} F - H G)*>_pp + (bias of the means)², P the matrix of spectra
        of the streams, which may be correlated; the bias is (F - H G)(1) times the means' differences.

        Parameters
        ----------
        models : sequence of Model, or VectorARMA
            A model for each input, which are independent then, or one of all.

        Raises
        ------
        ValueError
            For another number of models, or of channels, than inputs.

        Examples
        --------
        >>> import dpfast as dp
        >>> alike = dp.VectorARMA([[[0.5, 0], [0, 0.5]]], innovation_covariance=[[1, 0.9], [0.9, 1]])
        >>> apart = [dp.ARMA([1], [1, -0.5])] * 2
        >>> made = dp.lmmse(dp.differences(2), dp.Privacy(1, 0.1, adjacency="one_input"), apart, lag=1)
        >>> made.predict_outputs(alike) < made.output_mse  # they hardly differ, and so distortions nearly cancel
        array([ True])
        """
        return self._errors_on(check_channel_models("models", models, self.target.shape[1]))

    def _errors_on(self, models: ChannelModels) -> Array:
        """Return the errors on streams, or of the noise alone without models."""
        omega, weights = self._grid_on(models)
        received = self.receiver.response(omega)
        power = self.noise_std**2 * (np.abs(received) ** 2).sum(axis=-1)
        if models == ():
            return np.asarray(weights @ power)
        power += passed_power(models, self._distortion(omega, received), omega)
        bias = self._distortion(0.0).real @ (channel_means(models) - self._means)
        return np.asarray(weights @ power + bias**2)

    @functools.cached_property
    def smoothed_mse(self) -> Array | None:
        r"""The error of each output that the same v leaves to whoever waits for all of it, (p,); None without models.

        With :math:`P = BB^*` it is the diagonal of
        :math:`\langle FB\,(I + B^*G^*GB/\sigma^2)^{-1}B^*F^*\rangle`, the Wiener smoother's.
        """
        if self.models is None:
            return None
        omega, weights = self._grid_on(self.models)
        root = spectral_root(self.models, omega)
        told, wanted = self.prefilter.response(omega) @ root / self.noise_std, self.target.response(omega) @ root
        known = np.eye(root.shape[-1]) + np.swapaxes(told, -1, -2).conj() @ told
        left = np.linalg.solve(known, np.swapaxes(wanted, -1, -2).conj())
        return np.asarray(weights @ np.einsum("...ak,...ka->...a", wanted, left).real)

    @property
    def _means(self) -> Array:
        """The mean that is taken off each input, (m,)."""
        return np.zeros(self.target.shape[1]) if self.models is None else channel_means(self.models)

    @property
    def ideal_rmse(self) -> float | None:
        """The root of `ideal_mse`."""
        return None if self.ideal_mse is None else math.sqrt(self.ideal_mse)

    def predict_first_outputs(self, n: int, models: ChannelModels) -> Array:
        """Return the MSE of each output over the first n steps from rest, (p,), each estimate that of its step."""
        n_steps = distinct_steps(n, 2 * self.settling_time(SETTLED) + self.lag)
        length = n_steps + self.lag
        passed, g = self.receiver.impulse(length), self.prefilter.impulse(length)
        distortion = np.zeros((*self.target.shape, length))
        distortion[..., self.lag :] = self.target.impulse(n_steps)
        for q in range(len(g)):
            i, j = passed[:, q].any(axis=-1), g[q].any(axis=-1)
            distortion[np.ix_(i, j)] -= convolve_series(passed[i, q, None], g[q, j])
        errors = self.noise_std**2 * np.cumsum((passed**2).sum(axis=1), axis=-1)
        errors += channel_variances_by_step(distortion, autocovariance_of(models, length))
        bias = np.moveaxis(distortion, 1, -1).cumsum(axis=1) @ (channel_means(models) - self._means)
        return np.array([mean_of_first(x, n) for x in (errors + bias**2)[:, self.lag :]])

    def under(self, privacy: Privacy) -> ChannelsMechanism:
        """Return the same filters under another privacy, their noise calibrated anew; a bound does not go with it.

        Raises
        ------
        ValueError
            Where Gaussian noise does not serve that privacy.
        """
        if privacy == self.privacy:
            return self
        changed = replace(self, privacy=privacy, ideal_mse=None, lower_bound_mse=None)
        _ = changed.noise_std  # an error here, and not when it is first used
        return changed

    def release_hindrance(self) -> str:
        """Return nothing: the exact path runs it, unless rounded taps cannot be undone, which it finds out itself."""
        return ""

    def settling_time(self, amplitude: float) -> int:
        """Count the samples until the slowest of target, prefilter and receiver has decayed to an amplitude."""
        return max(x.settling_time(amplitude) for x in (self.target, self.prefilter, self.receiver))

    def compiled(self) -> compiled_channels.CompiledChannels:
        """Return the compiled form, which studies run."""
        prefilter, receiver, target = (compile_system(x) for x in (self.prefilter, self.receiver, self.target))
        means = tuple(self._means.tolist())
        return compiled_channels.CompiledChannels(means, prefilter, self.noise_std, receiver, target, self.lag)

    def _promise_text(self) -> str:
        privacy = self.privacy
        how = f"{privacy.calibration} calibration, noise multiplier {privacy.noise_multiplier:.6g}"
        return f"epsilon {privacy.epsilon:.6g}, delta {privacy.delta:.3g} ({how})"

    def _facts(self) -> dict[str, str]:
        (p, m), q = self.target.shape, self.prefilter.shape[0]
        facts = {
            "target": f"{count_text(p, 'output')} of {count_text(m, 'input')}",
            "prefilter": f"{count_text(q, 'channel')}, {count_text(self.prefilter.n_states, 'state')}",
            "noise": f"standard deviation {self.noise_std:.6g} on each channel",
            "error": f"MSE {self.predicted_mse:.6g} of all outputs together",
        }
        if self.lag:
            facts["error"] += f", {count_text(self.lag, 'sample')} late"
        if self.lower_bound_mse is not None:
            whose = "without distortion, for any prefilter"
            mixes = ("prefilter", "general") in self.options
            whose = whose if self.models is None else "of any prefilter" if mixes else "of a prefilter for each input"
            facts["lower bound"] = f"MSE {self.lower_bound_mse:.6g} {whose}"
        return facts
