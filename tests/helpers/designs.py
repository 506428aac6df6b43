"""Designs that several tests look at: each is made once in a process, and nobody can change it."""

import functools
import inspect
import io
import pickle
from collections.abc import Mapping

_MADE = {}


class _Given(pickle.Pickler):
    """Pickles of objects what they were made with, and not what they have computed and kept since."""

    def reducer_override(self, x):
        kind = type(x)
        parts = [vars(base) for base in kind.__mro__[:-1]]
        kept = {name for part in parts for name, value in part.items() if isinstance(value, functools.cached_property)}
        if not kept or any(name in part for part in parts for name in ("__reduce__", "__reduce_ex__", "__getstate__")):
            return NotImplemented
        return kind, (), {name: value for name, value in vars(x).items() if name not in kept}


def designed(design, *given, **options):
    """Return the mechanism that the design function makes of these arguments, the same one whenever they are equal."""
    bound = inspect.signature(design).bind(*given, **options)
    bound.apply_defaults()
    key = io.BytesIO()
    _Given(key).dump((design.__name__, bound.arguments))
    if key.getvalue() not in _MADE:
        _MADE[key.getvalue()] = design(*given, **options)
    return _MADE[key.getvalue()]


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


def to_a_wide_tolerance(design):
    """The design function to a wide tolerance, where it takes one; equal designs are made once."""
    if "tolerance" not in inspect.signature(design).parameters:
        return design
    return functools.wraps(design)(functools.partial(designed, design, tolerance=0.1))
