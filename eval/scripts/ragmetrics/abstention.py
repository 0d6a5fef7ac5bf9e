"""Did the answer abstain? Phrase detection, and the four-cell table answered x answerable.

Phrases are those of sixteen languages; quoted words decide nothing. A refusal, or a statement that
the sources lack the answer, decides when it is the first sentence; statements of lack also decide
when they make up at least half of the sentences.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from ragmetrics.case_scores import RetrievedText, unusable
from ragmetrics.claims import AnswerClaim, extract, has_threshold, merged, prepare, score_claim
from ragmetrics.text import numbers
from ragmetrics.text.language import language_of
from ragmetrics.text.refusals import is_lack, is_refusal, without_quotes
from ragmetrics.text.sentences import units
from ragmetrics.text.words import clean, fold, has_fewer_words

PARTIAL_CLAIMS = 2
"""Supported claims after an opening refusal that make the answer a partial one."""

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


def detect(answer: str | None, supported_after: int | None = None) -> Detection:
    """Decide by phrases whether an answer abstains.

    Args:
        answer: the answer; without a visible character its state is ``empty``, which is a failure
            of the
            bot and no abstention.
        supported_after: how many claims after the deciding sentence the contexts support, when
            known; two or
            more make the answer ``partial``.
    """
    text = clean(answer or "")
    sentence_units = [unit for unit in units(text) if unit.kind in ("prose", "item", "stem")]
    if not text.strip():
        return Detection("empty")
    if not sentence_units:
        return Detection("answered")
    own_words = without_quotes(text)
    sentences = [own_words[unit.start : unit.end] for unit in sentence_units]
    first = (
        1
        if len(sentence_units) > 1
        and has_fewer_words(fold(sentences[0]), 4)
        and not is_refusal(sentences[0])
        else 0
    )
    for index in range(first + 1):
        rule = (
            "refusal"
            if is_refusal(sentences[index])
            else "lack"
            if is_lack(sentences[index])
            else ""
        )
        if rule:
            return _decided(
                sentence_units[index].start, sentence_units[index].end, rule, supported_after
            )
    lacking, others = [], 0
    for unit, sentence in zip(sentence_units, sentences, strict=True):
        if is_lack(sentence):
            lacking.append(unit)
        else:
            others += 1
            if 2 * others > len(sentence_units):
                return Detection("answered")
    if lacking:
        return _decided(lacking[0].start, lacking[0].end, "mostly lack", supported_after)
    return Detection("answered")


def _decided(start: int, end: int, rule: str, supported_after: int | None) -> Detection:
    partial = supported_after is not None and supported_after >= PARTIAL_CLAIMS
    return Detection("partial" if partial else "abstained", (start, end), rule)


def detect_with_passages(
    answer: str | None, passages: Sequence[RetrievedText], question: str
) -> Detection:
    """Decide by phrases whether an answer abstains, looking at the passages where they help.

    A refusal that supported claims follow is a partial answer. Whether the passages support them is
    looked at when their full texts are known.
    """
    text = clean(answer or "")
    detection = detect(text)
    if not detection.abstained or detection.span is None:
        return detection
    later = _claims_after(text, detection.span[1])
    if len(later) < PARTIAL_CLAIMS or not passages or unusable(passages):
        return detection
    return detect(text, _count_supported(later, passages, question))


def _claims_after(answer: str, position: int) -> list[AnswerClaim]:
    return [
        claim
        for claim in extract(answer).claims
        if claim.start >= position and claim.type != "general" and not is_lack(claim.text)
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
    pooled, asked = merged(prepared), numbers.index(question)
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
    """The four metrics of a table; None where no case counts.

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
    """One case's part in the shares: 0.0 or 1.0, None where the case does not count."""
    values = rates(four_cells([(abstained, answerable)]))
    del values["abstention_f1"]  # a ratio of sums, not a mean over cases
    return values | {"decision_right": float(abstained != answerable)}
