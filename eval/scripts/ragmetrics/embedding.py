"""Metrics of sentence vectors: how near question, contexts, answer and reference are in meaning.

Vectors come from outside, with L2 norm 1, as float arrays of shape (n, d); a text that is longer
than the model reads comes as several of them, one a window. A cosine lies in [-1, 1] and is rounded
to 6 places, so that a text is exactly 1.0 like itself; negative cosines stay negative.

Nearness is no truth: these numbers are blind to negation and to reversed facts.

``score_case`` scores one case in steps: it yields the texts whose vectors it needs next and is sent
them, so that whoever makes the vectors may make those of many cases at once.
"""

from __future__ import annotations

import heapq
import re
from collections.abc import Generator, Iterable, Mapping, Sequence
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any

from ragmetrics.case_scores import (
    NO_CONTEXTS,
    NO_QUESTION,
    CaseScores,
    Collector,
    RetrievedText,
    unusable,
)
from ragmetrics.stats.arrays import Floats, NDArray, np
from ragmetrics.stats.means import share_from
from ragmetrics.text.plain import plain
from ragmetrics.text.sentences import MARK, units
from ragmetrics.text.words import words

if TYPE_CHECKING:
    Vectors = NDArray[np.float32]

METRICS = (
    "context_relevance",
    "context_relevance_max",
    "context_relevance_top3",
    "context_sufficiency",
    "question_answer_similarity",
    "answer_relevance",
    "answer_correctness",
    "answer_hallucination",
    "answer_hallucination@2",
)
_OF_QUESTION = METRICS[:5]
_DECIMALS = 6
BLOCK = 256
"""Texts that are compared at once, so that two texts of a megabyte need no gigabyte."""
_WINDOW_SENTENCES = 3
_MOST_PAIRS = 2_000_000
SUFFICIENT = 0.5
HALLUCINATED = 0.4
HALLUCINATED_WINDOWS = 0.65
_CLAIMING = ("prose", "item", "table")
_MARK = re.compile(rf"(?<!\s)\s*{MARK}")  # begun once in a run of blanks

VectorsByText = Mapping[str, "Vectors"]
Steps = Generator[list[str], VectorsByText, CaseScores]
"""Yields texts, is sent their vectors by text (one row each, or one a window), returns scores."""


def score_case(
    question: str | None,
    answer: str,
    reference: str,
    chunks: Sequence[RetrievedText],
    *,
    tools: Sequence[RetrievedText] = (),
    abstained: bool = False,
    sufficient: float = SUFFICIENT,
    hallucinated: float = HALLUCINATED,
    hallucinated_windows: float = HALLUCINATED_WINDOWS,
) -> Steps:
    """The scores of one case, with the nearest window of each sentence of the answer as evidence.

    ``question``: None for one that cannot be understood without what came before it. ``chunks``: in
    rank order; each text counts once. ``tools``: results of tools, which support an answer as the
    chunks do and say nothing of how these were retrieved. ``abstained``: the answer says nothing
    to compare. The three thresholds say from where a context is near the question, a context near
    a sentence, and a window near a sentence.
    """
    answer = _MARK.sub("", plain(answer).text).strip()
    silent = "" if answer else "empty answer"
    if answer and abstained:
        answer, silent = "", "abstained"
    reference = reference.strip()
    answer_sentences, reference_sentences = (
        claiming_sentences(answer),
        claiming_sentences(reference),
    )
    contexts, no_contexts = distinct_texts(chunks)
    sources, no_sources = distinct_texts([*chunks, *tools]) if tools else (contexts, no_contexts)
    whole = [text for text in (answer, reference) if text]
    asked = [question] if question else []
    vectors = yield [*asked, *whole, *answer_sentences, *reference_sentences, *sources]
    scores = Collector(METRICS)
    context_vectors = [vectors[text] for text in contexts]
    if question:
        _contexts(scores, vectors[question], context_vectors, sufficient, no_contexts)
        similarity = whole_similarity(vectors[question], vectors[answer]) if answer else None
        scores.set("question_answer_similarity", similarity, silent)
    else:
        scores.nothing(_OF_QUESTION, NO_QUESTION)
    if why := silent or ("" if reference else "no reference_answer"):
        scores.nothing(("answer_relevance", "answer_correctness"), why)
    else:
        near = nearest(
            [vectors[text] for text in reference_sentences],
            [vectors[text] for text in answer_sentences],
        )
        scores.set("answer_relevance", answer_relevance(near), "no sentences")
        whole_answer = whole_similarity(vectors[answer], vectors[reference])
        scores.set("answer_correctness", whole_answer, "")
    if why := silent or ("" if answer_sentences else "no sentences") or no_sources:
        scores.nothing(("answer_hallucination", "answer_hallucination@2"), why)
        return scores.result()
    near = nearest([vectors[text] for text in answer_sentences], [vectors[s] for s in sources])
    best = _as_list(near.max(axis=1))
    scores.set("answer_hallucination", share_below(best, hallucinated), "")
    windows = _windows(sources)
    if len(answer_sentences) * len(windows) > _MOST_PAIRS:  # texts of megabytes
        scores.nothing(("answer_hallucination@2",), "answer and contexts are too long")
        return scores.result()
    supported = yield from _by_window(answer_sentences, vectors, windows, hallucinated_windows)
    close = [similarity for _, similarity in supported]
    scores.set("answer_hallucination@2", share_below(close, hallucinated_windows), "")
    scores.evidence["sentences"] = [
        {
            "text": text,
            "context": round(cosine, 4),
            "window": round(value, 4),
            "nearest": window,
        }
        for text, cosine, (window, value) in zip(answer_sentences, best, supported, strict=True)
    ]
    return scores.result()


def _contexts(
    scores: Collector, question: Vectors, contexts: Sequence[Vectors], sufficient: float, why: str
) -> None:
    near = _as_list(nearest([question], contexts)[0])
    relevance = context_relevance(near)
    scores.set("context_relevance", relevance["mean"], why)
    scores.set("context_relevance_max", relevance["max"], why)
    scores.set("context_relevance_top3", relevance["top3"], why)
    scores.set("context_sufficiency", share_from(near, sufficient), why)
    if near:
        scores.evidence["contexts"] = [round(value, 4) for value in near]
    if long := sum(len(vectors) > 1 for vectors in contexts):
        scores.evidence["contexts_in_windows"] = long


def _by_window(
    sentences: Sequence[str],
    vectors_by_text: VectorsByText,
    windows: Mapping[str, frozenset[str]],
    threshold: float,
) -> Generator[list[str], VectorsByText, list[tuple[str, float]]]:
    """For each sentence a window that reaches the threshold, else the nearest of all.

    Embedding every window of every context would cost ten times the rest. The verdict needs only
    one that is near enough: an equal one needs no vector, then the likely ones are tried, and all
    others only where these fail.
    """
    equal = {flat(window): window for window in windows}
    nearest_window: dict[str, tuple[str, float]] = {
        text: (equal[key], 1.0) for text in sentences if (key := flat(text)) in equal
    }
    likely = likely_windows([text for text in sentences if text not in nearest_window], windows)
    if likely:
        vectors = yield [window for texts in likely.values() for window in texts]
        nearest_window |= {
            text: _nearest_text(vectors_by_text[text], texts, vectors)
            for text, texts in likely.items()
        }
    far = [text for text in likely if nearest_window[text][1] < threshold]
    if far:
        vectors = yield list(windows)
        nearest_window |= {
            text: _nearest_text(vectors_by_text[text], list(windows), vectors) for text in far
        }
    return [nearest_window[text] for text in sentences]


def _nearest_text(
    sentence: Vectors, texts: Sequence[str], vectors: VectorsByText
) -> tuple[str, float]:
    """The text nearest to a sentence and its cosine; ("", -1) when there is none."""
    if not texts:
        return "", -1.0
    near = nearest([sentence], [vectors[text] for text in texts])[0]
    index = int(near.argmax())
    return texts[index], float(near[index])


def claiming_sentences(text: str) -> list[str]:
    """The sentences that claim something: no headings, no code, no citation marks; each once."""
    text = plain(text).text
    claiming = (text[unit.start : unit.end] for unit in units(text) if unit.kind in _CLAIMING)
    bare = (_MARK.sub("", sentence).strip() for sentence in claiming)
    return list(dict.fromkeys(sentence for sentence in bare if any(map(str.isalnum, sentence))))


def distinct_texts(chunks: Sequence[RetrievedText]) -> tuple[list[str], str]:
    """The chunks' texts, each once, or none and why."""
    why = unusable(chunks) if chunks else NO_CONTEXTS
    if why:
        return [], why
    return list(
        dict.fromkeys(chunk.text for chunk in chunks if chunk.text and chunk.text.strip())
    ), ""


def _windows(contexts: Iterable[str]) -> dict[str, frozenset[str]]:
    """All windows of 1-3 sentences of the contexts, each once, with their words."""
    windows: dict[str, frozenset[str]] = {}
    for context in contexts:
        windows |= (_known_windows if len(context) <= _USUAL_LENGTH else _windows_of)(context)
    return windows


def _windows_of(context: str) -> Mapping[str, frozenset[str]]:
    return sentence_windows([context[unit.start : unit.end] for unit in units(context)])


_known_windows = lru_cache(maxsize=512)(_windows_of)
"""Passages come again with other questions, and in the second step of their own."""

_USUAL_LENGTH = 4000


def cosines(first: Vectors, second: Vectors) -> Floats:
    """Cosine of each row of ``first`` with each row of ``second``: shape (n, m), values in [-1, 1].

    Sums run in double precision and are rounded, so a vector of norm 1 has cosine 1.0 with itself.
    """
    product = first.astype(np.float64) @ second.astype(np.float64).T
    return np.clip(np.round(product, _DECIMALS), -1.0, 1.0)


def nearest(texts: Sequence[Vectors], other: Sequence[Vectors]) -> Floats:
    """Best cosine between the windows of each text and those of each other text: shape (n, m).

    Taking the best window asks whether the other text speaks of this one *somewhere*.
    """
    if not texts or not other:
        return np.zeros((len(texts), len(other)))
    others, starts = np.concatenate(list(other)), _starts(other)
    blocks = []
    for first in range(0, len(texts), BLOCK):
        block = texts[first : first + BLOCK]
        whole = cosines(np.concatenate(list(block)), others)
        rows = np.maximum.reduceat(whole, _starts(block), axis=0)
        blocks.append(np.maximum.reduceat(rows, starts, axis=1))
    return np.concatenate(blocks)


def _starts(texts: Sequence[Vectors]) -> list[int]:
    starts = [0]
    for text in texts[:-1]:
        starts.append(starts[-1] + len(text))
    return starts


def _pooled(windows: Vectors) -> Vectors:
    """One vector for a text of several windows: their mean, at norm 1; shape (1, d).

    For comparing two texts as wholes, where the best pair of windows would say too much.
    """
    if len(windows) == 1:
        return windows
    mean = windows.astype(np.float64).mean(axis=0, keepdims=True)
    length = float(np.linalg.norm(mean))
    return np.asarray(mean / length if length else mean)


def whole_similarity(first: Vectors, second: Vectors) -> float:
    """Cosine of two texts as wholes, -1 to 1 (1 the same). Undefined for texts without windows."""
    return float(cosines(_pooled(first), _pooled(second))[0, 0])


def context_relevance(similarities: Sequence[float]) -> dict[str, float | None]:
    """From cosine(question, context) of each context: the mean, the best, the mean of the best 3.

    -1 to 1. The mean falls as more contexts are asked for; the other two do not. None without
    contexts.
    """
    if not len(similarities):
        return dict.fromkeys(("mean", "max", "top3"))
    ordered = sorted(map(float, similarities), reverse=True)
    return {"mean": _mean(ordered), "max": ordered[0], "top3": _mean(ordered[:3])}


def share_below(similarities: Sequence[float], threshold: float) -> float | None:
    """Share of values under the threshold, 0-1 (of sentences: unsupported ones); None without."""
    share = share_from(similarities, threshold)
    return None if share is None else 1.0 - share


def answer_relevance(similarities: Floats) -> float | None:
    """Mean, over reference sentences (rows), of the best answer sentence (columns); -1 to 1.

    1: every sentence of the reference stands in the answer. None when either has no sentence.
    """
    if not similarities.size:
        return None
    return _mean(similarities.max(axis=1).tolist())


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def sentence_windows(
    sentences: Sequence[str], most: int = _WINDOW_SENTENCES
) -> dict[str, frozenset[str]]:
    """All runs of 1 to ``most`` consecutive sentences as one text, without repeats, each with its
    words: those of its sentences, since no word goes across a blank."""
    words_of = [_word_set(sentence) for sentence in sentences]
    return {
        " ".join(sentences[start : start + size]): frozenset().union(
            *words_of[start : start + size]
        )
        for size in range(1, most + 1)
        for start in range(len(sentences) - size + 1)
    }


def likely_windows(
    sentences: Sequence[str], windows: Mapping[str, frozenset[str]], most: int = 12
) -> dict[str, list[str]]:
    """For each sentence the windows that share most of its words, shorter ones first on ties.

    ``windows``: with the words of each. Where to look first, nothing more: whether a window
    supports the sentence its vector says.
    """
    held = [(held_words, len(window), window) for window, held_words in windows.items()]
    likely = {}
    for sentence in sentences:
        sentence_words = _word_set(sentence)
        ranked = heapq.nsmallest(most, held, key=partial(_distance, sentence_words))
        likely[sentence] = [window for _, _, window in ranked]
    return likely


def _distance(
    sentence_words: frozenset[str], window: tuple[frozenset[str], int, str]
) -> tuple[int, int]:
    held, length, _ = window
    return -len(sentence_words & held), length


def _word_set(text: str) -> frozenset[str]:
    return frozenset(words(text.casefold()))


def flat(text: str) -> str:
    """A text for literal comparison: casefolded, white space as single blanks, no outer stops."""
    return " ".join(text.casefold().split()).strip(" .:;,!?")


def _as_list(values: Any) -> list[float]:
    """An array's values as plain floats."""
    return [float(value) for value in values]
