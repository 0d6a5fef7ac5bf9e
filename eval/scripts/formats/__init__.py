"""Other tools' formats: what they hold becomes an eval set and runs, and back.

``formats/`` has a file a format, found by its name; the rest is what they share. What one side
cannot hold is counted in ``Notes`` and told; nothing is dropped in silence.
"""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache
from types import ModuleType


@cache
def all_formats() -> dict[str, ModuleType]:
    """The modules by format name, sorted. They load nothing slow."""
    modules = [
        importlib.import_module(f"{__name__}.{module.name}")
        for module in pkgutil.iter_modules(__path__)
        if not module.ispkg  # ``shared`` is no format
    ]
    return dict(sorted((module.NAME, module) for module in modules))


def directions(module: ModuleType) -> list[str]:
    """The directions of a format: ``import``, ``export`` or both."""
    able = {"import": "read", "export": "write"}
    return [name for name, function in able.items() if hasattr(module, function)]
