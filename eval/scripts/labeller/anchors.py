"""Where a passage stands, in words that survive re-indexing: path, heading and quoted text.

What goes in: chunks as a retriever gave them and gold supports as the set holds them. What comes
out: which chunks a support points at, and how sure that is. Chunk ids never enter, since they
change whenever the text is split anew.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, Final

SEPARATOR: Final = " > "
QUOTE_CONTEXT: Final = 32
"""Characters kept before and after a quote."""
FUZZY: Final = 0.9
"""Least share of words in order that still counts as the same text."""

FUZZY_REACH: Final = 20_000
FUZZY_TRIES: Final = 50

_SPACE = re.compile(r"\s+")
_HASHES = re.compile(r"^#+\s*|\s*#+$")


@dataclass(frozen=True)
class Chunk:
    """One passage. Scores are the retriever's own; `origin` is the probe that found it, or ``""``.

    `cut` says that `text` is only the beginning of the passage.
    """

    rel_path: str
    heading_path: str
    text: str
    chunk_id: str = ""
    rank: int | None = None
    score_vector: float | None = None
    score_lexical: float | None = None
    score_final: float | None = None
    cut: bool = False
    origin: str = ""

    @cached_property
    def key(self) -> str:
        """Twelve hex digits of path, heading and text: the same passage, the same key."""
        parts = (norm_path(self.rel_path), heading(self.heading_path), self.text)
        digest = hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass"))
        return digest.hexdigest()[:12]


def norm_path(path: str) -> str:
    """NFC, forward slashes, no leading ``./``."""
    path = unicodedata.normalize("NFC", path).replace("\\", "/").strip()
    while path.startswith("./"):
        path = path[2:]
    return path


def segments(heading_path: str | Sequence[Any] | None) -> tuple[str, ...]:
    """The headings from the outside in, without ``#`` marks and doubled space, case kept."""
    if heading_path is None:
        return ()
    raw = heading_path.split(">") if isinstance(heading_path, str) else heading_path
    cleaned = (_SPACE.sub(" ", _HASHES.sub("", str(part).strip())).strip() for part in raw)
    return tuple(part for part in cleaned if part)


def heading(heading_path: str | Sequence[Any] | None) -> str:
    """The heading path in the form that the set holds: ``Plans > Free``."""
    return SEPARATOR.join(segments(heading_path))


def under(heading_path: str | Sequence[Any] | None, prefix: str | Sequence[Any] | None) -> bool:
    """Does `heading_path` begin with all segments of `prefix`? An empty prefix holds everything."""
    want = segments(prefix)
    return segments(heading_path)[: len(want)] == want


@lru_cache(maxsize=512)
def folded(text: str) -> str:
    """`text` casefolded, with every run of white space as one space."""
    return _SPACE.sub(" ", unicodedata.normalize("NFC", text)).strip().casefold()


def holds(text: str, quote: str) -> bool:
    """Is `quote` in `text`, apart from case and white space? An empty quote is in nothing."""
    wanted = folded(quote)
    return bool(wanted) and wanted in folded(text)


@lru_cache(maxsize=1024)
def nearly_holds(text: str, quote: str) -> bool:
    """Is there a window of as many words in `text` that is `FUZZY` the same as `quote`?

    Looks at the first `FUZZY_REACH` characters, and at `FUZZY_TRIES` likely windows of them.
    """
    wanted, words = folded(quote).split(), folded(text[:FUZZY_REACH]).split()
    size = len(wanted)
    if size < 4 or len(words) < size * FUZZY:
        return False
    bag = set(wanted)
    known = [word in bag for word in words]
    from difflib import SequenceMatcher

    hits, tries = sum(known[:size]), FUZZY_TRIES
    matcher = SequenceMatcher(None, autojunk=False)
    matcher.set_seq2(wanted)
    for start in range(max(1, len(words) - size + 1)):
        if start:
            hits += (known[start + size - 1] if start + size <= len(words) else 0) - known[
                start - 1
            ]
        if hits >= size * FUZZY and tries:
            tries -= 1
            matcher.set_seq1(words[start : start + size])
            if matcher.ratio() >= FUZZY:
                return True
    return False


def evidence(support: dict[str, Any]) -> list[str]:
    """The texts that a support quotes: its snippets, and the exact part of its quote."""
    found = [item for item in support.get("snippets") or () if item.strip()]
    exact = exact_of(support)
    return found if not exact.strip() or exact in found else [*found, exact]


def exact_of(support: dict[str, Any]) -> str:
    """The quoted words of a support's quote, or ``""``."""
    quote = support.get("quote")
    return str(quote.get("exact") or "") if isinstance(quote, dict) else ""


def anchored(support: dict[str, Any], chunk: Chunk) -> bool:
    """Same file, and under the support's heading?"""
    return same_file(support, chunk) and under(chunk.heading_path, support.get("heading_path"))


def same_file(support: dict[str, Any], chunk: Chunk) -> bool:
    """Does the chunk come from the support's file?"""
    return norm_path(str(support.get("rel_path") or "")) == norm_path(chunk.rel_path)


def locate(support: dict[str, Any], chunks: Sequence[Chunk]) -> tuple[list[int], str]:
    """Which of `chunks` the support points at, as indices, and how that was found.

    ``shown``: quoted text under its heading. ``moved``: quoted text under another heading of the
    file. ``fuzzy``: nearly that text. ``heading``: by heading alone, because the support quotes
    nothing or the chunks are cut. ``absent``: no chunk here, which may also mean that the
    retriever missed it.
    """
    quotes = evidence(support)
    near = [i for i, chunk in enumerate(chunks) if anchored(support, chunk)]
    if not quotes:
        return (near, "heading") if near else ([], "absent")
    filed = [i for i, chunk in enumerate(chunks) if same_file(support, chunk)]
    for places, name in ((near, "shown"), (filed, "moved")):
        found = [i for i in places if any(holds(chunks[i].text, quote) for quote in quotes)]
        if found:
            return found, name
    found = [i for i in filed if any(nearly_holds(chunks[i].text, quote) for quote in quotes)]
    if found:
        return found, "fuzzy"
    cut = [i for i in near if chunks[i].cut]
    return (cut, "heading") if cut else ([], "absent")


def make_quote(text: str, start: int, end: int, *, auto: bool, cut: bool) -> dict[str, Any]:
    """A text-quote anchor of ``text[start:end]`` with `QUOTE_CONTEXT` characters on either side."""
    quote: dict[str, Any] = {
        "prefix": text[max(0, start - QUOTE_CONTEXT) : start],
        "exact": text[start:end],
        "suffix": text[end : end + QUOTE_CONTEXT],
    }
    if auto:
        quote["auto"] = True
    if cut:
        quote["cut"] = True
    return quote


def same_passage(one: Chunk, others: Iterable[Chunk]) -> bool:
    """Is the passage among `others` already, whatever found it?"""
    return any(one.key == other.key for other in others)
