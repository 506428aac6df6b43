"""Large arrays travel to a worker once: jobs name them, and a worker keeps those that it has got.

Processes of our own are known one by one, so that it is known what each has. Behind an executor nobody knows which
worker takes a job: an array goes along with the first job that names it, and again with one whose worker has said that
it lacks it.
"""

from __future__ import annotations

import collections
import io
import pickle
import threading
import uuid
from collections.abc import Callable, Iterable
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

    def array_of(self, number: int) -> Array:
        """Return the array of a number."""
        return self._arrays[number]


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
        return _unpack(data, self._arrays)

    def _drop(self, numbers: Iterable[int]) -> None:
        for number in numbers:
            del self._arrays[number]


def _unpack(data: bytes, arrays: dict[int, Array]) -> Any:
    """Read an item with the arrays that it names."""
    unpickler = pickle.Unpickler(io.BytesIO(data))
    unpickler.persistent_load = arrays.__getitem__  # type: ignore[method-assign]
    return unpickler.load()


# --- behind an executor ---------------------------------------------------------------------------


class Lacking:
    """The answer of a job whose worker lacks one of its arrays."""


class Parcel(NamedTuple):
    """A job for whoever takes it: as bytes, the numbers of its arrays, and those arrays that go along."""

    sender: str
    data: bytes
    names: tuple[int, ...]
    given: dict[int, Array]


class Sender:
    """A sender of jobs to workers that it does not know."""

    def __init__(self) -> None:
        self._name, self._numbers, self._sent = uuid.uuid4().hex, Numbers(), set[int]()

    def parcel(self, function: Callable[[Any], Any], item: Any) -> Parcel:
        """Pack a job, and those of its arrays that no job has had."""
        data, arrays = self._numbers.pack((function, item))
        given = {number: array for number, array in arrays.items() if number not in self._sent}
        self._sent.update(given)
        return Parcel(self._name, data, tuple(arrays), given)

    def complete(self, parcel: Parcel) -> Parcel:
        """Put all arrays of a job into its parcel."""
        return parcel._replace(given={number: self._numbers.array_of(number) for number in parcel.names})

    def close(self) -> None:
        """Let go what workers in this process keep."""
        _shelf.clear(self._name)


def do_parcel(parcel: Parcel) -> Any:
    """Do a job, or answer that an array is lacking."""
    arrays = _shelf.arrays_for(parcel)
    if arrays is None:
        return Lacking()
    function, item = _unpack(parcel.data, arrays)
    return function(item)


class Shelf:
    """The arrays that a worker has got from senders."""

    def __init__(self) -> None:
        self._lock = threading.Lock()  # an executor's workers may be threads
        self._arrays = collections.OrderedDict[tuple[str, int], Array]()  # the oldest first

    def arrays_for(self, parcel: Parcel) -> dict[int, Array] | None:
        """Return what a job names, or None where some of it is not here."""
        with self._lock:
            for number, array in parcel.given.items():
                array.setflags(write=False)  # as it was, but pickles may forget it
                self._arrays[parcel.sender, number] = array
            keys = [(parcel.sender, number) for number in parcel.names]
            if any(key not in self._arrays for key in keys):
                return None
            found = {}
            for key in keys:
                self._arrays.move_to_end(key)
                found[key[1]] = self._arrays[key]
            self._forget(len(found))
            return found

    def _forget(self, n_needed: int) -> None:
        """Let the oldest arrays go that are too much, but none of the present job."""
        size = sum(array.nbytes for array in self._arrays.values())
        while size > _KEPT and len(self._arrays) > n_needed:
            size -= self._arrays.popitem(last=False)[1].nbytes

    def clear(self, sender: str) -> None:
        """Let all arrays of a sender go."""
        with self._lock:
            for key in [key for key in self._arrays if key[0] == sender]:
                del self._arrays[key]


_shelf = Shelf()
