"""What questions and runs say about the documents: gaps, dead weight, documents that crowd."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import combinations
from pathlib import Path

from decisions.case_verdict import read_verdicts
from extras.audit.findings import Finding
from extras.audit.gold import sheet_of
from extras.audit.passages import AuditSection
from ragmetrics.abstention import detect
from ragmetrics.matching import heading_segments, normalise_path
from ragmetrics.text.words import content_words, fold, spelled
from records.cases import TestCase
from records.run import Run
from records.runs import scored_sections

HELD = 0.5
"""Weight of a question's words that its best section has, below which it is a gap."""
OFTEN = 0.1
"""Share of the questions in whose lists a document is retrieved often."""
LEAST_OFTEN = 3
MOST_SUBJECTS = 40
MOST_PAGED = 200
"""Passages by which the page numbers of a bot are read."""


@dataclass
class RunFacts:
    """What the runs show: questions refused or failing, and what was retrieved.

    ``together``: in how many answers two sections were retrieved at once; ``documents``: in how
    many answers a document was; ``paged``: path, page and text of passages with a page.
    """

    answers: int = 0
    unanswered: dict[str, str] = field(default_factory=dict)
    documents: Counter[str] = field(default_factory=Counter)
    together: Counter[frozenset[int]] = field(default_factory=Counter)
    paged: dict[tuple[str, int | str, str], None] = field(default_factory=dict)


def facts_of(folders: Sequence[Path], sections: Sequence[AuditSection]) -> RunFacts:
    """Read what the audit needs of some runs."""
    facts = RunFacts()
    numbers: dict[tuple[str, tuple[str, ...], int | None], int] = {}
    for section in sections:
        place = section.place
        key = (normalise_path(place.rel_path), heading_segments(place.heading_path), place.page)
        numbers.setdefault(key, section.number)
    for folder in folders:
        verdicts = read_verdicts(folder) if scored_sections(folder) else None
        for result in Run(folder, tolerant=True).iter_results():
            facts.answers += 1
            if result.error is None and (result.abstained or detect(result.answer).abstained):
                facts.unanswered[result.test_case_id] = "refused"
            elif verdicts is not None:
                own = verdicts.verdict(result.test_case_id)
                if own is not None and own.fails:
                    facts.unanswered.setdefault(result.test_case_id, "failing")
            seen = set()
            paths = set()
            for chunk in result.chunks():
                path, page = normalise_path(chunk.rel_path or ""), chunk.page
                paths.add(path)
                if isinstance(page, int | str) and chunk.text and len(facts.paged) < MOST_PAGED:
                    facts.paged[path, page, chunk.text] = None
                key = (path, heading_segments(chunk.heading_path or ""), sheet_of(page))
                seen |= {numbers[key]} if key in numbers else set()
            facts.documents.update(paths)
            facts.together.update(map(frozenset, combinations(seen, 2)))
    return facts


def gap_findings(
    cases: Sequence[TestCase], subjects: Subjects, facts: RunFacts
) -> Iterator[Finding]:
    """Questions that no section has the words of, then unanswered ones grouped by subject."""
    answerable = [case for case in cases if case.answerable is not False]
    for case in answerable:
        held, section, missing = subjects.best(case.question)
        if held < HELD and missing:
            lacks = (
                "no section has" if section is None else f"its best section, {section.place}, lacks"
            )
            why = f"{case.question!r}: {lacks} {', '.join(missing[:6])}"
            yield Finding("gap", why, (), (case.id,), 1 - held)
    yield from _unanswered(answerable, facts)


class Subjects:
    """Which section has most of a question's words, by their rarity."""

    def __init__(self, sections: Sequence[AuditSection]) -> None:
        self._sections = sections
        self.best = lru_cache(maxsize=100_000)(self._best)
        self._having: dict[str, list[int]] = defaultdict(list)
        for section in sections:
            for word in section.stems | set(content_words(fold(section.place.heading_path))):
                self._having[word].append(section.number)

    def _best(self, question: str) -> tuple[float, AuditSection | None, list[str]]:
        """The share of the words that the best section has, it, and the words that it lacks."""
        spelling = spelled(fold(question))
        count = len(self._sections)
        weight = {
            word: math.log(1 + count / (1 + len(self._having.get(word, ())))) for word in spelling
        }
        sums: Counter[int] = Counter()
        for word, own in weight.items():
            for number in self._having.get(word, ()):
                sums[number] += own  # type: ignore[assignment]
        total = sum(weight.values())
        if not total:
            return 1.0, None, []
        if not sums:
            return 0.0, None, list(spelling.values())
        number, held = min(sums.items(), key=lambda item: (-item[1], item[0]))
        own_numbers = {word for word in spelling if number in self._having.get(word, ())}
        missing = [shown for word, shown in spelling.items() if word not in own_numbers]
        return held / total, self._sections[number], missing


def _unanswered(cases: Sequence[TestCase], facts: RunFacts) -> Iterator[Finding]:
    """Groups of refused or failing questions that share a word; each question once."""
    open_cases = {
        case.id: {
            word: shown for word, shown in spelled(fold(case.question)).items() if word.isalpha()
        }
        for case in cases
        if case.id in facts.unanswered
    }
    spelling = {word: shown for words in open_cases.values() for word, shown in words.items()}
    for _ in range(MOST_SUBJECTS):
        counts = Counter(word for words in open_cases.values() for word in words)
        if not counts:
            return
        word, count = min(counts.items(), key=lambda item: (-item[1], item[0]))
        own = [name for name, words in open_cases.items() if word in words] if count > 1 else []
        if not own:
            return
        for name in own:
            del open_cases[name]
        refused = sum(facts.unanswered[name] == "refused" for name in own)
        why = f"{len(own)} questions about {spelling[word]!r}: {refused} refused"
        why += f", {len(own) - refused} failing" if refused < len(own) else ""
        yield Finding("gap", why, (), tuple(own), len(own))


def weight_findings(
    cases: Sequence[TestCase], documents: Sequence[str], subjects: Subjects, facts: RunFacts
) -> Iterator[Finding]:
    """Documents often retrieved and never gold, and those that no one needs."""
    gold = {normalise_path(s.rel_path) for case in cases for s in case.gold_supports}
    gold |= {normalise_path(path) for case in cases for path in case.relevant_docs}
    about = set()
    for case in cases:
        _, section, _ = subjects.best(case.question)
        about |= {section.place.rel_path} if section is not None else set()
    often = max(LEAST_OFTEN, OFTEN * facts.answers)
    for path in documents:
        count = facts.documents[normalise_path(path)]
        if normalise_path(path) in gold:
            continue
        if facts.answers and count >= often:
            why = f"{path}: retrieved in {count} of {facts.answers} answers, gold of no question"
            yield Finding("crowding", why, (), (), count)
        elif not count and path not in about:
            asked = "retrieved in no answer" if facts.answers else "no run was looked at"
            yield Finding("dead_weight", f"{path}: no question is about it; {asked}")
