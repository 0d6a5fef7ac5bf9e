"""Sentences that decline to answer, or say that the sources lack the answer.

English phrases stand here, those of other languages in ``refusal_phrases``; all of them are looked
for in every text, since a phrase of one language is none of another.
"""

from __future__ import annotations

import re
import unicodedata
from functools import cache, lru_cache

from ragmetrics.text.phrase_search import PhraseSearch
from ragmetrics.text.refusal_phrases import phrases
from ragmetrics.text.words import fold


def _spaced(pattern: str) -> str:
    """A pattern whose blanks stand for any white space."""
    return pattern.replace(" ", r"\s+")


def _phrases(*alternatives: str) -> PhraseSearch:
    return PhraseSearch(map(_spaced, alternatives))


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

_REFUSAL = (
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
_MISSING = (
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


def _folded(pattern: str) -> str:
    """A pattern as the folded text has its letters."""
    composed = unicodedata.normalize("NFKC", pattern)
    return composed.replace("ß", "ss").replace("ς", "σ")


@cache
def _refusals() -> PhraseSearch:
    return _phrases(
        *_REFUSAL, *(_folded(item) for own in phrases().values() for item in own.refusal)
    )


@cache
def _lacks() -> PhraseSearch:
    return _phrases(*_MISSING, *(_folded(item) for own in phrases().values() for item in own.lack))


@cache
def _supposed() -> re.Pattern[str]:
    """What opens a sentence that only supposes: "If the notes do not say it, call the desk"."""
    opens = "|".join(_folded(own.when) for own in phrases().values())
    return re.compile(_spaced(rf"^\W*(?:{opens}|(?:if|when|whenever)\b)"))


_QUOTE = re.compile(
    r"\"[^\"\n]{1,300}\"|“[^”\n]{1,300}[”“]|„[^“”\"\n]{1,300}[“”\"]|«[^»\n]{1,300}»"
    r"|»[^«\n]{1,300}«|「[^」\n]{1,300}」|『[^』\n]{1,300}』|(?<!\w)['‘‚‹][^'’‘›\n]{1,300}['’‘›](?!\w)"
)


_QUOTE_BEGINS = re.compile("[\"“„«»「『'‘‚‹]")


def without_quotes(text: str) -> str:
    """The text, same length, with quoted words blanked; a text that is one quotation stays."""
    if _QUOTE_BEGINS.search(text) is None:
        return text
    plain = _QUOTE.sub(lambda match: " " * len(match[0]), text)
    return plain if any(map(str.isalnum, plain)) else text


def _says(sentence: str, phrases: PhraseSearch, english: int) -> bool:
    """Whether a phrase stands in a sentence; the first ``english`` of the phrases are English."""
    folded = fold(without_quotes(sentence))
    number = phrases.first_in(folded)
    return number is not None and (number < english or _supposed().match(folded) is None)


@lru_cache(maxsize=256)
def is_refusal(sentence: str) -> bool:
    """True when a sentence declines to answer, in the first person or on principle."""
    return _says(sentence, _refusals(), len(_REFUSAL))


@lru_cache(maxsize=256)
def is_lack(sentence: str) -> bool:
    """True when a sentence says that the sources do not hold the answer."""
    return _says(sentence, _lacks(), len(_MISSING))
