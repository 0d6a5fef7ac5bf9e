"""Context quality: do the retrieved chunks repeat each other, and do they hold the facts?

Redundancy by n-grams needs the chunks of one case; by TF-IDF it needs the document frequencies of
the whole run (``Frequencies``), so that a word that all notes use does not make two chunks alike.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any

from ragmetrics.case_scores import NO_CONTEXTS, CaseScores, RetrievedText, not_applicable, unusable
from ragmetrics.facts import Fact, find_facts
from ragmetrics.text.tfidf import Frequencies, tokens

N = 3

_REDUNDANT = 0.8

NO_WORDS = "no words"

METRICS = (
    "redundancy_ngram",
    "redundancy_tfidf",
    "redundant_chunks_ngram",
    "redundant_chunks_tfidf",
    "fact_dispersion",
    "fact_coverage",
    "mattr",
    "unique_token_ratio",
    "diversity_ok",
)

WINDOW = 100
"""Words of a window of the moving-average type-token ratio."""

BANDS: dict[str, tuple[float, float]] = {
    "faq": (0.0, 0.6),
    "comparison": (0.0, 0.4),
    "research": (0.0, 0.25),
}
"""TF-IDF redundancy that a query type may have:

a FAQ may be told twice, research wants many sides.
"""


def _grams(chunk: Sequence[str], n: int) -> set[tuple[str, ...]]:
    return set(zip(*(chunk[start:] for start in range(n)), strict=False))


def _overlap(first: set[tuple[str, ...]], second: set[tuple[str, ...]]) -> float:
    smaller = min(len(first), len(second))
    return len(first & second) / smaller if smaller else 0.0


def ngram_overlap(first: Sequence[str], second: Sequence[str], n: int = N) -> float:
    """|A ∩ B| / min(|A|, |B|) on word n-grams, in [0, 1].

    On single words when either has fewer than n; 0 when either has none.
    """
    if min(len(first), len(second)) < n:
        n = 1
    return _overlap(_grams(first, n), _grams(second, n))


def _ngram_matrix(chunks: Sequence[Sequence[str]]) -> dict[tuple[int, int], float]:
    """The ``ngram_overlap`` of each pair of chunks (i < j); each chunk is cut into n-grams once."""
    grams = [_grams(chunk, N) if len(chunk) >= N else None for chunk in chunks]
    overlaps = {}
    for i, j in combinations(range(len(chunks)), 2):
        first, second = grams[i], grams[j]
        if first is None or second is None:
            overlaps[i, j] = ngram_overlap(chunks[i], chunks[j])
        else:
            overlaps[i, j] = _overlap(first, second)
    return overlaps


def shared_end(first: Sequence[str], second: Sequence[str]) -> int:
    """Words of the longest end of ``first`` that also begins ``second`` (overlapping chunkers)."""
    limit = min(len(first), len(second))
    if not limit or second[0] not in first or first[-1] not in second:
        return 0
    # Knuth-Morris-Pratt: the prefix function of second + end of first.
    line: list[str | None] = [*second[:limit], None, *first[len(first) - limit :]]
    border = [0] * len(line)
    for index in range(1, len(line)):
        length = border[index - 1]
        while length and line[index] != line[length]:
            length = border[length - 1]
        border[index] = length + (line[index] == line[length])
    return border[-1]


def without_shared_ends(
    chunks: Sequence[Sequence[str]], overlaps: Mapping[tuple[int, int], float] | None = None
) -> float:
    """Mean n-gram overlap after each pair's shared end is cut from one of the two; 0 for one chunk.

    A pair that is one text twice keeps its overlap: only a proper end is cut. ``overlaps`` is the
    chunks' ``_ngram_matrix``, when it is known.
    """
    overlaps = _ngram_matrix(chunks) if overlaps is None else overlaps
    remaining = []
    for (i, j), overlap in overlaps.items():
        left, right = chunks[i], chunks[j]
        cut = max((shared_end(left, right), left, right), (shared_end(right, left), right, left))
        size, first, second = cut
        proper = 0 < size < min(len(first), len(second))
        remaining.append(ngram_overlap(first, second[size:]) if proper else overlap)
    return sum(remaining) / len(remaining) if remaining else 0.0


def _share_redundant(pairs: Mapping[tuple[int, int], float], chunks: int) -> float:
    repeated = {j for (_, j), value in pairs.items() if value >= _REDUNDANT}
    return len(repeated) / chunks


def _mean(pairs: Mapping[tuple[int, int], float]) -> float:
    return sum(pairs.values()) / len(pairs) if pairs else 0.0


def mattr(chunks: Sequence[Sequence[str]], window: int = WINDOW) -> float | None:
    """Moving-average type-token ratio over all chunks, in (0, 1]; None without a word.

    The mean, over all runs of ``window`` consecutive words of the chunks one after the other, of
    distinct words / words. Fewer words: distinct / all of them. Unlike the plain ratio it does not
    fall with the length of a text. Source: Covington and McFall 2010.
    """
    every = [word for chunk in chunks for word in chunk]
    if not every:
        return None
    size = min(window, len(every))
    counts = Counter(every[:size])
    distinct = total = len(counts)
    for leaving, entering in zip(every, every[size:], strict=False):
        counts[leaving] -= 1
        distinct -= not counts[leaving]
        distinct += not counts[entering]
        counts[entering] += 1
        total += distinct
    return total / ((len(every) - size + 1) * size)


def unique_token_ratio(chunks: Sequence[Sequence[str]]) -> float | None:
    """Distinct words / words over all chunks, in (0, 1]; None without a word."""
    every = [word for chunk in chunks for word in chunk]
    return len(set(every)) / len(every) if every else None


def score_case(
    chunks: Sequence[RetrievedText],
    *,
    frequencies: Frequencies | None = None,
    gold_facts: Sequence[Fact] = (),
    query_type: str | None = None,
    bands: Mapping[str, tuple[float, float]] = BANDS,
) -> CaseScores:
    """All context-quality metrics of one case's chunks, in rank order.

    Redundancy is that of the chunks with a word: 0 for one, not applicable without one. No chunk,
    texts cut or not sent: nothing is applicable. ``diversity_ok`` is 1 when the TF-IDF redundancy
    lies within the band of the case's ``query_type``.
    """
    reason = unusable(chunks) if chunks else NO_CONTEXTS
    if reason is not None:
        return not_applicable(METRICS, reason)
    texts = [chunk.text or "" for chunk in chunks]
    every = [tokens(text) for text in texts]
    worded = [index for index, chunk_words in enumerate(every) if chunk_words]
    read = [every[index] for index in worded]
    values: dict[str, float | None] = dict.fromkeys(METRICS)
    reasons: dict[str, str] = {}
    grams = _ngram_matrix(read)
    if worded:
        values["redundancy_ngram"] = _mean(grams)
        values["redundant_chunks_ngram"] = _share_redundant(grams, len(worded))
    else:
        reasons |= dict.fromkeys((*METRICS[:4], "mattr", "unique_token_ratio"), NO_WORDS)
    if frequencies is None and worded:
        reasons |= dict.fromkeys(METRICS[1:4:2], "no document frequencies of the run")
    elif frequencies is not None and worded:
        table = frequencies.similarity([texts[index] for index in worded])
        cosines = {pair: float(table[pair]) for pair in grams}
        values["redundancy_tfidf"] = _mean(cosines)
        values["redundant_chunks_tfidf"] = _share_redundant(cosines, len(worded))
    values["mattr"], values["unique_token_ratio"] = mattr(read), unique_token_ratio(read)
    facts = find_facts(texts, gold_facts)
    values["fact_coverage"], values["fact_dispersion"] = facts.coverage, facts.dispersion
    if facts.coverage is None:
        reasons |= dict.fromkeys(("fact_coverage", "fact_dispersion"), "no gold_facts")
    elif facts.dispersion is None:
        reasons["fact_dispersion"] = "no fact found"
    band = bands.get(query_type or "")
    redundancy = values["redundancy_tfidf"]
    if band is None:
        reasons["diversity_ok"] = (
            f"no band for query_type {query_type}" if query_type else "no query_type"
        )
    elif redundancy is None:
        reasons["diversity_ok"] = reasons["redundancy_tfidf"]
    else:
        values["diversity_ok"] = float(band[0] <= redundancy <= band[1])
    evidence = _alike([chunks[index] for index in worded], grams, read)
    if gold_facts:
        evidence["facts"] = [
            {"fact": fact.fact, "chunks": [chunks[index].chunk_id for index in holders]}
            for fact, holders in zip(gold_facts, facts.holders, strict=True)
        ]
    return CaseScores(values, reasons, evidence)


def _alike(
    chunks: Sequence[RetrievedText],
    grams: Mapping[tuple[int, int], float],
    read: Sequence[Sequence[str]],
) -> dict[str, Any]:
    """The two chunks most alike by ``grams``, as evidence; nothing for one chunk."""
    if not grams:
        return {}
    (i, j), overlap = max(grams.items(), key=lambda item: item[1])
    return {
        "most_alike": {
            "chunks": [chunks[i].chunk_id, chunks[j].chunk_id],
            "overlap": round(overlap, 6),
        },
        "redundancy_ngram_without_shared_ends": round(without_shared_ends(read, grams), 6),
    }
