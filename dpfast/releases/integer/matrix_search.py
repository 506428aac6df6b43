"""Rounding of a matrix of prefilters to integer taps, and the receiver behind them."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpfast._support.errors import DesignError, UnstableFilterError
from dpfast._support.validation import Array, Complex
from dpfast.design.wiener import wiener_receiver
from dpfast.filters.fft_grid import circle_mean, fft_angles, fft_length
from dpfast.filters.filter import Filter
from dpfast.filters.filter_matrix import FilterMatrix
from dpfast.filters.input_mixture import InputMixture, find_mixture
from dpfast.filters.undoing import advance, can_undo_matrix, delay_of, served_outputs, undo_filter
from dpfast.mechanisms.channels_mechanism import ChannelsMechanism
from dpfast.privacy.discrete_gaussian_accounting import Sigma
from dpfast.releases.integer.fft_error import LONG
from dpfast.releases.integer.inputs import Inputs, Integers
from dpfast.releases.integer.integer_taps import MAX_BITS, MAX_TAPS
from dpfast.releases.integer.matrix_receiver import MatrixReceiver, matrix_on_circle
from dpfast.releases.integer.matrix_taps import matrix_taps
from dpfast.releases.integer.noise_calibration import channels_noise, channels_shift, sufficient_sigma
from dpfast.releases.integer.tap_search import FOR_TAPS, SETTLED, bits_below, fewest_taps
from dpfast.signals.channel_models import ChannelModels, channel_means, passed_power
from dpfast.signals.model import Model
from dpfast.signals.vector_arma import VectorARMA

_DECAY = 24.0  # of the slowest mode over the period, in nepers
_ANGLES_PER_TAP = 8
_SAME = 1e-12  # of the gains: taps that are those of the design but for a factor
_ROUNDING = 1e-15  # of the largest coefficient of a product: what is nothing but rounding


class RoundedChannels(NamedTuple):
    """The result of rounding a mechanism of several streams: integer taps, exact noise, and a receiver."""

    taps: Integers
    sigma: Sigma
    receiver: MatrixReceiver


class MatrixCircle(NamedTuple):
    """The angles of an FFT of length n, with a target, late by the lag, at each of them, and models of the inputs."""

    n: int
    omega: Array
    target: Complex
    models: ChannelModels | None

    @classmethod
    def of(cls, mechanism: ChannelsMechanism, n_taps: int) -> MatrixCircle:
        """Take angles that are fine enough for the slowest poles, and for products of so many taps."""
        parts = mechanism.target, mechanism.prefilter, mechanism.receiver
        poles = np.concatenate([*(x.poles for x in parts), _poles(mechanism.models)])
        longest = max(*(part.order + mechanism.lag for part in parts), n_taps * mechanism.prefilter.shape[0])
        n = fft_length(float(np.abs(poles).max(initial=0.0)), decay=_DECAY)
        n = max(n, 1 << (_ANGLES_PER_TAP * longest - 1).bit_length())
        omega = fft_angles(n)
        late = np.exp(-1j * mechanism.lag * omega)[:, None, None] * matrix_on_circle(mechanism.target, n)
        return cls(n, omega, late, mechanism.models)

    def taps_response(self, taps: Array) -> Complex:
        """Return G of taps (q, m, n), (angles, q, m)."""
        return np.moveaxis(np.fft.rfft(taps, self.n), -1, 0)

    def output_mse(self, g: Complex, std: float, h: Complex) -> Array:
        """Return the error of each output, (p,); without models there is no distortion, and that of noise alone."""
        errors = std**2 * circle_mean((np.abs(h) ** 2).sum(axis=2))
        if self.models is not None:
            errors += circle_mean(passed_power(self.models, self.target - h @ g, self.omega))
        return np.asarray(errors)


def round_channels(mechanism: ChannelsMechanism, inputs: Inputs, tolerance: float) -> RoundedChannels:
    """Return the fewest taps, and of these the fewest bits, whose error is within the tolerance of the mechanism's.

    Both errors are those with the noise that the declared inputs take.

    Raises
    ------
    DesignError
        Where 65,536 taps are not enough, and where rounded taps cannot be undone.
    """
    settled = mechanism.prefilter.settling_time(SETTLED)
    for most_taps in (LONG, MAX_TAPS):
        found = fewest_taps(_MatrixSearch(mechanism, inputs, min(most_taps, settled), tolerance))
        if found is not None:
            rounded: RoundedChannels = found
            return rounded
        if settled <= most_taps:
            break
    design = mechanism.target, mechanism.prefilter, mechanism.receiver.links()
    if mechanism.models is None and not can_undo_matrix(*design):
        raise _cannot_undo(mechanism, "whose inverse is not stable")
    raise DesignError(
        f"tolerance must be larger for this mechanism, got {tolerance:g}: with {MAX_TAPS:,} integer taps of "
        f"{MAX_BITS} bits its prefilter costs more; allow that, or design one with faster poles"
    )


def _cannot_undo(mechanism: ChannelsMechanism, why: str) -> DesignError:
    return DesignError(
        f"mechanism must have a prefilter that can be undone behind rounding, got one of shape "
        f"{mechanism.prefilter.shape} {why}, without models: design it by zero_forcing with prefilter='diagonal' or "
        "by input_perturbation, or by lmmse with models"
    )


class _MatrixSearch:
    """A search among matrices of integer taps up to a number.

    With models the receiver of the design is kept, or one for the taps takes its place where that errs less. Without
    models it must undo the taps.
    """

    def __init__(self, mechanism: ChannelsMechanism, inputs: Inputs, most_taps: int, tolerance: float) -> None:
        self.mechanism, self.inputs, self.most_taps = mechanism, inputs, most_taps
        self.mixture = _mixture_of(mechanism)
        noise = channels_noise(mechanism, inputs)
        self.most_bits = bits_below(noise, mechanism.prefilter.h2_norm() * float(inputs.unit))
        self.circle = MatrixCircle.of(mechanism, most_taps)
        self.designed = mechanism.prefilter.impulse(most_taps)
        self.h = matrix_on_circle(mechanism.receiver, self.circle.n)
        g = matrix_on_circle(mechanism.prefilter, self.circle.n)
        ideal = float(self.circle.output_mse(g, noise, self.h).sum())
        self.for_taps, self.allowed = (ideal * (1 + x * tolerance) for x in (FOR_TAPS, 1.0))
        if mechanism.models is None and self.undoing(self.taps(most_taps, self.most_bits)) is None:
            raise _cannot_undo(mechanism, "that mixes inputs behind different filters in fewer channels")

    def taps(self, n: int, bits: int) -> Integers:
        return matrix_taps(self.mechanism.prefilter, n, bits, self.mixture)

    def on_signal(self, taps: Integers) -> Array:
        return np.asarray(taps / float(self.inputs.unit))

    def sigma(self, taps: Integers) -> Sigma:
        privacy = self.mechanism.privacy
        return sufficient_sigma(privacy, channels_shift(privacy, self.inputs, taps, Sigma(1, 0)))

    def gain(self, taps: Integers) -> float:
        """Return by how much taps are larger than the design's, as near as a factor comes."""
        on, same = self.on_signal(taps), self.designed[..., : taps.shape[2]]
        return float((on * same).sum() / (self.designed**2).sum())

    def error(self, taps: Integers) -> float:
        """Return the error behind these taps, of all outputs: of the receiver that is kept, or of what undoes them."""
        if taps.shape[2] == 0 or self.gain(taps) <= 0:
            return math.inf
        g, std = self.circle.taps_response(self.on_signal(taps)), self.sigma(taps).std
        if self.mechanism.models is not None:
            return float(self.circle.output_mse(g, std, self.h / self.gain(taps)).sum())
        undone = self.undoing(taps)
        return math.inf if undone is None else float(self.circle.output_mse(g, std, undone).sum())

    def undoing(self, taps: Integers) -> Complex | None:
        """Return H with H G = F for taps; None where there is none."""
        if self.is_same(taps):
            return self.h / self.gain(taps)
        if (own := _own_inputs(taps)) is not None:
            if not _serves_once(self.mechanism, own):
                return None
            g = self.circle.taps_response(self.on_signal(taps))[:, np.arange(len(own)), own]
            if not g.all():  # a zero on the circle
                return None
            return np.asarray(np.where(_served(self.mechanism, own), self.circle.target[..., own], 0) / g[:, None])
        used = _undone_inputs(taps, self.mixture)
        if len(taps) != len(used):
            return None
        g, f = self.circle.taps_response(self.on_signal(taps))[..., used], self.circle.target[..., used]
        try:
            transposed = np.linalg.solve(g.swapaxes(1, 2), f.swapaxes(1, 2))
        except np.linalg.LinAlgError:
            return None
        return np.asarray(transposed.swapaxes(1, 2))

    def is_same(self, taps: Integers) -> bool:
        """Tell whether taps are those of the design but for a factor."""
        gain, beyond = self.gain(taps), self.designed[..., taps.shape[2] :]
        missed = np.abs(self.on_signal(taps) - gain * self.designed[..., : taps.shape[2]]).max(initial=0.0)
        return bool(max(missed, gain * np.abs(beyond).max(initial=0.0)) <= _SAME * gain * np.abs(self.designed).max())

    def realize(self, taps: Integers) -> RoundedChannels | None:
        """Return the taps with a receiver that runs; None where its error is not within the tolerance."""
        sigma, on = self.sigma(taps), self.on_signal(taps)
        g, found = self.circle.taps_response(on), []
        for stages in self.receivers(taps, sigma.std):
            receiver = MatrixReceiver(stages, self.mechanism.target, _means(self.mechanism), self.mechanism.lag)
            error = float(self.circle.output_mse(g, sigma.std, receiver.response(self.circle.n)).sum())
            found.append((error, receiver))
        error, best = min(found, key=lambda x: x[0], default=(math.inf, None))
        return RoundedChannels(taps, sigma, best) if best is not None and error <= self.allowed else None

    def receivers(self, taps: Integers, std: float) -> list[tuple[FilterMatrix, ...]]:
        """Return what may run behind taps; the best of it runs."""
        design = self.mechanism
        kept: list[tuple[FilterMatrix, ...]] = [(design.receiver * (1 / self.gain(taps)),)]
        try:
            if design.models is None:
                return kept if self.is_same(taps) else [undo_taps(design, self.on_signal(taps), self.mixture)]
            own = _own_inputs(taps)
            if own is None or isinstance(design.models, VectorARMA):
                return kept
            return [*kept, (_redesign(design, design.models, self.on_signal(taps), own, std),)]
        except UnstableFilterError:  # rounding has moved a zero out of the circle
            return [] if design.models is None else kept


def _means(mechanism: ChannelsMechanism) -> tuple[float, ...]:
    if mechanism.models is None:
        return (0.0,) * mechanism.target.shape[1]
    return tuple(channel_means(mechanism.models).tolist())


def _poles(models: ChannelModels | None) -> Complex:
    """Return the poles of the spectra of inputs."""
    if isinstance(models, VectorARMA):
        return models.poles
    return np.concatenate([np.zeros(0, complex), *(x.shaping.poles for x in models or ())])


def _used(taps: Array | Integers) -> list[int]:
    """Return the inputs that reach an output of the prefilter."""
    return [int(i) for i in np.flatnonzero(taps.any(axis=(0, 2)))]


def _mixture_of(design: ChannelsMechanism) -> InputMixture | None:
    """Return the sums that a prefilter sees that must be undone, where it has fewer channels than inputs that mix."""
    links = design.prefilter.links()
    mixes = links.sum(axis=1).max() > 1 and len(links) < links.any(axis=0).sum()
    return find_mixture(design.prefilter) if mixes and design.models is None else None


def _undone_inputs(taps: Array | Integers, mixture: InputMixture | None) -> list[int]:
    """Return the inputs from whose taps the receiver is found; of sums, those that stand for all others."""
    return _used(taps) if mixture is None else mixture.columns


def _own_inputs(taps: Array | Integers) -> list[int] | None:
    """Return the input of each channel, where each channel has one; None where a channel mixes them, or has none."""
    entries = (taps != 0).any(axis=2)
    return None if (entries.sum(axis=1) != 1).any() else [int(np.flatnonzero(row)[0]) for row in entries]


def _served(design: ChannelsMechanism, own: list[int]) -> NDArray[np.bool_]:
    """Tell which outputs are estimated from which channels, (p, q)."""
    return served_outputs(design.target, own, design.receiver.links())


def _serves_once(design: ChannelsMechanism, own: list[int]) -> bool:
    """Tell whether each entry of the target is estimated from one channel of its input."""
    channels = np.eye(design.target.shape[1], dtype=int)[own]  # (q, m)
    return bool((_served(design, own).astype(int) @ channels == design.target.links()).all())


def _redesign(
    design: ChannelsMechanism, models: tuple[Model, ...], taps: Array, own: list[int], std: float
) -> FilterMatrix:
    """Return the Wiener receivers behind taps on the signal, of the channels that the design has for each output."""
    prefilters, served = [Filter(taps[k, j]) for k, j in enumerate(own)], _served(design, own)

    def receiver(i: int, k: int) -> Filter:
        entry = design.target[i, own[k]]
        if not (served[i, k] and entry.b.any()):
            return Filter([0.0])
        (found,) = wiener_receiver(entry, models[own[k]], prefilters[k], std, design.lag).filters()
        return found

    return FilterMatrix([[receiver(i, k) for k in range(len(own))] for i in range(design.target.shape[0])])


def undo_taps(design: ChannelsMechanism, taps: Array, mixture: InputMixture | None = None) -> tuple[FilterMatrix, ...]:
    """Return H with H G = F for taps (q, m, n) on the signal.

    Where each channel has one input H is F G⁻¹ entry by entry, from the channels that the design has for each output;
    otherwise there are as many channels as inputs, or as sums of inputs that the prefilter sees, and it is the adjugate
    of G, one filter 1/det G for all, and F.

    Raises
    ------
    UnstableFilterError
        Where the inverse would not be stable.
    """
    target, own = design.target, _own_inputs(taps)
    if own is not None:
        alone, served = [Filter(taps[k, j]) for k, j in enumerate(own)], _served(design, own)
        zero = Filter([0.0])
        return (
            FilterMatrix(
                [
                    [undo_filter(row[j], alone[k]) if served[i, k] else zero for k, j in enumerate(own)]
                    for i, row in enumerate(target.rows)
                ]
            ),
        )
    used = _undone_inputs(taps, mixture)
    columns, earlier = _without_delays([[row[j] for row in target.rows] for j in used], taps[:, used])
    adjugate, determinant = _adjugate(earlier)
    shared = FilterMatrix.diagonal([Filter(determinant).inverse()] * len(used))
    return FilterMatrix(adjugate), shared, FilterMatrix(list(zip(*columns, strict=True)))


def _without_delays(columns: list[list[Filter]], taps: Array) -> tuple[list[list[Filter]], Array]:
    """Return the columns of a target, and taps (q, q, n), without the delay of each column that both have."""
    earlier, taps = [], taps.copy()
    for j, column in enumerate(columns):
        delay = int(np.argmax(taps[:, j].any(axis=0)))
        if delay and all(delay <= delay_of(entry) for entry in column if entry.b.any()):
            column = [advance(entry, delay) if entry.b.any() else entry for entry in column]
            taps[:, j] = np.roll(taps[:, j], -delay, axis=1)
        earlier.append(column)
    return earlier, taps


def _adjugate(taps: Array) -> tuple[list[list[Filter]], Array]:
    """Return the adjugate and the determinant of a square matrix of taps (q, q, n), by their values on the circle."""
    q, _, n = taps.shape
    degree = q * (n - 1)
    size = 1 << (degree + 1).bit_length()
    g = np.moveaxis(np.fft.fft(taps, size), -1, 0)
    determinant = np.linalg.det(g)
    adjugate = np.linalg.inv(g) * determinant[:, None, None]

    def coefficients(values: Complex, most: int) -> Array:
        found = np.fft.ifft(values).real[: most + 1]
        found[np.abs(found) < _ROUNDING * np.abs(found).max(initial=0.0)] = 0.0
        return np.trim_zeros(found, "b") if found.any() else np.zeros(1)

    of_entries = [[Filter(coefficients(adjugate[:, i, j], degree - n + 1)) for j in range(q)] for i in range(q)]
    return of_entries, coefficients(determinant, degree)
