"""Provenance of the inputs of a design: the guarantee assumes that none of them depends on the private data."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Literal, cast, get_args

from dpfast._support import validation

Provenance = Literal["public", "assumed", "fitted-from-private"]
SOURCES: tuple[Provenance, ...] = get_args(Provenance)
FITTED: Provenance = "fitted-from-private"


def check_source(name: str, value: Any) -> Provenance:
    """Return one of the three words, and refuse any other."""
    return cast("Provenance", validation.choice(name, value, SOURCES))


def merge_declared(implied: Mapping[str, Provenance], declared: Mapping[str, Provenance]) -> Mapping[str, Provenance]:
    """Put what a person says of the inputs over what is known of them; what was fitted to private data stays so.

    It stays so where the input is gone too, which has shaped what is left.
    """
    words = {name: word if word == FITTED else declared.get(name, word) for name, word in implied.items()}
    return MappingProxyType(words | {name: word for name, word in declared.items() if word == FITTED})


def check_declared(known: Mapping[str, Provenance], words: Mapping[str, Any]) -> None:
    """Refuse words about inputs that are not there, or that take back that one was fitted to private data."""
    for name, word in words.items():
        if name not in known:
            meant = validation.did_you_mean(name, known)
            raise ValueError(f"{name!r} must be an input of this design, one of {', '.join(known)}{meant}")
        if check_source(name, word) != FITTED and known[name] == FITTED:
            raise ValueError(
                f"{name} must stay {FITTED!r}, got {word!r}: design again from a model of another source, "
                "such as ARMA.fit(u, order, source='public') where u is public"
            )


def fitted_inputs(sources: Mapping[str, Provenance]) -> tuple[str, ...]:
    """Return the names of the inputs that were fitted to, or chosen by looking at, private data."""
    return tuple(name for name, word in sources.items() if word == FITTED)
