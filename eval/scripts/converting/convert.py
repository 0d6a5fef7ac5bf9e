"""One import or export from the sources to the files at their place."""

from __future__ import annotations

import os
import platform
import re
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import storage
from converting.item import Wanted
from converting.notes import Notes
from converting.output import Output, move
from converting.sources import place_of
from converting.stored import Stored
from storage import StorageError


def import_data(
    module: ModuleType,
    sources: Sequence[Path],
    target: Path,
    wanted: dict[str, Any],
    notes: Notes,
    *,
    one_file: bool,
    force: bool,
) -> list[Path]:
    """Read other tools' files into an eval set with runs; returns what was made.

    ``wanted``: the fields of Wanted that the user gave. Raises StorageError with every problem,
    nothing written.
    """
    for source in sources:
        if not source.exists():
            raise StorageError(f"{source}: no such file or folder.")
    with _scratch(target) as folder:
        scratch = Path(folder)
        output = Output(
            target,
            scratch,
            notes,
            one_file=one_file,
            run_id=wanted.get("run_id"),
            source={"format": module.NAME, "files": [source.name for source in sources]},
        )
        try:
            for item in module.read(sources, Wanted(**wanted, scratch=scratch), notes):
                output.add(item)
            beside = module.beside(sources) if hasattr(module, "beside") else {}
            return output.finish(beside, force=force)
        except StorageError as error:
            message = error.message
            for source in sources:  # of a packed file, name the one that the user knows
                message = message.replace(str(place_of(source, scratch)), str(source))
            raise StorageError(message, error.problems) from None


def export_data(
    module: ModuleType, stored: Stored, target: Path, notes: Notes, *, force: bool
) -> list[Path]:
    """Write our cases and results as another tool's files; returns what was made.

    Raises StorageError with every problem, nothing written.
    """
    single = bool(getattr(module, "ONE_FILE", False))
    with _scratch(target) as folder:
        made = Path(folder) / "made"
        made.mkdir()
        try:
            module.write(stored, made / target.name if single else made, notes)
        except StorageError as error:  # name the file or folder that the user knows
            shown = str(made / target.name if single else made)
            raise StorageError(error.message.replace(shown, str(target)), error.problems) from None
        notes.check()
        if not single:
            names = sorted(path.relative_to(made) for path in made.rglob("*") if path.is_file())
            move(made, target, [], force=force)
            return [target / name for name in names]
        if target.exists() and not force:
            raise StorageError(
                f"{target}: is there already; choose another --output, or --force. "
                "Nothing was written."
            )
        try:
            os.replace(made / target.name, target)
        except OSError as error:
            raise StorageError(f"{target}: cannot be written ({error.strerror}).") from None
        return [target]


def run_of(results_dir: Path, run: str, *, asked: bool) -> Path | None:
    """The run to export; None when the user named none and there is none."""
    try:
        return storage.find_run(results_dir, run)
    except StorageError:
        if asked:
            raise
        return None


def _scratch(target: Path) -> tempfile.TemporaryDirectory[str]:
    """A hidden folder on the disk of the target, so that moving is one step.

    Its name tells machine and process: what a killed conversion left behind is removed here.
    """
    parent = target.resolve().parent
    ours = hidden_prefix()
    try:
        parent.mkdir(parents=True, exist_ok=True)
        if shutil.disk_usage(parent).free == 0:
            raise StorageError(f"{parent}: the disk is full.")
        for stale in parent.glob(f"{ours}*"):
            if _left_behind(stale, stale.name.removeprefix(ours)):
                shutil.rmtree(stale, ignore_errors=True)
        return tempfile.TemporaryDirectory(prefix=f"{ours}{os.getpid()}.", dir=parent)
    except OSError as error:
        raise StorageError(f"{target}: cannot be written ({error.strerror}).") from None


def hidden_prefix() -> str:
    """How the hidden folders of this machine begin; the process stands behind it."""
    return f".converting.{re.sub('[^A-Za-z0-9-]', '-', platform.node())}."


def _left_behind(folder: Path, name: str) -> bool:
    """Whether the process of a hidden folder is dead and the folder holds nothing of the user's.

    A run that --force was replacing when the process died (old-…) stays for the user to take back.
    """
    process = name.partition(".")[0]
    if os.name != "posix" or not process.isdigit() or next(folder.glob("old-*"), None):
        return False
    try:
        os.kill(int(process), 0)
    except ProcessLookupError:
        return True
    except (OSError, OverflowError):
        return False
    return False
