"""Which sections questions are drafted from: every note gets its turn, in a seeded order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from drafting.cases import Case, make_case
from drafting.novelty import Asked
from drafting.sections import Section
from drafting.templates import Question
from ragmetrics.stats import generator


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
