"""Claim support in other languages: questions and answers on parallel text, and a French book.

A claim is a question with its answer. It is supported by the paragraph it was written for. It is
not by (a) the other paragraphs of the article, nor by (b) its own paragraph without the sentences
that hold the answer. A threshold is chosen on the even articles and reported on the odd ones.

Two files of our own lie beside this one. ``refusals_by_language.jsonl``: 60 answers in each of nine
languages, half of them refusals, half answers that quote or discuss one, written by somebody who
had not seen the phrases; the phrases were revised by general rule after their first figures.
``claims_fr.jsonl``: 60 claims about pages of the French book, half of them supported, written
before any was scored.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ragmetrics import abstention
from ragmetrics.claims import THRESHOLDS, score_claim
from ragmetrics.stats import agreement
from ragmetrics.support import judge
from ragmetrics.support_model import THRESHOLD
from ragmetrics.support_model import THRESHOLDS as LANGUAGE_THRESHOLDS
from ragmetrics.text.sentences import units
from ragmetrics.text.words import fold
from ragmetrics.windows import PreparedChunk, prepare
from records.jsonl import read_rows
from research import metrics

_REFUSALS = Path(__file__).with_name("refusals_by_language.jsonl")

_FRENCH_CLAIMS = Path(__file__).with_name("claims_fr.jsonl")

GRID = tuple(round(0.2 + 0.01 * step, 2) for step in range(75))

_DRAWS = 500

_ENOUGH = 150
"""Claims of a language from which its threshold may be rejected."""

_LEAST, _LEAST_LOW = 0.65, 0.60
"""Balanced accuracy, and the lower end of its interval, below which a threshold is rejected."""

_MIN_BLOCK = 40
"""Letters from which a block of the book is a claim."""


@dataclass
class Strengths:
    """Strengths of claims against what supports them, and against (a) and (b), which do not."""

    own: list[float] = field(default_factory=list)
    others: list[float] = field(default_factory=list)
    without: list[float] = field(default_factory=list)

    def balanced(self, unsupported: Sequence[float], threshold: float) -> float:
        """Balanced accuracy of ``strength >= threshold``."""
        labels = [1] * len(self.own) + [0] * len(unsupported)
        verdicts = [value >= threshold for value in (*self.own, *unsupported)]
        return agreement.balanced_accuracy(labels, verdicts) or 0.0

    def best_threshold(self) -> float:
        """The lowest threshold of the grid with the best sum of both balanced accuracies."""
        return max(
            GRID, key=lambda t: self.balanced(self.others, t) + self.balanced(self.without, t)
        )


Score = Callable[[str, str, Sequence[PreparedChunk]], float]


def by_words(answer: str, question: str, chunks: Sequence[PreparedChunk]) -> float:
    """The word share of a question with its answer, 0 under a veto."""
    support = score_claim(answer, chunks, lead=question)
    return 0.0 if support is None else support.strength


def by_model(answer: str, question: str, chunks: Sequence[PreparedChunk]) -> float:
    """What ``support.judge`` ranks by."""
    judged = judge(answer, chunks, lead=question)
    return 0.0 if judged is None else judged.strength


def read_articles(data: Path) -> dict[str, dict[int, list[dict[str, Any]]]]:
    """The paragraphs of the parallel set by language and article."""
    articles: dict[str, dict[int, list[dict[str, Any]]]] = defaultdict(lambda: defaultdict(list))
    for _, row in read_rows(data / "xquad" / "data.jsonl.gz"):
        articles[row["lang"]][row["article"]].append(row)
    return {language: dict(articles[language]) for language in sorted(articles)}


def measure(
    articles: Mapping[int, Sequence[Mapping[str, Any]]], language: str, score: Score = by_words
) -> tuple[Strengths, Strengths]:
    """The strengths of one language: even articles, odd articles."""
    halves = (Strengths(), Strengths())
    for article, paragraphs in articles.items():
        chunks = [prepare(paragraph["text"], language) for paragraph in paragraphs]
        for index, paragraph in enumerate(paragraphs):
            rest = chunks[:index] + chunks[index + 1 :]
            _add(halves[article % 2], paragraph, chunks[index], rest, language, score)
    return halves


def _add(
    strengths: Strengths,
    paragraph: Mapping[str, Any],
    own: PreparedChunk,
    rest: Sequence[PreparedChunk],
    language: str,
    score: Score,
) -> None:
    text = paragraph["text"]
    sentences = [text[unit.start : unit.end] for unit in units(text)]
    for item in paragraph["questions"]:
        answer, question = item["answers"][0], item["question"]
        strengths.own.append(score(answer, question, [own]))
        if rest:
            strengths.others.append(score(answer, question, rest))
        without = [sentence for sentence in sentences if fold(answer) not in fold(sentence)]
        if 0 < len(without) < len(sentences):
            shortened = prepare(" ".join(without), language)
            strengths.without.append(score(answer, question, [shortened]))


def measure_refusals() -> dict[str, dict[str, Any]]:
    """Precision, recall and F1 of the detector of refusals in each language of our own answers."""
    rows: dict[str, list[tuple[int, bool]]] = defaultdict(list)
    for _, row in read_rows(_REFUSALS):
        abstained = abstention.detect(row["text"]).abstained
        rows[row["language"]].append((int(row["abstained"]), abstained))
    figures = {}
    for language, pairs in sorted(rows.items()):
        labels, verdicts = [label for label, _ in pairs], [verdict for _, verdict in pairs]
        precision, recall, f1 = metrics.precision_recall_f1(labels, verdicts)
        figures[language] = {
            "refusal_answers": len(pairs),
            "refusal_precision": precision,
            "refusal_recall": recall,
            "refusal_f1": f1,
        }
    return figures


def measure_support(data: Path) -> dict[str, dict[str, Any]]:
    """Claims on the odd articles by language at the threshold that ships, English by its model."""
    figures = {}
    for language, articles in read_articles(data).items():
        english = language == "en"
        odd = measure(articles, language, by_model if english else by_words)[1]
        if not english and language not in LANGUAGE_THRESHOLDS:
            continue
        threshold = THRESHOLD if english else LANGUAGE_THRESHOLDS[language]
        figures[language] = {
            "threshold": threshold,
            "claims": len(odd.own),
            "balanced_accuracy_others": odd.balanced(odd.others, threshold),
            "balanced_accuracy_without": odd.balanced(odd.without, threshold),
        }
    return figures


def measure_french_claims(data: Path) -> dict[str, Any]:
    """Our own French claims against all blocks of the page that they are about."""
    pages: dict[str, list[PreparedChunk]] = defaultdict(list)
    for _, row in read_rows(data / "vault_rust_book_fr" / "parallel.jsonl.gz"):
        pages[row["group"]].append(prepare(row["fr"], "fr"))
    pairs = []
    for _, row in read_rows(_FRENCH_CLAIMS):
        judged = judge(row["claim"], pages[row["page"]])
        pairs.append((int(row["supported"]), judged is not None and judged.supported))
    labels, verdicts = [label for label, _ in pairs], [verdict for _, verdict in pairs]
    return {
        "threshold": LANGUAGE_THRESHOLDS["fr"],
        "own_claims": len(pairs),
        "own_balanced_accuracy": agreement.balanced_accuracy(labels, verdicts),
    }


def measure_all(data: Path) -> dict[str, dict[str, Any]]:
    """All figures by language; parts whose set is not there are left out."""
    figures = measure_refusals()
    if (data / "xquad").is_dir():
        for language, row in measure_support(data).items():
            figures[language] = figures.get(language, {}) | row
    if (data / "vault_rust_book_fr").is_dir():
        figures["fr"] = figures.get("fr", {}) | measure_french_claims(data)
    return dict(sorted(figures.items()))


def _block_strengths(rows: Iterable[Mapping[str, Any]], language: str) -> list[float]:
    """Each block of a page as a claim against the other blocks of its page."""
    pages: dict[str, list[str]] = defaultdict(list)
    for row in rows:
        if len(row[language]) >= _MIN_BLOCK:
            pages[row["group"]].append(row[language])
    strengths = []
    for blocks in pages.values():
        chunks = [prepare(block, language) for block in blocks]
        for index, block in enumerate(blocks):
            support = score_claim(block, chunks[:index] + chunks[index + 1 :])
            if support is not None:
                strengths.append(support.score)
    return strengths


def matched_threshold(data: Path, language: str = "fr") -> float:
    """The threshold that accepts as large a share of French blocks as English ones pass 0.55.

    For a language that the parallel set lacks: blocks of a translated book against the other blocks
    of their page.
    """
    rows = [row for _, row in read_rows(data / "vault_rust_book_fr" / "parallel.jsonl.gz")]
    english, other = _block_strengths(rows, "en"), _block_strengths(rows, language)
    accepted = sum(value >= THRESHOLDS["assertion"] for value in english) / len(english)
    return min(GRID, key=lambda t: abs(sum(value >= t for value in other) / len(other) - accepted))


def pooled(
    articles: Mapping[int, Sequence[Mapping[str, Any]]], language: str, threshold: float
) -> tuple[int, float, tuple[float, float] | None]:
    """Claims on the odd articles, the balanced accuracy against (a) and (b) together, and its 95 %
    interval by article.
    """
    rows: list[tuple[str, int, bool]] = []
    for article in (number for number in articles if number % 2):
        odd = measure({article: articles[article]}, language)[1]
        rows += [(str(article), 1, value >= threshold) for value in odd.own]
        rows += [(str(article), 0, value >= threshold) for value in odd.others + odd.without]
    groups, labels, verdicts = zip(*rows, strict=True) if rows else ((), (), ())

    def accuracy(weights: Any = None) -> float | None:
        return agreement.balanced_accuracy(labels, verdicts, weights)

    draws = metrics.Resampling(_DRAWS)
    ends = draws.interval(groups, accuracy)
    return len(rows), accuracy() or 0.0, None if ends is None else (ends[0], ends[1])


def holds(claims: int, accuracy: float, ends: tuple[float, float] | None) -> bool:
    """False when enough claims show that a threshold does not tell supported claims from others."""
    low = ends[0] if ends else accuracy
    return claims < _ENOUGH or (accuracy >= _LEAST and low >= _LEAST_LOW)


def thresholds(data: Path) -> dict[str, float]:
    """The threshold of each language but English; a language whose threshold fails on the odd
    articles has none, and its claims are not applicable.
    """
    chosen: dict[str, float] = {}
    for language, articles in read_articles(data).items():
        threshold = measure(articles, language)[0].best_threshold()
        if language != "en" and holds(*pooled(articles, language, threshold)):
            chosen[language] = threshold
    return dict(sorted((chosen | {"fr": matched_threshold(data)}).items()))
