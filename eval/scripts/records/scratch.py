"""Temporary folders beside the files that come of them; what a killed process left is cleared."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from records.errors import StorageError

OWNER = "owner.lock"
"""Held by the process that the folder belongs to (and its workers): ids of processes recur, locks
end with those who hold them."""
_TRIES = 10


@contextlib.contextmanager
def scratch_folder(parent: Path, prefix: str) -> Iterator[Path]:
    """A folder on the file system of ``parent``, so that its files can be moved there; it goes
    with all it holds when the block ends.

    First the folders of that prefix are removed whose owner is dead. Raises StorageError when none
    can be made.
    """
    _clear(parent, prefix)
    try:
        folder, stack = _owned(parent, prefix)
    except OSError as error:
        raise StorageError(f"{parent}: cannot be written ({error.strerror}).") from None
    with stack:
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def _owned(parent: Path, prefix: str) -> tuple[Path, contextlib.ExitStack]:
    """A new folder and what holds its lock.

    Between the making and the locking another process may take it for a dead one's: then anew.
    """
    from filelock import FileLock, Timeout

    for _ in range(_TRIES):
        folder = Path(tempfile.mkdtemp(prefix=prefix, dir=parent))
        stack = contextlib.ExitStack()
        with contextlib.suppress(Timeout, FileNotFoundError):
            stack.enter_context(FileLock(folder / OWNER).acquire(timeout=0))
            return folder, stack
    raise OSError(0, "other processes clear it away")


def _clear(parent: Path, prefix: str) -> None:
    """Remove the folders whose lock nobody holds. One that cannot be removed stays."""
    from filelock import FileLock, Timeout

    for folder in parent.glob(f"{prefix}*"):
        if (folder / OWNER).is_file():  # else it is being made this moment
            with (
                contextlib.suppress(Timeout, OSError),
                FileLock(folder / OWNER).acquire(timeout=0),
            ):
                shutil.rmtree(folder, ignore_errors=True)
