"""Kernels compiled for other processors than this one."""

import inspect
import os
import platform
import subprocess
import sys
from pathlib import Path

import pytest
from llvmlite import binding
from numba.core.registry import cpu_target

from dpfast._kernels._jit import DISABLE_JIT

AVX512 = {"CPU_NAME": "skylake-avx512", "CPU_FEATURES": "+avx512f"}  # to look at; few processors can run it
HASWELL = {"CPU_NAME": "haswell", "CPU_FEATURES": "+avx2,+fma"}
WITHOUT_FMA = {"CPU_NAME": "x86-64-v2", "CPU_FEATURES": ""}
WITHOUT_COMPILER = {"DISABLE_JIT": "1"}

HERE = platform.machine() == "x86_64" and binding.get_host_cpu_features()["fma"]
OTHERS = pytest.mark.skipif(not HERE, reason="this processor cannot stand in for those named")


def rounds_once():
    """Whether a multiply-add of a kernel is rounded once."""
    triple, _, features = cpu_target.target_context.codegen().magic_tuple()
    return not DISABLE_JIT and ("+fma" in features.split(",") or triple.startswith(("aarch64", "arm64")))


def run_on(processor, function, cache):
    """What a function prints that imports all that it needs, in another process; `cache` is a folder for kernels."""
    settings = {"DISABLE_JIT": "0", "CACHE_DIR": str(cache), **processor}
    environment = {name: value for name, value in os.environ.items() if not name.startswith("NUMBA_")}
    run = subprocess.run(
        [sys.executable, "-c", f"{inspect.getsource(function)}\n{function.__name__}()"],
        env=environment | {f"NUMBA_{name}": value for name, value in settings.items()},
        cwd=Path(__file__).parents[2],  # where the tests are, also where the package is installed
        capture_output=True,
        text=True,
        check=True,
    )
    return run.stdout.split()
