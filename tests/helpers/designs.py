"""Designs that several tests look at: each is made once in a process, and nobody can change it."""

import inspect
import pickle

_MADE = {}


def designed(design, *given, **options):
    """Return the mechanism that the design function makes of these arguments, the same one whenever they are equal."""
    bound = inspect.signature(design).bind(*given, **options)
    bound.apply_defaults()
    key = design.__name__, pickle.dumps(bound.arguments)
    if key not in _MADE:
        _MADE[key] = design(*given, **options)
    return _MADE[key]
