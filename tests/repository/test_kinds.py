"""Mechanisms, targets and receivers answer for themselves: nothing asks of which kind one is, to do what it should."""

import ast
import functools
from pathlib import Path

import pytest

import dpfast
from dpfast._kernels import compiled_mechanisms, compiled_receivers
from dpfast.filters.filter import Filter
from dpfast.filters.toeplitz import Toeplitz
from dpfast.mechanisms.base import MechanismBase
from dpfast.mechanisms.compiled_matrix_mechanism import CompiledMatrixMechanism
from dpfast.mechanisms.constant import Constant
from dpfast.mechanisms.receivers.base import Receiver
from dpfast.releases.integer.exact_base import ExactBase

PACKAGE = Path(dpfast.__file__).parent
COMPILED = {name for name in {**vars(compiled_mechanisms), **vars(compiled_receivers)} if name.startswith("Compiled")}
UNIONS = {"AnyMechanism", "AnyCompiledMechanism"}

# Functions that are given one of several things, and tell which; whatever follows asks that for what it needs.
READERS = {
    "filters/toeplitz.py: of": "a filter, another target or a sequence",
    "design/argument_checks.py: filter_or_none": "a filter or a word",
    "design/argument_checks.py: toeplitz_or_none": "a target with or without a horizon",
    "releases/integer/exact_forms.py: exact_or_none": "a design or its exact form",
    "filters/state_space_system.py: times": "a filter or a gain",
    "simulation/sweep/rows.py: additive_bound_rmse": "a target of one stream without a horizon, or another",
    "simulation/sweep/stream_blocks.py: _build_study": "mechanisms of one stream or of several",
    "simulation/sweep/parameters.py: _read_mechanism": "a mechanism or the name of a family",
}


def family(cls):
    return {cls.__name__}.union(*map(family, cls.__subclasses__()))


KINDS = COMPILED | UNIONS | {Filter.__name__, Toeplitz.__name__, Constant.__name__}
KINDS |= family(MechanismBase) | family(Receiver) | family(ExactBase) | {CompiledMatrixMechanism.__name__}


def names(node):
    return {getattr(x, "id", getattr(x, "attr", None)) for x in ast.walk(node)}


def asks(node):
    """Whether a node asks for a kind: isinstance(x, K), issubclass(c, K), type(x) is K, or case K(...)."""
    if isinstance(node, ast.Call):
        asking = getattr(node.func, "id", None) in ("isinstance", "issubclass")
        return asking and bool(names(node.args[1]) & KINDS)
    if isinstance(node, ast.Compare):
        of_type = isinstance(node.left, ast.Call) and getattr(node.left.func, "id", None) == "type"
        return of_type and bool(set().union(*map(names, node.comparators)) & KINDS)
    return isinstance(node, ast.MatchClass) and bool(names(node.cls) & KINDS)


def refused(tree):
    """All nodes of conditions on which nothing is done but to refuse an argument."""
    refusing = [x for x in ast.walk(tree) if isinstance(x, ast.If) and isinstance(x.body[0], ast.Raise)]
    return {node for x in refusing for node in ast.walk(x.test)}


def switches(source, path):
    """(path: function, line) of all that asks for a kind, but for checks of arguments and the operands of operators."""
    tree = ast.parse(source)
    checks, found = refused(tree), []

    def visit(node, function):
        if isinstance(node, ast.FunctionDef):
            function = node.name
        if asks(node) and node not in checks and not function.startswith("__"):
            found.append((f"{path}: {function}", getattr(node, "lineno", 0)))
        for child in ast.iter_child_nodes(node):
            visit(child, function)

    visit(tree, "")
    return found


@functools.cache
def found_in_package():
    paths = {path.relative_to(PACKAGE).as_posix(): path for path in sorted(PACKAGE.rglob("*.py"))}
    return [
        x
        for name, path in paths.items()
        if not name.startswith("mechanisms/serialization/")
        for x in switches(path.read_text(encoding="utf-8"), name)
    ]


def test_nothing_asks_of_which_kind_a_mechanism_a_target_or_a_receiver_is():
    assert [(place, line) for place, line in found_in_package() if place not in READERS] == []


def test_every_reader_of_arguments_is_one():
    assert {place for place, _ in found_in_package()} == set(READERS)


def test_kinds_are_known_by_name():
    assert KINDS >= {"Mechanism", "MatrixMechanism", "Smoother", "LinearReceiver", "DecisionFeedback", "Filter"}
    assert KINDS >= {"CompiledMechanism", "CompiledSmoother", "CompiledMatrixMechanism"}


@pytest.mark.parametrize(
    "switch",
    [
        "def f(x):\n    if isinstance(x, Smoother):\n        return 1",
        "def f(x):\n    return 1 if isinstance(x.receiver, receivers.DecisionFeedback) else 2",
        "def f(xs):\n    return [x for x in xs if isinstance(x, str | MatrixMechanism)]",
        "def f(x):\n    return type(x) is Toeplitz",
        "def f(x):\n    match x:\n        case Filter():\n            return 1",
    ],
)
def test_the_count_sees_a_switch(switch):
    assert len(switches(switch, "here")) == 1


@pytest.mark.parametrize(
    "other",
    [
        "def f(x):\n    if not isinstance(x, Filter):\n        raise ValueError",
        "def __eq__(self, other):\n    return isinstance(other, Filter)",
        "def f(x):\n    return isinstance(x, str)",
    ],
)
def test_the_count_leaves_checks_alone(other):
    assert switches(other, "here") == []
