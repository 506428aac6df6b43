"""Mechanisms in files: versioned JSON, as docs/mechanism-file.md describes it. Nothing in a file is executed."""

from __future__ import annotations

import hashlib
import json
import math
import os
from dataclasses import fields
from typing import Any, NoReturn, cast

import numpy as np

from dpfast import _validate
from dpfast.errors import DataError
from dpfast.fields import Fields, naming, parsed
from dpfast.filters import Filter
from dpfast.mechanism import Mechanism
from dpfast.models import ARMA, IndependentLevels, MarkovChain, Model
from dpfast.privacy import Privacy
from dpfast.receivers import DECISIONS, Decision, DecisionFeedback, LinearReceiver, Smoother
from dpfast.report.folder import Folder
from dpfast.sources import check_source

FORMAT, VERSION = "dpfast-mechanism", 1
MAX_BYTES = 2**26
COMPUTED = ("noise_std", "predicted_mse")  # fields that are computed anew when a file is read
_SAME_NOISE = 1e-9  # relative; another machine may round otherwise
_SAME_MSE = 1e-6


def save(mechanism: Mechanism, path: str | os.PathLike[str]) -> None:
    """Save a mechanism as JSON: all of it or, where that fails, nothing.

    Parameters
    ----------
    mechanism : Mechanism
        A model of a class of one's own is saved as the :class:`ARMA` of its shaping filter, mean and levels, which is
        all that a design uses of it.
    path : path-like
        A file, replaced where it exists; missing folders are made.

    Raises
    ------
    ValueError
        Where the model cannot be saved; the message says why.
    DataError
        Where the file cannot be written.

    Notes
    -----
    *Privacy.* A model that was fitted to private data is in the file, as numbers: such a file is as private as they.

    Examples
    --------
    >>> import dpfast as dp, pathlib, tempfile
    >>> mechanism = dp.input_perturbation(Filter([1, 1]), Privacy(1, 1e-6))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     dp.save(mechanism, pathlib.Path(folder) / "mechanism.json")
    ...     loaded = dp.load(pathlib.Path(folder) / "mechanism.json")
    >>> loaded.noise_std == mechanism.noise_std
    True
    """
    _validate.instance("mechanism", mechanism, Mechanism, "a Mechanism")
    file = _validate.path("path", path)
    folder = Folder(file.parent)
    folder.add(file.name, to_text(mechanism))
    folder.write()


def load(path: str | os.PathLike[str]) -> Mechanism:
    """Load a mechanism that :func:`save` wrote: its simulations are the same to the bit.

    Parameters
    ----------
    path : path-like

    Raises
    ------
    DataError
        Where the file cannot be read, is of another format or a newer version, lacks a field or has one too many,
        was changed since it was written, or promises another noise or error than its filters have.

    Notes
    -----
    *Privacy.* The noise is computed anew from the prefilter in the file. A checksum tells damage and careless edits,
    not forgery: load files of people whom you trust with the design.
    """
    file = _validate.path("path", path)
    try:
        with file.open("rb") as stream:
            content = stream.read(MAX_BYTES + 1)
    except OSError as error:
        raise DataError(f"cannot read {file}: {error.strerror}") from None
    try:
        if len(content) > MAX_BYTES:
            raise ValueError(f"the file must be of at most {MAX_BYTES:,} bytes")
        return from_text(content.decode())
    except UnicodeDecodeError:
        raise DataError(f"{file} must be a text in UTF-8: is it a file that dpfast.save wrote?") from None
    except (ValueError, ArithmeticError, RecursionError) as error:
        raise DataError(f"{file} cannot be used: {error}") from None


# --- from a mechanism to its text -----------------------------------------------------------------


def to_text(mechanism: Mechanism) -> str:
    """The content of a file; one that could not be read back is an error."""
    from dpfast import __version__

    if mechanism.receiver.target != mechanism.target:
        raise ValueError("mechanism cannot be saved: its receiver is for another target")
    document = {"format": FORMAT, "version": VERSION, "dpfast": __version__, "mechanism": mechanism_content(mechanism)}
    text = _layout({**document, "checksum": _checksum(document)}) + "\n"
    try:
        from_text(text)
    except ValueError as error:
        raise ValueError(f"mechanism {mechanism.name!r} cannot be saved: {error}") from None
    return text


def mechanism_content(m: Mechanism) -> dict[str, Any]:
    """The field `mechanism` of a file."""
    return {
        "name": m.name,
        "target": filter_content(m.target),
        "privacy": {x.name: getattr(m.privacy, x.name) for x in fields(m.privacy)},
        "model": None if m.model is None else model_content(m.model),
        "prefilter": filter_content(m.prefilter),
        "receiver": receiver_content(m.receiver),
        "noise_std": m.noise_std,
        "ideal_mse": m.ideal_mse,
        "lower_bound_mse": m.lower_bound_mse,
        "mean_square": m.mean_square,
        "predicted_mse": m.predicted_mse,
        "options": dict(m.options),
        "sources": dict(m.sources),
    }


def filter_content(filter: Filter) -> dict[str, Any]:
    """A field with a filter."""
    return {
        name: factor.tolist() for name, factor in zip(("taps", "sections", "recursion"), filter.factors, strict=True)
    }


def model_content(model: Model) -> dict[str, Any]:
    """A field `model`."""
    if type(model) is MarkovChain:
        content = {"kind": "markov-chain", "transition": model.transition.tolist(), "levels": model.states.tolist()}
    elif type(model) is IndependentLevels:
        probabilities = model.probabilities.tolist()
        content = {"kind": "independent-levels", "levels": model.levels.tolist(), "probabilities": probabilities}
    else:
        arma = model if type(model) is ARMA else _as_arma(model)
        levels = None if arma.levels is None else arma.levels.tolist()
        content = {"kind": "arma", "shaping": filter_content(arma.shaping), "mean": arma.mean, "levels": levels}
        content["fitted_order"] = arma.fitted_order
    return {**content, "source": model.source}


def _as_arma(model: Model) -> ARMA:
    """What a design uses of a model of somebody's own class."""
    kind = type(model).__name__
    try:
        arma = ARMA.from_shaping(model.shaping, mean=model.mean, levels=model.levels, source=model.source)
    except ValueError as error:
        raise ValueError(f"a model of class {kind} cannot be saved: {error}") from None
    if not math.isclose(arma.variance, model.variance, rel_tol=_SAME_MSE):
        raise ValueError(
            f"a model of class {kind} cannot be saved: its shaping filter must have its variance {model.variance:g}, "
            f"got {arma.variance:g}"
        )
    return arma


def receiver_content(receiver: LinearReceiver | Smoother | DecisionFeedback) -> dict[str, Any]:
    """A field `receiver`."""
    content: dict[str, Any] = {"mean": receiver.mean}
    if isinstance(receiver, LinearReceiver):
        return {"kind": "linear", "filter": filter_content(receiver.filter), "lag": receiver.lag, **content}
    if isinstance(receiver, Smoother):
        filters = {"forward": filter_content(receiver.forward), "backward": filter_content(receiver.backward)}
        return {"kind": "smoother", **filters, **content}
    arrays = {x: getattr(receiver, x).tolist() for x in ("forward", "feedback", "levels", "probabilities")}
    content |= {x: getattr(receiver, x) for x in ("shrinkage", "error_variance", "decision", "lag")}
    return {"kind": "decision-feedback", **arrays, **content}


def _layout(value: Any, depth: int = 0) -> str:
    """JSON with a line for each field, and arrays on one line."""
    if not isinstance(value, dict) or not value:
        return json.dumps(value, allow_nan=False)
    lines = (f"{'  ' * (depth + 1)}{json.dumps(key)}: {_layout(x, depth + 1)}" for key, x in value.items())
    return "{\n" + ",\n".join(lines) + "\n" + "  " * depth + "}"


def _checksum(document: dict[str, Any]) -> str:
    """Of all fields but itself, whatever the spaces and the order."""
    return f"sha256:{digest(canonical(document))}"


def canonical(value: Any) -> str:
    """JSON of one value in one way: what digests are of."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)


def digest(text: str) -> str:
    """SHA-256, in hexadecimal digits."""
    return hashlib.sha256(text.encode()).hexdigest()


# --- from a text to its mechanism -----------------------------------------------------------------


def from_text(text: str) -> Mechanism:
    """The mechanism in the content of a file."""
    value = parsed(text)
    if not isinstance(value, dict) or value.get("format") != FORMAT:
        raise ValueError(f"it must have the field format: {FORMAT!r}; is it a file that dpfast.save wrote?")
    document = Fields(value)
    document.take("format")
    version = _validate.integer("version", document.take("version"), 1)
    if version > VERSION:
        raise ValueError(f"version must be at most {VERSION}, got {version}: install a newer dpfast")
    document.text("dpfast")
    inside, checksum = document.take("mechanism"), document.text("checksum")
    document.end()
    if checksum != _checksum({key: x for key, x in value.items() if key != "checksum"}):
        raise ValueError("it was damaged or changed since it was written (its checksum differs): design and save anew")
    return from_content(inside)


def from_content(value: Any) -> Mechanism:
    """The mechanism in a field `mechanism`."""
    content = Fields(value, "mechanism")
    name, target, prefilter = content.text("name"), content.filter("target"), content.filter("prefilter")
    privacy = content.inner("privacy")
    with naming("field mechanism.privacy"):
        guarantee = Privacy(**{x.name: privacy.take(x.name) for x in fields(Privacy)})
    privacy.end()
    given = content.take("model")
    model = None if given is None else read_model(Fields(given, "mechanism.model"))
    receiver = read_receiver(content.inner("receiver"), target)
    noise_std, predicted = content.number("noise_std", above=0), content.optional("predicted_mse")
    ideal, bound = content.optional("ideal_mse"), content.optional("lower_bound_mse")
    mean_square = content.optional("mean_square")
    options, sources = content.inner("options").rest(), content.inner("sources").rest()
    content.end()
    for key, value in options.items():
        if isinstance(value, (bool, dict, list)):
            raise _validate.fail(f"field mechanism.options.{key}", "a number, a word or null", value)
    words = tuple((key, check_source(f"field mechanism.sources.{key}", word)) for key, word in sources.items())
    pairs = tuple(options.items())
    mechanism = Mechanism(name, target, guarantee, model, prefilter, receiver, ideal, bound, mean_square, pairs, words)
    if dict(mechanism.sources) != sources:
        _refuse("sources", f"those of the inputs {', '.join(mechanism.sources)}", f"those of {', '.join(sources)}")
    _check_figures(mechanism, noise_std, predicted)
    return mechanism


def _check_figures(mechanism: Mechanism, noise_std: float, predicted: float | None) -> None:
    """The file's noise and prediction are those of its filters."""
    with np.errstate(over="ignore", invalid="ignore"):
        noise, mse = mechanism.noise_std, mechanism.predicted_mse
    if not math.isclose(noise_std, noise, rel_tol=_SAME_NOISE):
        why = ", below what the guarantee takes" if noise_std < noise else ""
        _refuse("noise_std", f"{noise!r}, as the sensitivity of the prefilter makes it", f"{noise_std!r}{why}")
    same = predicted is mse if predicted is None or mse is None else math.isclose(predicted, mse, rel_tol=_SAME_MSE)
    if not same:
        _refuse("predicted_mse", f"{mse!r}, the error of these filters", repr(predicted))


def _refuse(name: str, must_be: str, got: str) -> NoReturn:
    raise ValueError(f"field mechanism.{name} must be {must_be}, got {got}: the file was changed; design and save anew")


def read_model(content: Fields) -> Model:
    """The model in a field `model`."""
    kind = content.choice("kind", ("markov-chain", "independent-levels", "arma"))
    source = check_source(content.path("source"), content.take("source"))
    if kind == "markov-chain":
        transition, levels = content.array("transition", 2), content.array("levels")
        content.end()
        with naming("field mechanism.model"):
            return MarkovChain(transition, levels, source=source)
    if kind == "independent-levels":
        levels, probabilities = content.array("levels"), content.array("probabilities")
        content.end()
        with naming("field mechanism.model"):
            return IndependentLevels(levels, probabilities, source=source)
    shaping, mean, order = content.filter("shaping"), content.number("mean"), content.take("fitted_order")
    given = content.take("levels")
    content.end()
    alphabet = None if given is None else Fields({"levels": given}, "mechanism.model").array("levels")
    with naming("field mechanism.model"):
        return ARMA.from_shaping(shaping, mean=mean, levels=alphabet, source=source, fitted_order=order)


def read_receiver(content: Fields, target: Filter) -> LinearReceiver | Smoother | DecisionFeedback:
    """The receiver in a field `receiver`."""
    kind = content.choice("kind", ("linear", "smoother", "decision-feedback"))
    mean = content.number("mean")
    receiver: LinearReceiver | Smoother | DecisionFeedback
    if kind == "linear":
        receiver = LinearReceiver(content.filter("filter"), target, mean, content.lag())
    elif kind == "smoother":
        receiver = Smoother(content.filter("forward"), content.filter("backward"), target, mean)
    else:
        receiver = _read_feedback(content, target, mean)
    content.end()
    return receiver


def _read_feedback(content: Fields, target: Filter, mean: float) -> DecisionFeedback:
    levels, probabilities = content.array("levels"), content.array("probabilities")
    if len(levels) != len(probabilities) or (np.diff(levels) <= 0).any():
        raise ValueError(f"{content.path('levels')} must grow, with a probability each")
    if (probabilities < 0).any() or abs(probabilities.sum() - 1) > _SAME_NOISE:
        raise ValueError(f"{content.path('probabilities')} must be non-negative and sum to one")
    return DecisionFeedback(
        forward=content.array("forward"),
        feedback=content.array("feedback", empty=True),
        levels=levels,
        probabilities=probabilities,
        shrinkage=content.number("shrinkage"),
        error_variance=content.number("error_variance", above=0),
        decision=cast("Decision", content.choice("decision", DECISIONS)),
        target=target,
        mean=mean,
        lag=content.lag(),
    )
