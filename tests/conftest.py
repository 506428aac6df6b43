import os
import pickle
import signal

import pytest
from hypothesis import settings

# Tests run on all processors already: threads of BLAS would wait for one another. NumPy is not imported yet.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

settings.register_profile("dpfast", deadline=None, derandomize=True, max_examples=25)
settings.load_profile("dpfast")

# A job in the background ignores Ctrl-C, and so would whatever the tests start.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True, scope="session")
def advice_of_equal_designs_once():
    """What would help a poor design takes a tenth of a second: it is looked for once for equal arguments.

    Most designs of tests are small and poor on purpose, and made again and again.
    """
    from dpfast.design import advice

    found, search = {}, advice.advice_text

    def search_once(*arguments):
        key = pickle.dumps(arguments)
        if key not in found:
            found[key] = search(*arguments)
        return found[key]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(advice, "advice_text", search_once)
        yield
