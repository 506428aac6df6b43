"""``python -m dpfast`` is the dpfast command."""

import sys

from dpfast.cli.main import main

sys.exit(main())
