"""Where a store is: in a private folder."""

from __future__ import annotations

from pathlib import Path

Place = Path
