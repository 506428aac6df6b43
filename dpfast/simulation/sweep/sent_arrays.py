"""Large arrays travel to a worker once: jobs name them, and a worker keeps those that it has got."""

from __future__ import annotations

import collections
import io
import pickle
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

_LARGE = 100_000  # bytes of an array that goes by its number
_KEPT = 500_000_000  # bytes that a worker keeps, about: those of the present job in any case


class Packed(NamedTuple):
    """A job as bytes, and the large arrays that it names, by their numbers."""

    data: bytes
    arrays: dict[int, Array]


class Numbers:
    """The numbers of the large arrays of a run. They stay as long as this is there, so that no number comes twice."""

    def __init__(self) -> None:
        self._numbers: dict[int, int] = {}
        self._arrays: list[Array] = []

    def pack(self, item: Any) -> Packed:
        """Pickle an item, with numbers in the places of its large arrays; those that can be written to go along."""
        file, named = io.BytesIO(), dict[int, Array]()
        pickler = _Pickler(file, self, named)
        pickler.dump(item)
        return Packed(file.getvalue(), named)

    def number_of(self, array: Array) -> int:
        """Return the number of an array, the same for the same object."""
        number = self._numbers.setdefault(id(array), len(self._arrays))
        if number == len(self._arrays):
            self._arrays.append(array)
        return number


class _Pickler(pickle.Pickler):
    def __init__(self, file: io.BytesIO, numbers: Numbers, named: dict[int, Array]) -> None:
        super().__init__(file, pickle.HIGHEST_PROTOCOL)
        self._numbers, self._named = numbers, named

    def persistent_id(self, item: Any) -> int | None:
        if type(item) is not np.ndarray or item.nbytes < _LARGE or item.flags.writeable:
            return None
        number = self._numbers.number_of(item)
        self._named[number] = item
        return number


class Outbox:
    """A record of the arrays that a worker has."""

    def __init__(self) -> None:
        self._there: collections.OrderedDict[int, int] = collections.OrderedDict()  # bytes of each, the oldest first

    def message(self, job: Packed) -> bytes:
        """Write what a worker needs to do a job: which arrays to forget, new ones, and the job."""
        new = {number: array for number, array in job.arrays.items() if number not in self._there}
        for number, array in job.arrays.items():
            self._there[number] = array.nbytes
            self._there.move_to_end(number)
        return pickle.dumps((self._forget(len(job.arrays)), new, job.data), pickle.HIGHEST_PROTOCOL)

    def _forget(self, n_needed: int) -> list[int]:
        """Let the oldest arrays go that are too much, but none of the present job."""
        gone = []
        size = sum(self._there.values())
        while size > _KEPT and len(self._there) > n_needed:
            number, n_bytes = self._there.popitem(last=False)
            gone.append(number)
            size -= n_bytes
        return gone


class Inbox:
    """A worker's side of it: it keeps arrays until it is told to forget them."""

    def __init__(self) -> None:
        self._arrays: dict[int, Array] = {}

    def read(self, message: bytes) -> Any:
        """Return the item of a message."""
        gone, new, data = pickle.loads(message)
        self._drop(gone)
        self._arrays.update(new)  # read-only, as they were
        unpickler = pickle.Unpickler(io.BytesIO(data))
        unpickler.persistent_load = self._arrays.__getitem__  # type: ignore[method-assign]
        return unpickler.load()

    def _drop(self, numbers: Iterable[int]) -> None:
        for number in numbers:
            del self._arrays[number]
