"""The gold supports of a case and their groups, as values that can be changed and written back.

A group is a letter. The supports of one letter are needed together (AND), the letters are
alternatives (OR): that is what `required_support_groups` means in the set. A single letter that
holds every support says no more than the plain list of supports, and is written only where the
case had the field before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

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
    trimmed,
)
from records.judged import heading, norm_path
from terminal.tables import counted

Record = dict[str, Any]
USUAL_GRADE: Final = 2
"""What a mark without a grade counts as when a grade is stepped up or down."""


@dataclass(frozen=True)
class Support:
    """One gold support: the object as the set holds it (never changed), and its letters."""

    data: Record
    letters: frozenset[str] = frozenset("A")

    @property
    def anchor(self) -> tuple[str, str]:
        """Normalised path and heading: supports with the same anchor are the same."""
        return norm_path(str(self.data["rel_path"])), heading(self.data.get("heading_path"))

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


def letter_at(index: int) -> str:
    """The name of the n-th group, from 0: A to Z, then one character each without end."""
    return chr(ord("A") + index) if index < 26 else chr(0x4E00 + index)


def read_supports(case: Record) -> list[Support]:
    """The supports of a case with the letters of the groups that they are in."""
    groups = case.get("required_support_groups")
    supports = case.get("gold_supports") or []
    if not groups:
        return [Support(data) for data in supports]
    letters: list[set[str]] = [set() for _ in supports]
    for position, group in enumerate(groups):
        for index in group:
            letters[index].add(letter_at(position))
    return [Support(data, frozenset(ls)) for data, ls in zip(supports, letters, strict=True)]


def write_supports(case: Record, supports: Sequence[Support]) -> Record:
    """A copy of `case` that holds `supports`; every other field, and the order, stay."""
    out = dict(case)
    if supports or "gold_supports" in out:
        out["gold_supports"] = [support.data for support in supports]
    groups = groups_of(supports)
    plain = groups == [list(range(len(supports)))]
    if groups and (not plain or case.get("required_support_groups")):
        out["required_support_groups"] = groups
    elif out.get("required_support_groups"):
        del out["required_support_groups"]
    return out


def groups_of(supports: Sequence[Support]) -> list[list[int]]:
    """Index lists, a list a letter in the letters' order; none is empty."""
    used = sorted(set().union(*(support.letters for support in supports)))
    return [[i for i, s in enumerate(supports) if letter in s.letters] for letter in used]


def needs(supports: Sequence[Support], name: Callable[[int], str]) -> str:
    """What the case needs, in words: ``A (2 and 7) or B (.5)``; ``""`` without supports.

    `name` gives the word for a support by its index. Supports in no group are named last.
    """
    groups = groups_of(supports)
    parts = [
        f"{letter_at(position)} ({' and '.join(name(i) for i in group)})"
        for position, group in enumerate(groups)
    ]
    text = " or ".join(parts)
    extra = [name(i) for i, support in enumerate(supports) if not support.letters]
    if extra:
        text += f"{'; ' if text else ''}not required: {', '.join(extra)}"
    return text


def needs_sentence(supports: Sequence[Support], name: Callable[[int], str]) -> str:
    """The same as a sentence that says what will be written."""
    groups = groups_of(supports)
    if not supports:
        return "No support is marked yet."
    if not groups:
        return f"Of {counted(len(supports), 'support')} none is required."
    ways = [_all_of([name(i) for i in group]) for group in groups]
    return "The answer needs " + ", or else ".join(ways) + "."


def _all_of(names: list[str]) -> str:
    if len(names) == 1:
        return names[0]
    return f"{'both' if len(names) == 2 else 'all of'} {', '.join(names[:-1])} and {names[-1]}"


def merged(supports: Iterable[Support]) -> list[Support]:
    """`supports` with those of the same anchor made one: snippets and letters joined, in place."""
    out: dict[tuple[str, str], Support] = {}
    for support in supports:
        first = out.get(support.anchor)
        if first is None:
            out[support.anchor] = support
            continue
        snippets = list(first.data.get("snippets") or ())
        snippets += [s for s in support.data.get("snippets") or () if s not in snippets]
        grades = [g for s in (first, support) if (g := s.data.get("grade")) is not None]
        joint = first.having(snippets=snippets) if snippets else first
        joint = joint.having(grade=max(grades)) if grades else joint
        out[support.anchor] = replace(joint, letters=first.letters | support.letters)
    return list(out.values())


def from_chunk(chunk: Chunk, case: Record, letter: str) -> Support:
    """A new support for a passage, with the sentences that carry the answer as its snippets."""
    data: Record = {"rel_path": chunk.rel_path, "heading_path": heading(chunk.heading_path)}
    return with_auto(Support(data, frozenset(letter)), chunk, case)


def with_auto(support: Support, chunk: Chunk, case: Record) -> Support:
    """`support` with the sentences of `chunk` that carry the answer added as snippets.

    When none does, the passage's first sentence stands for it: as the quote of a new support, as
    one more snippet of a support that quotes another passage.
    """
    text, had = chunk.text, list(support.data.get("snippets") or ())
    spans = answer_spans(text, case)
    first = spans[0] if spans else opening(text)
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
    """Where the snippets of the support stand in `text`."""
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
    """`support` without what it quotes from `chunk`; None when it quotes nothing else."""
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
    return f"{path} > {headings}" if headings else path
