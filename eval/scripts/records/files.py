"""Files that are never half-written: atomic replace, append-and-resume JSONL, locks, hashes.

Also temporary folders beside the files that come of them; what a killed process left is cleared.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import shutil
import stat
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

import msgspec
import orjson

from records.errors import StorageError
from records.file_access import LONGEST_LINE, MAX_SETTINGS, open_plain, read_whole, too_long_a_line
from records.lines import MAX_DEPTH, nests_deeper, parse_json
from records.syncing import DelayedSync, make_folder, move_into_place, sync_folder

if TYPE_CHECKING:
    from filelock import FileLock


LOCK_TIMEOUT = 30.0
"""Seconds to wait for another process that has locked a file."""


def replace_bytes(path: Path, data: bytes) -> None:
    """Put ``data`` at ``path`` in one step: readers see the old file or the new one, never a part.

    A symbolic link keeps pointing where it did, and the file keeps its mode. Raises StorageError
    when the folder cannot be written; the old file is then untouched.
    """
    path = Path(os.path.realpath(path))
    with written_beside(path, (data,)) as temporary:
        move_into_place(temporary, path)


@contextlib.contextmanager
def written_beside(
    path: Path, parts: Iterable[bytes], *, make_folder: bool = False
) -> Iterator[str]:
    """A temporary file beside ``path`` for the block to move there; one that stays is removed.

    Raises StorageError when it cannot be written, or the block raises OSError.
    """
    temporary = ""
    try:
        if make_folder:
            path.parent.mkdir(exist_ok=True)
        descriptor, temporary = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
        with open(descriptor, "wb") as file:
            file.writelines(parts)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, stat.S_IMODE(path.stat().st_mode) if path.exists() else 0o644)
        yield temporary
    except OSError as error:
        raise StorageError(f"{path}: cannot be written ({error.strerror}).") from error
    finally:
        with contextlib.suppress(OSError):
            os.unlink(temporary)


def clear_leftovers(path: Path, between: str = "") -> None:
    """Remove half-written copies of ``path`` that killed processes left; only under its lock.

    ``between``: a pattern of what may stand between the name and the random end, for its backups.
    """
    pattern = re.compile(re.escape(f".{path.name}") + between + r"\.[a-z0-9_]{8}")
    for folder in {path.parent, Path(os.path.realpath(path)).parent}:
        for left in folder.iterdir() if folder.is_dir() else ():
            if pattern.fullmatch(left.name):
                with contextlib.suppress(OSError):
                    left.unlink()


def json_bytes(value: Any) -> bytes:
    """Canonical JSON of a file that is committed: sorted keys, two-space indent, final newline."""
    options = orjson.OPT_SORT_KEYS | orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE
    return orjson.dumps(value, option=options)


def replace_json(path: Path, value: Any) -> None:
    """Replace a JSON file atomically, in canonical form."""
    replace_bytes(path, json_bytes(value))


def read_json(path: Path, *schemas: int) -> dict[str, Any]:
    """A JSON object whose ``schema`` is among these, by default 1.

    Raises StorageError when the file is absent, is not a JSON object, or has another schema number.
    """
    try:
        value = parse_json(read_whole(path))
    except FileNotFoundError:
        raise StorageError(f"{path}: no such file.") from None
    except OSError as error:
        raise StorageError(f"{path}: cannot be read ({error.strerror}).") from error
    except orjson.JSONDecodeError as error:
        raise StorageError(f"{path}:{error.lineno}: not JSON ({error.msg}).") from error
    if not isinstance(value, dict):
        raise StorageError(f"{path}: contains no JSON object.")
    check_schema(path, value.get("schema"), *schemas)
    return value


def check_schema(path: Path, schema: object, *supported: int, line: int | None = None) -> None:
    """Refuse a file that another version of the toolkit wrote; by default schema 1 is read."""
    supported = supported or (1,)
    if schema not in supported:
        where = f"{path}:{line}" if line else f"{path}"
        readable = " and ".join(map(str, supported))
        raise StorageError(
            f"{where}: schema: this version reads schema {readable}, the file says {schema!r}; "
            "use the version of the toolkit that wrote it, or make the run again."
        )


@contextlib.contextmanager
def locked(path: Path) -> Iterator[None]:
    """Take the lock of ``path`` (a file beside it) for the block, waiting up to 30 s for others."""
    from filelock import Timeout

    lock = _lock_of(path.with_name(path.name + ".lock"))
    try:
        held = lock.acquire(timeout=LOCK_TIMEOUT)
    except Timeout:
        raise StorageError(f"{path}: another process holds {lock.lock_file}; try again.") from None
    except OSError as error:
        raise StorageError(f"{path}: cannot be locked ({error.strerror}).") from None
    with held:
        try:
            yield
        except BaseException:
            if not path.exists():  # nothing came of it; who waits for the lock makes it anew
                lock_file = Path(lock.lock_file)
                with contextlib.suppress(OSError):
                    lock_file.unlink()
            raise


@lru_cache(maxsize=64)
def _lock_of(path: Path) -> FileLock:
    """The lock of a file; making one takes longer than taking it. Its state is each thread's own,
    so threads shut each other out as processes do."""
    from filelock import FileLock

    return FileLock(path)


class RepeatedLock:
    """The lock of a file for a writer that takes it for every line: it stays open, which costs a
    fiftieth of opening it anew. Who uses ``locked`` is shut out, and the other way round."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._name = path.with_name(path.name + ".lock")
        self._file: int | None = None

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """Take the lock for the block, waiting up to 30 s for others."""
        if not self._taken_at_once():
            with locked(self._path):
                yield
            return
        try:
            yield
        finally:
            import fcntl

            assert self._file is not None
            fcntl.flock(self._file, fcntl.LOCK_UN)

    def close(self) -> None:
        """Close the file of the lock; the next use opens it again."""
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def _taken_at_once(self) -> bool:
        try:
            import fcntl

            if self._file is None or os.stat(self._name).st_ino != os.fstat(self._file).st_ino:
                self.close()  # nobody else's lock any more: its name was removed
                self._file = os.open(self._name, os.O_RDWR | os.O_CREAT, 0o644)
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except (ImportError, OSError):  # another system, or somebody else has it
            return False
        return True


def cut_torn_tail(path: Path) -> int:
    """Drop an unfinished last line (a killed process leaves one); returns the bytes cut off."""
    try:
        file = open(path, "r+b")  # noqa: SIM115 - closed by the with below
    except FileNotFoundError:
        return 0
    with file:
        size = file.seek(0, os.SEEK_END)
        end = size
        while end > 0:
            if size - end > LONGEST_LINE:
                raise too_long_a_line(path)
            start = max(0, end - 65_536)
            file.seek(start)
            newline = file.read(end - start).rfind(b"\n")
            if newline >= 0:
                end = start + newline + 1
                break
            end = start
        if end < size:
            file.truncate(end)
        return size - end


def parses(line: bytes) -> bool:
    """Whether a line is JSON of any kind. A power cut can leave lines that are not."""
    try:
        msgspec.json.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return False
    except RecursionError:
        return True  # JSON that nobody here wrote
    return True


def drop_damaged_lines(path: Path, sound: Callable[[bytes], bool] = parses) -> int:
    """Take out of a JSONL file the lines that are no JSON, or not ``sound``; returns how many there
    were.

    A torn last line is cut off and not counted. Raises StorageError when the file cannot be
    written; it is then unchanged.
    """
    try:
        cut_torn_tail(path)
        if not path.exists():
            return 0
        with open_plain(path) as lines:
            damaged = sum(not sound(line) for line in lines)
        if damaged:
            temporary = path.with_name(f".{path.name}.tmp")
            with open_plain(path) as lines, open(temporary, "wb") as file:
                file.writelines(line for line in lines if sound(line))
                file.flush()
                os.fsync(file.fileno())
            move_into_place(temporary, path)
    except OSError as error:
        raise StorageError(f"{path}: cannot be written ({error.strerror}).") from error
    return damaged


def damage_of(path: Path, lines: int) -> str:
    """One sentence on lines that are no JSON and were taken out."""
    counted = "1 line" if lines == 1 else f"{lines:,} lines"
    why = "could not be read, as after a power cut"
    return f"{path}: {counted} {why}; the lost part is asked again."


class JsonlWriter:
    """Appends records to a JSONL file, a line each, flushed at once; resumes after a torn line.

    Not for threads without a lock of their own: one writer a file.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            make_folder(path.parent)
            new = not path.exists()
            cut_torn_tail(path)
            self._file = open(path, "ab")  # noqa: SIM115 - closed by close()
            if new:
                sync_folder(path.parent)
        except OSError as error:
            raise StorageError(f"{path}: cannot be written ({error.strerror}).") from error
        self._sync = DelayedSync(self._file.fileno())

    def write(self, record: Any) -> None:
        """Append one record; a kill does not lose it, nor a power cut five seconds later."""
        self.write_together((record,))

    def write_together(self, records: Iterable[Any]) -> None:
        """Append records in one step."""
        self._file.write(b"".join(orjson.dumps(record) + b"\n" for record in records))
        self._file.flush()
        self._sync.written()

    def sync(self) -> None:
        """Force the written lines onto the disk now."""
        self._sync.now()

    def close(self) -> None:
        self._file.close()

    def __enter__(self) -> JsonlWriter:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def sha256_file(path: Path) -> str:
    """Hex SHA-256 of a file's bytes. Raises StorageError when it cannot be read."""
    try:
        with open_plain(path) as file:
            reader: Any = file  # whose type lacks the readinto that it has
            return hashlib.file_digest(reader, "sha256").hexdigest()
    except OSError as error:
        raise StorageError(f"{path}: cannot be read ({error.strerror}).") from error


def git_commit(path: Path) -> str | None:
    """The commit with the present ``path``; None outside git or when it has changes.

    With ``+changes`` behind the hash when the file differs from that commit.
    """
    import subprocess

    folder = path.resolve().parent

    def git(*words: str) -> str | None:
        try:
            done = subprocess.run(
                ["git", "-C", str(folder), *words], capture_output=True, text=True, timeout=10
            )
        except (OSError, subprocess.TimeoutExpired):
            return None
        return done.stdout.strip() if done.returncode == 0 else None

    commit = git("log", "-1", "--format=%H", "--", path.name)
    if not commit:
        return None
    return commit if git("status", "--porcelain", "--", path.name) == "" else f"{commit}+changes"


if sys.platform == "win32":  # pragma: no cover - not run here
    import msvcrt
else:
    import fcntl

_FAR = 1 << 30
"""Where the locked byte lies on Windows: beyond the text, so that others can read it."""


class SetLock:
    """The lock of one file. `holder` says who has it when `take` was refused."""

    def __init__(self, path: Path) -> None:
        self.path = path.with_name(path.name + ".lock")
        self.holder = ""
        self._file: int | None = None

    def take(self, who: str, since: str) -> bool:
        """Try to take the lock, without waiting. Raises OSError when its file cannot be made."""
        file = os.open(self.path, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            _lock(file)
        except OSError:
            self.holder = _described(os.read(file, 4096))
            os.close(file)
            return False
        self._file = file
        import socket  # slow to load, and needed by one session alone

        note = {"annotator": who, "host": socket.gethostname(), "pid": os.getpid(), "since": since}
        with contextlib.suppress(OSError):  # a full disk: the lock holds without its note
            os.ftruncate(file, 0)
            os.write(file, json.dumps(note).encode())
        return True

    def release(self) -> None:
        """Let go. The file stays: to remove it would race with the next session."""
        if self._file is not None:
            with contextlib.suppress(OSError):
                os.ftruncate(self._file, 0)
            os.close(self._file)
            self._file = None


def _lock(file: int) -> None:
    if sys.platform == "win32":  # pragma: no cover - not run here
        os.lseek(file, _FAR, os.SEEK_SET)
        msvcrt.locking(file, msvcrt.LK_NBLCK, 1)
        os.lseek(file, 0, os.SEEK_SET)
    else:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _described(note: bytes) -> str:
    """Who holds the lock, from its note; the note may be empty or torn."""
    try:
        holder: dict[str, Any] = json.loads(note)
        where = f"on {holder['host']}, process {holder['pid']}"
        return f"{holder['annotator']} {where}, since {holder['since']}"
    except (ValueError, KeyError, TypeError):
        return "another session"


def read_toml(path: Path) -> dict[str, Any]:
    """A TOML file. Raises FileNotFoundError, and StorageError for one that cannot be used."""
    import tomllib

    try:
        value = tomllib.loads(read_whole(path, MAX_SETTINGS).decode("utf-8"))
        if nests_deeper(value):
            raise RecursionError
        return value
    except RecursionError:
        fault = f"it has more than {MAX_DEPTH} nested levels; write it with fewer"
        raise StorageError(f"{path}: cannot be used ({fault}).") from None
    except FileNotFoundError:
        raise
    except UnicodeDecodeError:
        raise StorageError(f"{path}: cannot be used (it is not UTF-8; save it as UTF-8).") from None
    except (OSError, tomllib.TOMLDecodeError) as error:
        raise StorageError(f"{path}: cannot be used ({error}).") from None


OWNER = "owner.lock"
"""A file locked by the process that owns the folder (and its workers): ids of processes recur,
locks end with those who hold them."""

_TRIES = 10
_MAKING_S = 60.0
"""A folder without a lock that is older than this is not being made: a power cut left it."""


@contextlib.contextmanager
def scratch_folder(parent: Path, prefix: str) -> Iterator[Path]:
    """A folder on the file system of ``parent``, so that its files can be moved there. The end of
    the block removes it with its content.

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
    """Remove the folders whose lock is free. One that cannot be removed stays."""
    from filelock import FileLock, Timeout

    for folder in parent.glob(f"{prefix}*"):
        if not (folder / OWNER).is_file() and _is_being_made(folder):
            continue
        with contextlib.suppress(Timeout, OSError), FileLock(folder / OWNER).acquire(timeout=0):
            shutil.rmtree(folder, ignore_errors=True)


def _is_being_made(folder: Path) -> bool:
    try:
        return time.time() - folder.stat().st_mtime < _MAKING_S
    except OSError:
        return True
