"""Stale passages: near doubles with an older date or version, and deadlines that are over."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date
from itertools import combinations

from extras.audit.dates import Marker, deadline_of, markers_of
from extras.audit.findings import Finding, Quote
from extras.audit.passages import AuditSection, Place

OVERLAP, OF_LARGER = 0.5, 0.35
"""Share of the words of the smaller and of the larger section that two versions of one text have
in common, in two files."""
LEAST_STEMS = 10
"""Distinct words of a section from which its overlap says something."""
SAME_FRAME = 0.5
"""Share of the words around the dates of two sentences that both have."""
COMMON = 80
"""Sections that have a word from which it no longer links them."""


def stale_findings(
    sections: Sequence[AuditSection], double_pairs: Iterable[tuple[int, int]], today: date
) -> Iterator[Finding]:
    """Passages that are older than others, each with the newest, then past deadlines."""
    marked = {
        section.number: markers
        for section in sections
        if (markers := [m for text in section.sentences for m in markers_of(text)])
    }
    pairs = {pair for pair in double_pairs if pair[0] in marked and pair[1] in marked}
    newest: dict[tuple[Place, str], tuple[Marker, Marker, Place]] = {}
    for first, second in sorted(pairs | _near_sections(sections, marked)):
        older = _older(marked[first], marked[second])
        if older is None:
            continue
        old, new = older
        places = [sections[number].place for number in (first, second)]
        old_place, new_place = places if old in marked[first] else reversed(places)
        known = newest.get((old_place, old.sentence))
        if known is None or known[1].value < new.value:
            newest[old_place, old.sentence] = old, new, new_place
    for (old_place, text), (old, new, new_place) in newest.items():
        quotes = (Quote(old_place, text), Quote(new_place, new.sentence))
        yield Finding("stale", f"{old.text} here, {new.text} in {new_place}", quotes)
    stale = {text for _, text in newest}
    for section in sections:
        for sentence in section.sentences:
            over = deadline_of(sentence, today)
            if over is not None and sentence not in stale:
                why = f"says that it holds until {over[1]}, which is over"
                yield Finding("expired", why, (Quote(section.place, sentence),))


def _near_sections(
    sections: Sequence[AuditSection], marked: Mapping[int, Sequence[Marker]]
) -> set[tuple[int, int]]:
    """Pairs of dated sections with half of their words in common."""
    having: dict[str, list[int]] = defaultdict(list)
    for number in marked:
        if len(sections[number].stems) >= LEAST_STEMS:
            for stem in sections[number].stems:
                having[stem].append(number)
    shared: set[tuple[int, int]] = set()
    for numbers in having.values():
        if 1 < len(numbers) <= COMMON:
            shared.update(combinations(numbers, 2))
    near = set()
    for pair in shared:
        ours, theirs = (sections[number] for number in pair)
        smaller = min(len(ours.stems), len(theirs.stems))
        if (
            ours.place.rel_path != theirs.place.rel_path
            and len(ours.stems & theirs.stems) >= OVERLAP * smaller
            and _overlap(ours.stems, theirs.stems) >= OF_LARGER
        ):
            near.add(pair)
    return near


def _overlap(ours: frozenset[str], theirs: frozenset[str]) -> float:
    """Share of the larger set that is in the other, in [0, 1]; 1 for two empty ones."""
    return len(ours & theirs) / max(len(ours), len(theirs), 1) if ours or theirs else 1.0


def _older(ours: Sequence[Marker], theirs: Sequence[Marker]) -> tuple[Marker, Marker] | None:
    """The older and the newer of two markers in sentences that say the same otherwise.

    Sentences that both sections have are no versions of each other.
    """
    both = {m.sentence for m in ours} & {m.sentence for m in theirs}
    pairs = [
        (old, new)
        for one in ours
        for other in theirs
        if one.kind == other.kind
        and one.value != other.value
        and one.sentence not in both
        and other.sentence not in both
        and _overlap(one.frame, other.frame) >= SAME_FRAME
        for old, new in [sorted((one, other), key=lambda marker: marker.value)]
    ]
    return max(pairs, key=lambda pair: _overlap(pair[0].frame, pair[1].frame), default=None)
