"""Designs keep linear algebra on one thread, and give the threads back."""

import os
import subprocess
import sys
import threading

import numpy as np
import pytest
import scipy.linalg  # noqa: F401  its BLAS must be there
from threadpoolctl import ThreadpoolController, threadpool_info

from dpfast._support.design_calls import public_design

BLAS = [x for x in threadpool_info() if x["user_api"] == "blas"]
needs_blas = pytest.mark.skipif(not BLAS, reason="the linear algebra here has no threads that can be told")


def threads():
    return [x["num_threads"] for x in threadpool_info() if x["user_api"] == "blas"]


@pytest.fixture(autouse=True)
def given():
    """The threads of each BLAS of the process, of which solvers may bring more: three, where it can have several."""
    with ThreadpoolController().limit(limits=3, user_api="blas"):
        yield threads()


@public_design
def tell(inside=None):
    """Say how many threads there are."""
    return inside() if inside else threads()


@needs_blas
def test_a_design_runs_on_one_thread_and_gives_them_back(given):
    one = [1] * len(given)
    assert 3 in given
    assert (tell(), threads()) == (one, given)
    assert tell(lambda: (tell(), threads())) == (one, one)  # the inner one gives nothing back yet
    assert threads() == given


@needs_blas
def test_an_error_gives_them_back(given):
    with pytest.raises(ZeroDivisionError):
        tell(lambda: 1 / 0)
    assert threads() == given


@needs_blas
def test_designs_in_several_threads_give_them_back(given):
    """However they overlap."""
    first_in, second_in, first_out = (threading.Event() for _ in range(3))
    seen = []

    def first():
        first_in.set()
        second_in.wait(10)

    def second():
        second_in.set()
        seen.append(first_out.wait(10))

    one = threading.Thread(target=lambda: (tell(first), first_out.set()))
    two = threading.Thread(target=lambda: (first_in.wait(10), tell(second)))
    for x in (one, two):
        x.start()
    for x in (one, two):
        x.join(20)
    assert seen == [True]  # the second began inside of the first, and went on behind it
    assert (threads(), tell()) == (given, [1] * len(given))


DESIGN = """
import dpfast as dp, hashlib, numpy as np
chain = dp.MarkovChain([[0.8, 0.2], [0.4, 0.6]], levels=[0.0, 1.0])
found = dp.optimal_factorization(dp.running_sum(96), dp.Privacy(1.0, 1e-6), chain)
print(hashlib.sha256(np.ascontiguousarray(found.compiled().strategy.apply(np.eye(96)))).hexdigest())
"""


@needs_blas
def test_the_bits_of_a_design_do_not_depend_on_the_threads_of_the_blas():
    found = set()
    for n in ("1", "4"):
        environment = os.environ | dict.fromkeys(("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), n)
        run = subprocess.run([sys.executable, "-c", DESIGN], env=environment, stdout=subprocess.PIPE, check=True)
        found.add(run.stdout)
    assert len(found) == 1


def test_a_design_keeps_its_name_and_signature():
    assert (tell.__name__, tell.__doc__) == ("tell", "Say how many threads there are.")
    assert np.ndim(tell()) == 1
