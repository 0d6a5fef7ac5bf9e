"""Near doubles: paragraphs with nearly the same characters, in groups.

Two paragraphs are near doubles when their sets of character 5-grams overlap by .8 (Jaccard), or
when .9 of the shorter one's are in the longer one's, or when .82 of the longer one's words are in
the other in the same order (50 words of which nine were changed). Candidates share runs of 20
letters, of which every eighth is looked up: a text that is so near has whole runs of the other.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations
from zlib import crc32

from extras.audit.findings import Finding, Quote
from extras.audit.passages import AuditSection, Paragraph, Place
from ragmetrics.text.words import fold

JACCARD, CONTAINED, IN_ORDER = 0.8, 0.9, 0.82
POSSIBLE = 0.5
"""Overlap from which the order of words is looked at."""
GRAM, RUN = 5, 20
SAMPLE = 8
"""One of so many runs is looked up."""
LEAST_SHARED = 0.12
"""Share of the shorter text's sampled runs that a near double has."""
CROWD = 48
"""Paragraphs that share a run from which each is compared with its neighbours alone."""
PART = 0.5
"""Share of a longer text under which one that lies in it is only a part: two parts of a text are no
doubles of each other."""


def squeezed(text: str) -> str:
    """The text as it is compared: folded, white space collapsed."""
    return " ".join(fold(text).split())


def near_doubles(texts: Sequence[str]) -> Iterator[tuple[int, int]]:
    """All pairs of near doubles among distinct texts, by number."""

    @lru_cache(maxsize=2000)
    def grams(number: int) -> frozenset[str]:
        text = texts[number]
        return frozenset(text[at : at + GRAM] for at in range(len(text) - GRAM + 1))

    for first, second in _candidates(texts):
        ours, theirs = grams(first), grams(second)
        shared = len(ours & theirs)
        jaccard = shared / (len(ours) + len(theirs) - shared)
        if (
            jaccard >= JACCARD
            or shared >= CONTAINED * min(len(ours), len(theirs))
            or (jaccard >= POSSIBLE and _in_order(texts[first], texts[second]) >= IN_ORDER)
        ):
            yield first, second


def _in_order(text: str, other: str) -> float:
    """Share of the longer text's words that the other has in the same order, in [0, 1]."""
    from rapidfuzz.distance import LCSseq

    return LCSseq.normalized_similarity(text.split(), other.split())


def _candidates(texts: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Pairs that share many of their sampled runs of letters."""
    having: dict[int, list[int]] = defaultdict(list)
    sampled = []
    for number, text in enumerate(texts):
        signs = text.encode("utf-16-le")  # two bytes a letter, so that no run begins within one
        ends = range(2 * RUN, len(signs) + 1, 2)
        runs = {run for end in ends if (run := crc32(signs[end - 2 * RUN : end])) % SAMPLE == 0}
        sampled.append(len(runs))
        for run in runs:
            having[run].append(number)
    shared: Counter[tuple[int, int]] = Counter()
    for owners in having.values():
        step = len(owners) if len(owners) <= CROWD else 2
        shared.update((a, b) for at, a in enumerate(owners) for b in owners[at + 1 : at + step])
    for (first, second), count in sorted(shared.items()):
        if count >= LEAST_SHARED * min(sampled[first], sampled[second]):
            yield first, second


@dataclass(frozen=True, slots=True)
class DoubleGroup:
    """Paragraphs that are near doubles of each other, ``identical`` or not, by number.

    ``parts``: some of them only lie within a longer one.
    """

    members: tuple[int, ...]
    identical: bool
    parts: bool = False


def groups_of(
    paragraphs: Sequence[Paragraph], sections: Sequence[AuditSection]
) -> tuple[list[DoubleGroup], set[tuple[int, int]]]:
    """Groups of near doubles, and the pairs of sections that have nearly the same paragraph.

    Texts that stand side by side, below the same heading wherever they stand, are parallel by
    design ("left justified", "right justified"): their sections are such a pair, they no group.
    """
    by_text: dict[str, list[int]] = defaultdict(list)
    for number, paragraph in enumerate(paragraphs):
        by_text[squeezed(paragraph.text)].append(number)
    texts, owners = list(by_text), list(by_text.values())
    above = list(range(len(texts)))

    def root(number: int) -> int:
        while above[number] != number:
            above[number] = above[above[number]]
            number = above[number]
        return number

    def beside(number: int) -> set[Place]:
        places = [sections[paragraphs[owner].section].place for owner in owners[number]]
        return {Place(place.rel_path, place.above, place.page) for place in places}

    pairs = set()
    inside = []
    for pair in near_doubles(texts):
        short, long = sorted(pair, key=lambda number: len(texts[number]))
        if beside(short) == beside(long):
            pairs |= _pairs(paragraphs, owners[short] + owners[long])
        elif len(texts[short]) < PART * len(texts[long]):
            inside.append((short, long))
        else:
            above[root(long)] = root(short)
    members: dict[int, list[int]] = defaultdict(list)
    for number in range(len(texts)):
        members[root(number)].append(number)
    longer: dict[int, set[int]] = defaultdict(set)
    for short, long in inside:
        longer[root(short)].add(long)
    result = []
    for first, group in members.items():
        every = {*group, *longer[first]}
        numbers = tuple(sorted(n for text in every for n in owners[text]))
        if len(numbers) > 1:
            result.append(DoubleGroup(numbers, len(every) == 1, bool(longer[first])))
    return result, pairs.union(*(_pairs(paragraphs, group.members) for group in result))


def _pairs(paragraphs: Sequence[Paragraph], members: Sequence[int]) -> set[tuple[int, int]]:
    numbers = sorted({paragraphs[number].section for number in members})
    return set(combinations(numbers[:CROWD], 2))


def double_findings(
    groups: Sequence[DoubleGroup],
    paragraphs: Sequence[Paragraph],
    sections: Sequence[AuditSection],
    together: Mapping[frozenset[int], int],
) -> Iterator[Finding]:
    """A finding for each set of sections that share near doubles.

    ``together``: in how many answers two sections were retrieved at once.
    """
    shared: dict[tuple[int, ...], list[DoubleGroup]] = defaultdict(list)
    for group in groups:
        shared[tuple(sorted({paragraphs[n].section for n in group.members}))].append(group)
    for numbers, own in shared.items():
        identical = all(group.identical for group in own)
        first = own[0]
        answers = (together.get(frozenset(both), 0) for both in combinations(numbers[:CROWD], 2))
        retrieved = max(answers, default=0)
        what = "identical" if identical else "nearly the same"
        count = f"{len(own)} paragraphs" if len(own) > 1 else "a paragraph"
        what += ", alone or within a longer one," if any(group.parts for group in own) else ""
        where = f"in {len(numbers)} sections" if len(numbers) > 1 else "twice in one section"
        why = f"{count} {what} {where}"
        if retrieved:
            why += f"; retrieved together in {retrieved} answers"
        shown = [n for at, n in enumerate(first.members) if not identical or at < len(numbers)]
        quotes = tuple(
            Quote(
                sections[paragraphs[number].section].place,
                "" if identical and at else paragraphs[number].text,
            )
            for at, number in enumerate(shown)
        )
        yield Finding("near_double", why, quotes, (), retrieved + len(own) / 1000 - identical)
