"""The gold supports of a case as values, and the needs of its answer that they meet. Pure.

A need is a set of supports any of which meets it; the answer needs all needs: "one of these AND one
of those". The set of cases holds the same the other way round, in `required_support_groups`: a way
is a set of supports that are enough together, and any way will do. Each form is all minimal choices
of one member of every part of the other (the minimal hitting sets), so that nothing is lost between
them: C. Berge, Hypergraphs (1989), chapter 2.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Final

from labeller import passages
from labeller.passages import Chunk, Span, evidence, exact_of, holds, quoted_spans
from ragmetrics.text.gold_quotes import fold_quote
from records.judged import heading, norm_path
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
    if parts is not None:
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
        many = f"more than {MOST_WAYS} ways to be met"
        raise ActionRefused(f"These needs have {many}; remove some marks.")
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
    noun, new = needs.noun, len(needs.parts) + 1
    if not 0 <= number <= new:
        raise ActionRefused(f"There is no {noun} {number}; '' starts {noun} {new}.")
    return new_part(needs) if number == new else tidied(replace(needs, open=number))


def new_part(needs: Needs) -> Needs:
    """Let marks join a new part. Refuses while another is empty."""
    if empty := empty_parts(needs):
        raise ActionRefused(f"{needs.noun.capitalize()} {empty[0]} has no passage yet.")
    return replace(needs, parts=(*needs.parts, ()), open=len(needs.parts) + 1)


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


def formula(needs: Needs, names: Sequence[str]) -> list[tuple[str, bool]]:
    """The needs of the answer, of supports with these names, in pieces; is each the open part?

    ``(1 or 4) AND (2)`` for needs, ``(1 and 2) or (3 and 4)`` for ways; supports that are not
    required come last.
    """
    inner, outer = (" and ", " or ") if needs.ways else (" or ", " AND ")
    pieces: list[tuple[str, bool]] = []
    parts = needs.parts if any(needs.parts) or len(needs.parts) > 1 else ()
    for number, part in enumerate(parts, 1):
        pieces += [(outer, False)] if pieces else []
        text = inner.join(names[index] for index in part) or "nothing yet"
        brackets = len(parts) > 1 or len(part) != 1
        pieces.append((f"({text})" if brackets else text, number == needs.open))
    required = set().union(*needs.parts)
    if extra := ", ".join(name for i, name in enumerate(names) if i not in required):
        pieces.append((f"{'; ' if pieces else ''}not required: {extra}", needs.open == 0))
    return pieces


def sentence(needs: Needs, names: Sequence[str]) -> str:
    """The same as a sentence."""
    if not names:
        return "No support is marked yet."
    if not any(needs.parts):
        return "No passage is required yet: all are marked as related."
    text = "".join(piece for piece, _ in formula(replace(needs, open=-1), names))
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


Identity = tuple[str, str, str]
USUAL_GRADE: Final = 2
"""The grade of a mark without one when a grade is stepped up or down."""


@dataclass(frozen=True)
class Support:
    """One gold support: the object as the set holds it (never changed), and its needs (or ways)."""

    data: Record
    parts: frozenset[int] = frozenset({1})
    """The numbers of the needs that it meets, or of the ways that take it; empty: not required."""

    @property
    def anchor(self) -> tuple[str, str]:
        """Normalised path and heading: where the passage stands."""
        return norm_path(str(self.data["rel_path"])), heading(self.data.get("heading_path"))

    @property
    def identity(self) -> Identity:
        """Supports of one identity are the same: its anchor and, without a heading, its quote."""
        path, headings = self.anchor
        quotes = [] if headings else evidence(self.data)
        return path, headings, fold_quote(quotes[0]) if quotes else ""

    @property
    def auto(self) -> bool:
        """Was the quoted text chosen by the program?"""
        quote = self.data.get("quote")
        return isinstance(quote, dict) and bool(quote.get("auto"))

    def having(self, **fields: Any) -> Support:
        """A copy with `fields` set in place or appended; a value of None takes the field away."""
        data = {**self.data, **fields}
        set_ = {k: v for k, v in data.items() if v is not None or k not in fields}
        return replace(self, data=set_)


def read_supports(case: Record, needs: Needs | None = None) -> list[Support]:
    """The supports of a case with the needs that each meets: those given, else as the set says."""
    supports = case.get("gold_supports") or []
    parts: list[set[int]] = [set() for _ in supports]
    for number, members in enumerate((needs or needs_of(case)).parts, 1):
        for index in members:
            parts[index].add(number)
    return [Support(data, frozenset(own)) for data, own in zip(supports, parts, strict=True)]


def needs_from(supports: Sequence[Support], needs: Needs) -> Needs:
    """`needs` with the parts that the supports say; parts that none is in are empty."""
    numbers = set().union(*(support.parts for support in supports))
    parts = tuple(
        tuple(i for i, support in enumerate(supports) if number in support.parts)
        for number in range(1, max(numbers | {len(needs.parts), 1}) + 1)
    )
    return replace(needs, parts=parts)


def write_supports(case: Record, supports: Sequence[Support], needs: Needs) -> Record:
    """A copy of `case` with `supports`; every other field, and the order, stay."""
    out = dict(case)
    if supports or "gold_supports" in out:
        out["gold_supports"] = [support.data for support in supports]
    return with_groups(out, needs_from(supports, needs))


def merged(supports: Iterable[Support]) -> list[Support]:
    """`supports` with those of one identity made one: snippets and needs joined, in place."""
    out: dict[Identity, Support] = {}
    for support in supports:
        first = out.setdefault(support.identity, support)
        if first is support:
            continue
        snippets = list(first.data.get("snippets") or ())
        snippets += [s for s in support.data.get("snippets") or () if s not in snippets]
        grades = [g for s in (first, support) if (g := s.data.get("grade")) is not None]
        joint = first.having(snippets=snippets) if snippets else first
        joint = joint.having(grade=max(grades)) if grades else joint
        out[support.identity] = replace(joint, parts=first.parts | support.parts)
    return list(out.values())


def from_chunk(
    chunk: Chunk, case: Record, parts: frozenset[int], pool: Sequence[Chunk] = ()
) -> Support:
    """A new support for a passage, with the sentences that carry the answer as its snippets.

    Without a heading its words alone say where it stands: when no sentence carries the answer, the
    longest one that no other passage of the ``pool`` has is its snippet.
    """
    data: Record = {"rel_path": chunk.rel_path, "heading_path": heading(chunk.heading_path)}
    if chunk.page:
        data["page"] = chunk.page
    return with_auto(Support(data, parts), chunk, case, pool)


def with_auto(support: Support, chunk: Chunk, case: Record, pool: Sequence[Chunk] = ()) -> Support:
    """`support` with the sentences of `chunk` that carry the answer added as snippets.

    When none does, the passage's first sentence stands for it: as the quote of a new support, as
    one more snippet of a support that quotes another passage.
    """
    text, had, titled = chunk.text, list(support.data.get("snippets") or ()), support.anchor[1]
    spans = passages.answer_spans(text, case) if titled else quoted_spans(chunk, case, pool)
    first = spans[0] if spans else passages.opening(text)
    if first is None:
        return support
    fields: Record = {}
    if not spans and (not titled or evidence(support.data)):
        spans = [first]
    new = [snippet for a, b in spans if (snippet := text[a:b]) not in had]
    if had or new:
        fields["snippets"] = had + new
    if not exact_of(support.data):
        fields["quote"] = passages.make_quote(text, *first, auto=True, cut=chunk.cut)
    return support.having(**fields)


def spans_in(support: Support, text: str) -> list[Span]:
    """The positions of the support's snippets in `text`."""
    spans = [passages.find_span(text, snippet) for snippet in support.data.get("snippets") or ()]
    return sorted(span for span in spans if span is not None)


def with_spans(support: Support, chunk: Chunk, spans: Iterable[Span]) -> Support:
    """`support` whose snippets in `chunk` are exactly `spans`; those of other chunks stay.

    The choice is a person's: the support is no longer `auto`.
    """
    text = chunk.text
    clean = [span for raw in spans if (span := passages.trimmed(text, raw)) is not None]
    clean = passages.joined(text, clean)
    elsewhere = [s for s in support.data.get("snippets") or () if not holds(text, s)]
    snippets = elsewhere + [text[start:end] for start, end in clean]
    quote: Record | None = support.data.get("quote")
    if (clean and not elsewhere) or (quote is not None and holds(text, exact_of(support.data))):
        # The quoted words stand in this chunk: they follow what was picked in it.
        quote = passages.make_quote(text, *clean[0], auto=False, cut=chunk.cut) if clean else None
    elif quote is not None:
        quote = {key: value for key, value in quote.items() if key != "auto"}
    written = "snippets" in support.data or bool(snippets)
    return support.having(snippets=snippets if written else None, quote=quote)


def without_chunk(support: Support, chunk: Chunk) -> Support | None:
    """`support` without its quotes from `chunk`; None when it quotes nothing else."""
    had = list(support.data.get("snippets") or ())
    rest = [snippet for snippet in had if not holds(chunk.text, snippet)]
    exact = exact_of(support.data)
    gone = holds(chunk.text, exact)
    if not rest and (gone or not exact):
        return None
    if rest == had and not gone:
        return None  # found by its heading, or by nearly these words: nothing to keep apart
    fields: Record = {"snippets": rest} if had else {}
    return support.having(**fields, **({"quote": None} if gone else {}))


def short_name(support: Support) -> str:
    """Path and heading, else the start of its quote, for a support that no chunk here shows."""
    path, headings = support.anchor
    if headings:
        return f"{path} > {headings}"
    quote = " ".join("".join(evidence(support.data)[:1]).split())
    quote = quote if len(quote) <= _SHOWN else f"{quote[: _SHOWN - 1].rstrip()}…"
    return f'{path} "{quote}"' if quote else path


_SHOWN: Final = 40
