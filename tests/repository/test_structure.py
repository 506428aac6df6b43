"""The layers of the package, what an import loads, and the completeness of the public documentation."""

import ast
import collections
import functools
import graphlib
import importlib
import inspect
import itertools
import re
import subprocess
import sys
from pathlib import Path

import pytest

import dpfast
from dpfast.mechanisms.receivers.decision_feedback import DecisionFeedback
from dpfast.mechanisms.receivers.linear import LinearReceiver
from dpfast.mechanisms.receivers.smoother import Smoother

PACKAGE = Path(dpfast.__file__).parent
MODULES = {
    ".".join(["dpfast", *path.relative_to(PACKAGE).with_suffix("").parts]).removesuffix(".__init__"): path
    for path in sorted(PACKAGE.rglob("*.py"))
}

# Each room may use those before it; simulation and releases, which are side by side, do not use one another.
ROOMS = {
    room: level
    for level, rooms in enumerate(
        [
            ("_support", "_kernels"),
            ("filters",),
            ("privacy",),
            ("signals",),
            ("mechanisms",),
            ("design",),
            ("simulation", "releases"),
            ("reports",),
            ("cli",),
        ]
    )
    for room in rooms
}
KERNEL_IMPORTS = {"numpy", "numba", "llvmlite", "dpfast"} | set(sys.stdlib_module_names)
HEAVY = {"cvxpy", "distributed", "matplotlib", "pandas", "pyarrow", "scipy.optimize", "scipy.signal", "tqdm", "xarray"}

VERBS = set(
    re.findall(
        r"\w+",
        "Add Answer Assume Attack Bound Close Compare Cut Declare Demand Describe Design Draw Factor Filter Fit Give "
        "Hold Inspect Keep Load Look Make Open Protect Publish Put Read Refuse Release Return Run Save Say Simulate "
        "State Study Take Tell Use Warn Write",
    )
)


def room(module):
    """The room of a module: dpfast.design.lmmse → design."""
    return [*module.split("."), ""][1]


def called(node):
    """The last name of what a call calls: x.y() is y."""
    return getattr(node.func, "attr", getattr(node.func, "id", ""))


def imports(path):
    """(dotted name, whether inside a function) of every import, `from dpfast import x` resolved to the module x."""
    found = []

    def visit(node, inside):
        inside = inside or isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        if isinstance(node, ast.Import):
            found.extend((alias.name, inside) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: imports are absolute"
            whole = [f"{node.module}.{alias.name}" for alias in node.names]
            found.extend((name if name in MODULES else node.module, inside) for name in whole)
        elif isinstance(node, ast.Call) and called(node).endswith(("optional", "import_module")):
            found.extend((x.value, inside) for x in node.args[:1] if isinstance(x, ast.Constant))
        for child in ast.iter_child_nodes(node):
            visit(child, inside)

    visit(parsed(path), False)
    return found


@functools.cache
def parsed(path):
    return ast.parse(path.read_text(encoding="utf-8"))


@functools.cache
def every_import():
    return [(module, name, inside) for module, path in MODULES.items() for name, inside in imports(path)]


def test_the_parser_sees_the_imports():
    assert ("dpfast.filters.filter", "dpfast._support.validation", False) in every_import()
    assert ("dpfast.design.programs.prefilter_program", "cvxpy", True) in every_import()
    assert ("dpfast.design.lmmse", "dpfast.design.prefilter.water_filling", False) in every_import()


def test_the_folders_are_the_rooms():
    entries = {x.name for x in PACKAGE.iterdir()} - {"__pycache__"}
    assert entries == {*ROOMS, "__init__.py", "__init__.pyi", "__main__.py", "py.typed"}


# What methods of objects need from above them is loaded when they are first called: pictures, and bounds.
UPWARD = {
    ("dpfast._support.plotting", "dpfast.reports.objects.object_plots", True),
    ("dpfast.mechanisms.bound", "dpfast.design.bounds.of_mechanism", True),
}


def test_imports_between_rooms_go_one_way():
    assert {*every_import()} >= UPWARD
    wrong = [
        (module, name)
        for module, name, inside in every_import()
        if (module, name, inside) not in UPWARD
        if name.startswith("dpfast") and module != "dpfast.__main__" and room(module) != room(name)
        if room(module) and ROOMS.get(room(name), 99) >= ROOMS[room(module)]
    ]
    assert wrong == []


def test_imports_inside_rooms_have_no_cycles():
    inside = {module: set() for module in MODULES}
    for module, name, _ in every_import():
        if room(module) == room(name) != "":
            inside[module].add(name if name in MODULES else name.rpartition(".")[0])
    graphlib.TopologicalSorter(inside).prepare()  # an error has the cycle


def test_every_folder_names_its_parts():
    """The table in its docstring has each file and folder that is in it, and none that is not."""
    wrong = {}
    for path in sorted(PACKAGE.glob("*/**/__init__.py")):
        parts = {x.stem for x in path.parent.glob("*.py")} - {"__init__"}
        parts |= {f"{x.parent.name}/" for x in path.parent.glob("*/__init__.py")}
        named = set(re.findall(r"^``([\w/]+)``  ", path.read_text(encoding="utf-8"), re.MULTILINE))
        wrong[path] = named ^ parts
    assert {path: names for path, names in wrong.items() if names} == {}


def test_files_are_short():
    """The class Filter is one; so is what traces a tile."""
    long = {module: path.read_text(encoding="utf-8").count("\n") for module, path in MODULES.items()}
    allowed = {"dpfast.filters.filter", "dpfast._kernels.simd"}
    assert {module: n for module, n in long.items() if n > 400 and module not in allowed} == {}


# One subject in two rooms: what computes and what draws, what designs and what runs, what counts and what is compiled.
SHARED_FILE_NAMES = {
    *("base", "block_sums", "buffered_toeplitz", "comparison", "decision_feedback", "evaluation"),
    *("ledger", "paper_example", "progress", "randomized_response", "study"),
}


def test_a_file_name_stands_once_but_for_one_subject_in_two_rooms():
    names = collections.Counter(path.stem for path in MODULES.values() if path.name != "__init__.py")
    assert {name for name, n in names.items() if n > 1} == SHARED_FILE_NAMES
    assert {name for name, n in names.items() if n > 2} == {"randomized_response"}  # its law, its design, its kernel


def test_a_class_name_stands_once():
    classes = collections.Counter(
        node.name for path in MODULES.values() for node in parsed(path).body if isinstance(node, ast.ClassDef)
    )
    assert {name for name, n in classes.items() if n > 1} == set()


def test_kernels_import_numpy_numba_and_llvmlite_alone():
    used = {name.partition(".")[0] for module, name, _ in every_import() if module.startswith("dpfast._kernels")}
    assert used <= KERNEL_IMPORTS
    inner = {name for module, name, _ in every_import() if module.startswith("dpfast._kernels") and "dpfast" in name}
    assert all(name.startswith("dpfast._kernels") for name in inner)


def places(package):
    return {(module, inside) for module, name, inside in every_import() if name.partition(".")[0] == package}


def test_cvxpy_is_imported_inside_functions_of_the_designs():
    assert places("cvxpy")
    assert all(module.startswith("dpfast.design.") and inside for module, inside in places("cvxpy"))


def test_optional_packages_are_imported_inside_functions():
    optional = ("distributed", "matplotlib", "pandas", "pyarrow", "tqdm")
    outside = [(package, module) for package in optional for module, inside in places(package) if not inside]
    assert outside == []


def test_sqlite_is_imported_in_one_place():
    assert {module for module, _ in places("sqlite3")} == {"dpfast._support.sqlite"}


def test_matplotlib_is_for_the_report():
    # The command line looks for it before it starts a long computation.
    assert {module for module, _ in places("matplotlib")} <= {"dpfast.reports.matplotlib_helpers", "dpfast.cli.output"}


def test_importing_the_package_loads_nothing_heavy():
    command = "import sys, dpfast; print(*sys.modules)"
    result = subprocess.run(
        [sys.executable, "-c", command], capture_output=True, text=True, check=True, cwd=PACKAGE.parent
    )
    loaded = set(result.stdout.split())
    assert "dpfast" in loaded
    assert loaded & HEAVY == set()


# --- public names ---------------------------------------------------------------------------------

PUBLIC = [getattr(dpfast, name) for name in dpfast.__all__]
CALLABLES = [x for x in PUBLIC if not issubclass(type(x), type) or not issubclass(x, BaseException)]


def test_public_names_are_sorted_and_unique():
    assert dpfast.__all__ == sorted(set(dpfast.__all__))


def test_public_names_are_all_that_the_package_imports():
    imported = {
        name for name, value in vars(dpfast).items() if not name.startswith("_") and not inspect.ismodule(value)
    }
    assert imported == set(dpfast.__all__)


def test_public_names_have_a_docstring_of_their_own():
    texts = {x.__name__: vars(x).get("__doc__") if inspect.isclass(x) else x.__doc__ for x in PUBLIC}
    # what dataclass and NamedTuple write by themselves begins with the signature
    assert [name for name, text in texts.items() if not text or text.startswith(f"{name}(")] == []


def unmentioned(thing):
    """The parameters of a function, or of a class's constructor, that its docstring does not mention."""
    text, names = inspect.getdoc(thing), {*inspect.signature(thing).parameters} - {"self", "args", "kwargs"}
    return {name for name in names if not name.startswith("_") and not re.search(rf"\b{name}\b", text)}


def test_public_docstrings_begin_with_what_one_does():
    # A list of verbs, as no rule tells them from nouns: a new one is added here, a noun phrase or a formula is not.
    others = {name for name in dpfast.__all__ if inspect.getdoc(getattr(dpfast, name)).split()[0] not in VERBS}
    assert others == set()


def test_no_docstring_begins_as_a_question():
    """Also of private names: "What it is" or "Whether it is so" tells less than a noun or a verb."""
    kinds = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
    nodes = [(path, x) for path in MODULES.values() for x in ast.walk(parsed(path))]
    texts = [(path, x.lineno, ast.get_docstring(x) or "-") for path, x in nodes if isinstance(x, kinds)]
    questions = {"What", "Whether", "Which", "Where", "When", "How", "Why", "Who", "Whose", "Of"}
    assert len(texts) > 3000
    assert [(path.name, line, text) for path, line, text in texts if text.split()[0] in questions] == []


def test_public_docstrings_mention_every_parameter():
    """Of a class, its fields or its constructor's parameters."""
    assert {x.__name__: names for x in CALLABLES if (names := unmentioned(x))} == {}


def methods(cls):
    """The public functions of a class, with class methods and static ones."""
    for name, value in vars(cls).items():
        function = value.__func__ if isinstance(value, classmethod | staticmethod) else value
        if not name.startswith("_") and inspect.isfunction(function):
            yield function


def test_public_methods_have_docstrings():
    every = [method for cls in CALLABLES if inspect.isclass(cls) for method in methods(cls)]
    assert len(every) > 50
    assert [method.__qualname__ for method in every if not method.__doc__] == []


def wordless(thing):
    """The parameters of which a docstring gives the type alone."""
    _, _, text = (inspect.getdoc(thing) or "").partition("Parameters\n----------\n")
    lines = text.split("\n\n")[0].split("\n")
    pairs = itertools.pairwise([*lines, ""])
    return [one for one, after in pairs if re.match(r"\S.* : ", one) and not after.startswith(" ")]


def test_public_docstrings_say_what_every_parameter_is():
    every = [*CALLABLES, *(method for cls in CALLABLES if inspect.isclass(cls) for method in methods(cls))]
    assert {x.__qualname__: names for x in every if (names := wordless(x))} == {}


@pytest.mark.parametrize("cls", [LinearReceiver, Smoother, DecisionFeedback])
def test_receivers_have_no_argument_through_which_the_input_could_reach_them(cls):
    assert list(inspect.signature(cls.estimate).parameters) == ["self", "v"]
    assert hasattr(cls, "continued") == (cls is not Smoother)
    if cls is not Smoother:
        assert list(inspect.signature(cls.continued).parameters) == ["self", "v", "state"]
    for name in ("response", "filters", "compiled"):
        assert set(inspect.signature(getattr(cls, name)).parameters) <= {"self", "omega"}


def test_live_receivers_see_what_is_published_alone():
    from dpfast.releases.integer import live_receiver as receiver

    methods = {
        name: list(inspect.signature(value).parameters)
        for name, value in vars(receiver.LiveReceiver).items()
        if inspect.isfunction(value)
    }
    assert methods == {
        "__init__": ["self", "receiver", "taps", "shift", "n_streams"],
        "push": ["self", "v", "end"],
        "_centred": ["self", "v"],
        "state": ["self"],
        "restore": ["self", "state"],
    }
    assert list(inspect.signature(receiver.estimate).parameters) == ["receiver", "taps", "shift", "v"]


def test_the_package_shows_its_public_names_alone():
    modules = (
        "dpfast.releases.store.release_store",
        "dpfast.releases.audit.all_attacks",
        "dpfast._support.text_table",
        "dpfast.reports.plot",
        "dpfast.design.adaptive.adapt",
    )
    for module in modules:  # whose packages are called as functions are
        importlib.import_module(module)
    assert dir(dpfast) == sorted([*dpfast.__all__, "__version__"])
    assert not any(inspect.ismodule(getattr(dpfast, name)) for name in dir(dpfast))
    assert all(callable(x) for x in (dpfast.release, dpfast.audit, dpfast.report, dpfast.plot, dpfast.adapt))
