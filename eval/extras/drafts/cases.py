"""Drafts of questions from a vault: its headings or a judge's, checked, and written as cases.

By rule a heading is the question, in its own language, and its section the support. Such a draft is
plain rather than clever: a person rewords it or drops it, or a judge drafts instead.
"""

from __future__ import annotations

import re
import unicodedata
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson

from demo.answerer import sentences
from demo.chunker import chunk_notes
from demo.vault import python_reference
from documents.sections import HEADING_SEPARATOR, Note
from documents.vault import read_vault
from judging.connect import JudgeOptions
from ragmetrics.stats.means import generator
from ragmetrics.text.asked_questions import AskedQuestions
from ragmetrics.text.words import content_words, fold
from records.cases import DRAFT, TestCase
from records.errors import StorageError
from records.files import locked, replace_bytes
from records.labels import read_cases

DEMO = "demo"

RULES = 4
"""Version of the rule, written into each draft."""

WHOLE = 1 << 31
"""Characters of a section that is never cut, so that a heading names all of its text."""

FEWEST_WORDS, MOST_WORDS = 5, 45

_NUMBERED = re.compile(
    r"^(?:(?:chapter|appendix|part|section)\s+\w{1,3}\s*[:.–—-]\s*|[\d.]+\s+)|\s*#+$",
    re.IGNORECASE,
)

_MARKS = re.compile(r"[*`]+|\[(?=[^\]]*\]\()|\]\([^)]*\)|(?<!\w)_(?=[^\W_])|(?<=[^\W_])_(?!\w)")
"""Marks of stress and code, and all of a link but its text; ``__init__`` is a name."""


@dataclass(frozen=True, slots=True)
class DraftQuestion:
    """A drafted question. ``rule`` says how it came about; ``fact`` is what an answer must say."""

    text: str
    snippet: str
    rule: str
    category: str
    fact: str


@dataclass(frozen=True, slots=True)
class NoteSection:
    """One heading with its own text. ``sentences``: prose that can be quoted, on one line each."""

    vault: str
    rel_path: str
    folder: str
    heading_path: str
    text: str
    sentences: tuple[str, ...]
    page: int | None = None

    @property
    def place(self) -> dict[str, Any]:
        """The anchor of a gold support."""
        place: dict[str, Any] = {"rel_path": self.rel_path, "heading_path": self.heading_path}
        return place if self.page is None else place | {"page": self.page}

    @property
    def titles(self) -> list[str]:
        """The headings from the note's first down to the section's own."""
        return self.heading_path.split(HEADING_SEPARATOR)

    @property
    def flat(self) -> str:
        """The text with its white space collapsed, as snippets are compared."""
        return flat(self.text)


def questions(every: Iterable[NoteSection]) -> Iterator[tuple[NoteSection, DraftQuestion | None]]:
    """Each section with the question that its heading is; None for a heading without a letter."""
    return ((section, heading_question(section)) for section in every)


def heading_question(section: NoteSection) -> DraftQuestion | None:
    """The heading as a question; a heading of one word comes with the one above it.

    It rests on the sentence of the section that shares most words with the heading, the first of
    several; the same sentence is what an answer must say.
    """
    titles = [_bare(title) for title in section.titles]
    own = titles[-1]
    if not any(char.isalpha() for char in own):
        return None
    if len(own.split()) == 1 and len(titles) > 1:
        own = f"{titles[-2]}: {own}"
    telling = set(content_words(fold(own)))
    snippet = max(
        section.sentences,
        key=lambda sentence: len(telling & set(content_words(fold(sentence)))),
    )
    text = own if own[-1] in "?？؟;" else f"{own}?"
    return DraftQuestion(text, snippet, "heading", "general", snippet)


def _bare(title: str) -> str:
    """A heading without numbering and without marks of stress, code and links."""
    return _MARKS.sub("", _NUMBERED.sub("", title)).strip().rstrip(".:!")


def flat(text: str) -> str:
    """The text with white space collapsed to single blanks."""
    return " ".join(text.split())


def sections(notes: Iterable[Note]) -> list[NoteSection]:
    """Every section with a heading or page and a quotable sentence, in reading order."""
    result = []
    for chunk in chunk_notes(notes, max_chars=WHOLE):
        if not chunk.heading_path and chunk.page is None:
            continue
        whole = flat(chunk.text)
        quotable = tuple(
            sentence.text
            for sentence in sentences(chunk.text)
            if _quotable(sentence.text) and sentence.text in whole
        )
        if quotable:
            place = (chunk.vault, chunk.rel_path, chunk.folder, chunk.heading_path)
            result.append(NoteSection(*place, chunk.text, quotable, chunk.page))
    return result


def _quotable(sentence: str) -> bool:
    """A whole sentence of a usual length; no cut-off, no announcement of what follows."""
    return (
        sentence[-1] in ".!。"
        and FEWEST_WORDS <= len(sentence.split()) <= MOST_WORDS
        and not sentence[0].islower()
        and sentence.count("`") % 2 == 0  # else it was cut within code
        and "<!--" not in sentence
    )


def holders(snippet: str, every: Sequence[NoteSection]) -> list[NoteSection]:
    """All sections that contain the snippet: each of them answers the question."""
    return [section for section in every if snippet in section.flat]


@dataclass(frozen=True, slots=True)
class DraftOptions:
    """The vault to draft from, and the file to write; with a ``judge`` named ``local`` the headings
    are the questions."""

    vault: str
    count: int
    output: Path | None
    append_to: Path | None
    seed: int
    judge: JudgeOptions
    kinds: tuple[str, ...] = ()

    @property
    def target(self) -> Path:
        """The file that the drafts go to. Raises StorageError when there is not exactly one."""
        if self.output is not None and self.append_to is None:
            return self.output
        if self.append_to is not None and self.output is None:
            return self.append_to
        raise StorageError("name one place for the drafts: --output FILE, or --append-to SET.")


@dataclass
class Drafts:
    """The drafts, and why sections gave none. ``failures``: failed calls of the judge by kind.

    ``not_needed``: the judge's check of the passages spoke against the draft.
    """

    cases: list[Case] = field(default_factory=list)
    nothing_to_ask: int = 0
    asked_already: int = 0
    not_needed: int = 0
    failures: Counter[str] = field(default_factory=Counter)
    notes: list[str] = field(default_factory=list)
    """Notes about the judge for a reader of the drafts."""
    stopped: bool = False
    """Nothing was asked, as it was wanted."""

    def count(self, why: str) -> None:
        """Count one draft that did not come about: a field of these, or a failure's kind."""
        if why in ("nothing_to_ask", "not_needed"):
            setattr(self, why, getattr(self, why) + 1)
        else:
            self.failures[why] += 1


DraftMaker = Callable[[DraftOptions, list[NoteSection], list[TestCase]], Drafts]
"""Drafts from sections that are not yet asked in the cases of a set."""


def write_drafts(options: DraftOptions, make: DraftMaker | None = None) -> Drafts:
    """Draft questions, and write them. Nothing is written when there is none.

    ``make``: what drafts them; without it, a question for each section.

    Without a draft it returns only if the judge failed; else it raises StorageError, as for a vault
    or set that cannot be used.
    """
    target = options.target
    if target == options.output and target.exists():
        raise _exists(target, "choose another name, or --append-to it")
    old_bytes, cases = _old_set(options)
    outcome = (make or _drafted)(options, sections(notes_of(options)), cases)
    if not outcome.cases:
        if outcome.stopped:
            return outcome
        if not outcome.failures or outcome.asked_already:
            raise StorageError(
                f"{options.vault}: no question could be drafted ({outcome.nothing_to_ask} sections "
                f"without one, {outcome.asked_already} in the set already, {outcome.not_needed} "
                "refused by the check of their passages); nothing was written."
            )
    elif target == options.output:
        _write_new(target, outcome.cases)
    else:
        _append(target, outcome.cases, old_bytes)
    return outcome


def notes_of(options: DraftOptions) -> Sequence[Note]:
    """The documents of the vault; those that cannot be read are warned of."""
    if options.vault == DEMO:
        return python_reference()
    vault = read_vault(options.vault)
    for problem in vault.unreadable:
        warnings.warn(str(problem), stacklevel=1)
    return vault.notes


def _old_set(options: DraftOptions) -> tuple[bytes, list[TestCase]]:
    """The set that is added to, as bytes and as cases; a faulty one is refused."""
    if options.append_to is None:
        return b"", []
    cases = read_cases(options.append_to, None)
    return options.append_to.read_bytes(), cases


def _drafted(options: DraftOptions, every: list[NoteSection], cases: list[TestCase]) -> Drafts:
    old = {"asked_questions": [case.question for case in cases], "ids": [case.id for case in cases]}
    order = in_turn(every, options.seed)
    return _drafts(every, questions(order), options.count, **old, by=f"template@{RULES}")


def _exists(path: Path, remedy: str) -> StorageError:
    return StorageError(f"{path}: exists already and is not overwritten; {remedy}.")


def _write_new(path: Path, cases: Sequence[Case]) -> None:
    """Make a file of the cases. Raises StorageError when there is one already."""
    if path.exists():
        raise _exists(path, "choose another --output, or --append-to it")
    path.parent.mkdir(parents=True, exist_ok=True)
    replace_bytes(path, _lines(cases))


def _append(path: Path, cases: Sequence[Case], old_bytes: bytes) -> None:
    """Put the cases at the end of a set in one step; every byte before them stays.

    ``old_bytes``: the set as it was read; when it has changed since, nothing is written. The lock
    is the one that a labelling session holds. Raises StorageError.
    """
    with locked(path):
        if path.read_bytes() != old_bytes:
            raise StorageError(
                f"{path}: has changed in the meantime; nothing was added. Try again."
            )
        end = b"" if not old_bytes or old_bytes.endswith(b"\n") else b"\n"
        replace_bytes(path, old_bytes + end + _lines(cases))


def _lines(cases: Sequence[Case]) -> bytes:
    return b"".join(orjson.dumps(case) + b"\n" for case in cases)


def in_turn(every: Sequence[NoteSection], seed: int) -> Iterator[NoteSection]:
    """All sections, a note at a time: one of each note before the second of any.

    Notes and the sections within a note are shuffled by the seed.
    """
    notes: dict[tuple[str, str], list[NoteSection]] = {}
    for section in every:
        notes.setdefault((section.vault, section.rel_path), []).append(section)
    rng = generator(seed, "drafts")
    queues = []
    for name in sorted(notes):
        order = rng.permutation(len(notes[name])).tolist()
        queues.append([notes[name][index] for index in order])
    for round_ in range(max(map(len, queues), default=0)):
        for index in rng.permutation(len(queues)).tolist():
            if round_ < len(queues[index]):
                yield queues[index][round_]


def _drafts(
    every: Sequence[NoteSection],
    with_questions: Iterable[tuple[NoteSection, DraftQuestion | None]],
    count: int,
    *,
    asked_questions: Sequence[str] = (),
    ids: Sequence[str] = (),
    by: str = "template",
) -> Drafts:
    """Up to ``count`` cases from sections with their questions, which are taken as needed.

    ``asked_questions`` and ``ids``: those of the set that they are added to.
    """
    outcome = Drafts()
    asked, taken = AskedQuestions(asked_questions), set(ids)
    for section, question in with_questions:
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


MOST_SUPPORTS = 5

UNSHOWN = re.compile(
    r"\x1b\[[0-9;]*[A-Za-z]|[\x00-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]"
)
"""Commands to a terminal and marks of direction. A snippet keeps them: it is a quotation."""

_WORD = re.compile(r"[a-z0-9]+")

_SMALL_WORDS = (
    "a an the is are do does i what how to of in for if on and or it "
    "should know about happens used mean"
)
_EMPTY = frozenset(_SMALL_WORDS.split())
"""Words that say nothing in an id."""

Case = dict[str, Any]


def make_case(
    question: DraftQuestion,
    home: NoteSection,
    every: Sequence[NoteSection],
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
    where = [home, *(section for section in holders(snippet, every) if section != home)][
        :MOST_SUPPORTS
    ]
    supports = [
        {
            **section.place,
            "snippets": [snippet],
            "grade": 3,
        }
        for section in where
    ]
    text = UNSHOWN.sub("", question.text)
    return {
        "id": _new_id(text, taken),
        "question": text,
        "answerable": True,
        "category": question.category,
        "difficulty": "easy",
        "expected_key_facts": [flat(question.fact)],
        "reference_answer": snippet,
        "gold_supports": supports,
        "required_support_groups": [[index] for index in range(len(supports))],
        "recency_conflict_rule": None,
        "tags": [DRAFT],
        "vaults": [home.vault],
        "folders": [],
        "drafted_by": by,
    }


def _new_id(question: str, taken: set[str]) -> str:
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
