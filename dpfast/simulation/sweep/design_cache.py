"""Designs of a sweep: each is made once, on any worker, and kept as JSON in the store, which all its sweeps share."""

from __future__ import annotations

import json
import math
import threading
import warnings
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from dpfast._kernels import simulation
from dpfast._kernels.equalizer import Equalizer
from dpfast._kernels.filtering import Factors
from dpfast._support.canonical_json import canonical, digest
from dpfast._support.errors import ConvergenceWarning, DataError, ToleranceWarning
from dpfast.design.catalogue import FAMILIES, GIVEN
from dpfast.mechanisms.checks import AnyMechanism
from dpfast.mechanisms.matrix_chain import MatrixLink
from dpfast.mechanisms.mechanism import Mechanism
from dpfast.mechanisms.operators.buffered_toeplitz import BufferedToeplitz
from dpfast.mechanisms.operators.operators import Convolution, Dense, Sparse
from dpfast.mechanisms.operators.sparse_decoder import SparseDecoder
from dpfast.mechanisms.operators.trees import DecayedPrefixes, TreeEstimator
from dpfast.mechanisms.serialization.json_fields import Fields
from dpfast.mechanisms.serialization.mechanism_file import from_content, from_text, to_text
from dpfast.mechanisms.serialization.parts import model_content, read_model
from dpfast.privacy.privacy import Privacy
from dpfast.signals.model import Model
from dpfast.signals.output_variance import output_variance
from dpfast.simulation.mixed_study import Link
from dpfast.simulation.monte_carlo import predicted_mse, settling_time
from dpfast.simulation.sweep.grid import Grid

_NOTED = (ToleranceWarning, ConvergenceWarning)
_ONE_AT_A_TIME = threading.Lock()  # what catches warnings is of the process, and workers may be its threads


class Kept(Protocol):
    """Where designs are kept: text by key."""

    def design(self, key: str) -> str | None:
        """One of them, None where it is not there."""

    def designs(self, keys: Iterable[str]) -> Iterable[tuple[str, str]]:
        """Those of them that are there."""

    def add_designs(self, texts: Mapping[str, str]) -> None:
        """Keep them, in the place of what is there."""


# --- on a worker ----------------------------------------------------------------------------------


def make(job: str) -> str:
    """Design a mechanism: JSON in, JSON out.

    Parameters
    ----------
    job : str
        As :meth:`Designs.missing` gives it: version, key, arguments of the design, streams that errors are predicted
        for, and of how many first steps, by their keys.

    Returns
    -------
    str
        The mechanism as the text of its file, what the simulation runs, and figures; or the message of the error that
        there is no such mechanism. With the texts of the warnings of the design.

    Raises
    ------
    DataError
        Where the job is of another version.
    """
    from dpfast._support.version import __version__

    asked = json.loads(job)
    if asked["dpfast"] != __version__:
        raise DataError(
            f"workers must run dpfast {asked['dpfast']}, as the process that they work for does; got {__version__}: "
            "install the same version there"
        )
    with _ONE_AT_A_TIME, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            answer = _answer(_mechanism(asked["arguments"]), asked["streams"])
        except ValueError as error:  # a DesignError, or of an argument that is out of range
            answer = {"error": str(error)}
    for x in caught:
        if not issubclass(x.category, _NOTED):
            warnings.warn_explicit(x.message, x.category, x.filename, x.lineno)
    notes = [str(x.message) for x in caught if issubclass(x.category, _NOTED)]
    return json.dumps({"dpfast": __version__, **answer, "notes": list(dict.fromkeys(notes))})


def _mechanism(arguments: Mapping[str, Any]) -> AnyMechanism:
    given = arguments["arguments"]
    if arguments["family"] == GIVEN:
        return from_content(given["mechanism"])
    design: Callable[..., AnyMechanism] = FAMILIES[arguments["family"]].design
    return design(**{name: _argument(name, x) for name, x in given.items()})


def _argument(name: str, content: Any) -> Any:
    """What the content of an argument describes."""
    if not isinstance(content, dict):
        return content
    if name == "privacy":
        return Privacy(**content)
    if name == "model":
        return model_of(content)
    fields = Fields({name: content})
    return fields.toeplitz(name) if "coefficients" in content else fields.filter(name)


def model_of(content: Mapping[str, Any]) -> Model:
    """The model with a content, as a grid has it."""
    return read_model(Fields(dict(content), "model"))


def variance_of(target: Mapping[str, Any], stream: Mapping[str, Any], n_first: int | None) -> float:
    """Of the true output on a stream, by their contents: settled, or the mean of so many first steps."""
    return output_variance(_argument("target", dict(target)), model_of(stream), n_first)


def _answer(mechanism: AnyMechanism, streams: Mapping[str, Any]) -> dict[str, Any]:
    text = to_text(mechanism)
    figures = {
        "name": mechanism.name,
        "lag": mechanism.lag,
        "ideal_mse": mechanism.ideal_mse,
        "bound": None if _of_the_worst(mechanism) else mechanism.lower_bound_mse,
        "model": None if mechanism.model is None else digest(canonical(model_content(mechanism.model))),
        "settling": settling_time(mechanism),
        "predicted": {name: predicted_mse(mechanism, model_of(x[0]), x[1]) for name, x in streams.items()},
    }
    return {"mechanism": text, "link": plain(mechanism.link()), "figures": figures}


def _of_the_worst(mechanism: AnyMechanism) -> bool:
    """Whether its errors are those of the worst input, and not of its model."""
    return isinstance(mechanism, Mechanism) and mechanism.mean_square is not None


# --- what the simulation runs ---------------------------------------------------------------------


def plain(x: Any) -> Any:
    """A link as JSON: tuples as lists that begin with their names."""
    if isinstance(x, np.ndarray):
        return x.tolist()
    return [_NAME_OF[type(x)], *map(plain, x)] if isinstance(x, tuple) else x


def link_of(x: Any) -> Any:
    """The link that is described, to the bit."""
    if not isinstance(x, list):
        return x
    if x and isinstance(x[0], str):
        return _READ[x[0]](*map(link_of, x[1:]))
    return np.array(x, dtype=np.float64)


def _factors(taps: Any, sections: Any, recursion: Any) -> Factors:
    return Factors(taps, sections.reshape(-1, 6), recursion)  # also where there are none


# What links are made of, by the names that stores have; a class may be renamed, its name in stores not.
_KINDS: dict[str, type[Any]] = {
    "Link": simulation.CompiledMechanism,
    "LinearReceiver": simulation.CompiledLinearReceiver,
    "SmootherReceiver": simulation.CompiledSmoother,
    "FeedbackReceiver": simulation.CompiledDecisionFeedback,
    "Equalizer": Equalizer,
    "Factors": Factors,
    "MatrixLink": MatrixLink,
    "Convolution": Convolution,
    "Dense": Dense,
    "Sparse": Sparse,
    "BufferedToeplitz": BufferedToeplitz,
    "DecayedPrefixes": DecayedPrefixes,
    "TreeEstimator": TreeEstimator,
    "SparseDecoder": SparseDecoder,
}
_NAME_OF = {x: name for name, x in _KINDS.items()}
_READ: dict[str, Callable[..., Any]] = {**_KINDS, "Factors": _factors}


@dataclass(frozen=True, eq=False)
class Design:
    """A design that was made, or why there is none; its numbers as they were stored, behind the checksum of the store.

    Attributes
    ----------
    error : str or None
        Why there is no such mechanism; then there is nothing else but notes.
    notes : tuple of str
        Texts of the warnings of the design.
    name : str
    lag : int or None
        Of the mechanism; None for a smoother.
    settling : int
        Samples until its slowest pole has decayed.
    noise_std : float
        Of the noise behind the prefilter.
    ideal_mse : float or None
        By the formula of the family, on the model of the design.
    bound : float or None
        Of the MSE, certified, on the model of the design; on any stream where there is none.
    model : str or None
        Its digest.
    predicted : mapping
        MSE of the realised filters, or matrices, by :func:`prediction`; None where only simulation tells.
    link : study.Link, MatrixLink or None
        What the simulation runs, with the bits of :meth:`Mechanism.link` where it was designed.
    packed : bytes
        The content of the mechanism's file, compressed.
    digest : str
        Of that content; empty where there is none.
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
    link: Link | None = None
    packed: bytes = b""
    digest: str = ""

    @classmethod
    def of(cls, content: Mapping[str, Any]) -> Design:
        """From what :func:`make` gives."""
        notes = tuple(content["notes"])
        if "error" in content:
            return cls(content["error"], notes)
        link, text = link_of(content["link"]), content["mechanism"]
        return cls(
            error=None,
            notes=notes,
            noise_std=link.noise_std,
            link=link,
            packed=zlib.compress(text.encode(), 1),
            digest=digest(text),
            **content["figures"],
        )

    def lower_bound(self, stream: str, n_first: int | None = None) -> float | None:
        """Of the MSE on a stream, by its digest; None where it is not the one that the design is for.

        Nor where errors count from the first step on, when filters that start from zero state err less.
        """
        settled = n_first is None or isinstance(self.link, MatrixLink)
        return self.bound if settled and self.model in (None, stream) else None

    def mechanism(self) -> AnyMechanism:
        """The mechanism, checked as when a file is loaded, which takes milliseconds."""
        return unpacked(self.packed)


def prediction(stream: str, n_first: int | None) -> str:
    """The key of the error on a stream, by its digest: settled, or of the first steps."""
    return stream if n_first is None else f"{stream}, first {n_first}"


def unpacked(packed: bytes) -> AnyMechanism:
    """The mechanism of a design."""
    return from_text(zlib.decompress(packed).decode())


# --- in the store ---------------------------------------------------------------------------------


_Asked = tuple[str, int | None]  # the digest of a stream, and how many first steps


class Designs:
    """The designs of the cases of a grid, kept in a store.

    Parameters
    ----------
    store : Kept
        Shared by all sweeps: a design that is there already is not made again.
    grid : Grid
    n_first : sequence of int or None, optional
        For each case, of how many first steps the error is to be predicted; None, the default: when all has settled.
    """

    def __init__(self, store: Kept, grid: Grid, n_first: Sequence[int | None] | None = None) -> None:
        self._store, self._grid = store, grid
        first = [None] * len(grid.cases) if n_first is None else n_first
        self._wanted = {x.number: (x.stream, n) for x, n in zip(grid.cases, first, strict=True)}

    def missing(self) -> list[str]:
        """Jobs for :func:`make`: designs that are not there, or lack the prediction for a stream."""
        cases = {case.key: case for case in self._grid.cases}
        wanted: dict[str, list[_Asked]] = {key: [] for key in cases}
        for case in self._grid.cases:
            wanted[case.key].append(self._wanted[case.number])
        jobs = {key: self._job(key, cases[key].arguments, streams) for key, streams in wanted.items()}
        for key, text in self._store.designs(wanted):
            content = json.loads(text)
            lacking = [x for x in wanted[key] if _lacks(content, x)]
            if lacking:
                jobs[key] = self._job(key, _again(content), lacking)
            else:
                del jobs[key]
        return list(jobs.values())

    def add(self, job: str, answer: str) -> None:
        """Keep what :func:`make` made of a job, beside what is known already.

        Raises
        ------
        DataError
            For an answer of another version.
        """
        asked, made = json.loads(job), json.loads(answer)
        if made["dpfast"] != asked["dpfast"]:
            raise DataError(f"a design must be of dpfast {asked['dpfast']}, got one of {made['dpfast']}")
        known = self._store.design(asked["key"])
        if known is not None and "error" not in made:
            content = json.loads(known)
            content["figures"]["predicted"] |= made["figures"]["predicted"]
            made = content
        self._store.add_designs({asked["key"]: json.dumps(made)})

    def load(self) -> list[Design]:
        """The designs of all cases; a prediction that one lacks is made now.

        Raises
        ------
        KeyError
            Where one was not made.
        """
        made = self._made({case.key for case in self._grid.cases})
        for case in self._grid.cases:
            design = made[case.key]
            wanted = self._wanted[case.number]
            if design.error is None and prediction(*wanted) not in design.predicted:  # two sweeps added theirs at once
                [content] = (json.loads(text) for _, text in self._store.designs([case.key]))
                job = self._job(case.key, _again(content), [wanted])
                self.add(job, make(job))
                made |= self._made([case.key])
        return [made[case.key] for case in self._grid.cases]

    def _made(self, keys: Iterable[str]) -> dict[str, Design]:
        return {key: Design.of(json.loads(text)) for key, text in self._store.designs(keys)}

    def _job(self, key: str, arguments: str, wanted: Iterable[_Asked]) -> str:
        from dpfast._support.version import __version__

        streams = {prediction(stream, n): (self._grid.models[stream], n) for stream, n in wanted}
        asked = {"dpfast": __version__, "key": key, "streams": streams}
        return f'{canonical(asked)[:-1]},"arguments":{arguments}}}'


def _lacks(content: Mapping[str, Any], wanted: _Asked) -> bool:
    return "figures" in content and prediction(*wanted) not in content["figures"]["predicted"]


def _again(content: Mapping[str, Any]) -> str:
    """The arguments of a mechanism that is there already."""
    mechanism = json.loads(content["mechanism"])["mechanism"]
    return canonical({"family": GIVEN, "arguments": {"mechanism": mechanism}})
