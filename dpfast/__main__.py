"""``python -m dpfast`` is the dpfast command."""

import sys

from dpfast.cli import main

sys.exit(main())
