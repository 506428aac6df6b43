"""Receivers fitted to what was published: the spectrum of the input is learnt from v alone, which costs no privacy."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from dpfast._support import validation
from dpfast._support.dataframes import unwrap
from dpfast._support.design_calls import public_design
from dpfast._support.errors import UnstableFilterError
from dpfast.design.adaptive.adapt_sums import adapt_sums
from dpfast.design.adaptive.adaptation import (
    CONFIDENCE,
    SURPRISE,
    Adaptable,
    AdaptableSums,
    Adaptation,
    M,
    check_linear,
    decide,
    receiver_inputs,
)
from dpfast.design.adaptive.cross_validation import Channel, cross_validate, split_in_time
from dpfast.design.adaptive.input_spectrum import Fit, Periodogram, join_periodograms
from dpfast.design.wiener import wiener_receiver
from dpfast.mechanisms.mechanism_kinds import check_of_filters, refuse_channels
from dpfast.privacy.provenance import Provenance
from dpfast.signals.model import Model

HIGHEST = 6  # order that is looked at unasked
MAX_ORDER = 20
_LINE = 5.0  # distance of a pole from the circle, in steps of an FFT, below which it is a line
_CHANCE = 1e-3  # that a stationary input is taken for a changing one


@public_design
def adapt(mechanism: M, v: ArrayLike, *, order: int | None = None) -> Adaptation[M]:
    r"""Fit the input's spectrum to the published v, and redesign the receiver for it: no privacy is spent.

    Model
    -----
    v = G (u - mean) + n with G and the variance σ² of n known, so P_v = P_u |G|² + σ² tells P_u. An autoregression
    P_u = s²/|A|² maximises Whittle's likelihood of the periodogram of v; the mean of u follows from that of v where
    G(0) is not zero. The new receiver is the Wiener filter of the same lag behind the same G and noise.

    The MSE of both receivers is then estimated on v that was held out: v is cut in five in time, and the receiver
    fitted to four parts is tried on the fifth, each part in turn. That needs no model, as the difference of two
    receivers' errors is linear in P_v. The adapted receiver is taken if it is not worse by more than 0.5 % of the MSE,
    as far as held-out v can tell (95 %, one-sided). Where the fit is in doubt, the gain must be three standard errors,
    and a gain on every part: where a higher order fits far better, or the highest considered is the best; where the
    input has a spectral line; where the spectrum or the mean changes between the parts; or where the gain is three
    standard errors below what the fit promises.

    The given receiver stays where the model that it was designed for explains v as well as the fit does (Bayesian
    information criterion): what G hides of P_u is told by the model alone, and v cannot tell which of two is right.

    Of block sums v shows B frequencies of the input together, and an autoregression maximises the likelihood of the
    periodogram of the sums. The new receiver is the Kalman filter for it behind the same sums; `mechanism` keeps the
    given design, so that what it predicts is for the model of that.

    Parameters
    ----------
    mechanism : Mechanism, ExactMechanism, ExactInputNoise, ExactResponse or ExactBlockSums
        What v was made by, with a linear receiver of any lag.
    v : array_like, (..., time), or Series, DataFrame or DataArray
        The published signal, from its start on: for studies that of :meth:`Mechanism.simulate`; for the exact form, the
        integers that a release published. All streams count as streams of one input. For block sums with several
        sums at a step the shape is (streams, sums, time); the last `lag` steps, which may be behind the end, are left
        out of the fit.
    order : int, optional
        The order of the autoregression, at most 20. By default the one between 0 and 6 (for block sums, between 0 and
        2) with the best Bayesian information criterion.

    Returns
    -------
    Adaptation

    Raises
    ------
    ValueError
        For v that is too short, constant, not finite or of the wrong shape, and for a decision-feedback receiver.

    Notes
    -----
    *Privacy.* The guarantee is that of v, and nothing is added to what it costs: the fit, the choice and the receiver
    are functions of v and of the given design, and G and the noise stay as they are. v of :meth:`Mechanism.simulate` is
    made with seeded noise and is not private; nor is what is computed from it.

    What is exact is the privacy. Gain, interval and choice are statistics: for long v, and as if v were Gaussian. Noise
    of another kind on the inputs themselves (Laplace, of integers, randomised response) is white too, and the spectrum
    of v is as above; where it is large and far from Gaussian, intervals are too short.

    Examples
    --------
    >>> import dpfast as dp, math
    >>> privacy = dp.Privacy(math.log(3), 0.05)
    >>> mechanism = dp.lmmse(dp.Filter([1, 0.9], [1, -0.9]), privacy, dp.ARMA([2.0]), lag=5)  # far too loud
    >>> u = dp.ARMA([0.5], [1, -0.5]).sample(1, 10_000, seed=1)
    >>> found = adapt(mechanism, mechanism.simulate(u, seed=2).privatized)
    >>> found.taken, found.gain > 0.1, found.mechanism.name
    (True, True, 'LMMSE lag 5, adapted')
    """
    order = None if order is None else validation.integer("order", order, 0, MAX_ORDER)
    if isinstance(mechanism, AdaptableSums):
        return adapt_sums(mechanism, v, order)
    why = (
        "its v has no spectrum to fit, as it is no filtered input step by step; of block sums give the exact form, by "
        "exact(mechanism, inputs), and of others design it for the model, or adapt a design for a Filter by another "
        "family"
    )
    refuse_channels(mechanism, "there is no adaptation of several streams together; design it anew for other models")
    check_of_filters(mechanism, why)
    validation.instance("mechanism", mechanism, Adaptable, "a Mechanism or an ExactMechanism")
    parts = split_in_time(receiver_inputs(mechanism, unwrap("v", v)[0])[1], mechanism.prefilter, mechanism.lag)
    behind = check_linear(mechanism)
    channel = Channel(behind.target, behind.prefilter, behind.noise_std, behind.receiver, length=parts[0].length)
    whole = join_periodograms(parts)
    fit, best = _fit_orders(channel, whole, order)
    model = channel.fitted_model(whole, fit)
    refusal = _explain_refusal(channel, whole, fit, best, behind.model)
    kept: Adaptation[Any] = Adaptation(mechanism, False, mechanism, model, fit.order, None, None, refusal)
    if refusal:
        return kept
    try:
        receiver = wiener_receiver(behind.target, model, behind.prefilter, behind.noise_std, behind.receiver.lag)
        chosen: dict[str, Provenance] = {"order": "public"} if order is None else {}
        adapted = mechanism.adapted_to(model, receiver, **chosen)
    except UnstableFilterError as error:
        return replace(kept, reason=f"There is no stable receiver for the fitted input: {error}.")
    gain, doubts = cross_validate(channel, parts, fit), _find_doubts(channel, parts, fit, best)
    if gain.relative < gain.predicted - SURPRISE * gain.standard_error:
        doubts += (f"it promises a gain of {gain.predicted:.2%}",)
    taken, reason = decide(gain, doubts)
    half = CONFIDENCE * gain.standard_error
    interval = (gain.relative - half, gain.relative + half)
    return replace(
        kept,
        mechanism=adapted if taken else mechanism,
        taken=taken,
        gain=gain.relative,
        interval=interval,
        reason=reason,
    )


def _fit_orders(channel: Channel, whole: Periodogram, order: int | None) -> tuple[Fit, Fit]:
    """Return the fit of the order, and that of the order which explains v best."""
    whittle = channel.likelihood(whole)
    fits = whittle.fit_orders(max(HIGHEST, order or 0))
    best = max(fits, key=whittle.score)
    return (best if order is None else fits[order]), best


def _explain_refusal(channel: Channel, whole: Periodogram, fit: Fit, best: Fit, model: Model | None) -> str:
    """Say why there is nothing to adapt to; nothing where there is."""
    whittle = channel.likelihood(whole)
    if channel.log_likelihood(whole, None) >= whittle.score(best):
        return "Nothing can be learnt: v does not differ from its noise."
    # The fit has the mean as one parameter more.
    if model is not None and channel.log_likelihood(whole, model) >= whittle.score(fit) - whittle.penalty(1):
        return "The model that it was designed for explains v as well as the fit does, so the given receiver stays."
    return ""


def _find_doubts(channel: Channel, parts: tuple[Periodogram, ...], fit: Fit, best: Fit) -> tuple[str, ...]:
    """List why the fit may not be trusted."""
    doubts = []
    if best.order > fit.order:
        doubts.append(f"order {best.order} fits v far better than {fit.order}")
    elif best.order == fit.order == HIGHEST:
        doubts.append(f"v may need an order above {HIGHEST}")
    if np.abs(fit.shaping.poles).max(initial=0.0) > 1 - _LINE / parts[0].length:
        doubts.append("v has a line narrower than its parts resolve")
    if _chance_of_change(channel, parts, fit) < _CHANCE:
        doubts.append("the spectrum or the mean changes in time")
    return tuple(doubts)


def _chance_of_change(channel: Channel, parts: tuple[Periodogram, ...], fit: Fit) -> float:
    """Return the chance that parts of a stationary input differ as much as these.

    It follows from the likelihood ratio, and the spread of the means.
    """
    likelihoods = [channel.likelihood(x) for x in parts]
    statistic = sum(
        2 * (x.maximize(fit.parameters).log_likelihood - x.log_likelihood(fit.parameters)) for x in likelihoods
    )
    spread = float(np.var([x.mean for x in parts])) / channel.power_at_zero(fit)
    statistic += spread * sum(x.n_segments * x.length for x in parts)
    freedom = (len(parts) - 1) * (len(fit.parameters) + 1)
    return float(special.chdtrc(freedom, statistic))
