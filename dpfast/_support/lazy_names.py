"""Public names that are imported when they are first used, so that importing the package costs next to nothing."""

import ast
import importlib
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any


def lazy_names(package: str, path: str) -> tuple[list[str], Callable[[str], Any], Callable[[], list[str]]]:
    """Return ``__all__``, ``__getattr__`` and ``__dir__`` (PEP 562) of the package whose file is at `path`.

    Its names stand once, as the imports of the stub beside it, ``__init__.pyi``, which editors and type checkers read.
    """
    homes = stub_imports(Path(path).with_suffix(".pyi"))
    names = sorted(homes)

    def __getattr__(name: str) -> Any:  # noqa: N807
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}", name=name, obj=sys.modules[package])
        found = getattr(importlib.import_module(homes[name]), name)
        setattr(sys.modules[package], name, found)  # the next time it is an ordinary attribute
        return found

    def __dir__() -> list[str]:  # noqa: N807
        return [*names, "__version__"]

    return names, __getattr__, __dir__


def stub_imports(path: Path) -> dict[str, str]:
    """Return the module of each name that a stub imports."""
    statements = ast.parse(path.read_text(encoding="utf-8")).body
    imports = [x for x in statements if isinstance(x, ast.ImportFrom) and x.module]
    return {alias.name: str(x.module) for x in imports for alias in x.names}
