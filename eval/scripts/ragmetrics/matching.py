"""Matches retrieved chunks with gold supports, in four ways; pure, no metric here.

Every mode gives the same thing: for each gold support the rank of the first chunk that matches it,
and the ranks of all chunks that match any. Metrics need no more than that (``retrieval.py``).

Ranks count from 1. ``None`` stands for "never matched".
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Literal, NamedTuple

from ragmetrics.text.gold_quotes import holds_quote, holds_run

Mode = Literal["chunk", "anchor", "document", "doc", "page", "text"]
DEFAULT_GRADE = 3.0
MIN_SIMILARITY = 0.8
_SLACK = 1e-9
"""What a similarity may fall short by and still be the least one that is asked for: 28 right of 35
characters are 0.8, whatever the division makes of it. Real steps are 1 / length, far wider."""

SEPARATOR = " > "
"""The separator between the segments of a heading path."""

_SPACE = re.compile(r"\s+")
_ENDS_CUT = re.compile(r"(?:…|\.\.\.)\s*\Z")


class Anchor(NamedTuple):
    """A place in the notes: a file, and a heading by its segments from the top.

    ``page``: of a label without a heading, "" for none."""

    path: str
    heading: tuple[str, ...]
    page: str = ""


class Matches(NamedTuple):
    """``first[i]``: rank of the first chunk that matches support i; ``hits``: ranks of all.

    ``undecided``: ranks of chunks that match nothing as far as their text is there. ``open``: a
    support that nothing matches may stand in the missing part of such a text. ``by_heading``: ranks
    of hits that lack the text in which the quote would be looked for (``by_heading_only``).
    """

    first: list[int | None]
    hits: list[int]
    undecided: Sequence[int] = ()
    open: bool = False
    by_heading: Sequence[int] = ()


def same_form(name: str) -> str:
    """NFC: the one spelling under which ids of documents, often paths, are compared."""
    return unicodedata.normalize("NFC", name)


@lru_cache(maxsize=65_536)
def normalise_path(path: str) -> str:
    """NFC, forward slashes, no leading ``./``: one spelling of a note's path."""
    path = unicodedata.normalize("NFC", path).replace("\\", "/")
    while path.startswith("./"):
        path = path[2:]
    return path


@lru_cache(maxsize=65_536)
def heading_segments(heading_path: str) -> tuple[str, ...]:
    """Segments of a heading path: split at `` > ``, ``#`` and surplus space dropped, case kept.

    >>> heading_segments("# Guide >  ## Set  up ")
    ('Guide', 'Set up')
    """
    text = _SPACE.sub(" ", unicodedata.normalize("NFC", heading_path)).strip()
    parts = (part.strip().lstrip("#").strip() for part in f" {text} ".split(SEPARATOR))
    return tuple(part for part in parts if part)


def anchor(rel_path: str, heading_path: str | None, page: object = None) -> Anchor:
    """The normalised place of a chunk, a gold support or a reference; ``page``: of a support."""
    heading = heading_segments(heading_path or "")
    return Anchor(normalise_path(rel_path), heading, "" if heading else page_label(page))


def page_label(page: object) -> str:
    """A page as text, "" for none."""
    return str(page).strip() if isinstance(page, str | int) else ""


def match_ids(gold: Mapping[Any, int], ids: Sequence[Hashable], supports: int) -> Matches:
    """Modes ``chunk`` and ``doc``: equality of ids. ``gold`` maps an id to its support's index."""
    hits = [rank for rank, item_id in enumerate(ids, 1) if item_id in gold]
    first: list[int | None] = [None] * supports
    for rank in reversed(hits):
        first[gold[ids[rank - 1]]] = rank
    return Matches(first, hits)


Kind = Literal["heading", "quote", "page", "document"]


def kind_of(gold: Anchor, quotes: Sequence[str]) -> Kind:
    """Return how a gold support gives its place: by heading, words, page, or as a file."""
    if gold.heading:
        return "heading"
    return "quote" if quotes else "page" if gold.page else "document"


def ends_cut(text: str | None) -> bool:
    """Return whether a text ends in ``…`` or ``...``, which says that more of it follows."""
    return bool(text) and _ENDS_CUT.search(str(text)[-20:]) is not None


class Passage(NamedTuple):
    """A chunk's place and its text, None when missing; ``cut``: the text is only its beginning.

    ``page``: as the bot reports it, "" for none."""

    anchor: Anchor
    text: str | None = None
    cut: bool = False
    page: str = ""


def is_within(heading: tuple[str, ...], section: tuple[str, ...]) -> bool:
    """Return whether a heading is that of a section or of a part of it, segment by segment."""
    return heading[: len(section)] == section


def by_heading_only(gold: Anchor, quotes: Sequence[str], passage: Passage) -> bool:
    """Return whether a passage below a quoted section has no text in which to look for a quote.

    Its heading alone then decides. A text that was cut, though nothing of it is left, is another
    matter: it can be asked for.
    """
    if passage.cut or not quotes or not gold.heading or (passage.text or "").strip():
        return False
    heading = passage.anchor.heading
    return heading != gold.heading and is_within(heading, gold.heading)


def matches_place(
    gold: Anchor,
    quotes: Sequence[str],
    passage: Passage,
    min_similarity: float = MIN_SIMILARITY,
) -> bool | None:
    """Return whether a passage is the one that a gold support points to. None when only its text
    could decide and that is cut or missing. The one answer for scores, screens and checks.

    Always in the same file. A *heading*: the passage has the same one. Or its heading is deeper
    (gold's is a segment prefix; ``Intro`` is none of ``Introduction``) and it contains words of a
    quote in a row (``holds_run``); without quotes, or without any text, the heading is enough. Or
    it is coarser (its heading is a proper prefix of gold's; an empty one is) and contains a whole
    quote, or words of it in a row where its text is cut. No heading and *quotes*: the passage holds
    one of them (``holds_quote``). Neither: any passage of the *page*, or without one of the
    *document*. A text that ends in an
    ellipsis is a cut one.
    """
    if gold.path != passage.anchor.path:
        return False
    kind, heading, text = kind_of(gold, quotes), passage.anchor.heading, passage.text or ""
    if kind == "document":
        return True
    if kind == "page":
        return passage.page == gold.page if passage.page else None
    cut = passage.cut or ends_cut(text)
    if kind == "quote":
        if text and any(holds_quote(text, quote) for quote in quotes):
            return True
        return None if cut or not text.strip() else False
    if is_within(heading, gold.heading):
        if heading == gold.heading or not quotes or by_heading_only(gold, quotes, passage):
            return True
        return _holds_run(passage, quotes) or (None if cut else False)
    if not text or not is_within(gold.heading, heading):
        return False
    if cut and _holds_run(passage, quotes):
        return True
    folded = fold(text)
    return any(_holds(folded, fold(quote), min_similarity) for quote in quotes)


def _holds_run(passage: Passage, quotes: Sequence[str]) -> bool:
    return any(holds_run(passage.text or "", quote, passage.anchor.heading) for quote in quotes)


def match_anchors(
    gold: Sequence[Anchor],
    passages: Sequence[Passage | None],
    quotes: Sequence[Sequence[str]] = (),
    min_similarity: float = MIN_SIMILARITY,
) -> Matches:
    """Modes ``anchor`` and ``document``: a chunk matches each support that ``matches_place`` says
    it does. ``quotes[i]`` are those of support i; a chunk without a place is None.
    """
    paths = {support.path for support in gold}
    first: list[int | None] = [None] * len(gold)
    hits, undecided, by_heading = [], [], []
    waiting: set[int] = set()
    words = quotes or [()] * len(gold)
    for rank, passage in enumerate(passages, 1):
        if passage is None or passage.anchor.path not in paths:
            continue
        verdicts = [
            matches_place(support, words[index], passage, min_similarity)
            for index, support in enumerate(gold)
        ]
        waiting.update(index for index, verdict in enumerate(verdicts) if verdict is None)
        matched = [index for index, verdict in enumerate(verdicts) if verdict]
        if matched:
            hits.append(rank)
            if all(by_heading_only(gold[index], words[index], passage) for index in matched):
                by_heading.append(rank)
        elif None in verdicts:
            undecided.append(rank)
        for index in matched:
            if first[index] is None:
                first[index] = rank
    is_open = any(first[index] is None for index in waiting)
    return Matches(first, hits, undecided, is_open, by_heading)


def match_texts(
    gold: Sequence[Sequence[str]], texts: Sequence[str], min_similarity: float = MIN_SIMILARITY
) -> Matches:
    """Mode ``text``: a chunk matches a support when it holds one of the support's wordings.

    ``gold[i]`` are the snippets of support i; "holds" is ``similarity(…) >= min_similarity``.
    """
    first: list[int | None] = [None] * len(gold)
    hits = []
    folded = [[fold(snippet) for snippet in snippets] for snippets in gold]
    for rank, text in enumerate(texts, 1):
        chunk = fold(text)
        matched = [
            index
            for index, snippets in enumerate(folded)
            if any(_holds(chunk, snippet, min_similarity) for snippet in snippets)
        ]
        if matched:
            hits.append(rank)
        for index in matched:
            if first[index] is None:
                first[index] = rank
    return Matches(first, hits)


def fold(text: str) -> str:
    """Casefolded and whitespace-collapsed (NFC): what texts are compared as."""
    return " ".join(unicodedata.normalize("NFC", text).split()).casefold()


def holds(text: str, snippet: str, min_similarity: float = MIN_SIMILARITY) -> bool:
    """Return True when a text has the snippet, exactly or by ``min_similarity`` (Levenshtein)."""
    return _holds(fold(text), fold(snippet), min_similarity)


def _holds(chunk: str, snippet: str, min_similarity: float) -> bool:
    return bool(snippet) and (
        snippet in chunk
        or window_similarity(snippet, chunk, min_similarity) >= min_similarity - _SLACK
    )


def window_similarity(snippet: str, chunk: str, cutoff: float = 0.0) -> float:
    """Normalised Levenshtein similarity of a text to the best window of another, in [0, 1].

    Windows have the snippet's length; a chunk that is shorter is one window. 1 - distance /
    max(length), by rapidfuzz; 0.0 when the best is below ``cutoff`` by more than rounding, or
    either text is empty.
    """
    from rapidfuzz.distance import Levenshtein

    if not snippet or not chunk:
        return 0.0
    width = len(snippet)
    if len(chunk) < width:
        best = Levenshtein.normalized_similarity(snippet, chunk)
    else:
        best = 1 - _least_distance(snippet, chunk, int(width * (1 - cutoff + 1e-6))) / width
    return best if best >= cutoff - _SLACK else 0.0


def _least_distance(snippet: str, chunk: str, most: int) -> int:
    """The Levenshtein distance of a text to the nearest window of another, exact up to ``most``.

    The next window has one character less and one more, so its distance differs by two at most:
    windows that cannot come nearer are passed over.
    """
    from rapidfuzz.distance import Levenshtein

    width, start = len(snippet), 0
    least = width + 1
    while start <= len(chunk) - width and least:
        distance = Levenshtein.distance(snippet, chunk[start : start + width])
        least = min(least, distance)
        start += (distance - min(most, least - 1) + 1) // 2
    return least


def evidence_rank(
    first: Sequence[int | None], groups: Sequence[Sequence[int]] | None
) -> int | None:
    """The rank at which the needed evidence is complete; None when it never is.

    ``groups`` is an OR of groups, each an AND of indices into ``first``; without groups all
    supports are needed. Indices out of range raise IndexError.
    """
    if groups:
        complete = [rank for group in groups if (rank := _all_of([first[i] for i in group]))]
        return min(complete, default=None)
    return _all_of(first)


def _all_of(ranks: Sequence[int | None]) -> int | None:
    return None if None in ranks else max(ranks, default=None)  # type: ignore[type-var]


def scope_miss(gold_paths: Iterable[str], chosen: Sequence[str]) -> float:
    """Return 1.0 when the chosen folders leave out every folder that contains gold, else 0.0.

    No chosen folder means that all were searched: 0.0. A folder holds what lies below it.
    """
    folders = [normalise_path(folder).strip("/") for folder in chosen]
    if not folders or any(folder in ("", ".") for folder in folders):
        return 0.0
    within: Callable[[str], bool] = lambda path: any(  # noqa: E731 - one use, beside its meaning
        path.startswith(f"{folder}/") for folder in folders
    )
    return 0.0 if any(within(normalise_path(path)) for path in gold_paths) else 1.0
