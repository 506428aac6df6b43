r"""What several releases cost one person together, whatever their noise.

Each release has one of three parts: a shift of discrete Gaussian noise, an ε of pure differential privacy, an (ε, δ).
What they are together is the least of three proven bounds:

- *basic*: all ε and δ are added up, and the ε of the Gaussian parts;
- *concentrated*: ρ = Σ Δ²/2σ² + Σ ε²/2, with the δ of the (ε, δ) parts added up (``zcdp``);
- *exact*: dominating pairs compose. An (ε, δ) part tells all with probability δ, and is randomised response otherwise,
  so that δ_all = 1 - Π(1 - δ_i) + Π(1 - δ_i) Σ P(ℓ) δ_μ(ε - ℓ) (``loss_distribution``). Of Gaussian parts μ is that of
  their lemma, whose terms with η go the same way as there: n ln((1 + 3η)/(1 - 3η)) to ε and (1 + 3η)ⁿ to δ.

All hold where each release is chosen from what earlier ones published, as long as its ε, δ or shift is fixed
beforehand; where these too depend on earlier outputs, sums of ε or of ρ alone may be compared with a cap.
"""

from __future__ import annotations

import functools
import json
import math
from collections.abc import Callable
from dataclasses import dataclass
from decimal import MAX_EMAX, MIN_EMIN, ROUND_CEILING, Context, Decimal
from fractions import Fraction
from typing import Any, Self

from dpfast._support import validation
from dpfast._support.root_finding import root_between
from dpfast._support.safe_rounding import float_above, float_below
from dpfast.privacy import discrete_gaussian_accounting as gaussian
from dpfast.privacy import zcdp
from dpfast.privacy.discrete_gaussian_accounting import Shift, Sigma, group_shifts
from dpfast.privacy.loss_distribution import Losses

_PRECISION = 1e-10  # of an ε that is searched for, relative
_LEAST_DELTA = 1e-300  # that a search tells from 0
_LARGEST_EXPONENT = 10**5  # of an e^ε that is written out
_MOST_POWERS = 1000  # that are added up one by one


@dataclass(frozen=True)
class Loss:
    """Add up what some releases cost one person together, and read ε or δ off the sum.

    Parameters
    ----------
    shifts : tuple of Shift
        Of discrete Gaussian noise: what one person can change, and σ.
    pure : tuple of Fraction
        ε of each release that is ε-differentially private.
    approximate : tuple of (Fraction, Fraction)
        (ε, δ) of each release that is known to be (ε, δ)-differentially private and no more.

    Examples
    --------
    >>> monthly = Loss(pure=(Fraction(1),))
    >>> year = sum([monthly] * 12, Loss())
    >>> year.epsilon(0), round(year.epsilon(1e-6), 2)
    (12.0, 12.0)
    >>> year.zcdp()
    (Fraction(6, 1), Fraction(0, 1))
    """

    shifts: tuple[Shift, ...] = ()
    pure: tuple[Fraction, ...] = ()
    approximate: tuple[tuple[Fraction, Fraction], ...] = ()

    def __post_init__(self) -> None:
        for name in ("shifts", "pure", "approximate"):
            validation.instance(name, getattr(self, name), tuple, "a tuple")
        gaussian.check_shifts(self.shifts)
        for epsilon in self.pure:
            _check_epsilon("pure", epsilon)
        for pair in self.approximate:
            _check_pair(pair)

    def __add__(self, other: Loss) -> Loss:
        if not isinstance(other, Loss):
            return NotImplemented
        return Loss(self.shifts + other.shifts, self.pure + other.pure, self.approximate + other.approximate)

    def of_group(self, size: int) -> Loss:
        """Return what the releases cost a group of so many people together.

        Examples
        --------
        >>> Loss(pure=(Fraction(1, 3),)).of_group(3)
        Loss(shifts=(), pure=(Fraction(1, 1),), approximate=())
        """
        size = validation.integer("size", size, 1)
        approximate = tuple((size * epsilon, _group_delta(epsilon, delta, size)) for epsilon, delta in self.approximate)
        return Loss(group_shifts(self.shifts, size), tuple(size * x for x in self.pure), approximate)

    @functools.cached_property
    def sum_of_epsilons(self) -> Fraction:
        """Add up the ε of all parts but those of Gaussian noise, which have none of their own."""
        return sum(self.pure, Fraction(0)) + sum((epsilon for epsilon, _ in self.approximate), Fraction(0))

    def zcdp(self) -> tuple[Fraction, Fraction]:
        """Return (ρ, δ) of δ-approximate zero-concentrated privacy: ρ is Σ Δ²/2σ² + Σ ε²/2, δ those of (ε, δ) parts."""
        squares = sum((x * x for x in (*self.pure, *(epsilon for epsilon, _ in self.approximate))), Fraction(0))
        return gaussian.zcdp_rho(self.shifts) + squares / 2, self._sum_of_deltas

    def epsilon(self, delta: float) -> float:
        """Return the least ε that is proven at a δ, rounded upwards; infinity where none is.

        Parameters
        ----------
        delta : float
            At least 0 and below 1; at 0 only releases without Gaussian noise and without a δ have an ε.
        """
        target = check_delta(delta)
        least = self._basic_epsilon(target)
        if target > 0:
            least = min(least, self._concentrated_epsilon(target))
            if not self._is_simple and self._responses is not None:
                least = _search_epsilon(self._exact_delta, target, least)
        return least

    def delta(self, epsilon: float) -> float:
        """Return the least δ that is proven at an ε of at least 0, rounded upwards."""
        level = validation.number("epsilon", epsilon)
        if level < 0:
            raise validation.fail("epsilon", "a finite number, at least 0", epsilon)
        left, told = Fraction(level) - self.sum_of_epsilons, self._told
        least = min(1.0, self._concentrated_delta(level))
        if left >= 0:
            noise = gaussian.delta(self.shifts, float_below(left))
            least = min(least, float_above(Fraction(told) + Fraction(noise)) if noise else told)
        if self._responses is not None and not self._is_simple:
            least = min(least, self._exact_delta(level))
        return least

    def stated_delta(self, demanded: float) -> float:
        """Return the δ at which to state ε: the demanded one, where the (ε, δ) parts leave enough of it.

        Those parts use up their own δ, and Gaussian noise takes the demanded one beside them. Without either it is 0.

        Examples
        --------
        >>> response = Loss(approximate=((Fraction(1), Fraction(1, 4)),))
        >>> response.stated_delta(0.25), (response + response).stated_delta(0.25), Loss().stated_delta(0.25)
        (0.25, 0.4375, 0.0)
        """
        if not (self.shifts or self.approximate):
            return 0.0
        needed = float_above(Fraction(self._told) + (Fraction(demanded) if self.shifts else 0))
        return demanded if needed >= 1 else max(demanded, needed)

    def to_json(self) -> str:
        """Return the parts as text, exactly."""
        content = {
            "shifts": [[str(x.squared_sensitivity), x.sigma.a, x.sigma.j, x.n_coordinates] for x in self.shifts],
            "pure": [str(x) for x in self.pure],
            "approximate": [[str(epsilon), str(delta)] for epsilon, delta in self.approximate],
        }
        return json.dumps(content)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Read what :meth:`to_json` has written; refuse anything else."""
        try:
            content = json.loads(text)
            if set(content) != {"shifts", "pure", "approximate"}:
                raise ValueError
            shifts = tuple(Shift(int(square), Sigma(a, j), n) for square, a, j, n in content["shifts"])
            pairs = tuple((_read_fraction(epsilon), _read_fraction(delta)) for epsilon, delta in content["approximate"])
            return cls(shifts, tuple(map(_read_fraction, content["pure"])), pairs)
        except (ValueError, TypeError, KeyError, ArithmeticError, RecursionError):
            raise ValueError(f"the text must be a loss as to_json writes it, got {text[:80]!r}") from None

    # --- bounds -----------------------------------------------------------------------------------

    @functools.cached_property
    def _sum_of_deltas(self) -> Fraction:
        return sum((delta for _, delta in self.approximate), Fraction(0))

    @functools.cached_property
    def _told(self) -> float:
        """Bound the probability 1 - Π(1 - δ) that some (ε, δ) part tells all, rounded upwards."""
        left, whole = 1, 1
        for _, delta in self.approximate:
            left, whole = left * (delta.denominator - delta.numerator), whole * delta.denominator
        nearest = (whole - left) / whole
        p, q = nearest.as_integer_ratio()
        return nearest if p * whole >= q * (whole - left) else math.nextafter(nearest, math.inf)

    @functools.cached_property
    def _is_simple(self) -> bool:
        """Tell whether there is Gaussian noise alone, whose own accounting is exact, or nothing."""
        return self.sum_of_epsilons == 0

    @functools.cached_property
    def _responses(self) -> Losses | None:
        epsilons = [float_above(x) for x in (*self.pure, *(epsilon for epsilon, _ in self.approximate))]
        return None if math.inf in epsilons else Losses.of_responses(epsilons)

    @functools.cached_property
    def _noise(self) -> tuple[float, Fraction, float]:
        """Return what Gaussian noise adds: its μ, and what rounding it to integers adds to ε and multiplies δ by."""
        more_epsilon, log_factor = gaussian.rounding_terms(self.shifts)
        return gaussian.gdp_mu(self.shifts), more_epsilon, math.exp(log_factor) * (1 + 1e-15)

    def _basic_epsilon(self, target: float) -> float:
        left = Fraction(target) - Fraction(self._told)
        if left < 0:
            return math.inf
        noisy = any(shift.squared_sensitivity for shift in self.shifts)
        if not noisy:
            return float_above(self.sum_of_epsilons)
        below = float_below(left)
        noise = gaussian.epsilon(self.shifts, below) if below > 0 else math.inf
        return noise if math.isinf(noise) else float_above(self.sum_of_epsilons + Fraction(noise))

    def _concentrated_epsilon(self, target: float) -> float:
        rho, delta = self.zcdp()
        left = float_below(Fraction(target) - delta)
        return zcdp.epsilon_of_rho(float_above(rho), left) if left > 0 else math.inf

    def _concentrated_delta(self, level: float) -> float:
        rho, delta = self.zcdp()
        return float_above(Fraction(zcdp.delta_of_rho(float_above(rho), level)) + delta)

    def _exact_delta(self, level: float) -> float:
        assert self._responses is not None
        mu, more_epsilon, factor = self._noise
        seen = self._responses.delta(level - float_above(more_epsilon), mu) * factor
        return min(1.0, (self._told + (1 - self._told) * seen) * (1 + 1e-15))


def check_delta(delta: Any) -> float:
    """Return a δ from 0 to below 1, and refuse anything else."""
    value = validation.number("delta", delta)
    if not 0 <= value < 1:
        raise validation.fail("delta", "a number from 0 to below 1", delta)
    return value


def _search_epsilon(delta_at: Callable[[float], float], target: float, high: float) -> float:
    """Return an ε up to `high` at which a bound was seen to hold, close to the least; `high` where none is below."""
    if math.isinf(high) or delta_at(0.0) <= target:
        return high if math.isinf(high) else 0.0

    def gap(epsilon: float) -> float:
        return math.log(max(delta_at(epsilon), _LEAST_DELTA) / target)

    if gap(high) >= 0:
        return high
    found = root_between(gap, 0.0, high, xtol=_PRECISION * high / 10, rtol=_PRECISION / 10)
    step = _PRECISION * high
    while found < high and delta_at(found) > target:
        found, step = found + step, 2 * step
    return min(found, high)


def _check_epsilon(name: str, epsilon: Any) -> None:
    if not isinstance(epsilon, Fraction) or epsilon < 0:
        raise validation.fail(name, "of epsilons that are Fractions, at least 0", epsilon)


def _check_pair(pair: Any) -> None:
    if not isinstance(pair, tuple) or len(pair) != 2:
        raise validation.fail("approximate", "pairs (epsilon, delta) of Fractions", pair)
    _check_epsilon("approximate", pair[0])
    if not isinstance(pair[1], Fraction) or not 0 <= pair[1] <= 1:
        raise validation.fail("approximate", "of deltas that are Fractions from 0 to 1", pair[1])


def _group_delta(epsilon: Fraction, delta: Fraction, size: int) -> Fraction:
    """Return δ(1 + e^ε + ... + e^{(k-1)ε}), rounded upwards and at most 1."""
    if not delta or size == 1:
        return delta
    if (size - 1) * epsilon > _LARGEST_EXPONENT:
        return Fraction(1)
    context = Context(prec=40, rounding=ROUND_CEILING, Emax=MAX_EMAX, Emin=MIN_EMIN, traps=[])
    exponent = context.divide(Decimal(epsilon.numerator), Decimal(epsilon.denominator))
    factor = context.next_plus(context.exp(exponent))
    total = Decimal(1)
    if size <= _MOST_POWERS:
        for _ in range(size - 1):
            total = context.add(1, context.multiply(total, factor))
    else:
        total = context.multiply(size, context.power(factor, size - 1))
    return min(Fraction(1), delta * Fraction(context.next_plus(total)))


def _read_fraction(text: Any) -> Fraction:
    if not isinstance(text, str):
        raise TypeError
    return Fraction(text)
