"""Other tools' formats: what they hold becomes an eval set and runs, and back.

``formats/`` has a file a format, found by its name; the rest is what they share. What one side
cannot hold is counted in ``Notes`` and told; nothing is dropped in silence.
"""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache
from types import ModuleType

from records.extras import FORMATS, added


@cache
def core_formats() -> dict[str, ModuleType]:
    """The modules of this folder by format name, sorted. They load nothing slow."""
    modules = [
        importlib.import_module(f"{__name__}.{module.name}")
        for module in pkgutil.iter_modules(__path__)
        if not module.ispkg  # ``shared`` is no format
    ]
    return dict(sorted((module.NAME, module) for module in modules))


def all_formats() -> dict[str, ModuleType]:
    """The same with those of extras. Raises StorageError for an extra that cannot be imported."""
    of_extras = {name: extra.load(module) for extra, name, module in added(FORMATS)}
    return dict(sorted((core_formats() | of_extras).items()))


def directions(module: ModuleType) -> list[str]:
    """The directions of a format: ``import``, ``export`` or both."""
    able = {"import": "read", "export": "write"}
    return [name for name, function in able.items() if hasattr(module, function)]
