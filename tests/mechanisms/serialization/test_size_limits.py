"""Files that are too large, or have too large parts, are refused before anything is made of them."""

import functools
import json
import re
from pathlib import Path

import numpy as np
import pytest
from helpers.designs import designed

import dpfast as dp
from dpfast.mechanisms.serialization import size_limits
from dpfast.mechanisms.serialization.mechanism_file import to_text

PRIVACY = dp.Privacy(1, 1e-6)
PAGE = (Path(__file__).parents[3] / "docs/reference/mechanism-file.md").read_text()


@functools.cache
def filters():
    return json.loads(to_text(designed(dp.zero_forcing, dp.Filter([1, 0.5], [1, -0.8]), PRIVACY, tolerance=0.1)))


@functools.cache
def matrices():
    return json.loads(to_text(dp.square_root(dp.running_sum(9), PRIVACY)))


def changed(document, path, value):
    """The document with another value at a place."""
    *outer, last = path.split(".")
    copied = inner = json.loads(json.dumps(document))
    for name in outer:
        inner = inner[name]
    inner[last] = value
    return json.dumps(copied)


DEEP = functools.reduce(lambda inner, _: {"a": inner}, range(9), 1)
SECTION = [1, 0, 0, 1, -0.5, 0]
TOO_LARGE = {
    "taps": (filters, "mechanism.target.taps", [1e-5] * 30_000, "at most 16,384 numbers, got 30,000: take a shorter"),
    "one more tap": (
        filters,
        "mechanism.target.taps",
        [1] * 16_385,
        "at most 16,384 numbers, got 16,385",
    ),
    "sections": (
        *(filters, "mechanism.prefilter.sections", [SECTION] * 100_000),
        "at most 512 rows of 6 numbers, got 100,000 rows of 6: take a shorter filter, design and save anew",
    ),
    "wide sections": (filters, "mechanism.prefilter.sections", [SECTION * 9], "rows of 6 numbers, got 1 rows of 54"),
    "recursion": (filters, "mechanism.receiver.filter.recursion", [1] * 8193, "at most 8,192 numbers, got 8,193"),
    "chain": (
        *(filters, "mechanism.model", {"kind": "markov-chain", "transition": [[0] * 1001] * 1001}),
        "at most 1,000 rows of 1,000 numbers, got 1,001 rows of 1,001: merge states or take an ARMA model, design",
    ),
    "levels": (
        filters,
        "mechanism.model",
        {"levels": [0] * 100_001},
        "100,000 numbers, got 100,001: take fewer",
    ),
    "horizon": (
        matrices,
        "mechanism.target.coefficients",
        lambda: [1] * (2**22 + 1),  # made when it is looked at: each fork of a test process has to copy what that keeps
        "got 4,194,305: shorten the horizon",
    ),
    "rows": (
        matrices,
        "mechanism.strategy",
        {"entries": [[0]] * 8193},
        "at most 8,192 rows of 8,192 numbers, got 8,193",
    ),
    "columns": (
        matrices,
        "mechanism.strategy",
        {"entries": [[0] * 8193]},
        "got 1 rows of 8,193: shorten the horizon",
    ),
    "poles": (
        matrices,
        "mechanism.strategy",
        {"poles": [0.1] * 101},
        "at most 100 numbers, got 101: take fewer",
    ),
    "fields": (
        filters,
        "mechanism.options",
        dict.fromkeys(map(str, range(15_000)), 1),
        "it must have at most 10,000 fields",
    ),
    "objects": (
        filters,
        "mechanism.model",
        DEEP,
        "must not be nested as deeply: objects at",
    ),
    "arrays": (
        filters,
        "mechanism.target.taps",
        [1, [2, [3]]],
        "field mechanism.target.taps must not be nested as deeply",
    ),
}


@pytest.fixture
def unread(monkeypatch):
    """Nothing is parsed: what is refused here was not computed with."""

    filters(), matrices()  # which are read once they are written

    def parse_json(text):
        raise AssertionError("parsed")

    monkeypatch.setattr("dpfast.mechanisms.serialization.mechanism_file.parse_json", parse_json)


@pytest.mark.parametrize(("document", "path", "value", "message"), TOO_LARGE.values(), ids=TOO_LARGE)
def test_what_is_too_large_is_refused_unread(unread, tmp_path, document, path, value, message):
    file = tmp_path / "large.json"
    file.write_text(changed(document(), path, value() if callable(value) else value))
    with pytest.raises(dp.DataError, match=re.escape(message)) as error:
        dp.load(file)
    assert str(error.value).startswith(f"{file} cannot be used: ")
    if "it must" not in message:
        assert f"field {path}" in str(error.value)


@pytest.mark.parametrize(
    ("text", "times", "message"),
    [
        (b" ", 2**26 + 1, "the file must be of at most 67,108,864 bytes, got 67,108,865 or more: shorten the"),
        (b"[", 10**7, "it must have at most 100 numbers, got 9,999,999"),
        (b"{", 10**7, "it must not be nested as deeply"),
        (b'"a"', 10**6, "it must have at most 10,000 fields"),
        (b'{"a":[', 10**6, "must not be nested as deeply"),
    ],
)
def test_texts_that_are_no_documents_are_refused_unread(unread, text, times, message, tmp_path):
    file = tmp_path / "large.json"
    file.write_bytes(text * times)
    with pytest.raises(dp.DataError, match=re.escape(message)):
        dp.load(file)


@pytest.mark.parametrize("text", [b'"', b'"\\', b'"' + b'a\\"' * 10**6, b'"a\\', b"}" * 99, b"[1, 2", b'"taps": ', b""])
def test_texts_that_end_anywhere_take_no_longer_than_they_are_long(text):
    """And are left to the parser, which says what is wrong."""
    size_limits.check_sizes(text)


def test_brackets_in_texts_are_no_arrays():
    name = '}}} "taps": [' + "[[1, 2], " * 2000 + '\\" {"a": {"a": ' * 20
    mechanism = dp.zero_forcing(dp.Filter([1]), PRIVACY, name=name)
    size_limits.check_sizes(to_text(mechanism).encode())


def zeros(n, each="0"):
    """An array as a text, which is made faster than from numbers."""
    return "[" + f"{each}, " * (n - 1) + f"{each}]"


@pytest.mark.parametrize(("name", "limit"), size_limits.LIMITS.items(), ids=size_limits.LIMITS)
def test_what_is_as_large_as_it_may_be_passes(name, limit):
    rows = min(limit.rows, 2**21 // max(1, limit.columns))  # more do not fit into a file
    largest = zeros(rows, zeros(limit.columns)) if limit.columns else zeros(limit.rows)
    text = changed(filters(), "mechanism.model", {name: "here"})
    assert '"here"' in text
    size_limits.check_sizes(text.replace('"here"', largest).encode())


@pytest.mark.parametrize(
    "make",
    [
        lambda: dp.square_root(dp.running_sum(2**14), PRIVACY),
        pytest.param(lambda: dp.binary_tree(dp.running_sum(2**13), PRIVACY), marks=pytest.mark.long),
        lambda: dp.binary_tree(dp.running_sum(200), PRIVACY).with_receiver(dp.ARMA([1], [1, -0.5])),
        pytest.param(
            lambda: dp.fourier_perturbation(dp.running_sum(512), PRIVACY, n_coefficients=64), marks=pytest.mark.long
        ),
        lambda: dp.input_perturbation(dp.Filter(np.full(2000, 5e-4)), PRIVACY),
    ],
)
def test_large_mechanisms_are_saved_and_loaded(make, tmp_path):
    mechanism = make()
    dp.save(mechanism, tmp_path / "mechanism.json")
    assert dp.load(tmp_path / "mechanism.json").noise_std == mechanism.noise_std


@pytest.mark.long
def test_the_longest_horizon_that_fits_into_a_file_is_loaded(tmp_path):
    mechanism = dp.square_root(dp.running_sum(2**20), PRIVACY)
    dp.save(mechanism, tmp_path / "mechanism.json")
    assert dp.load(tmp_path / "mechanism.json").noise_std == mechanism.noise_std


def test_what_could_not_be_loaded_is_not_saved(tmp_path):
    mechanism = dp.input_perturbation(dp.Filter(np.full(20_000, 5e-5)), PRIVACY)
    mechanism.__dict__["_predicted"] = None  # takes long for so many taps
    with pytest.raises(ValueError, match=r"cannot be saved: field mechanism.target.taps must have at most 16,384"):
        dp.save(mechanism, tmp_path / "mechanism.json")
    assert list(tmp_path.iterdir()) == []


def test_the_limits_are_those_of_the_page():
    for name, limit in size_limits.LIMITS.items():
        (row,) = re.findall(rf"\n\| [^|\n]*`{name}`[^|\n]* \| ([^|\n]*) numbers \|", PAGE)
        assert row == (f"{limit.rows:,} rows of {limit.columns:,}" if limit.columns else f"{limit.rows:,}")
    for text in (
        f"{size_limits.MAX_BYTES:,} bytes",
        f"{size_limits.MAX_FIELDS:,} |",
        f"| {size_limits.MAX_SHORT} numbers |",
    ):
        assert text in PAGE
    assert f"| levels of objects within objects | {size_limits.MAX_DEPTH};" in PAGE
