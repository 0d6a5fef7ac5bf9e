"""Decides by phrases and passages whether an answer abstained; counts answered x answerable.

Phrases are those of nineteen languages; quoted words decide nothing. The first sentence that
declines decides, if little was said before it. "We do not refund shipping" is an answer when the
passages say so.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from ragmetrics.case_scores import RetrievedText, unusable
from ragmetrics.claims import AnswerClaim, extract, has_threshold, score_claim
from ragmetrics.text import numbers
from ragmetrics.text.content import content_stems
from ragmetrics.text.language import language_of
from ragmetrics.text.plain import PlainText, plain
from ragmetrics.text.refusals import (
    answers_a_part,
    declines,
    lacks_a_part,
    says_the_same,
    without_quotes,
)
from ragmetrics.text.sentences import units
from ragmetrics.text.words import fold, has_fewer_words
from ragmetrics.windows import WINDOW, best_window, merged, prepare

SHORT = 4
"""Words from which a sentence before the deciding one is more than an opener ("Good question!")."""

PARTIAL_CLAIMS = 2
"""Supported claims after an opening refusal that make an answer partial."""

SAID_BY_PASSAGES = 0.60
"""Share of a declining sentence's content words in a window of the passages from which it may
repeat them."""

BY_PASSAGES = "the passages say so"
"""The rule by which a sentence with a refusal phrase is still an answer."""

State = Literal["abstained", "partial", "answered", "empty"]


@dataclass(frozen=True, slots=True)
class Detection:
    """``state``, and the sentence that decided as a span of the answer (None when nothing did)."""

    state: State
    span: tuple[int, int] | None = None
    rule: str = ""

    @property
    def abstained(self) -> bool:
        """True for an abstention; a partial answer is an answer."""
        return self.state == "abstained"

    @property
    def denial(self) -> tuple[int, int] | None:
        """The span of a sentence that only sounds like an abstention: the passages say it."""
        return self.span if self.rule == BY_PASSAGES else None


def detect(answer: str | None, supported_after: int | None = None, question: str = "") -> Detection:
    """Decide by phrases whether an answer abstains.

    Args:
        answer: the answer; without a visible character its state is ``empty``, which is a failure
            of the bot and no abstention.
        supported_after: how many claims after the deciding sentence the contexts support, when
            known; two or more make the answer ``partial``.
        question: the question, when known.

    The deciding sentence is the first that declines. Sentences before it make the answer
    ``partial`` when there are more of them than declining ones, when it speaks of a part only
    ("the exact date is not given"), or when they answer one of two things that were asked.
    """
    read = plain(answer or "")
    return _of_the_answer(read, _decide(read.text, question, supported_after))


def _of_the_answer(read: PlainText, detection: Detection) -> Detection:
    """The detection with its span in the answer as it was written."""
    return replace(detection, span=detection.span and read.span(*detection.span))


def _decide(text: str, question: str, supported_after: int | None = None) -> Detection:
    if all(unicodedata.category(char)[0] in "ZC" for char in text):  # blanks and invisible ones
        return Detection("empty")
    sentence_units = [unit for unit in units(text) if unit.kind in ("prose", "item", "stem")]
    own_words = without_quotes(text)
    sentences = [own_words[unit.start : unit.end] for unit in sentence_units]
    kinds = map(declines, sentences)
    first, rule = next(((index, kind) for index, kind in enumerate(kinds) if kind), (-1, ""))
    if first < 0:
        return Detection("answered")
    before = [sentence for sentence in sentences[:first] if not _opens(sentence)]
    span = (sentence_units[first].start, sentence_units[first].end)
    if before:
        later = [text for text, kind in zip(sentences[first + 1 :], kinds, strict=True) if kind]
        declining = [sentences[first], *later]
        mostly = len(before) <= len(declining) and 2 * len(declining) >= len(sentences) - first
        if not mostly or lacks_a_part(sentences[first]) or _tells(question, before, declining):
            return Detection("partial", span, f"{rule} of a part")
    partial = supported_after is not None and supported_after >= PARTIAL_CLAIMS
    return Detection(
        "partial" if partial else "abstained", span, f"mostly {rule}" if before else rule
    )


def _tells(question: str, before: Sequence[str], declining: Sequence[str]) -> bool:
    """Whether the sentences before those that decline answer a part of the question."""
    if not question:
        return False
    statement, rest = " ".join(before), " ".join(declining)
    return answers_a_part(question, statement, rest, language_of(statement, question, [rest]))


def _opens(sentence: str) -> bool:
    """Whether a sentence before the one that decides is talk: short words, or an exclamation."""
    most = 2 * SHORT if sentence.rstrip().endswith("!") else SHORT
    return has_fewer_words(fold(sentence), most)


def detect_with_passages(
    answer: str | None, passages: Sequence[RetrievedText], question: str
) -> Detection:
    """Decide by phrases and passages whether an answer abstains.

    The passages are asked only where a phrase has caught the answer and their full texts are known.
    An answer whose deciding sentence they say themselves is ``answered``; one that goes on with
    claims that they support is ``partial``.
    """
    read = plain(answer or "")
    return _of_the_answer(read, _decide_with_passages(read.text, passages, question))


def _decide_with_passages(text: str, passages: Sequence[RetrievedText], question: str) -> Detection:
    detection = _decide(text, question)
    if not detection.abstained or detection.span is None or not passages or unusable(passages):
        return detection
    if _passages_say(text[slice(*detection.span)], passages, question):
        return Detection("answered", detection.span, BY_PASSAGES)
    later = _claims_after(text, detection.span[1])
    if len(later) < PARTIAL_CLAIMS:
        return detection
    return _decide(text, question, _count_supported(later, passages, question))


def _passages_say(sentence: str, passages: Sequence[RetrievedText], question: str) -> bool:
    """Whether a window of the passages has the words of a sentence and declines like it."""
    texts = [passage.text or "" for passage in passages]
    language = language_of(sentence, question, texts)
    spelling = content_stems(fold(sentence), language)
    least = SAID_BY_PASSAGES * len(spelling)
    for text in texts:
        folded = fold(text)
        if sum(stem[:4] in folded for stem in spelling) < least:
            continue  # most passages, and this costs less than cutting them into sentences
        chunk = prepare(text, language)
        count, first = best_window(tuple(spelling), chunk)
        if count and count >= least:
            last = min(first + WINDOW, len(chunk.spans)) - 1
            if says_the_same(sentence, chunk.text[chunk.spans[first][0] : chunk.spans[last][1]]):
                return True
    return False


def _claims_after(answer: str, position: int) -> list[AnswerClaim]:
    return [
        claim
        for claim in extract(answer).claims
        if claim.start >= position and claim.type != "general"
    ]


def _count_supported(
    claims: Sequence[AnswerClaim], passages: Sequence[RetrievedText], question: str
) -> int:
    language = language_of(
        " ".join(claim.text for claim in claims), question, (item.text for item in passages)
    )
    if not has_threshold(language):
        return 0
    prepared = [prepare(passage.text or "", language) for passage in passages]
    pooled, asked = merged(prepared), numbers.index(question, language)
    supports = (
        score_claim(
            claim.text,
            prepared,
            question=asked,
            context_numbers=pooled,
            kind=claim.type,
            lead=claim.lead,
        )
        for claim in claims
    )
    return sum(support is not None and support.supported for support in supports)


@dataclass(frozen=True, slots=True)
class FourCells:
    """Counts of cases: what the bot did x what it could have done."""

    answered_answerable: int = 0
    abstained_answerable: int = 0
    answered_unanswerable: int = 0
    abstained_unanswerable: int = 0


def four_cells(cases: Iterable[tuple[bool, bool]]) -> FourCells:
    """The table of pairs (abstained, answerable)."""
    counts = {
        (abstained, answerable): 0 for abstained in (True, False) for answerable in (True, False)
    }
    for abstained, answerable in cases:
        counts[abstained, answerable] += 1
    return FourCells(
        counts[False, True], counts[True, True], counts[False, False], counts[True, False]
    )


def rates(table: FourCells) -> dict[str, float | None]:
    """Return the four metrics of a table; None where no case counts.

    ``abstention_accuracy`` and ``hallucination_on_unanswerable`` are shares of the unanswerable
    cases, ``over_refusal`` of the answerable ones. ``abstention_f1`` takes abstaining on the
    unanswerable as the
    hit: 2 tp / (2 tp + fp + fn), None when nothing was unanswerable and nothing abstained.
    """
    unanswerable = table.abstained_unanswerable + table.answered_unanswerable
    answerable = table.abstained_answerable + table.answered_answerable
    hits = table.abstained_unanswerable
    wrong = table.abstained_answerable + table.answered_unanswerable
    return {
        "abstention_accuracy": hits / unanswerable if unanswerable else None,
        "hallucination_on_unanswerable": (
            table.answered_unanswerable / unanswerable if unanswerable else None
        ),
        "over_refusal": table.abstained_answerable / answerable if answerable else None,
        "abstention_f1": 2 * hits / (2 * hits + wrong) if hits or wrong else None,
    }


def case_metrics(abstained: bool, answerable: bool) -> dict[str, float | None]:
    """Return one case's contribution to the shares: 0.0, 1.0, or None where it does not count."""
    values = rates(four_cells([(abstained, answerable)]))
    del values["abstention_f1"]  # a ratio of sums, not a mean over cases
    return values | {"decision_right": float(abstained != answerable)}
