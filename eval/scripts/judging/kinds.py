"""The questions to a judge: prompt, schema and check of each kind of call.

A kind of call is a row (``records.verdicts.CallKind``): the verdicts, what is numbered, which of
them need a quote and from where. The rows of the toolkit are ``records.verdicts.KINDS``; a user's
rubric makes one more (``rubric_kind``), named ``rubrics.NAME``. A plan carries the table that it
asks by (``JudgingPlan.kinds``), and fences, quotes, cache, batches, repeats and costs know nothing
of where a row comes from.

To ask something new about one answer: a row, its prompt in ``prompts/`` and a function in
``calls``. An extra has rows of its own, which name the folder of its prompts. About two answers
(which is better): a part of ``Material`` for the other answer with its ``_SLOTS`` entry and
``Source``; a row with the verdicts first, second and equal, ``positive`` first and ``partial``
second, so that either needs a quote from its answer; with ``frame`` and ``rubric`` it asks a
rubric. Each order is a task of its own, with the two answers exchanged in the material, and a
verdict by code where both answers are equal. A judge made of several has an ``opinion`` of its own,
which asks each the same.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any

import msgspec
from msgspec.structs import replace

from judging import prompt_files
from judging.prompt_files import fenced, neutral, one_line
from judging.types import Check, JudgeTask
from ragmetrics.text.words import fold
from records.rubrics import Rubric
from records.verdicts import CallKind, Source

QUESTIONS = 3

MOST_FACTS, MOST_CLAIMS = 12, 60

NOTES, QUOTE, REASON, TEXT = 400, 400, 240, 400
"""The most characters of a reply's texts: more than the prompts ask for, so that a model that never
ends is stopped and a good one never is."""

TOKENS_EACH = 200
"""Room in the reply for one verdict with quote and reason, or one text; the rest is for notes."""

TOKENS_BASE = 512

Item = Mapping[str, str]
"""A numbered text: ``{"id": …, "text": …}``; a claim may have a ``lead``, the stem of its list."""

LISTED = "facts"
"""The source that is one block in a prompt, which an entry may also name as a whole."""

CLAIMS = CallKind("claims")

FACTS = CallKind("facts")

PAIRS = "pairs"
"""The name of verdicts on two answers together; by a rubric ``pairs.NAME``."""

FIRST, SECOND, EQUAL = "first", "second", "equal"


def _object(properties: Mapping[str, Any]) -> dict[str, Any]:
    """All properties required, no others: what every server's strict mode wants."""
    return {
        "type": "object",
        "properties": dict(properties),
        "required": list(properties),
        "additionalProperties": False,
    }


@lru_cache(maxsize=4096)
def _schema(kind: CallKind, ids: tuple[str, ...], blocks: tuple[str, ...]) -> Mapping[str, Any]:
    """JSON schema of a reply on these ids that may cite these blocks. It must not be changed.

    Decoders write the keys in this order: reasons before verdicts. Ids, number of entries and
    lengths are fixed as far as a schema can: a weak model then cannot but fill the form.
    """
    flag = {"type": "boolean"}
    fields: dict[str, Any] = {"notes": _text(NOTES)}
    fields |= dict.fromkeys(kind.extra, flag)
    fields |= dict.fromkeys(kind.texts, _text(TEXT))
    if kind.verdicts:
        entry: dict[str, Any] = {"id": _one_of(ids)}
        entry |= {"context": _one_of((*blocks, ""))} if kind.cites else {}
        entry |= {"quote": _text(QUOTE), "reason": _text(REASON)}
        entry["verdict"] = _one_of(kind.verdicts)
        fields["verdicts"] = _list(_object(entry), len(ids), len(ids))
    else:
        written = TEXT_LISTS[kind.prompt]
        fields[kind.prompt] = _list(_text(TEXT), written.least, written.most)
    return _object(fields | {"manipulation": flag})


def _text(most: int) -> dict[str, Any]:
    return {"type": "string", "maxLength": most}


def _one_of(values: Sequence[str]) -> dict[str, Any]:
    return {"type": "string", "enum": list(values)}


def _list(items: Mapping[str, Any], least: int, most: int) -> dict[str, Any]:
    return {"type": "array", "items": items, "minItems": least, "maxItems": most}


def _complaints(asked: Sequence[str], strict: bool, reply: Mapping[str, Any]) -> Sequence[str]:
    """What makes a list of verdicts unusable; such a reply is never cached.

    An id that came with different verdicts; no verdict at all, or (``strict``) one that is missing.
    """
    pairs = {(entry["id"], entry["verdict"]) for entry in reply["verdicts"]}
    times = Counter(name for name, _ in pairs)
    problems = [
        f'the id "{name}" has several different verdicts; give one'
        for name in sorted(times)
        if times[name] > 1
    ]
    missing = [name for name in asked if name not in times]
    if missing and (strict or len(missing) == len(asked)):
        problems.append(f"there is no verdict for the id {', '.join(missing)}")
    return problems


def _check_questions(reply: Mapping[str, Any]) -> Sequence[str]:
    different = {" ".join(fold(text).split()) for text in reply["questions"]} - {""}
    if len(different) == QUESTIONS and len(reply["questions"]) == QUESTIONS:
        return []
    return [f'"questions" must hold exactly {QUESTIONS} different questions']


def _check_facts(reply: Mapping[str, Any]) -> Sequence[str]:
    return [] if any(map(str.strip, reply["facts"])) else ['"facts" must hold at least one fact']


@dataclass(frozen=True, slots=True)
class _TextList:
    """What a prompt makes a judge write: between ``least`` and ``most`` texts, and their check."""

    least: int
    most: int
    check: Check


TEXT_LISTS: Mapping[str, _TextList] = {
    "questions": _TextList(QUESTIONS, QUESTIONS, _check_questions),
    "claims": _TextList(0, MOST_CLAIMS, lambda reply: []),
    "facts": _TextList(1, MOST_FACTS, _check_facts),
}
"""By the name of the prompt, which is the name of the list in its reply, too."""


@lru_cache(maxsize=256)
def pair_kind(rubric: Rubric | None = None) -> CallKind:
    """The kind of call that asks which of two answers is better, by a rubric or without one; its
    quote is from either answer."""
    return CallKind(
        PAIRS if rubric is None else f"{PAIRS}.{rubric.name}",
        (FIRST, SECOND, EQUAL),
        sources=("answer", "other"),
        rubric=rubric,
        frame="" if rubric is None else "pairs_rubric",
        quotes=(FIRST, SECOND),
    )


class Material(msgspec.Struct, frozen=True):
    """The texts of one answer that a judge may see. Texts are foreign; ids are ours.

    ``contexts``: dicts with ``id``, ``chunk_id`` and ``text``. ``earlier``: what was said before
    the question. ``tools``: the calls of tools on the way to the answer, a line each. ``other``:
    the answer of another run, where two are compared.
    """

    question: str = ""
    answer: str = ""
    reference: str = ""
    contexts: Sequence[Item] = ()
    claims: Sequence[Item] = ()
    facts: Sequence[Item] = ()
    nuggets: Sequence[Item] = ()
    earlier: str = ""
    tools: str = ""
    other: str = ""

    def to_dict(self) -> dict[str, Any]:
        """As in a task's inputs and in verdicts.jsonl; empty parts are left out. The items are the
        material's own: do not change them."""
        return {
            name: part if isinstance(part, str) else list(part)
            for name, part in msgspec.structs.asdict(self).items()
            if part
        }

    def items(self, kind: CallKind) -> Sequence[Item]:
        """The numbered items of a call, if any."""
        numbered: Sequence[Item] = getattr(self, kind.items) if kind.items else ()
        return numbered

    def only(self, kind: CallKind, ids: Collection[str]) -> Material:
        """The material with these items alone; everything else stays."""
        if kind.items is None:
            return self
        fewer: dict[str, Any] = {kind.items: [x for x in self.items(kind) if x["id"] in ids]}
        return replace(self, **fewer)

    def texts(self, source: Source) -> Sequence[Item]:
        """The texts of a source of quotes, each with the id by which an entry names it."""
        part: str | Sequence[Item] = getattr(self, source)
        return [{"id": source, "text": part}] if isinstance(part, str) else part


HINT = (
    "In an earlier reply the quotes for the items below did not stand in the blocks letter by "
    "letter. Copy each quote exactly, or change the verdict."
)


def make_task(
    kind: CallKind,
    material: Material,
    *,
    salt: bytes,
    repeat: int = 0,
    hint: bool = False,
    strict: bool = False,
    blocks: Mapping[str, str] | None = None,
) -> JudgeTask:
    """The task for one call; its items are the facts or claims of the material.

    ``hint``: these items are asked again because their quotes were not found. ``strict``: a reply
    that lacks any of them is refused; else only one that lacks all. ``blocks``: what fills those
    slots of the prompt that no part of a material fills; foreign texts in it are ``fenced``.
    """
    prompt = prompt_files.load_for(kind, earlier=bool(material.earlier))
    asked = ids_of(kind, material)
    written = TEXT_LISTS.get(kind.prompt)
    count = written.most if written else len(asked) + len(kind.texts)
    values = {name: _SLOTS[name](material) for name in prompt.slots if name in _SLOTS}
    values |= blocks or {}
    values |= {"hint": f"{HINT}\n\n" if hint else "", "ids": neutral(", ".join(asked))}
    messages, key_messages = prompt.messages(values, salt)
    return JudgeTask(
        metric=kind.prompt,
        prompt=prompt.id,
        messages=messages,
        key_messages=key_messages,
        schema=_schema(kind, tuple(asked), tuple(_blocks(kind, material))),
        check=written.check if written else partial(_complaints, asked, strict),
        inputs=material.to_dict() | {"ids": asked},
        repeat=repeat,
        max_tokens=TOKENS_BASE + TOKENS_EACH * count,
    )


def ids_of(kind: CallKind, material: Material) -> list[str]:
    """The ids that a reply must give a verdict on."""
    return kind.ids_of({kind.items: material.items(kind)} if kind.items else {})


def _blocks(kind: CallKind, material: Material) -> Iterator[str]:
    """The ids that an entry may name as the block of its quote."""
    for source in kind.sources if kind.cites else ():
        if source == LISTED:
            yield source
        yield from (text["id"] for text in material.texts(source))


def _block(name: str, text: str) -> str:
    """A part that the material lacks is an empty text."""
    return fenced(name, text) if text.strip() else ""


def _listed(name: str, items: Sequence[Item]) -> str:
    lines = [
        f"{item['id']}. {one_line(item.get('lead', '') + ' ' + item['text'])}" for item in items
    ]
    return _block(name, "\n".join(lines))


def _passages(items: Sequence[Item]) -> str:
    return "\n\n".join([fenced(f"passage {item['id']}", item["text"]) for item in items])


_SLOTS: Mapping[str, Callable[[Material], str]] = {
    "question": lambda material: _block("question", material.question),
    "answer": lambda material: _block("answer", material.answer),
    "earlier": lambda material: _block("earlier turns", material.earlier),
    "reference": lambda material: _block("reference", material.reference),
    "contexts": lambda material: _passages(material.contexts),
    "claims": lambda material: _listed("claims", material.claims),
    "facts": lambda material: _listed("facts", material.facts),
    "nuggets": lambda material: _listed("nuggets", material.nuggets),
    "tools": lambda material: _block("tool calls", material.tools),
    "first": lambda material: fenced("first answer", material.answer),
    "second": lambda material: fenced("second answer", material.other),
}
"""The slots of prompts that a material fills."""


def fields_of(kind: CallKind) -> list[str]:
    """The fields of an answer that go to the judge, by the names of ``records.rubrics.READS`` and
    of the parts cut out of it."""
    if kind.rubric is not None:
        return list(kind.rubric.reads)
    slots = prompt_files.load_for(kind, earlier=False).slots
    fields = ["question", "history"] if "question" in slots else []
    named = {"contexts": "passages", "nuggets": "gold facts"}
    return fields + [named.get(name, name) for name in _SLOTS if name in slots - {"question"}]
