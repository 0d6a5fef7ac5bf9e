"""Questions by rule, from what a section's first sentences say. English; no model.

A rule reads one sentence and turns it into the question that it answers. Rules are tried from the
most telling (a definition) to the least (the heading alone), so that a draft is plain rather than
clever; a person accepts or drops it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from drafting.sections import Section
from ragmetrics.text import content_words, fold

RULES = 1
FIRST_SENTENCES = 4
LONGEST_SUBJECT = 7
GENERIC = re.compile(
    r"(?:overview|introduction|intro|notes?|examples?|summary|details?|background|general|usage"
    r"|see also|misc(?:ellaneous)?|other|faq|appendix|basics|getting started|remarks?)",
    re.IGNORECASE,
)
_POINTS_BACK = re.compile(
    r"(?:it|its|this|that|these|those|they|their|he|she|we|you|there|here|such|each|both|one|some"
    r"|another|other|others|all|any|which|what|note|however|also|then|the (?:former|latter|same"
    r"|following|above|result|rest|first|second|last|next|other)|for example|in this)\b",
    re.IGNORECASE,
)
_ARTICLE = re.compile(r"(?:A|An|The)(?= )")
_NO_NAME = re.compile(
    r"^(?:if|when|while|although|because|since|unless|as|for|in|on|at|by|with|from|to|after|before"
    r"|during|below|above|under|most|many|several|only|common|\w+ing"
    r"|table|figure|listing|chapter|section|example|step|part)\b"
    r"|\b(?:if|when|that|which|who|whose|where|because|not|while|whether|then|can|may|must|will|would"
    r"|should|has|have|had|was|were|be|been|do|does|is|are|builds?|makes?|uses?)\b"
    r"|(?:\bof|\bfor|\bto|\bin|\bon|\bby|\bwith|\bas|\band|\bor|ly)$|[a-z] An? ",
    re.IGNORECASE,
)
_SET_OFF = re.compile(r"[*`\"“][^\s*`\"“”]")
_DEFINES = re.compile(
    r"(?P<subject>[^,;:()]{2,70}?) (?P<verb>is|are) "
    r"(?P<rest>(?:an?|the|one of|any|another name for) .+)"
)
_MEANS = re.compile(
    r"(?P<subject>[^,;:()]{2,70}?) (?:means|refers to|denotes|stands for|describes) (?P<rest>.+)"
)
_USED = re.compile(
    r"(?P<subject>[^,;:()]{2,70}?) (?P<verb>is|are) used (?:to|for|when|in|by|as) (?P<rest>.+)"
)
_DOES = re.compile(
    r"(?P<subject>[^,;:()]{2,70}?) (?:returns|raises|contains|provides|allows|creates|holds|stores"
    r"|removes|deletes|sets|gives|checks|runs|sends|starts|stops|adds|lets|defines|opens|closes"
    r"|shows|converts|compares|binds|evaluates|executes|terminates|causes|specifies) (?P<rest>.+)"
)
_TO_DO = re.compile(
    r"To (?P<aim>[a-z][^,;:]{4,80}), (?P<rest>(?:use|run|call|open|click|press|set|add|choose|write"
    r"|type|select|create|go to|define|pass) .+)"
)
_IF = re.compile(r"If (?P<aim>[^,;:]{6,90}), (?:then )?(?P<rest>.+)")


@dataclass(frozen=True, slots=True)
class Question:
    """A drafted question. ``rule`` says how it came about; ``fact`` is what an answer must say."""

    text: str
    snippet: str
    rule: str
    category: str
    fact: str


def questions(found: Iterable[Section]) -> Iterator[tuple[Section, Question | None]]:
    """Sections with their questions: first those that say something plainly, then bare headings.

    A section that gives neither comes with None.
    """
    later = []
    for section in found:
        question = from_text(section)
        if question is None:
            later.append(section)
        else:
            yield section, question
    for section in later:
        yield section, from_heading(section)


def from_text(section: Section) -> Question | None:
    """A question that the heading is, or that one of the first sentences answers."""
    title = section.titles[-1].strip()
    if title.endswith("?"):
        snippet = section.sentences[0]
        return Question(_capital(_plain(title)), snippet, "heading", "factual", snippet)
    for sentence in section.sentences[:FIRST_SENTENCES]:
        if not _POINTS_BACK.match(sentence):
            found = _from_sentence(sentence, section)
            if found is not None:
                return found
    return None


def _from_sentence(sentence: str, section: Section) -> Question | None:
    def question(text: str, rule: str, category: str = "factual") -> Question:
        text = re.sub(r"\s+\?$", "?", _capital(_unmarked(text)))
        return Question(text, sentence, rule, category, sentence)

    if (found := _TO_DO.fullmatch(sentence)) is not None:
        return question(f"How do I {found['aim']}?", "how to")
    for rule, pattern in _BY_SUBJECT:
        if (found := pattern.fullmatch(sentence)) is None:
            continue
        subject = _subject(found["subject"], section)
        if subject is None:
            continue
        verb = found.groupdict().get("verb")
        if rule == "definition":
            return question(f"What {verb} {subject}?", rule)
        if rule == "meaning":
            return question(f"What does {subject} mean?", rule)
        if rule == "use":
            return question(f"What {verb} {subject} used for?", rule)
        return question(f"What does {subject} do?", rule)
    found = _IF.fullmatch(sentence)
    if found is not None and len(found["aim"].split()) > 2 and not _POINTS_BACK.match(found["aim"]):
        about = topic(section)
        return question(f"{about}: what happens if {found['aim']}?", "condition", "reasoning")
    return None


_BY_SUBJECT = (("use", _USED), ("definition", _DEFINES), ("meaning", _MEANS), ("deed", _DOES))


def _subject(words: str, section: Section) -> str | None:
    """What the question asks about; None when it is no plain name of what the section is about.

    It is taken when it shares a word with the headings, is set off by marks, or has an indefinite
    article ("A scope defines …"): then it is the thing itself, and not one that was told of before.
    """
    words = words.strip()
    named = bool(_SET_OFF.search(words)) or words.startswith(("A ", "An "))
    told = set(content_words(fold(" ".join(section.titles))))
    if not named and not told & set(content_words(fold(words))):
        return None
    if len(words.split()) > LONGEST_SUBJECT or _POINTS_BACK.match(words) or _NO_NAME.search(words):
        return None
    return _small(words, section)


def from_heading(section: Section) -> Question | None:
    """A question about the heading; the first sentence is what it rests on."""
    snippet = section.sentences[0]
    if _POINTS_BACK.match(snippet) or not re.search(r"[^\W\d_]{3}", section.titles[-1]):
        return None
    text = f"What should I know about {topic(section)}?"
    return Question(text, snippet, "heading", "general", snippet)


def topic(section: Section) -> str:
    """The section's subject in words: its heading, with the one above where it says too little."""
    own = _plain(section.titles[-1])
    above = [_plain(title) for title in section.titles[:-1]]
    if above and (GENERIC.fullmatch(own) or len(own.split()) == 1):
        return f"{_small(above[-1], section)} ({_small(own, section)})"
    return _small(own, section)


def _small(words: str, section: Section) -> str:
    """Words for the middle of a question: the first one small, unless it is a name.

    A name is written with a capital within a sentence, too.
    """
    first = words.split(" ", 1)[0]
    if first.istitle() and not re.search(rf"[a-z,;] {re.escape(first)}\b", section.flat):
        return words[0].lower() + words[1:]
    return _ARTICLE.sub(lambda found: found[0].lower(), words)


def _plain(title: str) -> str:
    """A heading without numbering, marks and markup."""
    return _unmarked(re.sub(r"^[\d.]+\s+|\s*#+$", "", title)).strip().rstrip(".:")


def _unmarked(text: str) -> str:
    """Without the marks of emphasis and code; a lone star and __names__ stay."""
    text = re.sub(r"(\*{1,3})([^*\s](?:[^*]*[^*\s])?)\1", r"\2", text)
    return re.sub(r"(?<!\w)_([^_\s](?:[^_]*[^_\s])?)_(?!\w)", r"\1", text).replace("`", "")


def _capital(question: str) -> str:
    return question[0].upper() + question[1:]
