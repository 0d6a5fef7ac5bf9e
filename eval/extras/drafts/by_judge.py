"""Drafts of questions of several kinds, which a judge writes from passages that share a name.

A draft is planned before anything is asked: its kind, its passages and who asks are the same for
the same notes and seed, so the prompts are the same, too, and what was asked before is in the
cache. A draft counts only if its quotes are in its passages, and, where it has several, if the
judge can answer it from all of them but not without each of them.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import cycle
from pathlib import Path
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from clients.http import ask_all
from documents.sections import HEADING_SEPARATOR
from extras.drafts.cases import (
    UNSHOWN,
    DraftOptions,
    DraftQuestion,
    Drafts,
    NoteSection,
    flat,
    in_turn,
    make_case,
)
from judging.connect import Connection, connect
from judging.cost import CostEstimate
from judging.kinds import Item, Material, make_task
from judging.opinion import ask
from judging.prompt_files import fenced
from judging.types import Check, JudgeTask
from ragmetrics.text.asked_questions import AskedQuestions
from ragmetrics.text.tfidf import Frequencies
from ragmetrics.text.words import content_words, fold
from records.cases import TestCase
from records.errors import StorageError, did_you_mean
from records.toml_files import KeyPath, Line, read_file
from records.verdicts import CallKind

_PROMPTS = Path(__file__).with_name("prompts")

_TURN_BEFORE = ("earlier_question", "earlier_answer", "question_alone")

CALLS: Mapping[str, CallKind] = {
    name: CallKind(
        f"draft_{name}",
        ("needed", "unused"),
        "contexts",
        positive="needed",
        sources=("contexts",),
        texts=(*(_TURN_BEFORE if name == "follow_up" else ()), "question", "answer"),
        prompts=_PROMPTS,
    )
    for name in ("single", "multi_hop", "comparison", "follow_up")
} | {
    "unanswerable": CallKind(
        "draft_unanswerable",
        ("near_miss", "unrelated"),
        "contexts",
        texts=("question",),
        prompts=_PROMPTS,
    )
}
"""The calls that write a question from passages, by the kind of draft; each passage gets a
verdict."""

CHECK = CallKind(
    "draft_check",
    ("answerable", "not_answerable"),
    positive="answerable",
    sources=("contexts",),
    prompts=_PROMPTS,
)
"""Whether passages answer a drafted question."""

KINDS = tuple(CALLS)

TOGETHER = ("multi_hop", "comparison")
"""Kinds that need two passages or more."""

PASSAGES = {
    "single": (1, 1),
    "multi_hop": (2, 3),
    "comparison": (2, 2),
    "follow_up": (1, 2),
    "unanswerable": (1, 3),
}
"""Fewest and most passages of a kind."""

_CATEGORY = dict.fromkeys(TOGETHER, "multi_hop") | {"unanswerable": "general"}

NEAR_DUPLICATE = 0.9
"""Cosine from which on two passages say the same: neither is needed beside the other."""

MOST_HOLDERS = 20
"""A name that more sections have is no link between any two of them."""

MOST_WORDS, LEAST_QUOTE = 40, 3

MOST_PASSAGE = 6000
"""Characters of a section that are sent."""

_CODE = re.compile(r"`([^`\n]{2,40})`")
_INSIDE = re.compile(r"(?<=[\w,;:)] )[^\W\d_][\w-]{1,40}")
"""A word within a sentence."""


class Persona(msgspec.Struct, frozen=True):
    """Someone who asks: ``name`` is for people, the judge reads who it is and how it writes."""

    name: Annotated[Line, Meta(description="a short name")]
    who: Annotated[Line, Meta(description="who asks, in one sentence")]
    writes: Annotated[Line, Meta(description="how this person writes, in one sentence")]


_REMEDY = "write a table [[personas]] with name, who and writes for each"


class _Personas(msgspec.Struct):
    personas: Annotated[list[Persona], Meta(description=_REMEDY)]

    def faults(self) -> Iterator[tuple[KeyPath, str]]:
        if not self.personas:
            yield ("personas",), _REMEDY


def read_personas(path: Path) -> list[Persona]:
    """The ``[[personas]]`` of a TOML file: name, who, writes.

    Raises StorageError with every problem, as ``file:line: key: …``.
    """
    return read_file(path, _Personas, "--personas takes a TOML file").personas


def read_kinds(text: str) -> tuple[str, ...]:
    """The kinds of a list with commas, each once. Raises StorageError for one that is unknown."""
    names = tuple(dict.fromkeys(name.strip() for name in text.split(",")))
    for name in names:
        if name not in KINDS:
            raise StorageError(
                f"--kinds: {name or 'an empty name'} is no kind of draft; choose from "
                f"{', '.join(KINDS)}.{did_you_mean(name, KINDS)}"
            )
    return names


class PlannedDraft(msgspec.Struct, frozen=True):
    """The passages that one draft is asked about: its kind, its passages, and who asks (None: any
    user)."""

    kind: str
    passages: tuple[NoteSection, ...]
    persona: Persona | None

    @property
    def material(self) -> Material:
        contexts = [
            {"id": str(number), "chunk_id": section.heading_path, "text": _shown(section)}
            for number, section in enumerate(self.passages, 1)
        ]
        return Material(contexts=contexts)

    @property
    def who_asks(self) -> str:
        """The block of the prompt that says who asks; empty for any user."""
        who = self.persona
        return fenced("who asks", f"{who.who}\n{who.writes}") if who else ""

    @property
    def most_checks(self) -> int:
        """Calls that the check of a draft takes at most."""
        if self.kind == "unanswerable":
            return 1
        return len(self.passages) + 1 if len(self.passages) > 1 else 0


def _shown(section: NoteSection) -> str:
    return (
        f"{section.heading_path.replace(HEADING_SEPARATOR, ' - ')}\n\n{section.text[:MOST_PASSAGE]}"
    )


def plan(
    every: Sequence[NoteSection],
    kinds: Sequence[str],
    count: int,
    seed: int,
    personas: Sequence[Persona] = (),
) -> list[PlannedDraft]:
    """Up to ``count`` drafts, the kinds in turn, no kind with the same passages twice.

    Passages of one draft share a name that few sections have, and are no near-duplicates.
    """
    order = list(in_turn(every, seed))
    links = _Links(order)
    sources = {
        kind: links.bundles(*PASSAGES[kind], first=number) for number, kind in enumerate(kinds)
    }
    people: Iterator[Persona | None] = cycle(personas or [None])
    drafts: list[PlannedDraft] = []
    while sources and len(drafts) < count:
        who = next(people)  # changes with the round, so that each kind meets each persona
        for kind in list(sources)[: count - len(drafts)]:
            if (passages := next(sources[kind], None)) is None:
                del sources[kind]
            else:
                drafts.append(PlannedDraft(kind, passages, who))
    return drafts


class _Links:
    """Which sections share a name."""

    def __init__(self, order: Sequence[NoteSection]) -> None:
        self._order = order
        self._names = [sorted(_names(section)) for section in order]
        self._holders: dict[str, list[int]] = defaultdict(list)
        for number, names in enumerate(self._names):
            for name in names:
                self._holders[name].append(number)
        self._frequencies = Frequencies()
        self._frequencies.add(section.text for section in order)

    def bundles(self, least: int, most: int, first: int) -> Iterator[tuple[NoteSection, ...]]:
        """Passages that share a name, for each section once, from the ``first`` on."""
        seen = set()
        for step in range(len(self._order)):
            bundle = self._bundle((step + first) % len(self._order), most)
            if len(bundle) >= least and frozenset(bundle) not in seen:
                seen.add(frozenset(bundle))
                yield tuple(self._order[number] for number in bundle)

    def _bundle(self, home: int, most: int) -> list[int]:
        """The section and those that share its rarest name, sections of other notes first."""
        best = [home]
        names = [n for n in self._names[home] if 2 <= len(self._holders[n]) <= MOST_HOLDERS]
        for name in sorted(names, key=lambda name: (len(self._holders[name]), name)):
            if most == 1 or len(best) > 1:
                break
            own = self._order[home].rel_path
            others = [number for number in self._holders[name] if number != home]
            others.sort(key=lambda number: self._order[number].rel_path == own)
            for number in others:
                texts = [self._order[index].text for index in (number, *best)]
                likeness = self._frequencies.similarity(texts)[0, 1:]
                if len(best) < most and max(likeness) < NEAR_DUPLICATE:
                    best.append(number)
        return best


def _names(section: NoteSection) -> set[str]:
    """What a section names: code, words with a capital within a sentence, words of its heading."""
    inside = {word for word in _INSIDE.findall(section.text) if word[0].isupper()}
    found = {fold(word) for word in (*inside, *_CODE.findall(section.text))}
    return found | set(content_words(fold(section.titles[-1])))


def draft_task(draft: PlannedDraft, salt: bytes) -> JudgeTask:
    """The call that writes one draft."""
    blocks = {"persona": draft.who_asks}
    task = make_task(CALLS[draft.kind], draft.material, salt=salt, strict=True, blocks=blocks)
    return msgspec.structs.replace(task, check=_check(draft, task.check))


def _check(draft: PlannedDraft, verdicts: Check) -> Check:
    """What the schema cannot say; "" as the question means that there is nothing to ask."""
    call = CALLS[draft.kind]

    def faults(reply: Mapping[str, Any]) -> Sequence[str]:
        question = flat(reply["question"])
        if not question:
            return []
        faults = list(verdicts(reply))
        if question[-1] not in "?？؟;" or len(question.split()) > MOST_WORDS:
            faults.append(f'"question" must end with "?" and have at most {MOST_WORDS} words')
        empty = [name for name in call.texts if not reply[name].strip()]
        faults += [f'"{name}" must not be empty' for name in empty]
        if call.positive is None:
            return faults
        used = _used(draft, reply)
        for entry, section in used:
            quote = flat(entry["quote"])
            if len(quote.split()) < LEAST_QUOTE or quote not in section.flat:
                faults.append(
                    f"the quote of {entry['id']} must be copied letter by letter from that passage"
                )
        least = 2 if draft.kind in TOGETHER else 1
        if len(used) < least:
            faults.append(f'the verdict "needed" must be given {least} times or more')
        return faults

    return faults


def _used(draft: PlannedDraft, reply: Mapping[str, Any]) -> list[tuple[Item, NoteSection]]:
    """The entries of passages that the judge calls needed or a near miss, in their order."""
    numbers = {str(number): section for number, section in enumerate(draft.passages, 1)}
    entries = {entry["id"]: entry for entry in reply["verdicts"]}
    use = ("needed", "near_miss")
    return [(e, numbers[k]) for k in numbers if (e := entries.get(k)) and e["verdict"] in use]


def estimate(link: Connection, drafts: Sequence[PlannedDraft]) -> CostEstimate:
    """The most calls that the drafts and all their checks may take; the checks as if none were in
    the cache."""
    guess = "x" * 160

    def tasks() -> Iterator[JudgeTask]:
        for draft in drafts:
            yield draft_task(draft, link.salt)
            for _ in range(draft.most_checks):
                material = msgspec.structs.replace(draft.material, question=guess)
                yield make_task(CHECK, material, salt=link.salt)

    return link.estimate(tasks())


class _Refused(Exception):
    """No draft comes of it. ``why``: a field of Drafts, or the kind of a judge's failure."""

    def __init__(self, why: str) -> None:
        self.why = why


async def _written(draft: PlannedDraft, link: Connection) -> tuple[Mapping[str, Any], list[int]]:
    """A checked reply, and which of its passages are needed, by their place among those used."""
    verdict = await link.judge.ask(draft_task(draft, link.salt))
    if verdict.data is None:
        raise _Refused(verdict.failure or "incomplete")
    reply = verdict.data
    if not flat(reply["question"]):
        raise _Refused("nothing_to_ask")
    used = _used(draft, reply)
    places = list(range(len(used)))
    if draft.kind == "unanswerable":
        if await _answers(draft, reply, [*draft.material.contexts], link):
            raise _Refused("not_needed")
        return reply, places
    if len(used) == 1:
        return reply, places
    shown = {item["id"]: item for item in draft.material.contexts}
    contexts = [shown[entry["id"]] for entry, _ in used]
    if not await _answers(draft, reply, contexts, link):
        raise _Refused("not_needed")
    needed = []
    for place in places:
        if not await _answers(draft, reply, contexts[:place] + contexts[place + 1 :], link):
            needed.append(place)
    if not needed:
        raise _Refused("not_needed")
    return reply, needed


async def _answers(
    draft: PlannedDraft, reply: Mapping[str, Any], contexts: Sequence[Item], link: Connection
) -> bool:
    """Whether the judge can answer the question from these passages alone, with a quote."""
    question = flat(reply["question_alone" if draft.kind == "follow_up" else "question"])
    material = Material(question=question, contexts=contexts)
    opinion = await ask(link.judge, CHECK, material, salt=link.salt)
    if opinion.failure is not None:
        raise _Refused(opinion.failure)
    return bool(opinion.entries[0]["verdict"] == "answerable")


def drafter(
    personas: Sequence[Persona], say: Callable[[CostEstimate], bool]
) -> Callable[[DraftOptions, list[NoteSection], list[TestCase]], Drafts]:
    """The model and prompt that ``write_drafts`` uses. ``say`` is given the estimate before
    anything is sent, and answers whether to go on. Raises StorageError without a judge that can
    write."""

    def make(options: DraftOptions, every: list[NoteSection], cases: list[TestCase]) -> Drafts:
        if options.judge.by_rules:
            raise StorageError(
                "--kinds: the embedded rules cannot write questions; name a judge of eval/judges, "
                "or a server, with --judge."
            )
        drafts = plan(every, options.kinds, options.count, options.seed, personas)
        if not drafts:
            raise StorageError(
                f"{options.vault}: no passages for {', '.join(options.kinds)}: a draft of several "
                "needs sections that share a name and do not say the same."
            )
        with connect(options.judge, ask_nothing=True) as link:
            expected = estimate(link, drafts)
        if not say(expected):
            return Drafts(stopped=True)
        with connect(options.judge) as link:
            return _asked(options, drafts, every, cases, link)

    return make


def _asked(
    options: DraftOptions,
    drafts: Sequence[PlannedDraft],
    every: Sequence[NoteSection],
    cases: Sequence[TestCase],
    link: Connection,
) -> Drafts:
    outcome = Drafts()
    asked, taken = AskedQuestions([case.question for case in cases]), {case.id for case in cases}

    async def job(number: int) -> tuple[int, tuple[Mapping[str, Any], list[int]] | str]:
        try:
            return number, await _written(drafts[number], link)
        except _Refused as refused:
            return number, refused.why

    answers = ask_all(range(len(drafts)), job, options.judge.concurrency, link.stop)
    for number, written in sorted(answers, key=lambda answer: answer[0]):
        if isinstance(written, str):
            outcome.count(written)
            continue
        reply, needed = written
        if asked.add(flat(reply.get("question_alone") or reply["question"])):
            by = f"{link.judge.identity}: {CALLS[drafts[number].kind].prompt}"
            outcome.cases.append(_case(drafts[number], reply, needed, every, taken, by))
        else:
            outcome.asked_already += 1
    outcome.notes = list(link.notes())
    return outcome


def _case(
    draft: PlannedDraft,
    reply: Mapping[str, Any],
    needed: Sequence[int],
    every: Sequence[NoteSection],
    taken: set[str],
    by: str,
) -> dict[str, Any]:
    """A line of the set: the passages that are needed are proposed as supports, all together."""
    used = _used(draft, reply)
    chosen = [used[place] for place in needed]
    answer = flat(reply.get("answer", ""))
    if draft.kind == "unanswerable":
        chosen = [({"quote": ""}, draft.passages[0])]
    kind = "single" if draft.kind in TOGETHER and len(chosen) < 2 else draft.kind
    question = DraftQuestion(
        flat(reply["question"]), chosen[0][0]["quote"], by, _CATEGORY.get(kind, "factual"), answer
    )
    case = make_case(question, chosen[0][1], every, taken, by)
    case |= {"query_type": kind, "vaults": sorted({section.vault for _, section in chosen})}
    if draft.persona is not None:
        case["persona"] = draft.persona.name
    if kind == "unanswerable":
        missed = [section.place for _, section in used]
        case |= {"answerable": False, "near_misses": missed, "gold_supports": []}
        case |= {"expected_key_facts": [], "required_support_groups": []}
        return case
    if len(chosen) > 1:
        case["gold_supports"] = [
            {
                **section.place,
                "snippets": [flat(entry["quote"])],
                "grade": 3,
            }
            for entry, section in chosen
        ]
        case["required_support_groups"] = [[*range(len(chosen))]]
    case["reference_answer"] = answer
    if kind == "follow_up":
        turns = (("user", "earlier_question"), ("assistant", "earlier_answer"))
        case["history"] = [
            {"role": role, "content": UNSHOWN.sub("", flat(reply[name]))} for role, name in turns
        ]
        alone = UNSHOWN.sub("", flat(reply["question_alone"]))
        case |= {"standalone": False, "question_alone": alone}
    return case
