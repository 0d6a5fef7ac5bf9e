"""The gold supports of a case, as values that can be changed and written back.

Each knows the needs that it meets, by their numbers; what those mean together is in `needs.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from labeller.needs import Needs, needs_of, with_groups
from labeller.passages import (
    Chunk,
    Span,
    answer_spans,
    evidence,
    exact_of,
    find_span,
    holds,
    joined,
    make_quote,
    opening,
    quoted_spans,
    trimmed,
)
from ragmetrics.text.gold_quotes import fold_quote
from records.judged import heading, norm_path

Record = dict[str, Any]
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
        return replace(
            self, data={k: v for k, v in data.items() if v is not None or k not in fields}
        )


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
        first = out.get(support.identity)
        if first is None:
            out[support.identity] = support
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
    text, had = chunk.text, list(support.data.get("snippets") or ())
    if support.anchor[1]:
        spans = answer_spans(text, case)
        first = spans[0] if spans else opening(text)
    else:
        spans = quoted_spans(chunk, case, pool)
        first = spans[0] if spans else opening(text)
        spans = spans or ([first] if first else [])
    if first is None:
        return support
    fields: Record = {}
    if not spans and evidence(support.data):
        spans = [first]
    new = [snippet for a, b in spans if (snippet := text[a:b]) not in had]
    if had or new:
        fields["snippets"] = had + new
    if not exact_of(support.data):
        fields["quote"] = make_quote(text, *first, auto=True, cut=chunk.cut)
    return support.having(**fields)


def spans_in(support: Support, text: str) -> list[Span]:
    """The positions of the support's snippets in `text`."""
    spans = [find_span(text, snippet) for snippet in support.data.get("snippets") or ()]
    return sorted(span for span in spans if span is not None)


def with_spans(support: Support, chunk: Chunk, spans: Iterable[Span]) -> Support:
    """`support` whose snippets in `chunk` are exactly `spans`; those of other chunks stay.

    The choice is a person's: the support is no longer `auto`.
    """
    text = chunk.text
    clean = [span for raw in spans if (span := trimmed(text, raw)) is not None]
    clean = joined(text, clean)
    elsewhere = [s for s in support.data.get("snippets") or () if not holds(text, s)]
    snippets = elsewhere + [text[start:end] for start, end in clean]
    quote: Record | None = support.data.get("quote")
    if clean and not elsewhere:
        quote = make_quote(text, *clean[0], auto=False, cut=chunk.cut)
    elif quote is not None and holds(text, exact_of(support.data)):
        # The quoted words stand in this chunk: they follow what was picked in it.
        quote = make_quote(text, *clean[0], auto=False, cut=chunk.cut) if clean else None
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
    """Path and heading on one line, for a support that no chunk on screen shows."""
    path, headings = support.anchor
    if headings:
        return f"{path} > {headings}"
    quotes = evidence(support.data)
    return f'{path} "{_shortened(quotes[0])}"' if quotes else path


_SHOWN: Final = 40


def _shortened(text: str) -> str:
    """The beginning of a text on one line."""
    line = " ".join(text.split())
    return line if len(line) <= _SHOWN else f"{line[: _SHOWN - 1].rstrip()}…"
