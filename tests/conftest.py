import signal

from hypothesis import settings

settings.register_profile("dpfast", deadline=None, derandomize=True, max_examples=25)
settings.load_profile("dpfast")

# A job in the background ignores Ctrl-C, and so would whatever the tests start.
signal.signal(signal.SIGINT, signal.default_int_handler)
