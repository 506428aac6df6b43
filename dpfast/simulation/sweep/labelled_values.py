"""Read the values of a grid, with labels that tell them apart over all its parts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from dpfast._support import validation
from dpfast.simulation.sweep import axes, labels, several_streams
from dpfast.simulation.sweep import parameters as values
from dpfast.simulation.sweep.parameters import OF_PRIVACY, Label, Value


class LabelledValues:
    """The values of a grid, with labels that tell them apart over all its parts."""

    def __init__(self) -> None:
        self.axes: set[str] = set()
        self._by_digest: dict[tuple[str, str], Label] = {}
        self._by_label: dict[tuple[str, Label], str] = {}
        self._counts: Counter[str] = Counter()

    def read_part(self, given: Mapping[str, Any]) -> dict[str, tuple[Value, ...]]:
        """Read the values of all parameters of a part."""
        for name in given:
            validation.choice("a parameter of the grid", name, values.known_parameters())
        both = [x for x in OF_PRIVACY if x in given and "privacy" in given]
        if both:
            raise ValueError(f"privacy must be given whole or by its fields, got both privacy and {both[0]}")
        if "mechanism" not in given:
            raise ValueError("mechanism must be given: names of families, or mechanisms")
        of_several = several_streams.is_of_several(given)
        return {name: self._read_values(name, x, of_several) for name, x in given.items()}

    def _read_values(self, name: str, given: Any, of_several: bool) -> tuple[Value, ...]:
        whole = of_several and several_streams.is_one_of_each_input(name, given)
        several = None if whole else axes.read_axis(name, given)
        if several is None:
            return (self._label_value(name, values.read_value(name, given), None),)
        self.axes.add(name)
        said = several.items() if isinstance(several, dict) else ((None, x) for x in several)
        found = [self._label_value(name, values.read_value(name, x), label) for label, x in said]
        if not found:
            raise ValueError(f"{name} must not be an empty axis: give values, or leave it out")
        seen: set[str] = set()
        for x in found:
            if x.digest in seen:
                raise ValueError(f"{name} must have every value once, got {x.label!r} several times")
            seen.add(x.digest)
        return tuple(found)

    def _label_value(self, name: str, value: Value, said: Label) -> Value:
        """Give a value the label that is said, its own, the one that it has already, or a number."""
        known = self._by_digest.get((name, value.digest))
        self._counts[name] += (name, value.digest) not in self._by_digest
        label = value.label if said is None else said
        if label is None and not value.is_simple:
            label = known or self._own_label(name, value)
        same = self._by_label.setdefault((name, label), value.digest) == value.digest
        if not same or self._by_digest.setdefault((name, value.digest), label) != label:
            raise ValueError(
                f"{name} must have one label for each value, and another for every other, got {label!r} twice"
            )
        return value._replace(label=label)

    def _own_label(self, name: str, value: Value) -> str:
        """Find a label for a value that has none: what it is, where that is short and no other's."""
        text = labels.describe_value(value.given)
        free = text is not None and self._by_label.get((name, text), value.digest) == value.digest
        return text if text is not None and free else labels.number_label(name, self._counts[name], value.given)
