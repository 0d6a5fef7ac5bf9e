"""Which retrieved chunks match which gold supports, in four ways; pure, no metric here.

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

Mode = Literal["chunk", "anchor", "doc", "text"]
MODES: tuple[Mode, ...] = ("chunk", "anchor", "doc", "text")
DEFAULT_GRADE = 3.0
MIN_SIMILARITY = 0.8
_SLACK = 1e-9
"""What a similarity may fall short by and still be the least one that is asked for: 28 right of 35
characters are 0.8, whatever the division makes of it. Real steps are 1 / length, far wider."""

SEPARATOR = " > "
"""What parts the segments of a heading path."""

_SPACE = re.compile(r"\s+")


class Anchor(NamedTuple):
    """A place in the notes: a file, and a heading by its segments from the top."""

    path: str
    heading: tuple[str, ...]


class Matches(NamedTuple):
    """``first[i]``: rank of the first chunk that matches support i; ``hits``: ranks of all."""

    first: list[int | None]
    hits: list[int]


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


def anchor(rel_path: str, heading_path: str | None) -> Anchor:
    """The normalised place of a chunk, a gold support or a reference."""
    return Anchor(normalise_path(rel_path), heading_segments(heading_path or ""))


def match_ids(gold: Mapping[Any, int], ids: Sequence[Hashable], supports: int) -> Matches:
    """Modes ``chunk`` and ``doc``: equality of ids. ``gold`` maps an id to its support's index."""
    hits = [rank for rank, item_id in enumerate(ids, 1) if item_id in gold]
    first: list[int | None] = [None] * supports
    for rank in reversed(hits):
        first[gold[ids[rank - 1]]] = rank
    return Matches(first, hits)


def matches_anchor(
    gold: Anchor,
    chunk_anchor: Anchor,
    snippets: Sequence[str] = (),
    text: str | None = None,
    min_similarity: float = MIN_SIMILARITY,
) -> bool:
    """True when a chunk lies under the gold support, or is a coarser one that holds its text.

    Under: same file, and gold's heading is a segment prefix of the chunk's. An empty gold heading
    stands for the whole file; ``Intro`` is no prefix of ``Introduction``. Coarser: same file, and
    the chunk's heading is a proper prefix of gold's (an empty heading is one). It matches when
    ``text``, its whole text, has one of the support's snippets; a support without snippets and a
    text that is not there whole (None) never match so.
    """
    if gold.path != chunk_anchor.path:
        return False
    depth = len(gold.heading)
    if chunk_anchor.heading[:depth] == gold.heading:
        return True
    if not text or gold.heading[: len(chunk_anchor.heading)] != chunk_anchor.heading:
        return False
    folded = fold(text)
    return any(_holds(folded, fold(snippet), min_similarity) for snippet in snippets)


def match_anchors(
    gold: Sequence[Anchor],
    anchors: Sequence[Anchor | None],
    snippets: Sequence[Sequence[str]] = (),
    texts: Sequence[str | None] = (),
    min_similarity: float = MIN_SIMILARITY,
) -> Matches:
    """Mode ``anchor``: a chunk matches each support that ``matches_anchor`` says it does.

    ``snippets[i]`` are those of support i, ``texts[j]`` the whole text of chunk j or None; without
    them places alone count.
    """
    paths = {support.path for support in gold}
    first: list[int | None] = [None] * len(gold)
    hits = []
    words = snippets or [()] * len(gold)
    for rank, chunk_anchor in enumerate(anchors, 1):
        if chunk_anchor is None or chunk_anchor.path not in paths:
            continue
        text = texts[rank - 1] if texts else None
        matched = [
            index
            for index, support in enumerate(gold)
            if matches_anchor(support, chunk_anchor, words[index], text, min_similarity)
        ]
        if matched:
            hits.append(rank)
        for index in matched:
            if first[index] is None:
                first[index] = rank
    return Matches(first, hits)


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
    return _SPACE.sub(" ", unicodedata.normalize("NFC", text)).strip().casefold()


def holds(text: str, snippet: str, min_similarity: float = MIN_SIMILARITY) -> bool:
    """True when the text has the snippet, exactly or with ``min_similarity`` (Levenshtein)."""
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
    from rapidfuzz import process
    from rapidfuzz.distance import Levenshtein

    if not snippet or not chunk:
        return 0.0
    width = len(snippet)
    windows = (chunk[start : start + width] for start in range(max(1, len(chunk) - width + 1)))
    best = process.extractOne(
        snippet,
        windows,
        scorer=Levenshtein.normalized_similarity,
        score_cutoff=max(0.0, cutoff - 1e-6),  # a hint: rapidfuzz refuses what it exactly is
    )
    return float(best[1]) if best and best[1] >= cutoff - _SLACK else 0.0


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
    """1.0 when the chosen folders leave out every folder that holds gold, else 0.0.

    No chosen folder means that all were searched: 0.0. A folder holds what lies below it.
    """
    folders = [normalise_path(folder).strip("/") for folder in chosen]
    if not folders or any(folder in ("", ".") for folder in folders):
        return 0.0
    within: Callable[[str], bool] = lambda path: any(  # noqa: E731 - one use, beside its meaning
        path.startswith(f"{folder}/") for folder in folders
    )
    return 0.0 if any(within(normalise_path(path)) for path in gold_paths) else 1.0
