"""Passages of text: where they stand, which gold support points at them, and their sentences.

A place is named in words that survive re-indexing: path, heading and quoted text. Chunk ids never
enter, since they change whenever the text is split anew. Spans are of the original text, never of a
shown or wrapped copy.
"""

from __future__ import annotations

import itertools
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, Final

from ragmetrics import matching
from ragmetrics.gold import quotes_that_count
from ragmetrics.text.gold_quotes import fold_quote
from records.judged import heading, norm_path, passage_key, segments

QUOTE_CONTEXT: Final = 32
"""Characters kept before and after a quote."""


@dataclass(frozen=True)
class Chunk:
    """One passage; `cut` says that `text` is only its beginning.

    Scores are the retriever's own; `origin` is the probe that found it, or ``""``.
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
    page: str = ""

    @cached_property
    def key(self) -> str:
        """Twelve hex digits of path, heading and text: the same passage, the same key."""
        return passage_key(self.rel_path, self.heading_path, self.text)


def under(heading_path: str | Sequence[Any] | None, prefix: str | Sequence[Any] | None) -> bool:
    """Does `heading_path` begin with all segments of `prefix`? An empty prefix holds everything."""
    want = segments(prefix)
    return segments(heading_path)[: len(want)] == want


_folded = lru_cache(maxsize=512)(matching.fold)
_nearly_holds = lru_cache(maxsize=1024)(matching.holds)
_matches_place = lru_cache(maxsize=1024)(matching.matches_place)


def holds(text: str, quote: str) -> bool:
    """Is `quote` in `text`, apart from case and white space? An empty quote is in nothing."""
    folded_quote = _folded(quote)
    return bool(folded_quote) and folded_quote in _folded(text)


def evidence(support: dict[str, Any]) -> list[str]:
    """The texts that a support quotes: its snippets, and the exact part of its quote."""
    snippets = [item for item in support.get("snippets") or () if item.strip()]
    exact = exact_of(support)
    return snippets if not exact.strip() or exact in snippets else [*snippets, exact]


def exact_of(support: dict[str, Any]) -> str:
    """The quoted words of a support's quote, or ``""``."""
    quote = support.get("quote")
    return str(quote.get("exact") or "") if isinstance(quote, dict) else ""


def _verdict(support: dict[str, Any], chunk: Chunk) -> bool | None:
    """As scores have it; None where a cut text leaves it open."""
    title = heading(support.get("heading_path"))
    gold = matching.anchor(str(support.get("rel_path") or ""), title, support.get("page"))
    place = matching.anchor(chunk.rel_path, chunk.heading_path)
    passage = matching.Passage(place, chunk.text, chunk.cut, chunk.page)
    return _matches_place(gold, _counting_quotes(support), passage)


def _counting_quotes(support: dict[str, Any]) -> tuple[str, ...]:
    snippets = [item for item in support.get("snippets") or () if item.strip()]
    return (*quotes_that_count(heading(support.get("heading_path")), snippets, exact_of(support)),)


def locate(support: dict[str, Any], chunks: Sequence[Chunk]) -> tuple[list[int], str]:
    """Which of `chunks` the support points at, as indices, and how that was found.

    ``shown``: quoted text under its heading, or in a coarser chunk around it. ``moved``: quoted
    text under another heading of the file. ``fuzzy``: nearly that text, or a part of it that counts
    in scores. ``heading``: by heading alone, because the support quotes nothing or the chunks are
    cut. ``absent``: no chunk here, which may also mean that the retriever missed it.
    """
    quotes = evidence(support)
    verdicts = [_verdict(support, chunk) for chunk in chunks]
    near = [i for i, verdict in enumerate(verdicts) if verdict]
    if not quotes:
        return (near, "heading") if near else ([], "absent")
    file = norm_path(str(support.get("rel_path") or ""))
    filed = [i for i, chunk in enumerate(chunks) if norm_path(chunk.rel_path) == file]
    for positions, name in ((near, "shown"), (filed, "moved")):
        matches = [i for i in positions if any(holds(chunks[i].text, quote) for quote in quotes)]
        if matches:
            return matches, name
    matches = [i for i in filed if any(_nearly_holds(chunks[i].text, quote) for quote in quotes)]
    section = heading(support.get("heading_path"))
    if not matches and _counting_quotes(support):
        by_words = (i for i in near if not section or heading(chunks[i].heading_path) != section)
        matches = [i for i in by_words if chunks[i].text.strip()]
    if matches:
        return matches, "fuzzy"
    open_ = (i for i, verdict in enumerate(verdicts) if verdict or (verdict is None and section))
    cut = [i for i in open_ if chunks[i].cut]
    return (cut, "heading") if cut else ([], "absent")


def make_quote(text: str, start: int, end: int, *, auto: bool, cut: bool) -> dict[str, Any]:
    """A text-quote anchor of ``text[start:end]`` with `QUOTE_CONTEXT` characters on either side."""
    return {
        "prefix": text[max(0, start - QUOTE_CONTEXT) : start],
        "exact": text[start:end],
        "suffix": text[end : end + QUOTE_CONTEXT],
        **({"auto": True} if auto else {}),
        **({"cut": True} if cut else {}),
    }


Span = tuple[int, int]

ENOUGH: Final = 0.4
"""Least share of a fact's content words that the best sentence must contain to carry the fact."""

PLENTY: Final = 0.5
"""Share of a fact's content words at which a sentence carries it beside the best one."""

ENOUGH_OF_QUESTION: Final = 0.2
"""The same for the question, used when neither facts nor a reference answer are known."""

AUTO_LIMIT: Final = 400
"""Characters of the longest sentence that is taken by itself: no one reads a quote of pages."""

AUTO_REACH: Final = 64 * 1024
"""Characters of a passage that are searched for sentences that carry the answer."""

ABBREVIATION_LENGTH: Final = 12

# A dot at the beginning of a line ends nothing: it is a prompt of code, or a leader.
_END = re.compile(
    r"(?:(?<=[^\n.!?…])[.!?…]+[\"'”’)\]]*(?=\s)|[。！？]+|\n\s*\n|\n(?=\s*(?:[-*+•]|\d+[.)]|#+|\|)\s))"
)

_ABBREVIATION = re.compile(
    r"(?:^|[\s(])(?:e\.g|i\.e|etc|vs|cf|approx|no|fig|sec|ch|mr|mrs|ms|dr|prof|st|inc|ltd|[a-z])\.$"
    r"|(?:^|\n)[ \t]*\d{1,3}\.$",  # the number of a list item
    re.IGNORECASE,
)

_WORD = re.compile(r"[^\W_]+(?:[.,:'’-][^\W_]+)*")

_STOP_WORDS = """a about an and any are as at be been but by can could did do does for from had has
have how i if in into is it its may me might my no not of on or our shall she should so some such
than that the their them then there these they this those to up us was we were what when where which
while who whom whose why will with would you your"""

_STOP = frozenset(_STOP_WORDS.split())
_PLURAL = re.compile(r"(?<=\S{2}[^s])s\Z")


@dataclass(frozen=True)
class Sentence:
    """A sentence of a chunk: ``chunk.text[start:end]``; `picked` when a snippet covers it."""

    index: int
    start: int
    end: int
    text: str
    picked: bool


def sentence_spans(text: str) -> list[Span]:
    """Spans of the sentences, list items and headings of `text`, outer space left out."""
    ends, start = [0], 0
    for match in _END.finditer(text):
        last = text[max(start, match.end() - ABBREVIATION_LENGTH) : match.end()]
        if not (match.group().startswith(".") and _ABBREVIATION.search(last)):
            start = match.end()
            ends.append(start)
    spans = (trimmed(text, span) for span in itertools.pairwise([*ends, len(text)]))
    return [span for span in spans if span is not None]


def trimmed(text: str, span: Span) -> Span | None:
    """`span` without outer white space; None when nothing is left."""
    piece = text[span[0] : span[1]]
    left, right = len(piece) - len(piece.lstrip()), len(piece.rstrip())
    return (span[0] + left, span[0] + right) if left < right else None


def content_words(text: str) -> frozenset[str]:
    """Casefolded words of `text` that carry meaning, a plural ``s`` taken off."""
    words = (w.casefold() for w in _WORD.findall(unicodedata.normalize("NFC", text)))
    return frozenset(_PLURAL.sub("", word) for word in words if word not in _STOP)


def _facts_of(case: dict[str, Any]) -> list[str]:
    """What the answer must say: the key facts, else the sentences of the reference answer."""
    facts = [str(fact) for fact in case.get("expected_key_facts") or () if str(fact).strip()]
    reference = str(case.get("reference_answer") or "")
    return facts or [reference[start:end] for start, end in sentence_spans(reference)]


def answer_spans(text: str, case: dict[str, Any]) -> list[Span]:
    """The sentences of `text` that carry the answer to `case`, neighbours joined; may be empty.

    For each fact, the sentence with most of its content words, when that is at least `ENOUGH` of
    them. A case with no facts and no reference answer falls back on the question's words.
    """
    spans = sentence_spans(text[:AUTO_REACH])
    spans = [(start, end) for start, end in spans if end - start <= AUTO_LIMIT]
    words = [content_words(text[start:end]) for start, end in spans]
    picked = _carriers(words, _facts_of(case), ENOUGH)
    if not picked and not _facts_of(case):
        picked = _carriers(words, [str(case.get("question") or "")], ENOUGH_OF_QUESTION)
    return joined(text, [spans[index] for index in sorted(picked)])


RECURS: Final = 3
"""Passages in which a line must occur to be a running header, a footer or a menu."""


def quoted_spans(chunk: Chunk, case: dict[str, Any], pool: Sequence[Chunk]) -> list[Span]:
    """The words by which a passage without a heading is known: the sentences that carry the
    answer, else the longest one that no other passage of the pool has; may be empty.

    Never a line that recurs in `RECURS` passages: it says nothing about where the text stands.
    """
    others = {other.key: other for other in pool if other.key != chunk.key}.values()
    lines = Counter(
        line for other in (chunk, *others) for line in {*map(fold_quote, other.text.splitlines())}
    )
    # Line breaks part sentences and keep every place: spans of this text are the chunk's, too.
    bare = "".join(
        "\n" * len(line) if lines[fold_quote(line)] >= RECURS else line
        for line in chunk.text.splitlines(keepends=True)
    )
    pieces = (piece for whole in answer_spans(bare, case) for piece in _pieces(bare, whole))
    spans = [span for piece in pieces if (span := trimmed(chunk.text, piece)) is not None]
    if spans:
        return spans
    texts = [fold_quote(other.text) for other in others]
    short = [(a, b) for a, b in sentence_spans(bare) if b - a <= AUTO_LIMIT]
    own = [(a, b) for a, b in short if not any(fold_quote(bare[a:b]) in text for text in texts)]
    return [max(own, key=lambda span: span[1] - span[0])] if own else []


_GAP = re.compile(r"\n\s*\n")


def _pieces(text: str, span: Span) -> list[Span]:
    """A span without the blank lines in it, which may stand for lines that were left out."""
    spans = [span]
    for gap in _GAP.finditer(text, *span):
        spans = without(spans, gap.span())
    return spans


def opening(text: str) -> Span | None:
    """The first sentence of `text`, at most `AUTO_LIMIT` characters; None for a blank text."""
    spans = sentence_spans(text[: 4 * AUTO_LIMIT])
    return (spans[0][0], min(spans[0][1], spans[0][0] + AUTO_LIMIT)) if spans else None


def _carriers(sentences: Sequence[frozenset[str]], facts: Iterable[str], least: float) -> set[int]:
    picked: set[int] = set()
    for fact_words in filter(None, map(content_words, facts if sentences else ())):
        shares = [len(fact_words & words) / len(fact_words) for words in sentences]
        best = max(shares)
        picked |= {shares.index(best)} if best >= least else set()
        picked |= {index for index, share in enumerate(shares) if share >= PLENTY}
    return picked


def joined(text: str, spans: Iterable[Span]) -> list[Span]:
    """`spans` in order, with overlapping ones and those parted by white space made one."""
    out: list[Span] = []
    for start, end in sorted(spans):
        if out and not text[out[-1][1] : start].strip():
            out[-1] = (out[-1][0], max(out[-1][1], end))
        else:
            out.append((start, end))
    return out


def without(spans: Iterable[Span], hole: Span) -> list[Span]:
    """`spans` with the characters of `hole` taken out."""
    pieces = (((a, min(b, hole[0])), (max(a, hole[1]), b)) for a, b in spans)
    return [(a, b) for pair in pieces for a, b in pair if a < b]


def find_span(text: str, snippet: str) -> Span | None:
    """The position of `snippet` in `text`: exactly, else apart from case and white space."""
    start = text.find(snippet) if snippet else -1
    if start >= 0:
        return start, start + len(snippet)
    words = snippet.split()
    if not words:
        return None
    match = re.search(r"\s+".join(map(re.escape, words)), text, re.IGNORECASE)
    return match.span() if match else None
