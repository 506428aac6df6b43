"""A cap: what may be spent in all, as a sum of ε and of δ, or as a sum of ρ."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Self

from dpfast._support import validation
from dpfast.releases.ledger.entry import UNITS, Entry, in_force
from dpfast.releases.ledger.together import Together, alternatives, loss_of

_ROUNDING = 1 + Fraction(1, 10**12)  # ten times .1 in binary is more than 1, and is meant to reach it


@dataclass(frozen=True)
class Cap:
    """Bound sums over the entries of one event, or of one person: a cap holds whatever is chosen from what.

    Sums may be compared with a cap also where the parameters of a release depend on what earlier ones published;
    numerical composition may not.

    Parameters
    ----------
    epsilon : Fraction or None
        Of all ε, each at the δ that its release demanded.
    rho : Fraction or None
        Of all ρ of zero-concentrated privacy.
    delta : Fraction
        Of all δ: with `epsilon` those that were demanded, with `rho` those of releases that are known by (ε, δ) alone.
    """

    epsilon: Fraction | None = None
    rho: Fraction | None = None
    delta: Fraction = Fraction(0)

    @classmethod
    def of(cls, epsilon: Any, delta: Any, rho: Any) -> Self | None:
        """Make a cap of numbers as they were given, decimals as they are written; None of none."""
        if epsilon is None and rho is None:
            if delta is not None:
                raise ValueError("cap_delta must come with cap_epsilon or cap_rho: a delta alone bounds nothing")
            return None
        if epsilon is not None and rho is not None:
            raise ValueError("cap_epsilon must come without cap_rho: a cap is a sum of one of them; choose one")
        if delta is not None and not 0 <= validation.number("cap_delta", delta) < 1:
            raise validation.fail("cap_delta", "a number from 0 to below 1", delta)
        exact = Fraction(repr(float(delta))) if delta else Fraction(0)
        return cls(_positive("cap_epsilon", epsilon), _positive("cap_rho", rho), exact)

    def spent(self, entries: Sequence[Entry]) -> tuple[Fraction, Fraction]:
        """Return the largest sums, of ε or ρ and of δ, that one event or one person may have lost."""
        counted = in_force(entries)
        found = [
            self._sums(together)
            for unit in UNITS
            for together in alternatives([entry for entry in counted if entry.unit == unit])
        ]
        return max(first for first, _ in found), max(second for _, second in found)

    @property
    def limit(self) -> Fraction:
        """Return the cap on the sum of ε, or of ρ."""
        return self.rho if self.epsilon is None else self.epsilon  # type: ignore[return-value]  # one of them is there

    @property
    def name(self) -> str:
        """Say what is added up."""
        return "rho" if self.epsilon is None else "epsilon"

    def holds(self, entries: Sequence[Entry]) -> bool:
        """Tell whether entries stay within the cap, which they may reach."""
        spent, delta = self.spent(entries)
        return spent <= self.limit * _ROUNDING and delta <= self.delta * _ROUNDING

    def to_json(self) -> str:
        """Return the cap as text, exactly."""
        return json.dumps([None if x is None else str(x) for x in (self.epsilon, self.rho, self.delta)])

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Read what :meth:`to_json` has written."""
        epsilon, rho, delta = (None if x is None else Fraction(x) for x in json.loads(text))
        return cls(epsilon, rho, delta or Fraction(0))

    def _sums(self, together: Together) -> tuple[Fraction, Fraction]:
        if self.epsilon is None:
            return loss_of(together).zcdp()
        return sum((x.epsilon for x in together), Fraction(0)), sum((x.delta for x in together), Fraction(0))


def _positive(name: str, value: Any) -> Fraction | None:
    return None if value is None else Fraction(repr(validation.number(name, value, above=0)))
