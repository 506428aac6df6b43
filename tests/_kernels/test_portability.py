"""The same bits in other processes, on other processors, and without the compiler."""

import multiprocessing
import os
import subprocess
import sys
from pathlib import Path

import pytest
from helpers import digests, processors

from dpfast._kernels._jit import DISABLE_JIT

TESTS = Path(digests.__file__).parents[1]
THIS: dict[str, str] = {}  # processor, as it is
METHODS = [x for x in ("fork", "spawn") if x in multiprocessing.get_all_start_methods()]
PROCESSES = """
from helpers import digests
import multiprocessing, sys

own = digests.digests()  # on threads, before the fork
for method in sys.argv[1:]:
    with multiprocessing.get_context(method).Pool(1) as pool:
        assert pool.apply(digests.digests) == own
print(*own.values())
"""


@pytest.fixture(scope="module")
def here():
    return digests.digests()


@pytest.mark.slow_nojit
@pytest.mark.parametrize(
    "methods",  # the process itself begins as one that is spawned does
    [pytest.param(METHODS[:1], id=METHODS[0]), pytest.param(METHODS, id="all", marks=pytest.mark.long)],
)
def test_processes_leave_no_trace_in_the_bits(here, methods):
    environment = os.environ | {"PYTHONPATH": f"{TESTS.parent}{os.pathsep}{TESTS}"}
    command = [sys.executable, "-c", PROCESSES, *methods]
    run = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    assert run.stdout.split() == list(here.values())


def print_kernels():
    import sys

    sys.path.append("tests")
    from helpers import digests

    print(*digests.digests_of_kernels().values())


def print_digests():
    import sys

    sys.path.append("tests")
    from helpers import digests

    print(*digests.digests().values())


@pytest.mark.slow_nojit
@processors.OTHERS
@pytest.mark.parametrize(
    ("make", "print_them"),  # the whole loop takes long to compile
    [
        pytest.param(digests.digests_of_kernels, print_kernels, id="kernels"),
        pytest.param(digests.digests, print_digests, id="all", marks=pytest.mark.long),
    ],
)
def test_processors_leave_no_trace_in_the_bits(make, print_them, tmp_path):
    """Where products and sums are rounded once, the width does not matter; elsewhere it is as without the compiler."""
    if processors.rounds_once():
        other = THIS if "NUMBA_CPU_NAME" in os.environ else processors.HASWELL
    else:
        other = processors.WITHOUT_FMA if DISABLE_JIT else processors.WITHOUT_COMPILER
    here = make()
    found = dict(zip(here, processors.run_on(other, print_them, tmp_path), strict=True))
    assert [name for name in here if found[name] != here[name]] == []


@pytest.mark.slow_nojit
def test_results_differ(here):
    """The digests tell one from another; float32 from float64 too."""
    assert len(set(here.values())) == len(here)
