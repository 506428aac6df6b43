import gc
import os
import pickle
import signal
import subprocess
import sys

import pytest
from hypothesis import settings

# Tests run on all processors already: threads of BLAS would wait for one another. NumPy is not imported yet.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

settings.register_profile("dpfast", deadline=None, derandomize=True, max_examples=25)
settings.load_profile("dpfast")

# A job in the background ignores Ctrl-C, and so would whatever the tests start.
signal.signal(signal.SIGINT, signal.default_int_handler)


collect_ignore = ["helpers"]  # they have no tests, and would be imported once more under another name


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    """Collect without the search for garbage, which goes through all tests again and again: almost none is left."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_collection_modifyitems(items):
    """Run last what needs the loop over chains in both precisions: by then `COMPILER` has compiled it."""
    items.sort(key=lambda item: item.nodeid.startswith(("tests/_kernels/", "tests/_support/")))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """Give all tests of a file to one worker, in the order of the files, unless another `--dist` is asked for.

    So what a module's fixtures make is made once. In `pyproject.toml`, `--dist=loadfile` would also count without
    workers, where pytest-benchmark refuses to run with it.
    """
    from xdist.scheduler import LoadFileScheduling

    config.option.loadscopereorder = False
    return LoadFileScheduling(config, log) if config.option.dist == "load" else None


@pytest.fixture(autouse=True, scope="session")
def advice_of_equal_designs_once():
    """What would help a poor design takes a tenth of a second: it is looked for once for equal arguments.

    Most designs of tests are small and poor on purpose, and made again and again.
    """
    from dpfast.design import low_accuracy_warning

    found, search = {}, low_accuracy_warning.advice_text

    def search_once(*arguments):
        key = pickle.dumps(arguments)
        if key not in found:
            found[key] = search(*arguments)
        return found[key]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(low_accuracy_warning, "advice_text", search_once)
        yield


LOOP = """
import dpfast
for precision in ("float64", "float32"):
    dpfast.Filter([1]).filter([0.0], dtype=precision)
"""
COMPILER = pytest.StashKey[subprocess.Popen]()


def pytest_sessionstart(session):
    """While workers collect all tests, one process compiles the loop over chains, which takes long, for all of them."""
    config = session.config
    everything = config.args_source is pytest.Config.ArgsSource.TESTPATHS
    if everything and config.getoption("numprocesses", None) and "PYTEST_XDIST_WORKER" not in os.environ:
        config.stash[COMPILER] = subprocess.Popen([sys.executable, "-c", LOOP], cwd=config.rootpath)


def pytest_sessionfinish(session):
    if (compiler := session.config.stash.get(COMPILER, None)) is not None:
        compiler.kill()
        compiler.wait()


@pytest.fixture(scope="session")
def postgres_server():
    """A server of PostgreSQL for all tests of a process, which any of them may stop, and leaves running."""
    from helpers.postgres_server import Server

    server = Server()
    server.start()
    yield server
    server.remove()
