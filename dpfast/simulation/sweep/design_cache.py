"""Designs of a sweep: each is made once, on any worker, and kept as JSON in the store, which all its sweeps share."""

from __future__ import annotations

import json
import math
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from dpfast._support import version
from dpfast._support.canonical_json import digest
from dpfast._support.errors import DataError
from dpfast.design.catalogue import GIVEN
from dpfast.mechanisms.mechanism_kinds import AnyChannels, AnyMechanism
from dpfast.mechanisms.serialization.mechanism_file import from_text
from dpfast.simulation.sweep.compiled_mechanism_json import AnyCompiled, read_compiled
from dpfast.simulation.sweep.design_task import Content, DesignAnswer, DesignTask, make_design, prediction_key
from dpfast.simulation.sweep.grid import ParameterGrid


class DesignTexts(Protocol):
    """A store that keeps designs as texts by their keys."""

    def design(self, key: str) -> str | None:
        """Return the text of a key; None where there is none."""

    def designs(self, keys: Iterable[str]) -> Iterable[tuple[str, str]]:
        """Return key and text of those keys that are there."""

    def add_designs(self, texts: Mapping[str, str]) -> None:
        """Keep texts by their keys, each in the place of one that is there."""


@dataclass(frozen=True, eq=False)
class Design:
    """A design that the store has, or why there is none; its numbers are behind the checksum of the store.

    Attributes
    ----------
    error : str or None
        Why there is no such mechanism; then there is nothing else but notes.
    notes : tuple of str
        Texts of the warnings of the design.
    name : str
    lag : int or None
        The lag of the mechanism; None for a smoother.
    settling : int
        Samples until its slowest pole has decayed.
    noise_std : float
        Standard deviation of the noise behind the prefilter.
    ideal_mse : float or None
        The MSE by the formula of the family, on the model of the design.
    bound : float or None
        A certified lower bound of the MSE, on the model of the design; on any stream where there is none.
    model : str or None
        The digest of the model of the design.
    predicted : mapping
        MSE of the realised filters, or matrices, by :func:`prediction_key`; None where only simulation tells.
    predicted_outputs : mapping
        Of several streams the MSE of each output, by the same keys.
    compiled : AnyCompiled or None
        What the simulation runs, with the bits of :meth:`Mechanism.compiled` where it was designed.
    packed : bytes
        The content of the mechanism's file, compressed.
    digest : str
        The SHA-256 of that content; empty where there is none.
    """

    error: str | None
    notes: tuple[str, ...]
    name: str = ""
    lag: int | None = None
    settling: int = 0
    noise_std: float = math.nan
    ideal_mse: float | None = None
    bound: float | None = None
    model: str | None = None
    predicted: Mapping[str, float | None] = field(default_factory=dict)
    predicted_outputs: Mapping[str, Sequence[float] | None] = field(default_factory=dict)
    compiled: AnyCompiled | None = None
    packed: bytes = b""
    digest: str = ""

    @classmethod
    def from_text(cls, text: str) -> Design:
        """Read a design as the store has it."""
        content = json.loads(text)
        notes = tuple(content["notes"])
        if "error" in content:
            return cls(content["error"], notes)
        compiled, file, figures = read_compiled(content["link"]), content["mechanism"], content["figures"]
        if "noise_std" not in figures:  # of a store of before, which has it in what runs alone
            figures["noise_std"] = compiled.noise_std
        return cls(
            error=None,
            notes=notes,
            compiled=compiled,
            packed=zlib.compress(file.encode(), 1),
            digest=digest(file),
            **figures,
        )

    def lower_bound(self, stream: str, n_first: int | None = None) -> float | None:
        """Return the lower bound of the MSE on a stream, given by its digest; None on one that the design is not for.

        There is none either where errors count from the first step on, as filters that start from zero state err less.
        """
        settled = n_first is None or getattr(self.compiled, "horizon", None) is not None
        return self.bound if settled and self.model in (None, stream) else None

    def mechanism(self) -> AnyMechanism | AnyChannels:
        """Build the mechanism, checked as when a file is loaded, which takes milliseconds."""
        return unpack_mechanism(self.packed)


def unpack_mechanism(packed: bytes) -> AnyMechanism | AnyChannels:
    """Build the mechanism of a design from the compressed content of its file."""
    return from_text(zlib.decompress(packed).decode())


_Stream = tuple[str, int | None]  # its digest, and of how many first steps the error is asked for


class DesignCache:
    """The designs of the cases of a grid, each made once and kept in a store.

    Parameters
    ----------
    store : DesignTexts
        Shared by all sweeps: a design that is there already is not made again.
    grid : ParameterGrid
    n_first : sequence of int or None, optional
        For each case, of how many first steps the error is to be predicted; None, the default: when all has settled.
    """

    def __init__(self, store: DesignTexts, grid: ParameterGrid, n_first: Sequence[int | None] | None = None) -> None:
        self._store, self._grid = store, grid
        first = [None] * len(grid.cases) if n_first is None else n_first
        self._wanted = {x.number: (x.stream, n) for x, n in zip(grid.cases, first, strict=True)}

    def missing_tasks(self) -> list[DesignTask]:
        """List tasks for :func:`make_design`: designs that are not there, or lack the prediction for a stream."""
        cases = {case.key: case for case in self._grid.cases}
        wanted: dict[str, list[_Stream]] = {key: [] for key in cases}
        for case in self._grid.cases:
            wanted[case.key].append(self._wanted[case.number])
        lacking: dict[str, tuple[str, Content, list[_Stream]]] = {
            key: (cases[key].family, cases[key].arguments, streams) for key, streams in wanted.items()
        }
        for key, text in self._store.designs(wanted):
            content = json.loads(text)
            streams = [x for x in wanted[key] if _lacks_prediction(content, x)]
            if streams:
                lacking[key] = (GIVEN, _given_mechanism(content), streams)
            else:
                del lacking[key]
        return [self._build_task(key, *parts) for key, parts in lacking.items()]

    def add(self, task: DesignTask, answer: DesignAnswer) -> None:
        """Keep what :func:`make_design` made of a task, beside what is known already.

        Raises
        ------
        DataError
            For an answer of another version.
        """
        if answer.version != task.version:
            raise DataError(
                f"designs must be made by dpfast {task.version}, which runs the sweep, got one of {answer.version}: "
                "install the same version for all workers"
            )
        known = self._store.design(task.key)
        text = answer.to_text() if known is None or answer.error is not None else _add_predictions(known, answer)
        self._store.add_designs({task.key: text})

    def load(self) -> list[Design]:
        """Read the designs of all cases from the store; a prediction that one lacks is made now.

        Raises
        ------
        KeyError
            Where one was not made.
        """
        made = self._read({case.key for case in self._grid.cases})
        for case in self._grid.cases:
            design, wanted = made[case.key], self._wanted[case.number]
            if design.error is None and prediction_key(*wanted) not in design.predicted:  # two sweeps added at once
                [content] = (json.loads(text) for _, text in self._store.designs([case.key]))
                task = self._build_task(case.key, GIVEN, _given_mechanism(content), [wanted])
                self.add(task, make_design(task))
                made |= self._read([case.key])
        return [made[case.key] for case in self._grid.cases]

    def _read(self, keys: Iterable[str]) -> dict[str, Design]:
        return {key: Design.from_text(text) for key, text in self._store.designs(keys)}

    def _build_task(self, key: str, family: str, arguments: Content, wanted: Iterable[_Stream]) -> DesignTask:
        streams = {prediction_key(*x): (self._grid.models[x[0]], x[1]) for x in wanted}
        return DesignTask(version.__version__, key, family, arguments, dict(sorted(streams.items())))


def _lacks_prediction(content: Content, wanted: _Stream) -> bool:
    return "figures" in content and prediction_key(*wanted) not in content["figures"]["predicted"]


def _given_mechanism(content: Content) -> Content:
    """Return the argument of a design that is there already: its mechanism."""
    return {"mechanism": json.loads(content["mechanism"])["mechanism"]}


def _add_predictions(known: str, answer: DesignAnswer) -> str:
    """Add the predictions of an answer to a design as the store has it."""
    content = json.loads(known)
    for name in ("predicted", "predicted_outputs"):
        if name in answer.figures:
            content["figures"][name] |= answer.figures[name]
    return json.dumps(content)
