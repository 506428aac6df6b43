"""Rounding of what a guarantee rests on: errors of floating point must be on the safe side."""

_MARGIN = 1 + 1e-9  # far more than the rounding of what is rounded up here


def round_up(value: float) -> float:
    """Raise a bound by 1e-9 of it, so that no rounding has left it too small."""
    return value * _MARGIN
