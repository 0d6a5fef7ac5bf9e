"""The form of a verdict in verdicts.jsonl (schema 2): what was decided, not what was sent.

Claims, facts and gold facts have their texts and spans; a passage its id, its chunk's id and a hash
of its text, an answer its hash: the texts are in results.jsonl. Who judged, with which prompt and
parameters, is said once, on a line ``{"setting": ID, …}`` before the first that names it. The
messages are made anew by ``judge_answers.py --show-prompt``; the raw replies are in the cache.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, NotRequired, TypedDict

import msgspec
import orjson

from records.file_access import open_plain
from records.files import JsonlWriter, drop_damaged_lines, locked
from records.syncing import make_folder

SCHEMA = 2

SETTING_START = b'{"setting"'
"""How a line begins that says who judged; no verdict begins so."""

_OF_SETTING = ("judge", "parameters", "prompt")

_DEFAULTS: Mapping[str, Any] = {
    "repeat": 0,
    "judge_repeat": 0,
    "part": 0,
    "parts": 1,
    "status": "ok",
    "reason": None,
    "failure": None,
    "verdicts": [],
    "input": {},
    "extra": {},
}
"""Values of keys that a line leaves out; readers get these."""

_NOTHING: tuple[Any, ...] = (None, "", 0, [], {}, False)
"""What else is left out, whatever it is of; no reader uses it."""

_TEXTS = frozenset({"messages", "raw"})


class VerdictPrompt(TypedDict):
    """The prompt of a judgement: its name, version and hash, and the rubric where it asks one."""

    name: str
    sha256: str
    version: NotRequired[int]
    rubric: NotRequired[dict[str, Any]]


class VerdictSetting(msgspec.Struct):
    """Who judged, with which prompt and parameters."""

    setting: str
    judge: dict[str, Any]
    parameters: dict[str, Any]
    prompt: VerdictPrompt


def text_sha256(text: str) -> str:
    """The hash by which a verdict names a text outside the verdict: 16 hex digits."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


class VerdictWriter(JsonlWriter):
    """Appends verdicts to a verdicts.jsonl, and each setting before the first that names it.

    Each step holds the file's lock, and follows a file that ``drop_damage`` replaced meanwhile.
    """

    def __init__(self, path: Path) -> None:
        make_folder(path.parent)
        with locked(path):
            self._open(path)

    def _open(self, path: Path) -> None:
        super().__init__(path)
        self._written = set(read_settings(path))
        self._inode = path.stat().st_ino

    def write_together(self, records: Iterable[Any]) -> None:
        with locked(self.path):
            if not self.path.exists() or self.path.stat().st_ino != self._inode:
                self.close()
                self._open(self.path)
            super().write_together(self._lines(records))

    def _lines(self, records: Iterable[Any]) -> Iterator[dict[str, Any]]:
        for record in records:
            told = {name: record[name] for name in _OF_SETTING}
            digest = hashlib.sha256(orjson.dumps(told, option=orjson.OPT_SORT_KEYS)).hexdigest()
            setting = digest[:12]
            if setting not in self._written:
                yield {"setting": setting} | told
                self._written.add(setting)
            yield _stored(record, setting)


def read_settings(path: Path) -> dict[str, VerdictSetting]:
    """Who judged, by the name that lines have for it; of a whole file, without damaged lines."""
    settings: dict[str, VerdictSetting] = {}
    with open_plain(path) as file:
        for line in file:
            with suppress(msgspec.ValidationError):
                if (setting := read_setting(line)) is not None:
                    settings[setting.setting] = setting
    return settings


def read_setting(line: bytes) -> VerdictSetting | None:
    """The setting in a whole line; None when it is another line, torn or no JSON.

    Raises msgspec.ValidationError where a field is missing or of another type.
    """
    if not line.startswith(SETTING_START) or not line.endswith(b"\n"):
        return None
    try:
        return _decode(line)
    except msgspec.ValidationError:
        raise
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


_decode = msgspec.json.Decoder(VerdictSetting).decode


class _Named(msgspec.Struct):
    setting: str | None = None


def drop_damage(path: Path) -> int:
    """Remove the lines that are no JSON, and the verdicts whose line on the judge was among them;
    return how many. The cache has these verdicts, so none is paid again.

    The file's lock is held meanwhile, so that no line of another writer is lost. Raises
    StorageError when it stays in use.
    """
    if not path.exists():
        return 0
    with locked(path):
        return _drop_damage(path)


def _drop_damage(path: Path) -> int:
    lost = drop_damaged_lines(path)
    if not lost:
        return 0
    settings = read_settings(path)
    named = msgspec.json.Decoder(_Named).decode

    def is_readable(line: bytes) -> bool:
        try:
            setting = named(line).setting
        except msgspec.ValidationError:
            return True  # JSON of another shape: whoever reads the file names the line
        return setting is None or setting in settings

    return lost + drop_damaged_lines(path, is_readable)


def full_line(line: dict[str, Any], setting: VerdictSetting) -> dict[str, Any]:
    """A line that was read, with all that it leaves out; readers change none of it."""
    told = {name: getattr(setting, name) for name in _OF_SETTING}
    return {**_DEFAULTS, **told, **line}


def _stored(line: Mapping[str, Any], setting: str) -> dict[str, Any]:
    """A verdict line in the form that is written."""
    left_out = {*_OF_SETTING, *_TEXTS, "schema"}
    stored = {"schema": SCHEMA, "case_id": line["case_id"], "metric": line["metric"]}
    stored |= {
        name: value
        for name, value in line.items()
        if name not in left_out and value != _DEFAULTS.get(name) and value not in _NOTHING
    }
    stored |= {"setting": setting, "input": _input(line["input"])}
    stored["verdicts"] = [_without_empty(entry) for entry in line["verdicts"]]
    stored["extra"] = {k: v for k, v in line["extra"].items() if v not in (None, "", [])}
    if again := line["extra"].get("asked_again"):
        stored["extra"]["asked_again"] = [
            {name: value for name, value in reply.items() if name not in _TEXTS} for reply in again
        ]
    stored["usage"] = _without_empty(line.get("usage") or {})
    return {name: value for name, value in stored.items() if value not in ([], {})}


def _without_empty(entry: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in entry.items() if value not in (None, "")}


def _input(asked: Mapping[str, Any]) -> dict[str, Any]:
    """What was asked about, without the texts that stand in results.jsonl and the set."""
    stored: dict[str, Any] = {
        name: [_without_empty(item) for item in asked[name]]
        for name in ("claims", "facts", "nuggets")
        if name in asked
    }
    for name in ("answer", "other"):
        if name in asked:
            stored[f"{name}_sha256"] = text_sha256(asked[name])
    if "contexts" in asked:
        stored["contexts"] = [
            {name: context[name] for name in ("id", "chunk_id") if name in context}
            | {"sha256": text_sha256(context["text"])}
            for context in asked["contexts"]
        ]
    return stored
