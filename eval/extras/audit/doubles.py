"""Near doubles: paragraphs with nearly the same characters, in groups.

Two paragraphs are near doubles when their sets of character 5-grams overlap by .8 (Jaccard), or
when .9 of the shorter one's are in the longer one's, or when .82 of the longer one's words are in
the other in the same order (50 words of which nine were changed). Candidates share runs of 20
letters, of which every eighth is looked up: a text that is so near has whole runs of the other.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from extras.audit.findings import Finding, Quote
from extras.audit.passages import AuditSection, Paragraph, Place
from ragmetrics.text.words import fold

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Hashes = NDArray[np.uint64]

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
_PRIME = 0x9E3779B97F4A7C15


@dataclass(frozen=True, slots=True)
class Double:
    """Two paragraphs by number and how near they are: overlap of both, and of the shorter one."""

    first: int
    second: int
    jaccard: float
    contained: float


def squeezed(text: str) -> str:
    """The text as it is compared: folded, white space collapsed."""
    return " ".join(fold(text).split())


def near_doubles(texts: Sequence[str]) -> list[Double]:
    """All near doubles among distinct texts, by number."""
    import numpy as np

    @lru_cache(maxsize=20_000)
    def grams(number: int) -> Hashes:
        return np.unique(_hashes(texts[number], GRAM))

    result = []
    for first, second in _candidates(texts):
        ours, theirs = grams(first), grams(second)
        small, large = sorted((len(ours), len(theirs)))
        if not small or (small < JACCARD * large and small < GRAM):
            continue
        shared = len(np.intersect1d(ours, theirs, assume_unique=True))
        jaccard, contained = shared / (small + large - shared), shared / small
        if (
            jaccard >= JACCARD
            or contained >= CONTAINED
            or (jaccard >= POSSIBLE and _in_order(texts[first], texts[second]) >= IN_ORDER)
        ):
            result.append(Double(first, second, jaccard, contained))
    return result


def _in_order(text: str, other: str) -> float:
    """Share of the longer text's words that the other has in the same order, in [0, 1]."""
    from rapidfuzz.distance import LCSseq

    return LCSseq.normalized_similarity(text.split(), other.split())


def _hashes(text: str, size: int) -> Hashes:
    """A hash of each run of so many characters (a polynomial over 64 bits)."""
    import numpy as np

    signs = np.frombuffer(text.encode("utf-32-le"), dtype=np.uint32).astype(np.uint64)
    if len(signs) < size:
        return np.zeros(0, np.uint64)
    hashes = np.zeros(len(signs) - size + 1, np.uint64)
    with np.errstate(over="ignore"):
        for at in range(size):
            hashes = hashes * np.uint64(1_000_003) + signs[at : at + len(hashes)]
        hashes *= np.uint64(_PRIME)  # spreads them: the sample takes the upper bits
    return hashes


def _candidates(texts: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Pairs that share a sampled run."""
    import numpy as np

    runs: list[Hashes] = []
    owners: list[NDArray[Any]] = []
    for number, text in enumerate(texts):
        hashes = np.unique(_hashes(text, RUN))
        hashes = hashes[(hashes >> np.uint64(40)) % np.uint64(SAMPLE) == 0]
        runs.append(hashes)
        owners.append(np.full(len(hashes), number, np.int64))
    if not runs:
        return
    every, owner = np.concatenate(runs), np.concatenate(owners)
    order = np.argsort(every, kind="stable")
    every, owner = every[order], owner[order]
    counts = np.unique(every, return_counts=True)[1]
    crowded = np.repeat(counts > CROWD, counts)  # of these, neighbours alone
    pairs = []
    for step in range(1, CROWD):
        same = every[step:] == every[:-step]
        if not same.any():
            break
        if step > 1:
            same &= ~crowded[:-step]
        pairs.append(owner[:-step][same] * len(texts) + owner[step:][same])
    if not pairs:
        return
    keys, shared = np.unique(np.concatenate(pairs), return_counts=True)
    first, second = np.divmod(keys, len(texts))
    sizes = np.array([len(own) for own in runs])
    near = shared >= LEAST_SHARED * np.minimum(sizes[first], sizes[second])
    yield from zip(first[near].tolist(), second[near].tolist(), strict=True)


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
    for double in near_doubles(texts):
        short, long = sorted((double.first, double.second), key=lambda number: len(texts[number]))
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
    numbers = sorted({paragraphs[number].section for number in members})[:CROWD]
    return {(a, b) for at, a in enumerate(numbers) for b in numbers[at + 1 :]}


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
        retrieved = max(
            (
                together.get(frozenset((a, b)), 0)
                for at, a in enumerate(numbers[:CROWD])
                for b in numbers[at + 1 : CROWD]
            ),
            default=0,
        )
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
