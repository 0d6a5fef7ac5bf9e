"""What generate_cases.py does, in its order: read the vault, draft, check, write, say."""

from __future__ import annotations

import re
import threading
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

import click
import orjson

from clients.http import ask_all
from demo import draft_templates
from demo.chunker import HEADING_SEPARATOR
from demo.draft_templates import Casing, Question, Section, flat, holders, sections
from demo.vault import Note, python_reference, read_folder
from judging import prompt_files
from judging.connect import LOCAL, JudgeOptions, connect
from judging.prompt_files import fenced, one_line
from judging.run import say_notes
from judging.types import Check, Judge, JudgeTask
from options import Exit
from ragmetrics.stats.means import generator
from ragmetrics.text.words import content_words, fold, words
from records.cases import TestCase
from records.errors import StorageError
from records.files import locked, replace_bytes
from records.labels import read_cases
from terminal.tables import plain

DEMO = "demo"


@dataclass(frozen=True, slots=True)
class Plan:
    """The options of the script; ``wanted`` is the judge, ``local`` for rules."""

    vault: str
    vault_name: str | None
    count: int
    output: Path | None
    append_to: Path | None
    seed: int
    as_json: bool
    quiet: bool
    wanted: JudgeOptions

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> Plan:
        """From the command line's values."""
        own = {name: given[name] for name in cls.__dataclass_fields__ if name in given}
        return cls(**own, wanted=JudgeOptions.of(given))

    def check(self) -> None:
        """Raises StorageError when there is not exactly one place to write to."""
        if (self.output is None) == (self.append_to is None):
            raise StorageError("name one place for the drafts: --output FILE, or --append-to SET.")
        if self.output is not None and self.output.exists():
            raise StorageError(
                f"{self.output}: exists already, and is not overwritten; choose another name, or "
                "--append-to it."
            )


def run(plan: Plan) -> int:
    """Everything; returns the exit code. Nothing is written when no question could be drafted."""
    plan.check()
    known, cases = _known(plan)
    every = sections(_notes(plan))
    failures: Counter[str] = Counter()
    outcome = _drafted(plan, every, cases, failures)
    if not outcome.cases:
        return _nothing(plan, outcome, failures)
    if plan.output is not None:
        write_new(plan.output, outcome.cases)
    elif plan.append_to is not None:
        append(plan.append_to, outcome.cases, known)
    _say(plan, outcome, failures)
    return Exit.DONE


def _notes(plan: Plan) -> list[Note]:
    if plan.vault == DEMO:
        return python_reference()
    return read_folder(plan.vault, plan.vault_name)


def _known(plan: Plan) -> tuple[bytes, list[TestCase]]:
    """The set that is added to, as bytes and as cases; a faulty one is refused."""
    if plan.append_to is None:
        return b"", []
    cases = read_cases(plan.append_to, None)
    return plan.append_to.read_bytes(), cases


def _drafted(
    plan: Plan, every: list[Section], cases: list[TestCase], failures: Counter[str]
) -> Outcome:
    old = {"questions": [case.question for case in cases], "ids": [case.id for case in cases]}
    order = turns(every, plan.seed)
    if plan.wanted.judge == LOCAL:
        by = f"template@{draft_templates.RULES}"
        found = draft_templates.questions(order, Casing(every))
        return drafts(every, found, plan.count, **old, by=by)
    with connect(plan.wanted) as link:
        written = questions(order, link.judge, link.salt, plan.wanted.concurrency, failures)
        outcome = drafts(every, written, plan.count, **old, by=str(link.judge.identity))
        say_notes(link.notes(), plan.quiet)
        return outcome


def _nothing(plan: Plan, outcome: Outcome, failures: Counter[str]) -> int:
    """Say why there is no draft; a judge that failed every time counts as unreachable."""
    if failures and not outcome.asked_already:
        told = ", ".join(f"{number} {kind}" for kind, number in failures.most_common())
        click.echo(f"The judge failed on every section: {told}. Nothing was written.", err=True)
        return Exit.UNREACHABLE
    raise StorageError(
        f"{plan.vault}: no question could be drafted ({outcome.nothing_to_ask} sections without "
        f"one, {outcome.asked_already} asked already); nothing was written."
    )


def _say(plan: Plan, outcome: Outcome, failures: Counter[str]) -> None:
    target = plan.output or plan.append_to
    number = len(outcome.cases)
    if plan.as_json:
        click.echo(orjson.dumps(outcome.cases, option=orjson.OPT_INDENT_2).decode())
    else:
        for case in outcome.cases:
            click.echo(f"{case['id']}\t{case['category']}\t{plain(case['question'], 500)}")
    if plan.quiet:
        return
    click.echo(
        f"{number} drafts in {target}; {outcome.asked_already} sections asked what is asked "
        f"already, {outcome.nothing_to_ask} gave nothing to ask.",
        err=True,
    )
    if failures:
        told = ", ".join(f"{count} {kind}" for kind, count in failures.most_common())
        click.echo(f"The judge failed on some sections: {told}.", err=True)
    if number < plan.count:
        click.echo(f"Fewer than the {plan.count} that were asked for.", err=True)
    click.echo(
        "Look at each in label_eval.py, where they are open questions: Enter accepts one (the tag "
        "goes), e mends it; Shift+Tab, then / and tag:draft shows the drafts alone.",
        err=True,
    )


def write_new(path: Path, cases: Sequence[Case]) -> None:
    """Make a file of the cases. Raises StorageError when there is one already."""
    if path.exists():
        raise StorageError(
            f"{path}: exists already, and is not overwritten; choose another --output, or "
            "--append-to it."
        )
    path.parent.mkdir(parents=True, exist_ok=True)
    replace_bytes(path, _lines(cases))


def append(path: Path, cases: Sequence[Case], known: bytes) -> None:
    """Put the cases at the end of a set in one step; every byte before them stays.

    ``known``: the set as it was read; when it has changed since, nothing is written. The lock is
    the one that a labelling session holds. Raises StorageError.
    """
    with locked(path):
        if path.read_bytes() != known:
            raise StorageError(f"{path}: changed meanwhile; nothing was added. Try again.")
        end = b"" if not known or known.endswith(b"\n") else b"\n"
        replace_bytes(path, known + end + _lines(cases))


def _lines(cases: Sequence[Case]) -> bytes:
    return b"".join(orjson.dumps(case) + b"\n" for case in cases)


@dataclass
class Outcome:
    """The drafts, and why sections gave none."""

    cases: list[Case] = field(default_factory=list)
    nothing_to_ask: int = 0
    asked_already: int = 0


def turns(every: Sequence[Section], seed: int) -> Iterator[Section]:
    """All sections, a note at a time: one of each note before the second of any.

    Notes and the sections within a note are shuffled by the seed.
    """
    notes: dict[tuple[str, str], list[Section]] = {}
    for section in every:
        notes.setdefault((section.vault, section.rel_path), []).append(section)
    rng = generator(seed, "drafts")
    queues = []
    for name in sorted(notes):
        order = rng.permutation(len(notes[name])).tolist()
        queues.append([notes[name][place] for place in order])
    for round_ in range(max(map(len, queues), default=0)):
        for place in rng.permutation(len(queues)).tolist():
            if round_ < len(queues[place]):
                yield queues[place][round_]


def drafts(
    every: Sequence[Section],
    found: Iterable[tuple[Section, Question | None]],
    count: int,
    *,
    questions: Sequence[str] = (),
    ids: Sequence[str] = (),
    by: str = "template",
) -> Outcome:
    """Up to ``count`` cases from sections with their questions, which are taken as needed.

    ``questions`` and ``ids``: those of the set that they are added to.
    """
    outcome = Outcome()
    asked, taken = Asked(questions), set(ids)
    for section, question in found:
        if question is None:
            outcome.nothing_to_ask += 1
        elif not asked.add(question.text):
            outcome.asked_already += 1
        else:
            origin = f"{by}: {question.rule}"
            outcome.cases.append(make_case(question, section, every, taken, origin))
            if len(outcome.cases) == count:
                break
    return outcome


TAG = "draft"

MOST_SUPPORTS = 5

_UNSHOWN = re.compile(
    r"\x1b\[[0-9;]*[A-Za-z]|[\x00-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]"
)
"""Commands to a terminal and marks of direction. A snippet keeps them: it is a quotation."""

_WORD = re.compile(r"[a-z0-9]+")

_EMPTY = frozenset(
    ["a", "an", "the", "is", "are", "do", "does", "i", "what", "how", "to", "of", "in"]
)

_EMPTY |= {
    "for",
    "if",
    "on",
    "and",
    "or",
    "it",
    "should",
    "know",
    "about",
    "happens",
    "used",
    "mean",
}

Case = dict[str, Any]


def make_case(
    question: Question,
    home: Section,
    every: Sequence[Section],
    taken: set[str],
    by: str,
) -> Case:
    """A line of the set. ``taken``: ids in use; the new one is added.

    Every section that holds the snippet word for word is a support of its own: any one will do.
    Raises ValueError when the snippet does not stand in its section.
    """
    snippet = flat(question.snippet)
    if snippet not in home.flat:
        raise ValueError(f"the snippet does not stand in {home.rel_path}: {snippet[:60]!r}")
    where = [home, *(one for one in holders(snippet, every) if one != home)][:MOST_SUPPORTS]
    supports = [
        {
            "rel_path": section.rel_path,
            "heading_path": section.heading_path,
            "snippets": [snippet],
            "grade": 3,
        }
        for section in where
    ]
    text = _UNSHOWN.sub("", question.text)
    return {
        "id": new_id(text, taken),
        "question": text,
        "answerable": True,
        "category": question.category,
        "difficulty": "easy",
        "expected_key_facts": [flat(question.fact)],
        "reference_answer": snippet,
        "gold_supports": supports,
        "required_support_groups": [[place] for place in range(len(supports))],
        "recency_conflict_rule": None,
        "tags": [TAG],
        "vaults": [home.vault],
        "folders": [],
        "drafted_by": by,
    }


def new_id(question: str, taken: set[str]) -> str:
    """``draft-`` and up to five telling words; a number behind it when that id is in use."""
    plain = unicodedata.normalize("NFKD", question).encode("ascii", "ignore").decode().lower()
    telling = [word for word in _WORD.findall(plain) if word not in _EMPTY][:5]
    base = "-".join(["draft", *(telling or ["question"])])[:60].rstrip("-")
    name, number = base, 1
    while name in taken:
        number += 1
        name = f"{base}-{number}"
    taken.add(name)
    return name


PROMPT = "question_draft"

CATEGORIES = ("factual", "reasoning", "general")

MOST_WORDS = 40

MOST_PASSAGE = 6000
"""Characters of a section that are sent."""

TOKENS = 700

Pair = tuple[Section, "Question | None"]


def schema() -> dict[str, Any]:
    """JSON schema of a reply; every field required, as strict servers want."""
    text = {"type": "string"}
    fields: dict[str, Any] = dict.fromkeys(("notes", "quote", "answer", "question"), text)
    fields["category"] = {"type": "string", "enum": list(CATEGORIES)}
    fields["manipulation"] = {"type": "boolean"}
    return {
        "type": "object",
        "properties": fields,
        "required": list(fields),
        "additionalProperties": False,
    }


def check(section: Section) -> Check:
    """What the schema cannot say; "" as the question means that there is nothing to ask."""

    def faults(reply: Mapping[str, Any]) -> Sequence[str]:
        question = flat(reply["question"])
        if not question:
            return []
        found = []
        if not question.endswith("?") or len(question.split()) > MOST_WORDS:
            found.append(f'"question" must end with "?" and have at most {MOST_WORDS} words')
        if len(flat(reply["quote"]).split()) < 3 or flat(reply["quote"]) not in section.flat:
            found.append('"quote" must be copied letter by letter from the passage')
        if not reply["answer"].strip():
            found.append('"answer" must not be empty')
        return found

    return faults


def task_of(section: Section, salt: bytes) -> JudgeTask:
    """The call for one section."""
    prompt = prompt_files.load(PROMPT)
    passage = section.text[:MOST_PASSAGE]
    heading = one_line(section.heading_path.replace(HEADING_SEPARATOR, " - "))

    def values(code: bytes | None) -> dict[str, str]:
        return {
            "heading": fenced(code, "heading", heading),
            "passage": fenced(code, "passage", passage),
        }

    return JudgeTask(
        metric=PROMPT,
        prompt=prompt.id,
        messages=prompt.messages(values(salt)),
        key_messages=prompt.messages(values(None)),
        schema=schema(),
        check=check(section),
        inputs={"heading": section.heading_path, "passage": passage},
        max_tokens=TOKENS,
    )


def questions(
    found: Iterable[Section],
    judge: Judge,
    salt: bytes,
    workers: int,
    failures: Counter[str],
) -> Iterator[Pair]:
    """Sections with their questions, in order; a failed call is counted by kind and gives none.

    At most ``workers`` sections are asked about before the first of them is handed on.
    """
    source = iter(found)

    def ask(job: tuple[int, Section]) -> tuple[int, Section, Question | None]:
        place, section = job
        verdict = judge.ask(task_of(section, salt))
        if verdict.data is None:
            failures[verdict.failure or "incomplete"] += 1
            return place, section, None
        return place, section, question_of(verdict.data)

    while block := list(islice(source, workers)):
        answers = ask_all(enumerate(block), ask, len(block), threading.Event())
        for _, section, question in sorted(answers, key=lambda answer: answer[0]):
            yield section, question


def question_of(reply: Mapping[str, Any]) -> Question | None:
    """A checked reply as a question; None when the judge found nothing to ask."""
    text = flat(reply["question"])
    if not text:
        return None
    answer = flat(reply["answer"])
    return Question(text, flat(reply["quote"]), PROMPT, reply["category"], answer)


NEAR = 0.75
"""Share of common content words (Jaccard) from which on two questions count as the same."""

ASKING = frozenset(
    word for text in ("know", "happens", "used", "mean") for word in content_words(text)
)
"""Words by which questions are asked; they tell nothing of what is asked about."""


class Asked:
    """The questions that there are; each new one is compared with those that share a word."""

    def __init__(self, questions: Iterable[str] = ()) -> None:
        self._kept: list[frozenset[str]] = []
        self._by_word: dict[str, list[int]] = {}
        for question in questions:
            self._keep(_bag(question))

    def add(self, question: str) -> bool:
        """Keep the question; False, and nothing kept, when one nearly like it is there."""
        bag = _bag(question)
        if not bag:
            return False
        near = {place for word in bag for place in self._by_word.get(word, ())}
        if any(_jaccard(bag, self._kept[place]) >= NEAR for place in near):
            return False
        self._keep(bag)
        return True

    def _keep(self, bag: frozenset[str]) -> None:
        for word in bag:
            self._by_word.setdefault(word, []).append(len(self._kept))
        self._kept.append(bag)


def _bag(question: str) -> frozenset[str]:
    """Content words but those of asking; of a question without any, all its words."""
    folded = fold(question)
    return frozenset(content_words(folded)) - ASKING or frozenset(words(folded))


def _jaccard(one: frozenset[str], other: frozenset[str]) -> float:
    return len(one & other) / len(one | other)
