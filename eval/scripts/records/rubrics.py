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
from typing import Any, Literal
from unicodedata import category

import msgspec
import orjson

from records.errors import Problem, StorageError, did_you_mean
from records.files import read_toml
from records.runs import HOME, ROOT
from records.settings import line_of, text_of, unknown

SECTION = "rubrics"

PREFIX = f"{SECTION}."
"""The prefix of the metric names of rubrics."""

FOLDERS = tuple(dict.fromkeys((HOME / "eval" / SECTION, ROOT / "eval" / SECTION)))
"""Where rubrics are looked for; the first counts more."""

RANK = "_rank"
"""End of the name of the metric that is the mean of a rubric's ranks."""

SCHEMA = 1

READS = ("question", "history", "answer", "passages", "reference", "tools")
"""The inputs that a rubric can show the judge."""

YES_NO = "yes/no"

_YES_NO = (("no", "It does not hold."), ("yes", "It holds."))

Direction = Literal["higher", "lower"]

_NAME = re.compile(r"[a-z0-9](?:[a-z0-9_-]{0,38}[a-z0-9])?")

_LABEL = re.compile(r"[^\W_](?:[\w ,/+-]{0,38}[\w+])?")

_TAKEN = ("cannot_tell", "quote_unverified")

MOST_LABELS = 8
"""Most labels of a scale: one for each digit key, and one key for "cannot tell"."""

MOST_TEXT, MOST_EXAMPLES = 4000, 12
"""Characters of one text, and examples of one rubric."""

_TEXTS = ("question", "reference", "answer", "verdict", "reason")
_KEYS = ("schema", "description", "ask", "reads", "scale", "target", "direction", "examples")


class RubricExample(msgspec.Struct, frozen=True, omit_defaults=True):
    """An answer with the verdict that it deserves; it is shown to the judge."""

    answer: str
    verdict: str
    question: str = ""
    reference: str = ""
    reason: str = ""


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


def read_rubric(path: Path) -> Rubric:
    """The rubric of a file. Raises StorageError with every problem, as ``file:line: key: …``."""
    try:
        table = read_toml(path)
    except FileNotFoundError:
        raise StorageError(f"{path}: no such file.") from None
    text = text_of(path)
    problems = [
        Problem(str(path), place_of(text, key), key, message) for key, message in _faults(table)
    ]
    name = path.stem
    if not _NAME.fullmatch(name) or name.endswith((RANK, "_turn")):
        rule = "must have only lower-case letters, digits, '-' and '_', and not end in _rank or"
        problems.append(Problem(str(path), None, "", f"the name {rule} _turn"))
    if problems:
        raise StorageError.from_problems(problems)
    return Rubric(
        name,
        table["ask"].strip(),
        tuple(part for part in READS if part in table["reads"]),
        _scale(table["scale"]),
        table["target"],
        table.get("direction", "higher"),
        tuple(
            RubricExample(**{key: example[key].strip() for key in _TEXTS if key in example})
            for example in table.get("examples", ())
        ),
    )


def place_of(text: str, key: str) -> int | None:
    """The line of a key; ``examples[N].key`` is that of the table [[examples]] with that number,
    counted from 1."""
    match = re.fullmatch(r"(\w+)\[(\d+)\](.*)", key)
    if match is None:
        return line_of(text, key)
    lines = text.splitlines()
    head = re.compile(rf"\s*\[\[\s*{match[1]}\s*\]\]")
    starts = [number for number, line in enumerate(lines) if head.match(line)]
    index = int(match[2]) - 1
    if index >= len(starts):
        return line_of(text, match[1])
    end = starts[index + 1] if index + 1 < len(starts) else len(lines)
    part = "\n".join(lines[starts[index] : end])
    return starts[index] + (line_of(part, f"{match[1]}{match[3]}") or 1)


def _scale(raw: Any) -> tuple[tuple[str, str], ...]:
    pairs = _YES_NO if raw == YES_NO else tuple((key, text.strip()) for key, text in raw.items())
    if {key for key, _ in pairs} == {"yes", "no"}:
        pairs = tuple(sorted(pairs))
    return pairs


def _faults(table: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Key and fault of everything wrong in a rubric's table."""
    for key in table.keys() - set(_KEYS):
        yield key, unknown(key, _KEYS)
    if table.get("schema", SCHEMA) != SCHEMA:
        yield "schema", f"must be {SCHEMA}"
    if "description" in table:
        yield from _text_faults(table, "description")
    yield from _text_faults(table, "ask", "write the question to the judge")
    reads = table.get("reads")
    if not isinstance(reads, list) or not reads or not all(part in READS for part in reads):
        yield "reads", f"must be a list of {', '.join(READS)}"
    elif "answer" not in reads:
        yield "reads", 'must have "answer", the text that is judged'
    if table.get("direction", "higher") not in ("higher", "lower"):
        yield "direction", "must be higher (more is better) or lower"
    faults = list(_scale_faults(table.get("scale")))
    yield from faults
    if not faults:
        labels = [label for label, _ in _scale(table["scale"])]
        target, lower = table.get("target"), table.get("direction") == "lower"
        if target not in labels:
            yield "target", f"must be one of {', '.join(labels)}, in quotes"
        elif target == labels[-1 if lower else 0]:
            other = "higher" if lower else "lower"
            yield "target", f'every verdict would reach it; name another, or direction = "{other}"'
        yield from _example_faults(table.get("examples", []), labels)


def _text_faults(table: Mapping[str, Any], key: str, remedy: str = "") -> Iterator[tuple[str, str]]:
    value = table.get(key)
    if key not in table:
        yield key, f"is missing; {remedy}"
    elif not isinstance(value, str) or not value.strip():
        yield key, "must be a text"
    elif len(value) > MOST_TEXT:
        yield key, f"has {len(value):,} characters; {MOST_TEXT:,} are allowed"


def _scale_faults(scale: Any) -> Iterator[tuple[str, str]]:
    if scale == YES_NO:
        return
    if not isinstance(scale, dict) or not 2 <= len(scale) <= MOST_LABELS:
        yield (
            "scale",
            f'must be "{YES_NO}", or a table of 2 to {MOST_LABELS} labels from least to most, '
            "with a sentence each",
        )
        return
    folded = [label.casefold() for label in scale]
    for label in scale:
        key = f"scale.{label}"
        bare = "".join("a" if category(one)[0] == "M" else one for one in label)
        if not _LABEL.fullmatch(bare):
            yield key, "a label has up to 40 letters, digits, spaces and , / + -"
        if label.casefold().replace(" ", "_") in _TAKEN:
            yield key, "is part of every scale; use other words"
        if folded.count(label.casefold()) > 1:
            yield key, "another label differs only in capitals"
        yield from ((key, message) for _, message in _text_faults(scale, label))


def _example_faults(examples: Any, labels: Sequence[str]) -> Iterator[tuple[str, str]]:
    if not isinstance(examples, list) or not all(isinstance(one, dict) for one in examples):
        yield "examples", "must be tables: [[examples]]"
        return
    if len(examples) > MOST_EXAMPLES:
        yield "examples", f"are {len(examples)}; {MOST_EXAMPLES} are allowed"
    for number, example in enumerate(examples, 1):
        where = f"examples[{number}]."
        for key in example.keys() - set(_TEXTS):
            yield where + key, unknown(key, _TEXTS)
        for key in (key for key in _TEXTS if key in example or key in ("answer", "verdict")):
            for _, message in _text_faults(example, key, "an example has an answer and a verdict"):
                yield where + key, message
        if isinstance(example.get("verdict"), str) and example["verdict"] not in labels:
            yield f"{where}verdict", f"must be one of {', '.join(labels)}"
