"""Rubrics: questions of a user's own that a judge answers about an answer, a TOML file each.

    ask = "Does the answer help the person who asked?"
    reads = ["question", "answer"]
    target = "helpful"

    [scale]
    "not helpful" = "The person knows no more than before."
    "helpful" = "The person can act on it."

    [[examples]]
    question = "When does the pool open?"
    answer = "At 7:00 on weekdays."
    verdict = "helpful"

A file is text for the judge and nothing else: it names no server, no file and no code. The team's
files in eval/rubrics count before those of the toolkit. A verdict's line holds the rubric that it
was given by, so a run is read without the file.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache, lru_cache
from pathlib import Path
from typing import Annotated, Any, Literal
from unicodedata import category

import msgspec
import orjson
from msgspec import Meta

from records.errors import StorageError, did_you_mean
from records.runs import HOME, ROOT
from records.toml_files import KeyPath, Parsed, open_file

SECTION = "rubrics"

PREFIX = f"{SECTION}."
"""The prefix of the metric names of rubrics."""

FOLDERS = tuple(dict.fromkeys((HOME / "eval" / SECTION, ROOT / "eval" / SECTION)))
"""Where rubrics are looked for; the first counts more."""

RANK = "_rank"
"""End of the name of the metric that is the mean of a rubric's ranks."""

READS = ("question", "history", "answer", "passages", "reference", "tools")
"""The inputs that a rubric can show the judge."""

YES_NO = "yes/no"

_YES_NO = {"no": "It does not hold.", "yes": "It holds."}

Direction = Literal["higher", "lower"]

_NAME = re.compile(r"[a-z0-9](?:[a-z0-9_-]{0,38}[a-z0-9])?")

_LABEL = re.compile(r"[^\W_](?:[\w ,/+-]{0,38}[\w+])?")

_TAKEN = ("cannot_tell", "quote_unverified")

MOST_LABELS = 8
"""Most labels of a scale: one for each digit key, and one key for "cannot tell"."""

MOST_TEXT, MOST_EXAMPLES = 4000, 12
"""Characters of one text, and examples of one rubric."""


def _text(value: Any) -> str:
    if not isinstance(value, str) or not value.strip():
        raise ValueError("must be a text")
    if len(value) > MOST_TEXT:
        raise ValueError(f"has {len(value):,} characters; {MOST_TEXT:,} are allowed")
    return value.strip()


_Text = Annotated[str, Parsed(_text)]
_TextOfExample = Annotated[_Text, Meta(description="an example has an answer and a verdict")]


class RubricExample(msgspec.Struct, frozen=True, omit_defaults=True):
    """An answer with the verdict that it deserves; it is shown to the judge."""

    answer: _TextOfExample
    verdict: _TextOfExample
    question: _Text = ""
    reference: _Text = ""
    reason: _Text = ""


class Rubric(msgspec.Struct, frozen=True, omit_defaults=True):
    """A question about an answer, with the verdicts that can be given.

    ``scale``: label and meaning of each verdict, from least to most of what is asked for.
    ``target``: the label from which on an answer is good enough; with the direction "lower" the
    good labels are those up to it.
    """

    name: str
    ask: str
    reads: tuple[str, ...]
    scale: tuple[tuple[str, str], ...]
    target: str
    direction: Direction = "higher"
    examples: tuple[RubricExample, ...] = ()

    @property
    def metric(self) -> str:
        """The metric name of its verdicts."""
        return f"{PREFIX}{self.name}"

    @property
    def labels(self) -> tuple[str, ...]:
        """The verdicts, from least to most."""
        return tuple(label for label, _ in self.scale)

    @property
    def yes_no(self) -> bool:
        """Its labels are no and yes."""
        return set(self.labels) == {"no", "yes"}

    @property
    def binary(self) -> bool:
        """There are two verdicts, so a rank says no more than the share."""
        return len(self.scale) == 2

    @property
    def quoted(self) -> tuple[str, ...]:
        """The verdicts that need a quote: all but the least, which finds nothing to show."""
        return self.labels[1:]

    def reaches(self, label: str) -> bool:
        """Whether a verdict is good enough; no verdict of the scale (a quote that was not found)
        never is."""
        rank, target = self.rank(label), self.rank(self.target)
        if rank is None or target is None:
            return False
        return rank >= target if self.direction == "higher" else rank <= target

    def rank(self, label: str) -> int | None:
        """Rank of a verdict on the scale, 1 for the least; None if it is not on the scale."""
        return self.labels.index(label) + 1 if label in self.labels else None

    def goodness(self, label: str) -> int | None:
        """The rank from the bad end, 1 for the worst; None if it is not on the scale."""
        rank = self.rank(label)
        if rank is None or self.direction == "higher":
            return rank
        return len(self.scale) + 1 - rank

    @property
    def aim(self) -> str:
        """Which verdicts are good enough, in words."""
        return f"{self.target} or {self.direction}"

    def prompt_bytes(self) -> bytes:
        """All that a judge sees of it. The target is not part of it: it changes no verdict."""
        told = (self.ask, self.reads, self.scale, self.examples)
        return orjson.dumps(msgspec.to_builtins(told), option=orjson.OPT_SORT_KEYS)

    @property
    def version(self) -> str:
        """Eight hex digits that change with anything its numbers depend on."""
        more = f"{self.target}\0{self.direction}".encode()
        return hashlib.sha256(self.prompt_bytes() + b"\0" + more).hexdigest()[:8]

    def to_dict(self) -> dict[str, Any]:
        """The rubric as in a line of verdicts.jsonl."""
        raw: dict[str, Any] = msgspec.to_builtins(self)
        return raw


def without_rubrics(judge: Mapping[str, Any]) -> dict[str, Any]:
    """A judge of config.json with all prompts but those of rubrics."""
    prompts = (judge.get("prompts") or {}).items()
    return {**judge, "prompts": {name: of for name, of in prompts if not name.startswith(PREFIX)}}


def with_aims(judge: Mapping[str, Any], rubrics: Sequence[Rubric]) -> dict[str, Any]:
    """A judge of config.json with the prompts of rubrics alone, and the target of each: shares by
    another target are other numbers."""
    aims = {rubric.metric: {"target": rubric.aim} for rubric in rubrics}
    prompts = (judge.get("prompts") or {}).items()
    named = {name: of | aims.get(name, {}) for name, of in prompts if name.startswith(PREFIX)}
    return {**judge, "prompts": named}


def has_rubrics(judge: Mapping[str, Any]) -> bool:
    """Whether the judge of a run was asked by rubrics."""
    return any(name.startswith(PREFIX) for name in judge.get("prompts") or {})


def of_prompt(prompt: Mapping[str, Any]) -> Rubric | None:
    """The rubric in the prompt of a verdict line; None for a question of the toolkit.

    Raises msgspec.ValidationError for what is no rubric.
    """
    raw = prompt.get("rubric")
    return None if raw is None else _converted(orjson.dumps(raw, option=orjson.OPT_SORT_KEYS))


@lru_cache(maxsize=256)
def _converted(raw: bytes) -> Rubric:
    return msgspec.json.decode(raw, type=Rubric)


def names(folders: Sequence[Path] = FOLDERS) -> list[str]:
    """The names of the rubrics that have a file, sorted."""
    return sorted({path.stem for folder in folders for path in folder.glob("*.toml")})


@cache
def find(name: str, folders: Sequence[Path] = FOLDERS) -> tuple[Rubric, Path]:
    """The rubric of that name and its file. Raises StorageError listing the names there are."""
    for folder in folders if _NAME.fullmatch(name) else ():
        if (path := folder / f"{name}.toml").is_file():
            return read_rubric(path), path
    known = names(folders)
    hint = did_you_mean(name, known)
    raise StorageError(
        f"rubrics.{name}: no such rubric; {folders[0]} and the toolkit have: "
        f"{', '.join(known) or 'none'}.{hint}"
    )


def _label(label: str) -> str:
    bare = "".join("a" if category(char)[0] == "M" else char for char in label)
    if not _LABEL.fullmatch(bare):
        raise ValueError("a label has up to 40 letters, digits, spaces and , / + -")
    if label.casefold().replace(" ", "_") in _TAKEN:
        raise ValueError("is part of every scale; use other words")
    return label


def _reads(parts: Any) -> tuple[str, ...]:
    if not isinstance(parts, list) or not parts or not all(part in READS for part in parts):
        raise ValueError(_PARTS.replace("write", "must be"))
    if "answer" not in parts:
        raise ValueError('must have "answer", the text that is judged')
    return tuple(part for part in READS if part in parts)


_PARTS = f"write a list of {', '.join(READS)}"

_SCALE = (
    f'write scale = "{YES_NO}", or [scale] with 2 to {MOST_LABELS} labels from least to most, '
    "and a sentence each"
)


class _RubricTable(msgspec.Struct):
    """A rubric as its file has it."""

    ask: Annotated[_Text, Meta(description="write the question to the judge")]
    reads: Annotated[tuple[str, ...], Parsed(_reads), Meta(description=_PARTS)]
    scale: Annotated[dict[Annotated[str, Parsed(_label)], _Text], Meta(description=_SCALE)]
    target: Any = None
    direction: Direction = "higher"
    examples: list[RubricExample] = []
    description: _Text = ""
    schema: Literal[1] = 1

    def faults(self) -> Iterator[tuple[KeyPath, str]]:
        """Yields the faults of a rubric whose keys are right one by one, as key path and clause."""
        labels = list(self.scale)
        folded = [label.casefold() for label in labels]
        if not 2 <= len(labels) <= MOST_LABELS:
            yield ("scale",), _SCALE
            return
        for label in labels:
            if folded.count(label.casefold()) > 1:
                yield ("scale", label), "another label differs only in capitals"
        if self.target not in labels:
            yield ("target",), f"must be one of {', '.join(labels)}, in quotes"
        elif self.target == labels[-1 if self.direction == "lower" else 0]:
            other = "higher" if self.direction == "lower" else "lower"
            clause = f'every verdict would reach it; name another, or direction = "{other}"'
            yield ("target",), clause
        if len(self.examples) > MOST_EXAMPLES:
            yield ("examples",), f"are {len(self.examples)}; {MOST_EXAMPLES} are allowed"
        for number, example in enumerate(self.examples, 1):
            if example and example.verdict not in labels:
                yield (f"examples[{number}]", "verdict"), f"must be one of {', '.join(labels)}"


def read_rubric(path: Path) -> Rubric:
    """The rubric of a file. Raises StorageError with every problem, as ``file:line: key: …``."""
    raw, reader = open_file(path)
    scale = _YES_NO if raw.get("scale") == YES_NO else raw.get("scale")
    if isinstance(scale, dict) and scale.keys() == _YES_NO.keys():
        raw["scale"] = dict(sorted(scale.items()))  # from least to most
    name = path.stem
    if not _NAME.fullmatch(name) or name.endswith((RANK, "_turn")):
        rule = "must have only lower-case letters, digits, '-' and '_', and not end in _rank or"
        reader.wrong((), f"the name {rule} _turn")
    table = reader.read(raw, _RubricTable)
    reader.end()
    levels, examples = tuple(table.scale.items()), tuple(table.examples)
    return Rubric(name, table.ask, table.reads, levels, table.target, table.direction, examples)
