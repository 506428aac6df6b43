"""Words of what a matrix mechanism guarantees over its horizon, and for which inputs."""

from __future__ import annotations

from dpfast.mechanisms.base import OVER_HORIZON, STUDIES_ALONE, GuaranteeTerms

NO_RELEASE_OVER_HORIZON = (
    "exact integer arithmetic and noise are for a stationary prefilter with integer taps, and simulate() is for "
    "studies and protects nobody. Release a design for a Filter, such as zero_forcing or optimal; a pole just below 1 "
    "is near to a running sum"
)
_REACTING = (
    " It holds also for inputs that react to what was published before, if each step is published and used when all of "
    "its inputs are there."
)
_BATCH = (
    " It is for a batch: estimates use everything that is published, and nothing is published before the last input is "
    "there."
)


def terms_over_horizon(horizon: int, noise: str, delta: float, condition: str, *, online: bool) -> GuaranteeTerms:
    """Say what is particular to a guarantee over a horizon; `condition` is a sentence on the inputs, or empty."""
    words = {"gaussian": "noise", "laplace": "Laplace noise", "nested": "noise that steps share in a tree"}
    return GuaranteeTerms(
        streams=f"streams of {horizon} steps",
        noise=words.get(noise, f"{noise} noise"),
        delta=delta,
        ending=condition + (_REACTING if online else _BATCH) + OVER_HORIZON + STUDIES_ALONE,
    )
