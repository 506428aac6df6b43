import os
import shutil
import subprocess
from importlib import metadata

from benchmarks.native import other_chains
from dpfast._kernels import simd

# JAX reads it when it is imported.
os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1")

PACKAGES = ("dpfast", "numpy", "scipy", "numba", "jax", "jax-privacy")
collect_ignore = ["native", "peers", "site"]  # in environments of their own, by `nox -s compare` and `nox -s docs`


def pytest_benchmark_update_machine_info(config, machine_info):
    """What the figures depend on, beside the processor."""
    machine_info["vector_bits"] = 8 * simd.register_bytes()
    machine_info["versions"] = {name: version(name) for name in PACKAGES}
    machine_info["versions"]["C++"] = compiler()


def version(package):
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def compiler():
    if shutil.which(other_chains.COMPILE[0]) is None:
        return None
    result = subprocess.run([other_chains.COMPILE[0], "--version"], capture_output=True, text=True, check=True)
    return result.stdout.splitlines()[0].removeprefix("c++ ")
