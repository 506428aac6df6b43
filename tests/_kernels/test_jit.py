import contextlib
import gc
import os
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numba
import pytest
from numba.core.caching import NullCache
from numba.core.event import Listener, install_listener

from dpfast import _kernels
from dpfast._kernels import _jit

FOLDER = Path(_kernels.__file__).parent
COMPILE = """
import os, sys
import numba
import numba.core.event
import numpy as np

numba.njit(lambda x: x + 1)(1)  # what Numba does once

def compile_there():
    from dpfast._kernels.integer_fir import add_filtered as kernel
    out = np.zeros((1, 3), np.int64)
    kernel(np.array([2, 1]), np.array([[1, 2, 3, 4]]), out)
    assert out.tolist() == [[5, 8, 11]]
    print(sum(kernel.stats.cache_hits.values()), sum(kernel.stats.cache_misses.values()), flush=True)

for change in sys.argv[1:]:
    exec(change)
    if (child := os.fork()) == 0:
        compile_there()
        os._exit(0)
    os.waitpid(child, 0)
"""
HIT, MISS = "1 0", "0 1"
NOTHING = ""
# integer_fir.py is Numba's to look at, of which some look at the date; threads.py the kernel does not even import
TOUCH = """
from pathlib import Path
for file in Path("dpfast/_kernels").glob("[!i]*.py"):
    os.utime(file, (0, 0))
"""
EDIT = """
with open("dpfast/_kernels/threads.py", "a") as edited:
    edited.write("# edited\\n")
"""
needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="POSIX processes")


@pytest.fixture
def package(tmp_path):
    """The folder of the kernels, copied."""
    (tmp_path / "dpfast").mkdir()
    (tmp_path / "dpfast/__init__.py").touch()
    return Path(shutil.copytree(FOLDER, tmp_path / "dpfast/_kernels", ignore=shutil.ignore_patterns("__pycache__")))


def compile_there(package, *changes, **variables):
    """Call a kernel of the copy after each change, in a new process with Numba in it; whether the cache had it."""
    environment = {key: value for key, value in os.environ.items() if key not in {"NUMBA_CACHE_DIR", "PYTHONPATH"}}
    run = subprocess.run(
        [sys.executable, "-c", COMPILE, *changes],
        env={**environment, **variables, "PYTHONPATH": str(package.parents[1]), "NUMBA_DISABLE_JIT": "0"},
        cwd=package.parents[1],
        capture_output=True,
        text=True,
        check=True,
    )
    return run.stdout.splitlines()


@needs_fork
@pytest.mark.slow_nojit  # what it starts compiles there, too
def test_kernels_are_compiled_again_when_a_file_of_the_folder_was_edited(package):
    assert compile_there(package, NOTHING, TOUCH, EDIT) == [MISS, HIT, MISS]


@needs_fork
@pytest.mark.slow_nojit  # what it starts compiles there, too
def test_kernels_run_where_no_folder_can_be_written_to(package):
    nowhere = package / "__pycache__"
    nowhere.touch()  # a file in its place stops the administrator too
    homes = dict.fromkeys(["HOME", "XDG_CACHE_HOME", "LOCALAPPDATA", "USERPROFILE"], str(nowhere))
    assert compile_there(package, NOTHING, NOTHING, **homes) == [MISS, MISS]


def test_a_numba_without_the_known_cache_keeps_nothing(monkeypatch):
    def njit(cache=False, **options):
        return lambda function: SimpleNamespace(function=function, cache=cache, options=options)

    monkeypatch.setattr(_jit, "DISABLE_JIT", False)
    monkeypatch.setattr(numba, "njit", njit)
    compiled = _jit.kernel(abs)
    assert (compiled.function, compiled.cache, compiled.options) == (abs, False, _jit.OPTIONS)


@pytest.mark.parametrize("is_on", [True, False])
@pytest.mark.parametrize("fails", [True, False])
def test_python_collects_no_garbage_while_a_kernel_is_compiled(is_on, fails):
    @_jit.without_collections
    def compiler(x, *, y):
        assert not gc.isenabled()
        if fails:
            raise ZeroDivisionError
        return x + y

    before = gc.isenabled()
    (gc.enable if is_on else gc.disable)()
    try:
        with pytest.raises(ZeroDivisionError) if fails else contextlib.nullcontext():
            assert compiler(1, y=2) == 3
        assert gc.isenabled() == is_on
    finally:
        (gc.enable if before else gc.disable)()


@pytest.mark.skipif(_jit.DISABLE_JIT, reason="about the compiler")
def test_a_kernel_is_compiled_without_collections():
    seen, kernel = [], _jit.kernel(lambda x: x)
    kernel._cache = NullCache()  # of an earlier run of the tests

    class Note(Listener):
        def on_start(self, event):
            seen.append(gc.isenabled())

        def on_end(self, event):
            seen.append(gc.isenabled())

    with install_listener("numba:compile", Note()):
        kernel(1)
    assert seen == [False, False]
    assert gc.isenabled()


@pytest.mark.skipif(not _jit.DISABLE_JIT, reason="without the compiler")
def test_without_the_compiler_a_kernel_is_the_function_itself():
    def double(x):
        return 2 * x

    assert _jit.kernel(double) is double
    assert _jit.part(double) is double


@pytest.mark.skipif(_jit.DISABLE_JIT, reason="about the compiler")
def test_kernels_run_without_the_lock_and_round_as_written():
    options = _jit.kernel(lambda x: x).targetoptions
    assert options["nogil"]
    assert not options["fastmath"]
    assert options["error_model"] == "numpy"
