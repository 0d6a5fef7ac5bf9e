"""Questions by rule, from what a section's first sentences say. English; no model.

A rule reads one sentence and turns it into the question that it answers. A sentence that no rule
fits is left alone; of a section without any, the heading is asked about. So a draft is plain rather
than clever; a person accepts or drops it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from drafting.casing import Casing
from drafting.sections import Section
from drafting.subjects import LETTER, POINTS_BACK, is_set_off, subject, title_words
from ragmetrics.text import content_words, fold

RULES = 2
FIRST_SENTENCES = 6
GENERIC = re.compile(
    r"(?:overview|introduction|intro|notes?|examples?|summary|details?|background|general|usage"
    r"|see also|misc(?:ellaneous)?|other|faq|appendix|basics|getting started|remarks?|conclusion)",
    re.IGNORECASE,
)
_LOOKS_AROUND = re.compile(
    r"\b(?:listing|figure|table|chapter|section|appendix|example|exercise)s? \d"
    r"|\b(?:this|that|previous|next|following|earlier|later|last|above|below)"
    r" (?:listing|figure|table|chapter|section|example|book|page|note|exercise|code"
    r"|function|line)s?\b"
    r"|\b(?:we|I)[’'](?:ll|ve|d|re|m)\b|\blet[’']s\b|\bour (?:example|code|program)\b"
    r"|\bwe (?:won[’']t|saw|see|look|discuss|cover|learn|talk|mention|wrote|ran|want|need|used"
    r"|added)",
    re.IGNORECASE,
)
"""A sentence that tells of the text itself, or goes through it with the reader, is no answer."""
_DEFINES = re.compile(
    r"(?P<subject>[^,;:()]{2,70}?) (?P<verb>is|are|was|were) "
    r"(?P<rest>(?:an?|the|one of|any|another name for) .+)"
)
_MEANS = re.compile(
    r"(?P<subject>[^,;:()]{2,70}?) (?:means|refers to|denotes|stands for) (?P<rest>.+)"
)
_USED = re.compile(
    r"(?P<subject>[^,;:()]{2,70}?) (?P<verb>is|are) used (?:to|for|when) (?P<rest>.+)"
)
_DEEDS = {
    "returns": "return",
    "raises": "raise",
    "contains": "contain",
    "provides": "provide",
    "creates": "create",
    "holds": "hold",
    "stores": "store",
    "removes": "remove",
    "deletes": "delete",
    "adds": "add",
    "defines": "define",
    "describes": "describe",
    "shows": "show",
    "checks": "check",
    "converts": "convert",
    "compares": "compare",
    "binds": "bind",
    "evaluates": "evaluate",
    "executes": "execute",
    "specifies": "specify",
    "supports": "support",
    "requires": "require",
    "includes": "include",
}
_DOES = re.compile(
    rf"(?P<subject>[^,;:()]{{2,70}}?) (?P<deed>{'|'.join(_DEEDS)}) "
    r"(?P<rest>(?:an?|the|all|any|every|each|its|one|two|three|no|only|either|both|[`\"“*]\S+|\w+s"
    r"|\w+ing|[A-Z]\w+|\w+ \w+s)\b.+)"
)
_ALLOWS = re.compile(
    r"(?P<subject>[^,;:()]{2,70}?) (?:(?P<lets>lets)|allows|enables) (?P<whom>you|users)"
    r" (?P<rest>.+)"
)
_TO_DO = re.compile(
    r"To (?P<aim>[a-z][^,;:]{4,80}), (?P<rest>(?:you (?:can|need to|must|should|have to) )?(?:use"
    r"|run|call|open|click|press|set|add|choose|write|type|select|create|go to|define|pass|put|take"
    r"|install|enter|remove|wrap|turn|start|make|specify|implement|declare|annotate) .+)"
)
_WANT = re.compile(
    r"(?:If|When) you (?:want|need|wish|would like)(?: to (?P<aim>[a-z][^,;:]{4,80})), (?P<rest>.+)"
)
_YOU_CAN = re.compile(r"You can (?P<aim>[a-z][^,;:]{4,80}?) (?:by \w+ing|with|using) (?P<rest>.+)")
_IF = re.compile(r"(?P<word>If|When) (?P<aim>[^,;:()]{6,90}), (?:then )?(?P<rest>.+)")
_CAN = re.compile(r"you can\b")
_SHOULD = re.compile(
    r"(?:you (?:should|must|need to|have to)|use|try|see|make sure|consider|check"
    r"|do|don’t|don't|call|run|choose|ask|open)\b",
    re.IGNORECASE,
)
_ASIDE = re.compile(r" \([^()]*\)")
_POINTER = re.compile(
    r"\b(?:it|its|it’s|it's|this|that|these|those|they|them|their|he|she|his|her|so|such|other|others"
    r"|another|same|above|below|following|former|latter|here|instead|want|need)\b"
    r"|\bone$|\byou[’']",
    re.IGNORECASE,
)
_NO_CONDITION = re.compile(
    r"(?:the|\w+ing|\w+ed|[`*\"“]?\w+[`*\"”]? (?:is|isn[’']t|has|was|does|goes"
    r"|gets|are|aren[’']t))\b",
    re.IGNORECASE,
)
"""Beginnings that lean on the passage: "the value is …", "creating …", "x is …"."""
_TWO_DEEDS = re.compile(r"\b(?:and|or) \w+ing\b", re.IGNORECASE)
_BY_THE_WAY = re.compile(r"^(?:also|then|now|even|still|often|usually|simply|just|easily) ")


@dataclass(frozen=True, slots=True)
class Question:
    """A drafted question. ``rule`` says how it came about; ``fact`` is what an answer must say."""

    text: str
    snippet: str
    rule: str
    category: str
    fact: str


def questions(
    found: Iterable[Section], casing: Casing
) -> Iterator[tuple[Section, Question | None]]:
    """Sections with their questions: first those that say something plainly, then bare headings.

    A section that gives neither comes with None.
    """
    later = []
    for section in found:
        question = from_text(section, casing)
        if question is None:
            later.append(section)
        else:
            yield section, question
    for section in later:
        yield section, from_heading(section, casing)


def from_text(section: Section, casing: Casing) -> Question | None:
    """A question that the heading is, or that one of the first sentences answers."""
    title = section.titles[-1].strip()
    if title.endswith("?"):
        text = _finished(casing.all(_bare(title)))
        return _of_heading(section, text, "factual")
    for sentence in section.sentences[:FIRST_SENTENCES]:
        if not _stands_alone(sentence):
            continue
        found = _from_sentence(sentence, section, casing)
        if found is not None:
            rule, text = found
            return Question(_finished(text), sentence, rule, "factual", sentence)
    return None


def _from_sentence(sentence: str, section: Section, casing: Casing) -> tuple[str, str] | None:
    """The rule that fits and the question, with the sentence's marks."""
    for pattern, asks in ((_TO_DO, "How do I"), (_WANT, "How do I"), (_YOU_CAN, "How can I")):
        if (found := pattern.fullmatch(sentence)) is not None:
            aim = re.sub(r"\byour\b", "my", _BY_THE_WAY.sub("", found["aim"]))
            whole = not _POINTER.search(aim) and not re.search(r"\byou\b", aim)
            return ("how to", f"{asks} {aim}?") if whole and _is_told(aim, section) else None
    plain = _ASIDE.sub("", sentence)
    for rule, pattern in _BY_SUBJECT:
        if (found := pattern.fullmatch(plain)) is None:
            continue
        name = subject(found["subject"], section, casing)
        if name is not None:
            return rule, _asked(rule, name, found)
    found = _IF.fullmatch(sentence)
    if found is not None and _is_condition(found["aim"], section):
        asks = "What should I do" if _SHOULD.match(found["rest"]) else "What happens"
        asks = "What can I do" if _CAN.match(found["rest"]) else asks
        return "condition", f"{asks} {found['word'].lower()} {found['aim']}?"
    return None


_BY_SUBJECT = (
    ("use", _USED),
    ("definition", _DEFINES),
    ("meaning", _MEANS),
    ("permission", _ALLOWS),
    ("deed", _DOES),
)


def _asked(rule: str, name: str, found: re.Match[str]) -> str:
    if rule == "definition":
        return f"What {found['verb']} {name}?"
    if rule == "use":
        return f"What {found['verb']} {name} used for?"
    if rule == "meaning":
        return f"What does {name} mean?"
    if rule == "permission":
        verb = f"let {found['whom']}" if found["lets"] else f"allow {found['whom']} to"
        return f"What does {name} {verb} do?"
    return f"What does {name} {_DEEDS[found['deed']]}?"


def _is_told(aim: str, section: Section) -> bool:
    """Does the phrase name something: a word of the headings, code, a kind of thing?"""
    known = set(content_words(fold(aim))) & title_words(section)
    return bool(known) or is_set_off(aim) or re.search(r"\b(?:an?|my) \w{3,}", aim) is not None


def _is_condition(aim: str, section: Section) -> bool:
    """Can the condition be understood by itself, and has it to do with what the headings say?"""
    leans = _POINTER.search(aim) or _NO_CONDITION.match(aim) or LETTER.search(aim)
    if len(aim.split()) < 3 or leans or POINTS_BACK.match(aim.removeprefix("you ")):
        return False
    return bool(set(content_words(fold(aim))) & title_words(section))


def from_heading(section: Section, casing: Casing) -> Question | None:
    """A question about the heading; the sentence that has most of its words is what it rests on."""
    title = _bare(section.titles[-1])
    if not re.search(r"[^\W\d_]{3}", title):
        return None
    first, _, rest = title.partition(" ")
    gerund = first.lower().endswith("ing") and bool(rest)
    verb = casing.base(first) if gerund and not _TWO_DEEDS.search(rest) else None
    if verb is not None:
        return _of_heading(section, f"How do I {verb} {casing.all(rest)}?", "general")
    if first.lower() == "how" and rest.lower().startswith("to "):
        return _of_heading(section, f"How do I {casing.all(rest[3:])}?", "general")
    return _of_heading(section, f"What should I know about {topic(section, casing)}?", "general")


def _of_heading(section: Section, text: str, category: str) -> Question | None:
    """The question, resting on the sentence that shares most words with it; None without any."""
    wanted = set(content_words(fold(text)))
    fit = [one for one in section.sentences if _stands_alone(one)]
    if not fit:
        return None
    snippet = max(fit, key=lambda one: len(wanted & set(content_words(fold(one)))))
    return Question(_finished(text), snippet, "heading", category, snippet)


def _stands_alone(sentence: str) -> bool:
    """Can the sentence be understood without those before it? "You" is whoever asks."""
    points_back = POINTS_BACK.match(sentence) and not sentence.startswith("You ")
    return not points_back and not _LOOKS_AROUND.search(sentence)


def topic(section: Section, casing: Casing) -> str:
    """The section's subject in words: its heading, with the one above where it says too little."""
    own = casing.all(_bare(section.titles[-1]))
    above = [casing.all(_bare(title)) for title in section.titles[:-1]]
    if above and GENERIC.fullmatch(own):
        return above[-1]
    return f"{above[-1]} ({own})" if above and len(own.split()) == 1 else own


def _bare(title: str) -> str:
    """A heading without numbering and closing marks; stress and code stay for a while."""
    numbered = r"^(?:(?:chapter|appendix|part|section)\s+\w{1,3}\s*[:.–—-]\s*|[\d.]+\s+)|\s*#+$"
    return re.sub(numbered, "", title, flags=re.IGNORECASE).strip().rstrip(".:!")


def _finished(question: str) -> str:
    """Without marks of stress and code, beginning with a capital."""
    text = re.sub(r"(\*{1,3})([^*\s](?:[^*]*[^*\s])?)\1", r"\2", question)
    text = re.sub(r"(?<!\w)_([^_\s](?:[^_]*[^_\s])?)_(?!\w)", r"\1", text).replace("`", "")
    text = re.sub(r"(\w-) (?!and\b|or\b)(?=\w)", r"\1", text)  # a line end within a word
    text = re.sub(r"\s+\?$", "?", re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", text).strip())
    return text[:1].upper() + text[1:]
