"""Designs that several tests look at: each is made once in a process, and nobody can change it."""

import pickle

_MADE = {}


def designed(design, *given, **options):
    """Return the mechanism that the design function makes of these arguments, the same one whenever they are equal."""
    key = pickle.dumps((design.__name__, given, sorted(options.items())))
    if key not in _MADE:
        _MADE[key] = design(*given, **options)
    return _MADE[key]
