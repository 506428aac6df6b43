"""A command of dpfast in a process of its own, with its seconds and its memory on the last line. Run by itself."""

import json
import sys
import time

from benchmarks.harness.memory import most_memory
from dpfast.cli.main import main

if __name__ == "__main__":
    start = time.perf_counter()
    status = main(sys.argv[1:])
    print(json.dumps({"seconds": time.perf_counter() - start, "MB": most_memory() / 1e6}))
    sys.exit(status)
