"""Pictures of a sweep, and of a study."""

from __future__ import annotations

from typing import Any

from dpfast.studies import lines
from dpfast.studies.curves import over
from dpfast.studies.result import Sweep


def all(sweep: Sweep) -> dict[str, Any]:
    """The pictures that a sweep's axes make sense for, by the names of their files."""
    numeric = [x for x in sweep.axes if lines.is_numeric(sweep, x)]
    return {f"rmse-over-{x.replace('_', '-')}.png": over(sweep, x) for x in numeric}
