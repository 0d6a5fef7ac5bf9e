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


def _modules() -> dict[str, str]:
    """The modules of this folder by format name, sorted: ``csv_sheet`` has the format csv."""
    names = (module.name for module in pkgutil.iter_modules(__path__) if not module.ispkg)
    return {name.partition("_")[0]: f"{__name__}.{name}" for name in sorted(names)}


def core_names() -> list[str]:
    """The names of the core's formats, sorted; no module is imported."""
    return list(_modules())


@cache
def core_formats() -> dict[str, ModuleType]:
    """The modules of the core's formats by name, sorted. They load nothing slow."""
    return {name: importlib.import_module(module) for name, module in _modules().items()}


def all_formats() -> dict[str, ModuleType]:
    """The same with those of extras. Raises StorageError for an extra that cannot be imported."""
    of_extras = {name: extra.load(module) for extra, name, module in added(FORMATS)}
    return dict(sorted((core_formats() | of_extras).items()))


def directions(module: ModuleType) -> list[str]:
    """The directions of a format: ``import``, ``export`` or both."""
    able = {"import": "read", "export": "write"}
    return [name for name, function in able.items() if hasattr(module, function)]
