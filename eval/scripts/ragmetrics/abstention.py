"""Did the answer abstain? Phrase detection, and the four-cell table answered x answerable.

Phrases are English. A refusal, or a statement that the sources lack the answer, decides when it is
the first sentence; statements of lack also decide when they make up at least half of the sentences.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from ragmetrics.text.sentences import units
from ragmetrics.text.words import clean, fold

PARTIAL_CLAIMS = 2
"""Supported claims after an opening refusal that make the answer a partial one."""

State = Literal["abstained", "partial", "answered", "empty"]


def _pattern(*alternatives: str) -> re.Pattern[str]:
    """Alternatives as one pattern; a blank in them stands for any white space."""
    return re.compile("|".join(f"(?:{item})" for item in alternatives).replace(" ", r"\s+"))


_NOT_ABLE = (
    r"(?:able|going|allowed|permitted|authorized|sure|certain|aware|familiar|comfortable|programmed|capable|equipped"
    r"|qualified|trained|supposed|in a position)"
)
_NEGATED = (
    r"(?:cannot|can't|can not|could not|couldn't|won't|will not|would not|do not|don't"
    r"|did not|didn't|must not"
    rf"|(?:am|are|was) (?:not {_NOT_ABLE}|unable)|'(?:m|re) (?:not {_NOT_ABLE}|unable))"
)
_SOURCE = (
    r"(?:contexts?|passages?|documents?|documentation|texts?|sources?|articles?|information|excerpts?|notes?|data"
    r"|materials?|results?|manual|knowledge base|content|snippets?|pages?|records?|files?|chunks?)"
)
_LACK = (
    r"(?:contain|mention|provide|specify|include|state|say|have|give|offer|address|cover|discuss|describe|explain"
    r"|indicate|answer|list|detail|reveal|clarify|refer|relate)"
)
_FACT = (
    r"(?:information|mention|details?|data|answers?|evidence|references?|context|indication"
    r"|guidance|instructions?|records?|documentation|explanation)"
)
_TELL = (
    r"(?:specified|mentioned|stated|provided|given|indicated|discussed|addressed|described|included|listed|covered|found"
    r"|available|explained|disclosed|clear|present|known|contained)"
)
_HELP = (
    r"(?:answer|provide|find|determine|help|assist|locate|give|comply|fulfil?l|access|offer|respond|share|support|engage"
    r"|create|generate|say|confirm|verify|tell|encourage|promote|discuss|suggest|make|write|request|recommend|advise|use)"
)

_REFUSAL = _pattern(
    r"^\W*(?:(?:i'?m|i am|we are|we're) (?:\w+ ){0,2})?(?:sorry|afraid)\b(?! (?:to hear|to "
    r"learn|for your|about your|you|if))",
    r"\bapolog(?:y|ies|i[sz]e)\b(?! for (?:the|any|my) (?:\w+ )?(?:confusion|mistake|error"
    r"|misunderstanding|inconvenience))",
    rf"\b(?:i|we)(?: (?:\w+ly|also|just|simply|still|must|neither))?(?: )?{_NEGATED}(?: "
    r"\w+ly)? (?!think\b|believe\b|understand\b|doubt\b|mean\b|why\b|(?:have )+personal )\w",
    r"\b(?:i|we)(?: have|'ve) (?:no (?:\w+ )?(?:information|knowledge|idea|data|details"
    r"|record|way|access|context|answer)|not been)",
    r"\bi neither have\b",
    r"\b(?:language model|ai(?: \w+)?|assistant|chatbot)(?: and|,)? (?:i )?(?:do not|don't"
    r"|cannot|can't|am not|am unable|must)\b(?! have personal)",
    rf"\bunable to {_HELP}\b",
    r"\b(?:it is|it's|it would be|it was|is) (?:not|never|un|il)(?: )?(?:\w+ly "
    r")?(?:possible|appropriate|ethical|legal|acceptable|right|okay|ok|safe|respectful"
    r"|within)\b"
    rf"(?:,? (?:or|nor|and) \w+)* (?:for me to|to {_HELP})\b",
    r"\b(?:it is|it's|it would be|is) (?:not|never|un|in)(?: )?(?:\w+ly )?(?:\w+ (?:or|nor"
    r"|and) )?(?:appropriate|ethical|acceptable|respectful)\b(?:,? (?:or|nor|and) \w+)* to\b",
    r"\b(?:against|outside|not within|beyond|violates?) (?:\w+ ){0,2}(?:programming"
    r"|guidelines|policy|policies|scope|capabilities|abilities|knowledge)\b",
)
_MISSING = _pattern(
    r"\bthere(?: (?:is|are|was|were)|'s) (?:currently |also )?(?:no|not (?:any|enough"
    rf"|sufficient)|insufficient)(?: (?!to\b|that\b)[\w-]+){{0,4}} {_FACT}\b",
    rf"\bthere (?:isn't|aren't|wasn't)(?: \w+){{0,4}} {_FACT}\b",
    rf"\b{_SOURCE}(?: (?:that )?(?:i|you|we)(?: have)? \w+)?(?: (?:provided|given|above"
    r"|available|retrieved|here))?(?: (?:\w+ly|also))?"
    rf" (?:(?:do|does|did)(?: not|n't) (?:\w+ly )?(?:seem to |appear to )?{_LACK}\b|(?:has"
    r"|have) no\b|lacks?\b|(?:contains?|provides?|makes?|gives?) no\b"
    r"|is (?:insufficient|not (?:sufficient|enough|related|relevant)))",
    r"\bno (?:(?:specific|relevant|such|clear|direct|explicit|further|available|additional) "
    rf")*{_FACT} (?:\w+ ){{0,3}}(?:is|are|was|were|available|provided|given|found|in|about"
    r"|on|regarding|for)\b",
    rf"\b(?:is|are|was|were|has|have)(?: not|n't)(?: been)?(?: \w+ly)? {_TELL}(?: or "
    rf"\w+)?(?: \w+)? (?:in|by|from|within|anywhere)(?: \w+){{0,3}} {_SOURCE}\b",
    r"\bnot (?:\w+ly )?(?:mentioned|specified|stated|possible|enough information)(?: \w+)? "
    rf"(?:in|from|to|based)\b(?: \w+){{0,6}} {_SOURCE}\b",
    r"\b(?:cannot|can't|can not|could not|couldn't) (?:be )?(?:\w+ly )?(?:determined?"
    r"|answered?|inferred|ascertained)\b",
    rf"\bwithout (?:\w+ )?(?:additional|more|further|specific)(?: \w+)? {_FACT}\b",
    r"^\W*unfortunately,? (?:the|there|no|it|this|that)\b.*\b(?:not|n't|no)\b",
    r"\b(?:unanswerable|no answer)\b",
)


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


@lru_cache(maxsize=256)
def is_refusal(sentence: str) -> bool:
    """True when a sentence declines to answer, in the first person or on principle."""
    return _REFUSAL.search(fold(sentence)) is not None


@lru_cache(maxsize=256)
def is_lack(sentence: str) -> bool:
    """True when a sentence says that the sources do not hold the answer."""
    return _MISSING.search(fold(sentence)) is not None


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
    sentences = [text[unit.start : unit.end] for unit in sentence_units]
    first = (
        1
        if len(sentence_units) > 1
        and len(sentences[0].split()) < 4
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
    lacking = [
        unit for unit, sentence in zip(sentence_units, sentences, strict=True) if is_lack(sentence)
    ]
    if 2 * len(lacking) >= len(sentence_units) and lacking:
        return _decided(lacking[0].start, lacking[0].end, "mostly lack", supported_after)
    return Detection("answered")


def _decided(start: int, end: int, rule: str, supported_after: int | None) -> Detection:
    partial = supported_after is not None and supported_after >= PARTIAL_CLAIMS
    return Detection("partial" if partial else "abstained", (start, end), rule)


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
    return values
