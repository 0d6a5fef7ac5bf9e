"""The formats that are there: every module of ``formats/``, by the name it gives itself."""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache
from types import ModuleType

import formats


@cache
def all_formats() -> dict[str, ModuleType]:
    """The modules by format name, sorted. They load nothing slow."""
    modules = [
        importlib.import_module(f"{formats.__name__}.{module.name}")
        for module in pkgutil.iter_modules(formats.__path__)
        if not module.ispkg  # ``shared`` is no format
    ]
    return dict(sorted((module.NAME, module) for module in modules))


def directions(module: ModuleType) -> list[str]:
    """What a format can do: ``import``, ``export`` or both."""
    able = {"import": "read", "export": "write"}
    return [name for name, function in able.items() if hasattr(module, function)]
