"""The needs of an answer, as people think of them: "one of these AND one of those". Pure.

A need is a set of supports any of which meets it; the answer needs all needs. The set of cases
holds the same the other way round, in `required_support_groups`: a way is a set of supports that
are enough together, and any way will do. Each form is all minimal choices of one member of every
part of the other (the minimal hitting sets), so that nothing is lost between them: C. Berge,
Hypergraphs (1989), chapter 2.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Final

from terminal.actions import ActionRefused

Record = dict[str, Any]
Parts = tuple[tuple[int, ...], ...]
"""Sets of support indices, each in ascending order."""

MOST_WAYS: Final = 64
"""Ways that a case may have; more are a slip of the keys and would fill the set."""

_MOST_BETWEEN: Final = 4096


@dataclass(frozen=True)
class Needs:
    """The needs of a case, or its ways, by support index; and which of them marks join.

    ``open`` counts from 1; 0 stands for supports that are related and not required. The open part
    alone may be empty.
    """

    parts: Parts = ((),)
    ways: bool = False
    open: int = 1

    @property
    def noun(self) -> str:
        """The word for a part."""
        return "way" if self.ways else "need"


NOTHING: Final = Needs()
"""The needs of a case without supports."""


def minimal(parts: Iterable[Iterable[int]]) -> Parts:
    """The parts that contain no other one, each once, by their smallest index."""
    sets = sorted({frozenset(part) for part in parts}, key=lambda part: (len(part), sorted(part)))
    out: list[frozenset[int]] = []
    for part in sets:
        if not any(other <= part for other in out):
            out.append(part)
    return tuple(sorted(tuple(sorted(part)) for part in out))


@lru_cache(maxsize=512)
def choices(parts: Parts) -> Parts | None:
    """All minimal choices of one member of every part; None when there are far too many.

    Berge's algorithm: the choices for the first parts, each with every member of the next part,
    without those that contain another. Of no parts there is one choice, the empty one.
    """
    found: Parts = ((),)
    for part in minimal(parts):
        if len(found) * len(part) > _MOST_BETWEEN:
            return None
        members = set(part)
        met = [choice for choice in found if members & set(choice)]
        more = [(*choice, i) for choice in found if not members & set(choice) for i in part]
        found = minimal([*met, *more])
    return found


@lru_cache(maxsize=512)
def _read(groups: Parts) -> Needs:
    ways = minimal(groups)
    parts = choices(ways)
    if parts is None:
        return Needs(ways, ways=True)
    apart = sum(map(len, parts)) == len(set().union(*parts))
    if apart or len(parts) <= len(ways):
        return Needs(parts)
    return Needs(ways, ways=True)


def needs_of(case: Record) -> Needs:
    """The needs of a case as in the set; its ways where these are fewer and easier to read.

    Without groups every support is a need of its own.
    """
    groups = case.get("required_support_groups")
    if groups:
        return _read(tuple(tuple(sorted(set(group))) for group in groups))
    count = len(case.get("gold_supports") or ())
    return Needs(tuple((index,) for index in range(count))) if count else NOTHING


def ways_of(needs: Needs) -> Parts:
    """The minimal ways to meet all needs that are not empty. Refuses more than the set may hold."""
    parts = tuple(part for part in needs.parts if part)
    ways = minimal(parts) if needs.ways else choices(parts) if parts else ()
    if ways is None or len(ways) > MOST_WAYS:
        raise ActionRefused(
            f"These needs have more than {MOST_WAYS} ways to be met; remove some marks."
        )
    return ways


def with_groups(case: Record, needs: Needs) -> Record:
    """A copy of the case whose groups express `needs`, for its supports.

    One way that takes every support says no more than the plain list, and is written only where
    the case had groups before. Groups that say the same already stay as they are.
    """
    ways = ways_of(needs)
    had = case.get("required_support_groups")
    if had and ways and minimal(had) == ways:
        return case
    everything = ways == (tuple(range(len(case.get("gold_supports") or ()))),)
    if ways and (not everything or had):
        return {**case, "required_support_groups": [list(way) for way in ways]}
    return {k: v for k, v in case.items() if k != "required_support_groups" or not had}


def turned(needs: Needs) -> Needs:
    """The needs as ways, or the ways as needs. Refuses when there would be too many."""
    ways = ways_of(needs)
    parts = choices(ways) if needs.ways else ways
    if parts is None:
        raise ActionRefused("These ways cannot be shown as needs: there would be thousands.")
    return Needs(parts or ((),), not needs.ways)


def tidied(needs: Needs) -> Needs:
    """Without parts that are empty, but for the open one."""
    numbers = [n for n, part in enumerate(needs.parts, 1) if part or n == needs.open]
    if not numbers:
        return replace(needs, parts=((),), open=min(1, needs.open))
    position = numbers.index(needs.open) + 1 if needs.open else 0
    return replace(needs, parts=tuple(needs.parts[n - 1] for n in numbers), open=position)


def opened(needs: Needs, number: int) -> Needs:
    """Let marks join a part; 0 is "related", the number after the last one a new part."""
    if not 0 <= number <= len(needs.parts) + 1:
        raise ActionRefused(
            f"There is no {needs.noun} {number}; '' starts {needs.noun} {len(needs.parts) + 1}."
        )
    if number == len(needs.parts) + 1:
        return new_part(needs)
    return tidied(replace(needs, open=number))


def new_part(needs: Needs) -> Needs:
    """Let marks join a new part. Refuses while another is empty."""
    for number, part in enumerate(needs.parts, 1):
        if not part:
            raise ActionRefused(f"{needs.noun.capitalize()} {number} has no passage yet.")
    return replace(needs, parts=(*needs.parts, ()), open=len(needs.parts) + 1)


def related(needs: Needs, count: int) -> list[int]:
    """The supports, of `count`, that are in no part."""
    required = set().union(*needs.parts)
    return [index for index in range(count) if index not in required]


def always_met(needs: Needs) -> list[tuple[int, int]]:
    """Needs that another one settles, each with the number of that other one."""
    pairs = []
    for number, part in enumerate(needs.parts, 1):
        for other, smaller in enumerate(needs.parts, 1):
            inside = set(smaller) < set(part) or (smaller == part and other < number)
            if part and smaller and inside:
                pairs.append((number, other))
                break
    return pairs


Namer = Callable[[int], str]
"""The name of a support, by its index."""


def formula(needs: Needs, count: int, name: Namer) -> list[tuple[str, bool]]:
    """The needs of the answer, in pieces; each with whether it is the open part.

    ``(1 or 4) AND (2)`` for needs, ``(1 and 2) or (3 and 4)`` for ways; supports that are not
    required come last.
    """
    inner, outer = (" and ", " or ") if needs.ways else (" or ", " AND ")
    pieces: list[tuple[str, bool]] = []
    parts = needs.parts if any(needs.parts) or len(needs.parts) > 1 else ()
    for number, part in enumerate(parts, 1):
        if pieces:
            pieces.append((outer, False))
        text = inner.join(map(name, part)) or "nothing yet"
        brackets = len(parts) > 1 or len(part) != 1
        pieces.append((f"({text})" if brackets else text, number == needs.open))
    extra = related(needs, count)
    if extra:
        text = f"not required: {', '.join(map(name, extra))}"
        pieces.append((f"{'; ' if pieces else ''}{text}", needs.open == 0))
    return pieces


def sentence(needs: Needs, count: int, name: Namer) -> str:
    """The same as a sentence."""
    if not count:
        return "No support is marked yet."
    if not any(needs.parts):
        return "No passage is required yet: all are marked as related."
    text = "".join(piece for piece, _ in formula(replace(needs, open=-1), count, name))
    if needs.ways:
        return f"Shown as ways: {text}. Marks join the open way."
    return f"The answer needs {text}."


def lost_groups(before: Record, after: Record) -> str:
    """Which groups of `before` went with an edit, because they contain another one; in words."""
    had = before.get("required_support_groups") or []
    if had == (after.get("required_support_groups") or []):
        return ""
    lost = len(had) - len(minimal(had))
    one = "1 way that contains another was"
    return one if lost == 1 else f"{lost} ways that contain another were" if lost else ""


def open_words(needs: Needs) -> str:
    """The part that new marks join, in words."""
    if needs.open == 0:
        return "marks are related passages, not required"
    enough = "all of these together are enough" if needs.ways else "one of these is enough"
    return f"marks join {needs.noun} {needs.open}: {enough}"


def membership(needs: Needs, parts: Sequence[int]) -> str:
    """The part that a marked passage counts for, in words: it "meets need 2"."""
    if not parts:
        return "is related, not required"
    return f"{'is in' if needs.ways else 'meets'} {needs.noun} {', '.join(map(str, parts))}"


def empty_parts(needs: Needs) -> Sequence[int]:
    """The numbers of parts without a passage."""
    return [number for number, part in enumerate(needs.parts, 1) if not part]
