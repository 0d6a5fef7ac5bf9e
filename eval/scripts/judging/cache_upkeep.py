"""Lists the content of a cache of verdicts by judge, metric and prompt, and rewrites the file
without chosen lines."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, BinaryIO

import msgspec

from judging.cache import FORMAT
from judging.types import PromptId
from records.errors import StorageError
from records.files import locked, replace_bytes
from records.verdicts import JudgeIdentity, read_withdrawal


class _CacheEntry(msgspec.Struct):
    """What upkeep needs to know of a line. ``at``: UTC, ``2026-01-31T12:00:00Z``."""

    format: int
    key: str
    metric: str
    judge: dict[str, str | None]
    prompt: PromptId
    at: str = ""
    cost_usd: float | None = None
    judging_run: str | None = None

    @property
    def judge_name(self) -> str:
        """The judge as tables show it."""
        return str(JudgeIdentity(**self.judge))  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True)
class EntryChoice:
    """Which entries are meant: those that fit every condition that is set.

    ``before``: written earlier than this. ``judge``, ``metric``, ``prompt``: shell patterns on
    ``provider/model@…``, the metric's and the prompt's name (or ``name@version``).
    ``not_in``: prompts with none of these hashes.
    """

    before: str | None = None
    judge: str | None = None
    metric: str | None = None
    prompt: str | None = None
    not_in: Collection[str] | None = None

    @property
    def empty(self) -> bool:
        """Is no condition set?"""
        return all(getattr(self, name) is None for name in self.__slots__)

    def fits(self, entry: _CacheEntry) -> bool:
        """Is this entry meant?"""
        names = (entry.prompt.name, str(entry.prompt))
        judge = (entry.judge_name, entry.judge.get("model") or "")
        return (
            (self.before is None or entry.at < self.before)
            and (self.judge is None or any(fnmatchcase(name, self.judge) for name in judge))
            and (self.metric is None or fnmatchcase(entry.metric, self.metric))
            and (self.prompt is None or any(fnmatchcase(name, self.prompt) for name in names))
            and (self.not_in is None or entry.prompt.sha256 not in self.not_in)
        )


@dataclass(frozen=True, slots=True)
class PruneCounts:
    """Entries that stayed, and lines that went: chosen, replaced, withdrawn, damaged ones."""

    kept: int
    chosen: int
    superseded: int
    withdrawn: int
    unreadable: int
    bytes_before: int
    bytes_after: int


class _Format(msgspec.Struct):
    format: int


_decode = msgspec.json.Decoder(_CacheEntry).decode

_format_of = msgspec.json.Decoder(_Format).decode


def _is_newer(line: bytes) -> bool:
    """A whole line that a later version of this toolkit wrote, which it will need again."""
    try:
        return line.endswith(b"\n") and _format_of(line).format > FORMAT
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False


@contextmanager
def _opened(path: Path) -> Iterator[BinaryIO]:
    """The present file, also when it is replaced meanwhile."""
    try:
        with open(path, "rb") as file:
            yield file
    except FileNotFoundError:
        raise StorageError(f"{path}: no such file; nothing has been judged yet.") from None
    except OSError as error:
        raise StorageError(f"{path}: cannot be read ({error.strerror}).") from error


def _lines(file: BinaryIO) -> Iterator[tuple[bytes, _CacheEntry | None]]:
    """Every line with its entry; None for a torn or damaged one, or one of another format."""
    file.seek(0)
    for line in file:
        try:
            entry = _decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            yield line, None
            continue
        whole = line.endswith(b"\n") and entry.format == FORMAT
        yield line, entry if whole else None


def _last_places(file: BinaryIO) -> dict[str, int]:
    """By key, the number of the line that counts."""
    withdrawn = _withdrawn(file)
    return {
        entry.key: number
        for number, (_, entry) in enumerate(_lines(file))
        if entry and entry.judging_run not in withdrawn
    }


def _withdrawn(file: BinaryIO) -> frozenset[str]:
    """The runs of judging whose entries do not count."""
    file.seek(0)
    records = (read_withdrawal(line) for line in file)
    return frozenset(record.withdrawn for record in records if record is not None)


def entries(path: Path, choice: EntryChoice) -> Iterator[tuple[bytes, _CacheEntry]]:
    """The valid chosen lines with their entries; lines written meanwhile are left out."""
    with _opened(path) as file:
        last = _last_places(file)
        for number, (line, entry) in enumerate(_lines(file)):
            if entry is not None and last.get(entry.key) == number and choice.fits(entry):
                yield line, entry


def statistics(path: Path, choice: EntryChoice) -> dict[str, Any]:
    """Entries and bytes by judge, metric and prompt, and the rest of the file."""
    groups: dict[tuple[str, str, str], dict[str, Any]] = {}
    for line, entry in entries(path, choice):
        names = (entry.judge_name, entry.metric, str(entry.prompt))
        empty = dict(zip(("judge", "metric", "prompt"), names, strict=True))
        row = groups.setdefault(names, empty | {"entries": 0, "bytes": 0, "cost_usd": None})
        row["entries"] += 1
        row["bytes"] += len(line)
        row["oldest"] = min(row.get("oldest", entry.at), entry.at)
        row["newest"] = max(row.get("newest", entry.at), entry.at)
        if entry.cost_usd is not None:
            row["cost_usd"] = (row["cost_usd"] or 0.0) + entry.cost_usd
    with _opened(path) as file:
        withdrawn = _withdrawn(file)
        lines = [(line, entry) for line, entry in _lines(file) if read_withdrawal(line) is None]
    sound = [entry for _, entry in lines if entry is not None]
    counting = [entry.key for entry in sound if entry.judging_run not in withdrawn]
    rows = [groups[names] for names in sorted(groups)]
    return {
        "path": str(path),
        "entries": sum(row["entries"] for row in rows),
        "bytes": sum(row["bytes"] for row in rows),
        "file_bytes": path.stat().st_size,
        "superseded": len(counting) - len(set(counting)),
        "withdrawn": len(sound) - len(counting),
        "unreadable": len(lines) - len(sound),
        "groups": rows,
    }


def prune(
    path: Path, choice: EntryChoice, confirm: Callable[[PruneCounts], bool] = lambda plan: True
) -> PruneCounts:
    """Write the file anew without the chosen entries, replaced, withdrawn and damaged ones.

    Lines of a newer format stay: they are paid verdicts of a later version. So do the lines that
    say what is withdrawn. An empty choice chooses nothing. ``confirm`` sees what would happen; with
    False the file stays unchanged. Other processes wait meanwhile; the file is replaced in one
    step."""
    with locked(path):
        remaining: list[bytes] = []
        counts: Counter[str] = Counter()
        with _opened(path) as file:
            before = path.stat().st_size
            withdrawn = _withdrawn(file)
            last = _last_places(file)
            for number, (line, entry) in enumerate(_lines(file)):
                if entry is None:
                    newer = _is_newer(line)
                    counts["kept"] += newer
                    stays = newer or read_withdrawal(line) is not None
                    counts["unreadable"] += not stays
                elif entry.judging_run in withdrawn:
                    stays = False
                    counts["withdrawn"] += 1
                elif last[entry.key] != number:
                    stays = False
                    counts["superseded"] += 1
                else:
                    stays = choice.empty or not choice.fits(entry)
                    counts["kept" if stays else "chosen"] += 1
                if stays:
                    remaining.append(line)
        after = sum(map(len, remaining))
        plan = PruneCounts(
            counts["kept"],
            counts["chosen"],
            counts["superseded"],
            counts["withdrawn"],
            counts["unreadable"],
            before,
            after,
        )
        if confirm(plan) and after != before:
            replace_bytes(path, b"".join(remaining))
        return plan
