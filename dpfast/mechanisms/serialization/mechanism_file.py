"""Mechanisms in files: versioned JSON, as docs/reference/mechanism-file.md describes it. Nothing in it is executed."""

from __future__ import annotations

import math
import os
from typing import Any, NoReturn, get_args

import numpy as np

from dpfast._support import validation
from dpfast._support.canonical_json import canonical, digest
from dpfast._support.errors import DataError
from dpfast._support.output_folder import OutputFolder
from dpfast.mechanisms.adaptive_mechanism import AdaptiveBlockMechanism
from dpfast.mechanisms.block_mechanism import BlockMechanism
from dpfast.mechanisms.block_noise import check_shares
from dpfast.mechanisms.block_weights import check_weights
from dpfast.mechanisms.group_levels import given_levels, take_levels
from dpfast.mechanisms.matrix_mechanism import MatrixMechanism
from dpfast.mechanisms.mechanism import Mechanism
from dpfast.mechanisms.mechanism_kinds import AnyChannels, AnyMechanism
from dpfast.mechanisms.operators.factorization_checks import is_identity
from dpfast.mechanisms.operators.growing_noise import GrowingStrategy
from dpfast.mechanisms.operators.k_ary_trees import CausalTree, TreeLeastSquares
from dpfast.mechanisms.posterior_blocks import PosteriorBlockMechanism
from dpfast.mechanisms.posterior_response import PosteriorResponseMechanism
from dpfast.mechanisms.receivers.periodic_kalman import PeriodicKalman
from dpfast.mechanisms.serialization.channels_content import file_content, read_file_content
from dpfast.mechanisms.serialization.json_fields import Fields, filter_content, layout_json, name_errors, parse_json
from dpfast.mechanisms.serialization.parts import (
    SAME_MSE,
    SAME_NOISE,
    check_unit,
    endless_content,
    matrix_noise_content,
    model_content,
    operator_content,
    partition_content,
    rational_content,
    read_endless,
    read_matrix_noise,
    read_model,
    read_noise,
    read_operator,
    read_partition,
    read_rational,
    read_receiver,
    receiver_content,
    toeplitz_content,
)
from dpfast.mechanisms.serialization.size_limits import MAX_BYTES, check_sizes
from dpfast.mechanisms.unbounded_mechanism import UnboundedMechanism
from dpfast.privacy.integer_noise.law import IntegerKind
from dpfast.privacy.privacy import ONE_STREAM_FIELDS, Privacy
from dpfast.privacy.provenance import check_source
from dpfast.signals.model import Model

FORMAT, VERSION = "dpfast-mechanism", 5
# from which on there are matrix mechanisms; other noise on inputs and on blocks; signed sums, trees with k branches,
# noise on the integers on strategies other than 1, posterior means, and sums without a horizon; several streams
OVER_HORIZON, OTHER_NOISE, SIGNED_SUMS, K_ARY_TREES, POSTERIOR, UNBOUNDED, SEVERAL_STREAMS = 2, 3, 4, 4, 4, 4, 5
COMPUTED = ("noise_std", "predicted_mse")  # fields that are computed anew when a file is read


def save(mechanism: AnyMechanism | AnyChannels, path: str | os.PathLike[str]) -> None:
    """Save a mechanism as JSON: all of it or, where that fails, nothing.

    Parameters
    ----------
    mechanism : Mechanism, MatrixMechanism, ChannelsMechanism or BlockChannelsMechanism
        A model of a class of one's own is saved as the :class:`ARMA` of its shaping filter, mean and levels, which is
        all that a design uses of it.
    path : path-like
        A file, replaced where it exists, in a folder that is there.

    Raises
    ------
    ValueError
        Where the model cannot be saved, or the file would be too large; the message says why.
    DataError
        Where the file cannot be written, as where its folder is missing.

    Notes
    -----
    *Privacy.* A model that was fitted to private data is in the file, as numbers: such a file is as private as they.

    Examples
    --------
    >>> import dpfast as dp, pathlib, tempfile
    >>> mechanism = dp.input_perturbation(dp.Filter([1, 1]), dp.Privacy(1, 1e-6))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     dp.save(mechanism, pathlib.Path(folder) / "mechanism.json")
    ...     loaded = dp.load(pathlib.Path(folder) / "mechanism.json")
    >>> loaded.noise_std == mechanism.noise_std
    True
    """
    if not isinstance(mechanism, AnyMechanism | AnyChannels):
        raise validation.fail("mechanism", "a Mechanism, a MatrixMechanism or a ChannelsMechanism", mechanism)
    file = validation.path("path", path)
    if not file.name:
        raise validation.fail("path", "a file", path)
    if not file.parent.is_dir():
        raise DataError(f"cannot write {file}: there is no folder {file.parent}; make it, or choose another one")
    folder = OutputFolder(file.parent)
    folder.add(file.name, to_text(mechanism))
    folder.write()


def load(path: str | os.PathLike[str]) -> AnyMechanism | AnyChannels:
    """Load a mechanism that :func:`save` wrote: its simulations are the same to the bit.

    Parameters
    ----------
    path : path-like
        A file that was written by ``save``.

    Raises
    ------
    DataError
        Where the file cannot be read, is of another format or a newer version, lacks a field or has one too many, was
        changed since it was written, or promises another noise or error than its filters or matrices have; and, before
        anything is made of it, where it or an array in it is larger than docs/reference/mechanism-file.md allows.

    Notes
    -----
    *Privacy.* The noise is computed anew from the prefilter, or the strategy, in the file. A checksum tells damage and
    careless edits, not forgery: load files of people whom you trust with the design.
    """
    file = validation.path("path", path)
    try:
        with file.open("rb") as stream:
            content = stream.read(MAX_BYTES + 1)
    except OSError as error:
        raise DataError(f"cannot read {file}: {error.strerror}") from None
    try:
        check_sizes(content)  # before it is decoded, and anything is made of it
        return from_text(content.decode())
    except UnicodeDecodeError:
        raise DataError(f"{file} must be a text in UTF-8: is it a file that dpfast.save wrote?") from None
    except (ValueError, ArithmeticError, RecursionError) as error:
        raise DataError(f"{file} cannot be used: {error}") from None


# --- from a mechanism to its text -----------------------------------------------------------------


def to_text(mechanism: AnyMechanism | AnyChannels) -> str:
    """Write the content of a file; refuse one that could not be read back."""
    from dpfast._support.version import __version__

    if isinstance(mechanism, Mechanism) and mechanism.receiver.target != mechanism.target:
        raise ValueError("mechanism cannot be saved: its receiver is for another target: design it anew")
    document = {
        "format": FORMAT,
        "version": _oldest_version(mechanism),
        "dpfast": __version__,
        "mechanism": _any_content(mechanism),
    }
    text = layout_json({**document, "checksum": _checksum(document)}) + "\n"
    try:
        check_sizes(text.encode())
        from_text(text)
    except ValueError as error:
        raise ValueError(f"mechanism {mechanism.name!r} cannot be saved: {error}") from None
    return text


def _any_content(m: AnyMechanism | AnyChannels) -> dict[str, Any]:
    return file_content(m, mechanism_content) if isinstance(m, AnyChannels) else mechanism_content(m)


def _oldest_version(m: AnyMechanism | AnyChannels) -> int:
    """Return the first version of the format that has such mechanisms: older packages read what they know."""
    if isinstance(m, AnyChannels):
        return SEVERAL_STREAMS
    if isinstance(m, UnboundedMechanism) or isinstance(getattr(m, "strategy", None), GrowingStrategy):
        return UNBOUNDED
    if isinstance(m, MatrixMechanism):
        if isinstance(m.reconstruction, CausalTree | TreeLeastSquares) or m.groups:
            return K_ARY_TREES
        return OVER_HORIZON if m.lattice is None else OTHER_NOISE if is_identity(m.strategy) else K_ARY_TREES
    if isinstance(m, BlockMechanism) and (m.weights is not None or m.receiver.groups):
        return SIGNED_SUMS
    if isinstance(m, PosteriorBlockMechanism | PosteriorResponseMechanism | AdaptiveBlockMechanism):
        return POSTERIOR
    return 1 if isinstance(m, Mechanism) and m.noise is None else OTHER_NOISE


def mechanism_content(m: AnyMechanism) -> dict[str, Any]:
    """Return the field `mechanism` of a file."""
    privacy = {x: getattr(m.privacy, x) for x in ONE_STREAM_FIELDS}
    model = None if m.model is None else model_content(m.model)
    errors = {x: getattr(m, x) for x in ("noise_std", "ideal_mse", "lower_bound_mse")}
    inputs: dict[str, Any] = {"options": dict(m.options), "sources": dict(m.sources)}
    if isinstance(m, PosteriorBlockMechanism | PosteriorResponseMechanism):
        inputs["estimator"] = _BAYES
    target, parts = _kind_content(m)
    return {
        "name": m.name,
        "target": target,
        "privacy": privacy,
        "model": model,
        **parts,
        **errors,
        **({"mean_square": m.mean_square} if isinstance(m, Mechanism) else {}),
        "predicted_mse": m.predicted_mse,
        **inputs,
    }


def _kind_content(m: AnyMechanism) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the field of the target, and what only mechanisms of one kind have."""
    if isinstance(m, UnboundedMechanism):
        return endless_content(), {}
    if isinstance(m, MatrixMechanism):
        operators = {name: operator_content(getattr(m, name)) for name in ("strategy", "reconstruction")}
        fields_of_all = {x: getattr(m, x) for x in _OF_MATRICES}
        return toeplitz_content(m.target), {**operators, **fields_of_all, **matrix_noise_content(m)}
    if isinstance(m, AdaptiveBlockMechanism):
        return rational_content(m.target), {"partition": partition_content(m)}
    if isinstance(m, BlockMechanism):
        noise: dict[str, Any] = {"kinds": " ".join(m.noise_kinds), "shares": list(m.shares), "unit": m.unit}
        noise |= {} if m.weights is None else {"signs": m.weights.astype(int).tolist()}
        noise |= {"slack": m.slack} if m.receiver.groups else {}
        return rational_content(m.target), {"blocks": {**noise, **m.receiver.to_fields()}}
    found = {"prefilter": filter_content(m.prefilter), "receiver": receiver_content(m.receiver)}
    if m.noise is not None:
        found["noise"] = {"kind": m.noise.kind, "unit": m.noise.unit, "levels": list(m.noise.levels or ())}
    return filter_content(m.target), found


_BAYES = "bayes"
_OF_MATRICES = ("noise", "centre", "lag", "unbiased")


def _checksum(document: dict[str, Any]) -> str:
    """Return the checksum of all fields but itself, whatever the spaces and the order."""
    return f"sha256:{digest(canonical(document))}"


# --- from a text to its mechanism -----------------------------------------------------------------


def from_text(text: str) -> AnyMechanism | AnyChannels:
    """Read the mechanism in the content of a file."""
    value = parse_json(text)
    if not isinstance(value, dict) or value.get("format") != FORMAT:
        raise ValueError(f"it must have the field format: {FORMAT!r}; is it a file that dpfast.save wrote?")
    document = Fields(value)
    document.take("format")
    version = validation.integer("version", document.take("version"), 1)
    if version > VERSION:
        raise ValueError(f"version must be at most {VERSION}, got {version}: install a newer dpfast")
    document.text("dpfast")
    inside, checksum = document.take("mechanism"), document.text("checksum")
    document.end()
    if checksum != _checksum({key: x for key, x in value.items() if key != "checksum"}):
        raise ValueError("it was damaged or changed since it was written (its checksum differs): design and save anew")
    if isinstance(inside, dict) and "models" in inside:
        return read_file_content(inside, read_mechanism)
    return read_mechanism(inside)


def read_mechanism(value: Any) -> AnyMechanism:
    """Read the mechanism in a field `mechanism`."""
    content = Fields(value, "mechanism")
    privacy = content.inner("privacy")
    with name_errors("field mechanism.privacy"):
        guarantee = Privacy(**{x: privacy.take(x) for x in ONE_STREAM_FIELDS})
    privacy.end()
    given = content.take("model")
    model = None if given is None else read_model(Fields(given, "mechanism.model"))
    kind: Any
    parts: dict[str, Any]
    if isinstance(value.get("target"), dict) and "kind" in value["target"]:
        kind, parts = UnboundedMechanism, {"target": read_endless(content)}
    elif "strategy" in value or "reconstruction" in value:
        kind, parts = MatrixMechanism, _read_matrices(content)
    elif "blocks" in value:
        kind, parts = BlockMechanism, _read_blocks(content, model)
    elif "partition" in value:
        kind, parts = AdaptiveBlockMechanism, read_partition(content, model)
    else:
        kind, parts = Mechanism, _read_filters(content)
        if "noise" in value:
            parts["noise"] = read_noise(content.inner("noise"))
    if "estimator" in value:
        kind = _read_estimator(content, kind)
    noise_std, predicted = content.number("noise_std", above=0), content.optional("predicted_mse")
    options, sources = content.inner("options").rest(), content.inner("sources").rest()
    common = {"name": content.text("name"), "privacy": guarantee, "model": model}
    errors = {x: content.optional(x) for x in ("ideal_mse", "lower_bound_mse")}
    figures_follow = issubclass(kind, BlockMechanism | AdaptiveBlockMechanism | UnboundedMechanism)
    common |= {} if figures_follow else errors
    content.end()
    for key, value in options.items():
        if isinstance(value, (bool, dict, list)):
            raise validation.fail(f"field mechanism.options.{key}", "a number, a word or null", value)
    words = tuple((key, check_source(f"field mechanism.sources.{key}", word)) for key, word in sources.items())
    mechanism: AnyMechanism = kind(**common, **parts, options=tuple(options.items()), declared=words)
    if dict(mechanism.sources) != sources:
        _refuse("sources", f"those of the inputs {', '.join(mechanism.sources)}", f"those of {', '.join(sources)}")
    _check_figures(mechanism, noise_std, predicted)
    if figures_follow:
        for name, told in errors.items():
            if not _is_same(told, getattr(mechanism, name)):
                _refuse(name, repr(getattr(mechanism, name)), repr(told))
    return mechanism


def _read_filters(content: Fields) -> dict[str, Any]:
    """Read what only a mechanism of filters has."""
    target, prefilter = content.filter("target"), content.filter("prefilter")
    receiver = read_receiver(content.inner("receiver"), target)
    mean_square = content.optional("mean_square")
    return {"target": target, "prefilter": prefilter, "receiver": receiver, "mean_square": mean_square}


def _read_estimator(content: Fields, kind: Any) -> Any:
    """Read what estimates in the place of a linear receiver; return the class of such mechanisms."""
    content.choice("estimator", (_BAYES,))
    found = {BlockMechanism: PosteriorBlockMechanism, Mechanism: PosteriorResponseMechanism}.get(kind)
    if found is None:
        _refuse("estimator", "there for blocks and randomised response alone", _BAYES)
    return found


def _read_blocks(content: Fields, model: Model | None) -> dict[str, Any]:
    """Read what only a mechanism of blocks has."""
    if model is None:
        _refuse("model", "there with blocks", "null")
    blocks = content.inner("blocks")
    kinds, shares, unit = blocks.text("kinds").split(), blocks.array("shares"), blocks.take("unit")
    for kind in kinds:
        validation.choice(blocks.path("kinds"), kind, get_args(IntegerKind))
    check_unit(blocks, unit)
    signs = blocks.array("signs", 2) if blocks.has("signs") else None
    receiver = PeriodicKalman.from_fields(blocks)
    slack = given_levels(take_levels(blocks, "slack", 0)) if receiver.groups else 0
    blocks.end()
    if signs is None and (receiver.offsets or len(set(receiver.lengths)) < len(receiver.lengths)):
        _refuse(
            "blocks.lengths",
            "nested, each longer than the last, without signs",
            f"{list(receiver.lengths)}, {list(receiver.offsets)}",
        )
    target = read_rational(content, "target")
    cycle, n = receiver.schedule.cycle, len(receiver.weights)
    if target.horizon is not None and (n <= target.horizon or receiver.phase):
        _refuse("blocks", f"for all {target.horizon} steps from the first on", f"{n} rows, phase {receiver.phase}")
    if target.horizon is None and n % cycle:
        _refuse("blocks.weights", f"as many as whole blocks of {cycle} samples have", f"{n} rows")
    parts = {"receiver": receiver, "noise_kinds": tuple(kinds), "shares": tuple(shares.tolist()), "unit": unit}
    parts["slack"] = slack
    with name_errors("field mechanism.blocks"):
        check_shares(parts["shares"], parts["noise_kinds"], len(receiver.lengths) if signs is None else 1)
        parts["weights"] = None if signs is None else check_weights(signs, receiver.lengths)
    return {"target": target, **parts}


def _read_matrices(content: Fields) -> dict[str, Any]:
    """Read what only a mechanism of matrices has."""
    found: dict[str, Any] = {"target": content.toeplitz("target")}
    found |= {name: read_operator(content.inner(name)) for name in ("strategy", "reconstruction")}
    found |= {name: content.take(name) for name in ("noise", "lag", "unbiased")}
    if found["lag"] is not None:
        validation.integer(content.path("lag"), found["lag"], 0)
    validation.instance(content.path("unbiased"), found["unbiased"], bool, "true or false")
    return {**found, **read_matrix_noise(content, found["noise"]), "centre": content.number("centre")}


def _check_figures(mechanism: AnyMechanism, noise_std: float, predicted: float | None) -> None:
    """Refuse a noise and a prediction that are not those of the file's filters, or matrices."""
    with np.errstate(over="ignore", invalid="ignore"):
        noise, mse = mechanism.noise_std, mechanism.predicted_mse
    part, whole = next(words for kind, words in _WORDS.items() if isinstance(mechanism, kind))
    if not math.isclose(noise_std, noise, rel_tol=SAME_NOISE):
        why = ", below what the guarantee takes" if noise_std < noise else ""
        _refuse("noise_std", f"{noise!r}, as the sensitivity of the {part} makes it", f"{noise_std!r}{why}")
    if not _is_same(predicted, mse):
        _refuse("predicted_mse", f"{mse!r}, the error of these {whole}", repr(predicted))


def _is_same(told: float | None, found: float | None) -> bool:
    return told is found if told is None or found is None else math.isclose(told, found, rel_tol=SAME_MSE)


_WORDS: dict[type[Any], tuple[str, str]] = {
    Mechanism: ("prefilter", "filters"),
    MatrixMechanism: ("strategy", "matrices"),
    BlockMechanism: ("blocks", "blocks"),
    AdaptiveBlockMechanism: ("blocks", "blocks"),
    UnboundedMechanism: ("strategy", "matrices"),
}


def _refuse(name: str, must_be: str, got: str) -> NoReturn:
    raise ValueError(f"field mechanism.{name} must be {must_be}, got {got}: the file was changed; design and save anew")
