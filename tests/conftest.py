import os
import signal

from hypothesis import settings

# Tests run on all processors already: threads of BLAS would wait for one another. NumPy is not imported yet.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

settings.register_profile("dpfast", deadline=None, derandomize=True, max_examples=25)
settings.load_profile("dpfast")

# A job in the background ignores Ctrl-C, and so would whatever the tests start.
signal.signal(signal.SIGINT, signal.default_int_handler)
