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

REDUNDANT = 0.8

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


def ngram_overlap(one: Sequence[str], other: Sequence[str], n: int = N) -> float:
    """|A ∩ B| / min(|A|, |B|) on word n-grams, in [0, 1].

    On single words when either has fewer than n; 0 when either has none.
    """
    if min(len(one), len(other)) < n:
        n = 1
    return _overlap(_grams(one, n), _grams(other, n))


def ngram_matrix(chunks: Sequence[Sequence[str]]) -> dict[tuple[int, int], float]:
    """The ``ngram_overlap`` of each pair of chunks (i < j); each chunk is cut into n-grams once."""
    grams = [_grams(chunk, N) if len(chunk) >= N else None for chunk in chunks]
    found = {}
    for i, j in combinations(range(len(chunks)), 2):
        first, second = grams[i], grams[j]
        if first is None or second is None:
            found[i, j] = ngram_overlap(chunks[i], chunks[j])
        else:
            found[i, j] = _overlap(first, second)
    return found


def shared_end(one: Sequence[str], other: Sequence[str]) -> int:
    """Words of the longest end of ``one`` that ``other`` starts with (overlapping chunkers)."""
    limit = min(len(one), len(other))
    if not limit or other[0] not in one or one[-1] not in other:
        return 0
    # Knuth-Morris-Pratt: the prefix function of other + end of one.
    line: list[str | None] = [*other[:limit], None, *one[len(one) - limit :]]
    border = [0] * len(line)
    for place in range(1, len(line)):
        length = border[place - 1]
        while length and line[place] != line[length]:
            length = border[length - 1]
        border[place] = length + (line[place] == line[length])
    return border[-1]


def without_shared_ends(
    chunks: Sequence[Sequence[str]], overlaps: Mapping[tuple[int, int], float] | None = None
) -> float:
    """Mean n-gram overlap after each pair's shared end is cut from one of the two; 0 for one chunk.

    A pair that is one text twice keeps its overlap: only a proper end is cut. ``overlaps`` is the
    chunks' ``ngram_matrix``, when it is known.
    """
    overlaps = ngram_matrix(chunks) if overlaps is None else overlaps
    kept = []
    for (i, j), overlap in overlaps.items():
        one, other = chunks[i], chunks[j]
        cut = max((shared_end(one, other), one, other), (shared_end(other, one), other, one))
        size, first, second = cut
        proper = 0 < size < min(len(first), len(second))
        kept.append(ngram_overlap(first, second[size:]) if proper else overlap)
    return sum(kept) / len(kept) if kept else 0.0


def _share_redundant(pairs: Mapping[tuple[int, int], float], chunks: int) -> float:
    repeated = {j for (_, j), value in pairs.items() if value >= REDUNDANT}
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

    found: tuple[tuple[int, ...], ...] = field(default=())

    @property
    def coverage(self) -> float | None:
        """Facts that any chunk holds / facts; None without facts."""
        return sum(map(bool, self.found)) / len(self.found) if self.found else None

    @property
    def dispersion(self) -> float | None:
        """Mean number of chunks that hold a fact, over the facts found; None when none was."""
        held = [len(places) for places in self.found if places]
        return sum(held) / len(held) if held else None


def find_facts(texts: Sequence[str], facts: Sequence[Fact]) -> FactScores:
    """Which chunks hold which fact."""
    read = [(text, canonical(text)) for text in texts] if facts else []
    return FactScores(
        tuple(
            tuple(
                place
                for place, (text, held) in enumerate(read)
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
    worded = [place for place, found in enumerate(every) if found]
    read = [every[place] for place in worded]
    values: dict[str, float | None] = dict.fromkeys(METRICS)
    reasons: dict[str, str] = {}
    grams = ngram_matrix(read)
    if worded:
        values["redundancy_ngram"] = _mean(grams)
        values["redundant_chunks_ngram"] = _share_redundant(grams, len(worded))
    else:
        reasons |= dict.fromkeys((*METRICS[:4], "unique_token_ratio"), NO_WORDS)
    if frequencies is None and worded:
        reasons |= dict.fromkeys(METRICS[1:4:2], "no document frequencies of the run")
    elif frequencies is not None and worded:
        table = frequencies.similarity([texts[place] for place in worded])
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
    evidence = _alike([chunks[place] for place in worded], grams, read)
    if gold_facts:
        evidence["facts"] = [
            {"fact": fact.fact, "chunks": [chunks[place].chunk_id for place in places]}
            for fact, places in zip(gold_facts, facts.found, strict=True)
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
    place = 0
    for number in numbers(text, claim=False):
        if number.start < place or number.is_id:
            continue
        parts += [folded[place : number.start], f" {_spoken(number)} "]
        place = number.end
    parts.append(folded[place:])
    return [stem(word) for word in words("".join(parts))]


def _is_weak(alias: str) -> bool:
    plain = fold(alias).strip()
    return len(plain) <= SHORT or plain.replace(",", "").replace(".", "").isdigit()


def _occurrences(wanted: Sequence[str], held: Sequence[str]) -> list[int]:
    first, size = wanted[0], len(wanted)
    return [
        place
        for place, word in enumerate(held)
        if word == first and list(held[place : place + size]) == list(wanted)
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
        wanted = canonical(name)
        if not wanted:
            continue
        if len(name) > 1 and name.isalpha() and name.isupper() and not _in_capitals(name, text):
            continue
        places = _occurrences(wanted, held)
        if _is_weak(name) and context - set(wanted):
            near = context - set(wanted)
            places = [
                place
                for place in places
                if near & set(held[max(0, place - 5) : place + len(wanted) + 5])
            ]
        if places:
            return True
    return False
