"""Questions by rule, from what a section's first sentences say; no model.

A rule reads one sentence and turns it into the question that it answers. A sentence that no rule
fits is left alone; of a section without any, the heading is asked about. So a draft is plain rather
than clever; a person accepts or drops it. The rules read English; a section in another language is
asked about by its heading, in that language.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from demo.answerer import sentences
from demo.chunker import HEADING_SEPARATOR, chunk_notes
from demo.vault import Note
from ragmetrics.text.language import guess
from ragmetrics.text.words import content_words, fold

RULES = 3

_ASKED_IN = {
    "ar": "ما الذي يجب معرفته عن «{}»؟",
    "de": "Was sollte ich über „{}“ wissen?",
    "el": "Τι πρέπει να γνωρίζω για «{}»;",
    "es": "¿Qué hay que saber sobre «{}»?",
    "fr": "Que faut-il savoir sur « {} » ?",
    "hi": "“{}” के बारे में क्या जानना चाहिए?",
    "it": "Che cosa bisogna sapere su «{}»?",
    "ja": "「{}」について知っておくべきことは何ですか？",
    "nl": "Wat moet ik weten over ‘{}’?",
    "pt": "O que é preciso saber sobre «{}»?",
    "ro": "Ce trebuie să știu despre „{}”?",
    "ru": "Что нужно знать о теме «{}»?",
    "th": "ควรรู้อะไรเกี่ยวกับ “{}”",
    "tr": "“{}” hakkında ne bilmek gerekir?",
    "vi": "Cần biết gì về “{}”?",
    "zh": "关于“{}”需要知道什么？",
}
"""The question about a heading in other languages than English; elsewhere the heading alone."""

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
class DraftQuestion:
    """A drafted question. ``rule`` says how it came about; ``fact`` is what an answer must say."""

    text: str
    snippet: str
    rule: str
    category: str
    fact: str


def questions(
    every: Iterable[NoteSection], casing: Casing
) -> Iterator[tuple[NoteSection, DraftQuestion | None]]:
    """Sections with their questions: first those that say something plainly, then bare headings.

    A section that gives neither comes with None.
    """
    told = [(section, _told_language(section)) for section in every]
    usual = Counter(language for _, language in told if language).most_common(1)
    later = []
    for section, own in told:
        language = own or (usual[0][0] if usual else None)
        question = _from_text(section, casing, language)
        if question is None:
            later.append((section, language))
        else:
            yield section, question
    for section, language in later:
        yield section, _from_heading(section, casing, language)


def _told_language(section: NoteSection) -> str | None:
    """The language of a section; None where it does not tell, which is then that of the vault."""
    return guess(" ".join((section.titles[-1], *section.sentences[:FIRST_SENTENCES])))


def _is_foreign(language: str | None) -> bool:
    return language not in (None, "en")


def _from_text(
    section: NoteSection, casing: Casing, language: str | None = None
) -> DraftQuestion | None:
    """A question that the heading is, or that one of the first sentences answers."""
    title = section.titles[-1].strip()
    if title.endswith(("?", "？", "؟")):
        text = _bare(title) if _is_foreign(language) else casing.all(_bare(title))
        return _of_heading(section, _finished(text), "factual")
    if _is_foreign(language):
        return None
    for sentence in section.sentences[:FIRST_SENTENCES]:
        if not _stands_alone(sentence):
            continue
        rule_and_text = _from_sentence(sentence, section, casing)
        if rule_and_text is not None:
            rule, text = rule_and_text
            return DraftQuestion(_finished(text), sentence, rule, "factual", sentence)
    return None


def _from_sentence(sentence: str, section: NoteSection, casing: Casing) -> tuple[str, str] | None:
    """The rule that fits and the question, with the sentence's marks."""
    for pattern, asks in ((_TO_DO, "How do I"), (_WANT, "How do I"), (_YOU_CAN, "How can I")):
        if (match := pattern.fullmatch(sentence)) is not None:
            aim = re.sub(r"\byour\b", "my", _BY_THE_WAY.sub("", match["aim"]))
            whole = not _POINTER.search(aim) and not re.search(r"\byou\b", aim)
            return ("how to", f"{asks} {aim}?") if whole and _is_told(aim, section) else None
    plain = _ASIDE.sub("", sentence)
    for rule, pattern in _BY_SUBJECT:
        if (match := pattern.fullmatch(plain)) is None:
            continue
        name = _subject(match["subject"], section, casing)
        if name is not None:
            return rule, _asked(rule, name, match)
    match = _IF.fullmatch(sentence)
    if match is not None and _is_condition(match["aim"], section):
        asks = "What should I do" if _SHOULD.match(match["rest"]) else "What happens"
        asks = "What can I do" if _CAN.match(match["rest"]) else asks
        return "condition", f"{asks} {match['word'].lower()} {match['aim']}?"
    return None


_BY_SUBJECT = (
    ("use", _USED),
    ("definition", _DEFINES),
    ("meaning", _MEANS),
    ("permission", _ALLOWS),
    ("deed", _DOES),
)


def _asked(rule: str, name: str, match: re.Match[str]) -> str:
    if rule == "definition":
        return f"What {match['verb']} {name}?"
    if rule == "use":
        return f"What {match['verb']} {name} used for?"
    if rule == "meaning":
        return f"What does {name} mean?"
    if rule == "permission":
        verb = f"let {match['whom']}" if match["lets"] else f"allow {match['whom']} to"
        return f"What does {name} {verb} do?"
    return f"What does {name} {_DEEDS[match['deed']]}?"


def question_on(sentence: str, subject: str, *, by_pronoun: bool) -> tuple[str, str, str] | None:
    """The question on ``subject`` that a sentence answers which begins with it, or, if
    ``by_pronoun``, with "it" or "they": the rule, the question with a pronoun, and the whole one.
    """
    plain = _ASIDE.sub("", sentence)
    for rule, pattern in _BY_SUBJECT:
        if (match := pattern.fullmatch(plain)) is None:
            continue
        own = _MARKS.sub("", match["subject"]).strip().casefold()
        if own != _MARKS.sub("", subject).casefold() and not (by_pronoun and own in ("it", "they")):
            return None
        pronoun = "they" if " are " in _asked(rule, " ", match) else "it"
        return (
            rule,
            _finished(_asked(rule, pronoun, match)),
            _finished(_asked(rule, subject, match)),
        )
    return None


def _is_told(aim: str, section: NoteSection) -> bool:
    """Does the phrase name something: a word of the headings, code, a kind of thing?"""
    topic_words = set(content_words(fold(aim))) & _title_words(section)
    return (
        bool(topic_words) or _is_set_off(aim) or re.search(r"\b(?:an?|my) \w{3,}", aim) is not None
    )


def _is_condition(aim: str, section: NoteSection) -> bool:
    """Can the condition be understood by itself, and has it to do with what the headings say?"""
    leans = _POINTER.search(aim) or _NO_CONDITION.match(aim) or LETTER.search(aim)
    if len(aim.split()) < 3 or leans or POINTS_BACK.match(aim.removeprefix("you ")):
        return False
    return bool(set(content_words(fold(aim))) & _title_words(section))


def _from_heading(
    section: NoteSection, casing: Casing, language: str | None = None
) -> DraftQuestion | None:
    """A question about the heading; the sentence that has most of its words is what it rests on."""
    title = _bare(section.titles[-1])
    if language is not None and _is_foreign(language):
        return _of_foreign_heading(section, title, language)
    if not re.search(r"[^\W\d_]{3}", title):
        return None
    first, _, rest = title.partition(" ")
    gerund = first.lower().endswith("ing") and bool(rest)
    verb = casing.base(first) if gerund and not _TWO_DEEDS.search(rest) else None
    if verb is not None:
        return _of_heading(section, f"How do I {verb} {casing.all(rest)}?", "general")
    if first.lower() == "how" and rest.lower().startswith("to "):
        return _of_heading(section, f"How do I {casing.all(rest[3:])}?", "general")
    return _of_heading(section, f"What should I know about {_topic(section, casing)}?", "general")


def _of_foreign_heading(section: NoteSection, title: str, language: str) -> DraftQuestion | None:
    """A question in the section's language about its heading as it is written."""
    if not any(char.isalpha() for char in title):
        return None
    plain = _finished(title)
    return _of_heading(section, _ASKED_IN.get(language, "{}?").format(plain), "general")


def _of_heading(section: NoteSection, text: str, category: str) -> DraftQuestion | None:
    """The question, resting on the sentence that shares most words with it; None without any."""
    words_of_heading = set(content_words(fold(text)))
    fit = [sentence for sentence in section.sentences if _stands_alone(sentence)]
    if not fit:
        return None
    snippet = max(
        fit, key=lambda sentence: len(words_of_heading & set(content_words(fold(sentence))))
    )
    return DraftQuestion(_finished(text), snippet, "heading", category, snippet)


def _stands_alone(sentence: str) -> bool:
    """Can the sentence be understood without those before it? "You" is whoever asks."""
    points_back = POINTS_BACK.match(sentence) and not sentence.startswith("You ")
    return not points_back and not _LOOKS_AROUND.search(sentence)


def _topic(section: NoteSection, casing: Casing) -> str:
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
    text = re.sub(r"(?<!»)\s+\?$", "?", re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", text).strip())
    return text[:1].upper() + text[1:]


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


def _subject(words: str, section: NoteSection, casing: Casing) -> str | None:
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
        (relative and not (_is_set_off(words) and relative[0].endswith(" of")))
        or _ADJECTIVE.search(bare)
        or LETTER.search(words)
    ):
        return None
    own = set(content_words(fold(bare)))
    own_words = own & _title_words(section)
    article = words.split()[0].lower()
    if article in ("a", "an"):
        fits = bool(own)
    elif article == "the":
        fits = _is_set_off(words) or (bool(own) and own_words == own)
    else:
        fits = _is_set_off(words) or bool(own_words)
    return casing.first(words) if fits else None


def _title_words(section: NoteSection) -> set[str]:
    """The telling words of the headings, from the note's first down to the section's own."""
    return set(content_words(fold(" ".join(section.titles))))


def _is_set_off(words: str) -> bool:
    """Are some of the words marked as code, stressed or quoted?"""
    return bool(_SET_OFF.search(words))


_TOKEN = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)*")

_STRESS = re.compile(r"[*_]+")

_CODE = re.compile(r"`[^`]*`")


class Casing:
    """Counts of every word within sentences, but for each sentence's first."""

    def __init__(self, every: Iterable[NoteSection] = ()) -> None:
        self._seen: Counter[str] = Counter()
        for section in every:
            for sentence in section.sentences:
                self._seen.update(_TOKEN.findall(_CODE.sub(" ", sentence))[1:])

    def first(self, words: str) -> str:
        """``words`` for the middle of a question: the first one small, unless it is a name."""
        marks = _STRESS.match(words)
        start = marks.end() if marks else 0
        if not _TOKEN.match(words, start):
            return words
        return words[:start] + _TOKEN.sub(self._word, words[start:], count=1)

    def all(self, words: str) -> str:
        """The same for each word, outside of code: for headings in Title Case."""
        parts = re.split(r"(`[^`]*`)", words)
        return "".join(
            part if part.startswith("`") else _TOKEN.sub(self._word, part) for part in parts
        )

    def _word(self, match: re.Match[str]) -> str:
        word = match[0]
        if not word[0].isupper() or any(char.isupper() for char in word[1:]):
            return word  # small already, or written as SQL and JavaScript are
        if word == "I":
            return word
        small = word[0].lower() + word[1:]
        return small if self._seen[small] >= self._seen[word] else word

    def base(self, gerund: str) -> str | None:
        """The verb behind a word in -ing: the form that the vault uses most; None when none is.

        "storing" is stor, store or (by a doubled letter) none: only "store" is a word.
        """
        stem = gerund.lower().removesuffix("ing")
        if len(stem) < 2 or stem == gerund.lower():
            return None
        forms = [stem, f"{stem}e"]
        if len(stem) > 2 and stem[-1] == stem[-2]:
            forms.append(stem[:-1])
        best = max(forms, key=lambda form: self._seen[form])
        return best if self._seen[best] else None


WHOLE = 1 << 31
"""No section is cut: an anchor names all of it."""

FEWEST_WORDS, MOST_WORDS = 5, 45

_SPACE = re.compile(r"\s+")


@dataclass(frozen=True, slots=True)
class NoteSection:
    """One heading with its own text. ``sentences``: prose that can be quoted, on one line each."""

    vault: str
    rel_path: str
    folder: str
    heading_path: str
    text: str
    sentences: tuple[str, ...]

    @property
    def titles(self) -> list[str]:
        """The headings from the note's first down to the section's own."""
        return self.heading_path.split(HEADING_SEPARATOR)

    @property
    def flat(self) -> str:
        """The text with its white space collapsed, as snippets are compared."""
        return flat(self.text)


def flat(text: str) -> str:
    return _SPACE.sub(" ", text).strip()


def sections(notes: Iterable[Note]) -> list[NoteSection]:
    """Every section with a heading and a quotable sentence, in reading order."""
    result = []
    for chunk in chunk_notes(notes, max_chars=WHOLE):
        if not chunk.heading_path:
            continue
        whole = flat(chunk.text)
        quotable = tuple(
            sentence.text
            for sentence in sentences(chunk.text)
            if _quotable(sentence.text) and sentence.text in whole
        )
        if quotable:
            result.append(
                NoteSection(
                    chunk.vault,
                    chunk.rel_path,
                    chunk.folder,
                    chunk.heading_path,
                    chunk.text,
                    quotable,
                )
            )
    return result


def _quotable(sentence: str) -> bool:
    """A whole sentence of a usual length; no cut-off, no announcement of what follows."""
    return (
        sentence[-1] in ".!。"
        and FEWEST_WORDS <= len(sentence.split()) <= MOST_WORDS
        and not sentence[0].islower()
        and sentence.count("`") % 2 == 0  # else it was cut within code
        and "<!--" not in sentence
    )


def holders(snippet: str, every: Sequence[NoteSection]) -> list[NoteSection]:
    """All sections that hold the snippet: each of them answers the question."""
    return [section for section in every if snippet in section.flat]
