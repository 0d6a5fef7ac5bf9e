"""What may stand in a question as its subject: names and kinds of things, told from mere phrases.

"What is the result?" makes sense to nobody who has not read the passage; "What is a crate?" does.
"""

from __future__ import annotations

import re

from drafting.casing import Casing
from drafting.sections import Section
from ragmetrics.text import content_words, fold

LONGEST_SUBJECT = 7
POINTS_BACK = re.compile(
    r"(?:it|its|this|that|these|those|they|their|he|she|we|you|there|here|such|each|both|one|some"
    r"|another|other|others|all|any|which|what|note|however|also|then|the (?:former|latter|same"
    r"|following|above|result|rest|first|second|last|next|other)|for example|in this)\b",
    re.IGNORECASE,
)
_NO_NAME = re.compile(
    r"^(?:if|when|while|although|because|since|unless|as|for|in|on|at|by|with|from|to|after|before"
    r"|during|below|above|under|most|many|several|only|common|\w+ing"
    r"|table|figure|listing|chapter|section|example|step|part)\b"
    r"|\b(?:if|when|this|that|these|those|its|their|which|who|whose|where|because|not|while|whether|then|can|may|must|will|would"
    r"|should|has|have|had|was|were|be|been|do|does|is|are|builds?|makes?|uses?)\b"
    r"|(?:\bof|\bfor|\bto|\bin|\bon|\bby|\bwith|\bas|\band|\bor|ly)$|[a-z] An? ",
    re.IGNORECASE,
)
_RELATIVE = re.compile(
    r"\b(?:parts?|values?|arguments?|parameters?|names?|fields?|results?|outputs?|sides?|cases?"
    r"|lines?|steps?|numbers?|sizes?|rest|order|reasons?|ideas?|goals?|problems?|advantages?"
    r"|differences?|ways?|things?|points?|questions?|answers?|solutions?|purposes?|benefits?|tricks?"
    r"|examples?|effects?|kinds?|sorts?|types?|forms?|versions?|members?|contents?|terms?|words?"
    r"|chapters?|sections?|books?|appendix|quiz(?:zes)?|exercises?)(?:$| of\b)",
    re.IGNORECASE,
)
"""Words for a part or a side of something else: of what, only the passage tells."""
_ADJECTIVE = re.compile(
    r"^(?:an? |the )?(?:good|better|great|similar|useful|typical|simple|more|less|final|new|old"
    r"|different|possible|important|key|main|single|second|third|first|next|last|previous|current"
    r"|other|optional|required|given|resulting|specified|actual|corresponding|default|usual|certain"
    r"|particular|specific|whole|entire|remaining|\w{3,}est)\b",
    re.IGNORECASE,
)
LETTER = re.compile(r"(?:^|\s)[^\w\s]*[b-z][^\w\s]*(?=\s|$)")
"""A letter by itself, such as `x` or `&s`: made up for an example."""
_MARKS = re.compile(r"[*`\"“”]|(?<!\w)_+(?=\w)|(?<=\w)_+(?!\w)")
_SET_OFF = re.compile(r"[*`\"“][^\s*`\"“”]")


def subject(words: str, section: Section, casing: Casing) -> str | None:
    """The words for the middle of a question; None when they are no plain name of a thing.

    "A" and "an" name a kind. "The …" needs marks of code or stress, or to be what the headings are
    about; without an article a word in common with them is enough.
    """
    words = words.strip()
    bare = _MARKS.sub("", words)
    if len(words.split()) > LONGEST_SUBJECT or POINTS_BACK.match(bare) or _NO_NAME.search(bare):
        return None
    relative = _RELATIVE.search(bare)
    if (
        (relative and not (is_set_off(words) and relative[0].endswith(" of")))
        or _ADJECTIVE.search(bare)
        or LETTER.search(words)
    ):
        return None
    own = set(content_words(fold(bare)))
    known = own & title_words(section)
    article = words.split()[0].lower()
    if article in ("a", "an"):
        fits = bool(own)
    elif article == "the":
        fits = is_set_off(words) or (bool(own) and known == own)
    else:
        fits = is_set_off(words) or bool(known)
    return casing.first(words) if fits else None


def title_words(section: Section) -> set[str]:
    """The telling words of the headings, from the note's first down to the section's own."""
    return set(content_words(fold(" ".join(section.titles))))


def is_set_off(words: str) -> bool:
    """Are some of the words marked as code, stressed or quoted?"""
    return bool(_SET_OFF.search(words))
