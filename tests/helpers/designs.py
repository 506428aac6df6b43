"""Designs that several tests look at: each is made once in a process, and nobody can change it."""

import inspect
import pickle
from collections.abc import Mapping

_MADE = {}


def designed(design, *given, **options):
    """Return the mechanism that the design function makes of these arguments, the same one whenever they are equal."""
    bound = inspect.signature(design).bind(*given, **options)
    bound.apply_defaults()
    key = design.__name__, pickle.dumps(bound.arguments)
    if key not in _MADE:
        _MADE[key] = design(*given, **options)
    return _MADE[key]


class MadeOnce(Mapping):
    """Values by name, each made by its function when it is first asked for: whoever collects the tests makes none.

    Parametrise with the names, and let a fixture look up the value.
    """

    def __init__(self, makers):
        self._makers, self._made = dict(makers), {}

    def __getitem__(self, name):
        if name not in self._made:
            self._made[name] = self._makers[name]()
        return self._made[name]

    def __iter__(self):
        return iter(self._makers)

    def __len__(self):
        return len(self._makers)
