"""A command of dpfast in a process of its own, with its seconds and its memory on the last line. Run by itself."""

import json
import resource
import sys
import time

from dpfast.cli.main import main


def largest_memory():
    """Bytes that this process has held at most."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


if __name__ == "__main__":
    start = time.perf_counter()
    status = main(sys.argv[1:])
    print(json.dumps({"seconds": time.perf_counter() - start, "MB": largest_memory() / 1e6}))
    sys.exit(status)
