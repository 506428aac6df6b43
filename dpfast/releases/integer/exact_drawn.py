"""What the mechanisms share whose noise is drawn once for every value that is published."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from dpfast._support import html_fragments as html
from dpfast.filters.filter import Filter
from dpfast.mechanisms.serialization.json_fields import Fields
from dpfast.mechanisms.serialization.mechanism_file import mechanism_content, read_mechanism
from dpfast.mechanisms.serialization.parts import read_receiver, receiver_content
from dpfast.releases.integer.exact_base import ExactBase
from dpfast.releases.integer.inputs import Inputs
from dpfast.releases.integer.lattice_noise import DrawnLaw, laws_content, read_law
from dpfast.releases.integer.releasable import check_releasable


@dataclass(frozen=True, eq=False, repr=False)
class ExactDrawn(ExactBase):
    """Keep a mechanism in integers of a law of its noise and a receiver as JSON, and show it.

    Attributes
    ----------
    mechanism : Mechanism or BlockMechanism
    inputs : Inputs
    tolerance : float
    noise : GeometricRate, CanonicalTable or ResponseTable
    receiver : Receiver or PeriodicKalman
    """

    mechanism: Any
    inputs: Inputs
    tolerance: float
    noise: Any
    receiver: Any

    @property
    def laws(self) -> tuple[DrawnLaw, ...]:
        """Return the law of the noise, of one number a step: `noise`."""
        return (self.noise,)

    # --- as JSON holds it -------------------------------------------------------------------------

    def receiver_content(self) -> dict[str, Any]:
        """Return the receiver as JSON holds it."""
        return receiver_content(self.receiver)

    @staticmethod
    def read_receiver(content: Fields, target: Filter) -> Any:
        """Read what :meth:`receiver_content` gave."""
        return read_receiver(content, target)

    @staticmethod
    def read_noise(given: Any, receiver: Any) -> Any:
        """Read the law of the noise as :func:`laws_content` gave it."""
        return read_law(given)

    @property
    def configuration(self) -> dict[str, Any]:
        """Return the whole mechanism, as JSON holds it."""
        return {
            "kind": self.kind,
            "mechanism": mechanism_content(self.mechanism),
            "inputs": self.inputs.public(),
            "tolerance": self.tolerance,
            "law": laws_content(self.laws),
            "receiver": self.receiver_content(),
        }

    @classmethod
    def from_configuration(cls, given: Mapping[str, Any]) -> Self:
        """Make the same mechanism to the last bit, though another machine would have designed another."""
        mechanism: Any = check_releasable(read_mechanism(given["mechanism"]))
        receiver = cls.read_receiver(Fields(given["receiver"], "receiver"), mechanism.target)
        inputs = Inputs.from_public(given["inputs"])
        return cls(mechanism, inputs, given["tolerance"], cls.read_noise(given["law"], receiver), receiver)

    # --- as it is shown ---------------------------------------------------------------------------

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.mechanism.name!r}: predicted RMSE {self.error_text}>"

    def _repr_html_(self) -> str:
        terms = self.terms(self.mechanism.privacy, self.inputs)
        shown = {**terms.published, **terms.noise, "lag": self.lag_text, "predicted RMSE": self.error_text}
        return html.notebook(html.facts(shown, caption=self.mechanism.name), *self.guarantee.shown())
