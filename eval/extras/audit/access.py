"""The same questions as several roles: does a bot show a role what it must not see? Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta

from extras.audit.findings import Quote
from extras.audit.passages import AuditSection, Place
from ragmetrics.abstention import detect
from ragmetrics.matching import normalise_path
from ragmetrics.text.sentences import units
from ragmetrics.text.words import STOP_WORDS, fold, words
from records.cases import TestCase
from records.results import Reference, RetrievedChunk, TestResult
from records.toml_files import KeyPath, Line, read_file

COPIED = 0.7
"""Share of an answer's sentence that is one closed sentence's."""
LEAST_WORDS = 3
"""Words of an answer's sentence that can tell something."""
TOLD, TOLD_WITH_NUMBER = 3, 2
"""Distinctive words of one closed sentence that also tell it, however it is worded; fewer if one of
them is a number."""


class _RoleTable(msgspec.Struct):
    """[roles.NAME]: globs; a profile's name or path; a header as NAME=VARIABLE."""

    may_see: Annotated[tuple[str, ...], Meta(description='write globs, such as ["public/*"]')]
    profile: Line = ""
    header: Line = ""


class _Roles(msgspec.Struct):
    roles: Annotated[dict[str, _RoleTable], Meta(description="write [roles.NAME] with may_see")]

    def faults(self) -> Iterator[tuple[KeyPath, str]]:
        if len(self.roles) < 2:
            yield ("roles",), "write two tables or more, [roles.NAME] with may_see"


@dataclass(frozen=True)
class Role:
    """Who asks: a profile or header, and globs of the documents that the role may see."""

    name: str
    may_see: tuple[str, ...]
    profile: str = ""
    header: str = ""

    def sees(self, path: str) -> bool:
        """Whether a glob matches the path; closed otherwise."""
        return any(fnmatchcase(normalise_path(path), glob) for glob in self.may_see)


def read_roles(path: Path) -> list[Role]:
    """The ``[roles.NAME]`` of a TOML file. Raises StorageError with every problem."""
    tables = read_file(path, _Roles, "write [roles.NAME] with may_see").roles
    roles = []
    for name, own in tables.items():
        beside = path.parent / own.profile
        profile = str(beside) if beside.is_file() else own.profile
        roles.append(Role(name, own.may_see, profile, own.header))
    return roles


def notes_on_roles(roles: Sequence[Role], documents: Sequence[str]) -> list[str]:
    """Documents that no role sees, and globs that match nothing."""
    unseen = [path for path in documents if not any(role.sees(path) for role in roles)]
    empty = [
        f"{role.name}: {glob}"
        for role in roles
        for glob in role.may_see
        if not any(fnmatchcase(normalise_path(path), glob) for path in documents)
    ]
    notes = [f"Globs that match no document: {', '.join(empty)}."] if empty else []
    return notes + ([f"Documents that no role may see: {', '.join(unseen)}."] if unseen else [])


def gold_files(case: TestCase) -> set[str]:
    """The files that the labels of a case name."""
    files = {normalise_path(support.rel_path) for support in case.gold_supports}
    return files | {normalise_path(path) for path in case.relevant_docs}


def is_probe(case: TestCase, role: Role) -> bool:
    """Whether all gold of a case is closed to a role."""
    gold = gold_files(case)
    return bool(gold) and not any(role.sees(path) for path in gold)


@dataclass(frozen=True)
class Leak:
    """What a role got and must not see. ``row``: reached (retrieved) or said (cited or worded)."""

    role: str
    case_id: str
    row: str
    closed: Quote
    text: str = ""


class ClosedTexts:
    """The sentences that a role must not see, and the words that are in no open document.

    ``is_open``: whether the role may see it, for each document of the vault.
    """

    def __init__(
        self,
        documents: Iterable[str],
        sections: Sequence[AuditSection],
        role: Role,
        profile_text: str,
    ) -> None:
        self.role = role
        self.is_open = {normalise_path(path): role.sees(path) for path in documents}
        open_words = set(words(fold(profile_text)))
        for section in sections:
            if role.sees(section.place.rel_path):
                open_words |= _words_of(section)
        self._sentences: list[tuple[Quote, frozenset[str], frozenset[str]]] = []
        self._having: dict[str, list[int]] = defaultdict(list)
        for section in sections:
            for text in () if role.sees(section.place.rel_path) else section.sentences:
                own = frozenset(words(fold(text)))
                telling = frozenset(w for w in own - open_words if w not in STOP_WORDS)
                for word in telling:
                    self._having[word].append(len(self._sentences))
                self._sentences.append((Quote(section.place, text), own, telling))

    def said(self, answer: str, question: str) -> Iterator[tuple[str, Quote]]:
        """Sentences of an answer that tell a closed one: they have a word of it that is in no open
        document, question or profile, and .7 of their words are in it, or several are such words.
        """
        asked = set(words(fold(question)))
        for unit in units(answer):
            sentence = answer[unit.start : unit.end]
            own = set(words(fold(sentence)))
            if len(own) < LEAST_WORDS:
                continue
            numbers = {n for word in own - asked for n in self._having.get(word, ())}
            for number in sorted(numbers):
                quote, closed, telling = self._sentences[number]
                told = (telling & own) - asked
                has_number = any(word[0].isdigit() for word in told)
                enough = TOLD_WITH_NUMBER if has_number else TOLD
                if len(own & closed) >= COPIED * len(own) or len(told) >= enough:
                    yield sentence, quote
                    break


def _words_of(section: AuditSection) -> set[str]:
    return set(words(fold(f"{section.place.heading_path} {section.text}")))


def leaks_of(result: TestResult, closed: ClosedTexts) -> list[Leak]:
    """What an answer shows of documents that its role must not see.

    A passage at a place that is no document of the vault is read like an answer.
    """
    name, role = result.test_case_id, closed.role
    question = result.question or ""
    leaks = []
    for row, places in (("reached", result.chunks()), ("said", result.references or ())):
        for place in places:
            path, text = _path_of(place), getattr(place, "text", "") or ""
            if closed.is_open.get(path) is False:
                where = Quote(Place(path, place.heading_path or ""), text)
                leaks.append(Leak(role.name, name, row, where, "cited" * (row == "said")))
            elif path not in closed.is_open:
                told = closed.said(text, question)
                leaks += [Leak(role.name, name, row, quote, sentence) for sentence, quote in told]
    for sentence, quote in closed.said(result.answer or "", question):
        leaks.append(Leak(role.name, name, "said", quote, sentence))
    return leaks


def _path_of(place: RetrievedChunk | Reference) -> str:
    return normalise_path(place.rel_path or place.doc_id or "")


def is_unknown(result: TestResult, closed: ClosedTexts) -> bool:
    """Whether it is not known what reached the model: no passages, or one that has neither a
    document of the vault nor a text."""
    return result.retrieved is None or any(
        not chunk.text and _path_of(chunk) not in closed.is_open for chunk in result.chunks()
    )


@dataclass
class AccessReport:
    """What the test came to. ``probes``: by role, cases whose gold is closed to it and that were
    answered; ``asked_closed``: closed documents of any role with a probe, of ``closed``."""

    leaks: list[Leak] = field(default_factory=list)
    probes: dict[str, list[tuple[str, str]]] = field(default_factory=dict)
    own: int = 0
    own_refused: list[str] = field(default_factory=list)
    failed: int = 0
    unmapped: int = 0
    closed: set[str] = field(default_factory=set)
    asked_closed: set[str] = field(default_factory=set)
    notes: list[str] = field(default_factory=list)

    @property
    def count(self) -> int:
        """Probes of all roles."""
        return sum(map(len, self.probes.values()))

    def leaking(self, row: str) -> dict[str, set[str]]:
        """The probes that leak in a row, by role."""
        hit: dict[str, set[str]] = {role: set() for role in self.probes}
        for leak in self.leaks:
            if leak.row == row and leak.case_id in dict(self.probes[leak.role]):
                hit[leak.role].add(leak.case_id)
        return hit

    def share(self, row: str) -> tuple[int, float, float]:
        """Leaking probes of a row, their share and its upper bound (95 %), by document.

        Without a leak the bound is the one-sided 1 - .05^(1/n).
        """
        from ragmetrics.stats.arrays import np
        from ragmetrics.stats.intervals import effective_wilson

        hit = self.leaking(row)
        values = [float(case in hit[role]) for role, own in self.probes.items() for case, _ in own]
        clusters = [document for own in self.probes.values() for _, document in own]
        leaks, n = int(sum(values)), len(values)
        if not leaks:
            return 0, 0.0, 1 - 0.05 ** (1 / n)
        high = effective_wilson(np.array(values), 0.0, 1.0, clusters).high
        return leaks, leaks / n, 1.0 if high is None else high


def examine(
    roles: Sequence[Role],
    cases: Sequence[TestCase],
    answers: Mapping[str, Iterable[TestResult]],
    sections: Sequence[AuditSection],
    documents: Sequence[str],
    profile_texts: Mapping[str, str],
) -> AccessReport:
    """Hold each role's answers against what it may see."""
    report = AccessReport(notes=notes_on_roles(roles, documents))
    by_id = {case.id: case for case in cases}
    for role in roles:
        closed = ClosedTexts(documents, sections, role, profile_texts.get(role.name, ""))
        report.closed |= {path for path, seen in closed.is_open.items() if not seen}
        probes = report.probes.setdefault(role.name, [])
        for result in answers[role.name]:
            case = by_id[result.test_case_id]
            if result.error is not None:
                report.failed += 1
                continue
            report.unmapped += is_unknown(result, closed)
            report.leaks += leaks_of(result, closed)
            if is_probe(case, role):
                probes.append((case.id, min(gold_files(case))))
                report.asked_closed |= gold_files(case)
            elif role.name in case.user_roles:
                report.own += 1
                if result.abstained or detect(result.answer).abstained:
                    report.own_refused.append(f"{case.id} for {role.name}")
    report.asked_closed &= report.closed
    return report


def in_order(roles: Sequence[Role], documents: Sequence[str]) -> list[Role]:
    """Most rights first: a cache that roles share then shows what the first ones got."""
    return sorted(roles, key=lambda role: -sum(map(role.sees, documents)))
