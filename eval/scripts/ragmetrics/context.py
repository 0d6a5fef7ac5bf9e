"""Context quality: do the retrieved chunks repeat each other, and do they hold the facts?

Redundancy by n-grams needs the chunks of one case; by TF-IDF it needs the document frequencies of
the whole run (``Frequencies``), so that a word that all notes use does not make two chunks alike.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any, Protocol

from ragmetrics.case_scores import NO_CONTEXTS, CaseScores, Passage, not_applicable, unusable
from ragmetrics.text.numbers import Number, numbers
from ragmetrics.text.tfidf import Frequencies, tokens
from ragmetrics.text.words import STOP_WORDS, clean, fold, stem, words

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
    "unique_token_ratio",
    "diversity_ok",
)

BANDS: dict[str, tuple[float, float]] = {
    "faq": (0.0, 0.6),
    "comparison": (0.0, 0.4),
    "research": (0.0, 0.25),
}
"""TF-IDF redundancy that a query type may have:

a FAQ may be told twice, research wants many sides.
"""


class Fact(Protocol):
    """A gold fact and its other wordings."""

    @property
    def fact(self) -> str: ...
    @property
    def aliases(self) -> Sequence[str]: ...


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
    """Words of the longest end of ``first`` that ``second`` starts with (overlapping chunkers)."""
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


def unique_token_ratio(chunks: Sequence[Sequence[str]]) -> float | None:
    """Distinct words / words over all chunks, in (0, 1]; None without a word."""
    every = [word for chunk in chunks for word in chunk]
    return len(set(every)) / len(every) if every else None


@dataclass(frozen=True)
class FactScores:
    """``found[i]``: places of the chunks (from 0) that hold fact i."""

    holders: tuple[tuple[int, ...], ...] = field(default=())

    @property
    def coverage(self) -> float | None:
        """Facts that any chunk holds / facts; None without facts."""
        return sum(map(bool, self.holders)) / len(self.holders) if self.holders else None

    @property
    def dispersion(self) -> float | None:
        """Mean number of chunks that hold a fact, over the facts found; None when none was."""
        held = [len(chunks) for chunks in self.holders if chunks]
        return sum(held) / len(held) if held else None


def find_facts(texts: Sequence[str], facts: Sequence[Fact]) -> FactScores:
    """Which chunks hold which fact."""
    read = [(text, canonical(text)) for text in texts] if facts else []
    return FactScores(
        tuple(
            tuple(
                index
                for index, (text, held) in enumerate(read)
                if holds(text, held, fact.fact, fact.aliases)
            )
            for fact in facts
        )
    )


def score_case(
    chunks: Sequence[Passage],
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
        reasons |= dict.fromkeys((*METRICS[:4], "unique_token_ratio"), NO_WORDS)
    if frequencies is None and worded:
        reasons |= dict.fromkeys(METRICS[1:4:2], "no document frequencies of the run")
    elif frequencies is not None and worded:
        table = frequencies.similarity([texts[index] for index in worded])
        cosines = {pair: float(table[pair]) for pair in grams}
        values["redundancy_tfidf"] = _mean(cosines)
        values["redundant_chunks_tfidf"] = _share_redundant(cosines, len(worded))
    values["unique_token_ratio"] = unique_token_ratio(read)
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
    chunks: Sequence[Passage],
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


SHORT = 2
"""An alias of this many characters, or of digits only, needs a word of the fact beside it."""


def _spoken(number: Number) -> str:
    """One spelling for a number: ``15``, 17:30 as ``t17x30``, a day as ``d3x4``."""
    for key in sorted(number.keys, key=str, reverse=True):
        if len(key) == 3:
            return f"{key[0]}{key[1]}x{key[2]}"
    values = [key[1] for key in number.keys if key[0] == "v" and isinstance(key[1], float)]
    spoken = f"{max(values):.10g}" if values else number.text
    return f"{spoken} percent" if re.search(r"%|per\s?cent|pct", number.text) else spoken


def canonical(text: str) -> list[str]:
    """The words of a text in order, stemmed, every number in one spelling."""
    folded = fold(text)
    parts: list[str] = []
    end = 0
    for number in numbers(text, claim=False):
        if number.start < end or number.is_id:
            continue
        parts += [folded[end : number.start], f" {_spoken(number)} "]
        end = number.end
    parts.append(folded[end:])
    return [stem(word) for word in words("".join(parts))]


def _is_weak(alias: str) -> bool:
    plain = fold(alias).strip()
    return len(plain) <= SHORT or plain.replace(",", "").replace(".", "").isdigit()


def _occurrences(phrase: Sequence[str], held: Sequence[str]) -> list[int]:
    first, size = phrase[0], len(phrase)
    return [
        index
        for index, word in enumerate(held)
        if word == first and list(held[index : index + size]) == list(phrase)
    ]


def _in_capitals(alias: str, text: str) -> bool:
    """An alias in capitals ("US") is another word in small letters."""
    plain = unicodedata.normalize("NFKC", clean(text))
    return re.search(rf"(?<!\w){re.escape(alias)}(?!\w)", plain) is not None


def holds(text: str, held: Sequence[str], fact: str, aliases: Sequence[str] = ()) -> bool:
    """True when a chunk (its text, and the same as ``canonical`` words) holds a fact or an alias of
    it.

    The longest wording is tried first. An alias of one or two characters, or of digits only, counts
    only with another word of the fact within five words.
    """
    context = {word for word in canonical(fact) if word not in STOP_WORDS}
    for alias in sorted({fact, *aliases}, key=lambda item: (-len(item), item)):
        name = alias.strip()
        phrase = canonical(name)
        if not phrase:
            continue
        if len(name) > 1 and name.isalpha() and name.isupper() and not _in_capitals(name, text):
            continue
        starts = _occurrences(phrase, held)
        if _is_weak(name) and context - set(phrase):
            near = context - set(phrase)
            starts = [
                start
                for start in starts
                if near & set(held[max(0, start - 5) : start + len(phrase) + 5])
            ]
        if starts:
            return True
    return False
