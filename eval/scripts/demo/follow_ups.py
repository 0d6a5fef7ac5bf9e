"""Conversations by rule: a drafted question, and follow-ups that cannot be read without it.

A follow-up leaves out what the question before it said: by a pronoun ("What is it used for?"), by
an ellipsis ("And a mixer?"), or it asks for something that the notes do not hold ("Who invented
it?"). Each comes with the same question made whole. The rules read English.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from demo.draft_templates import DraftQuestion, NoteSection, flat, question_on
from ragmetrics.text.words import content_words, fold

FEWEST_TURNS = 3

_FRAMES = {
    "use": re.compile(r"(What (?:is|are) )(.+)( used for\?)"),
    "definition": re.compile(r"(What (?:is|are|was|were) )(.+)(\?)"),
    "meaning": re.compile(r"(What does )(.+)( mean\?)"),
    "permission": re.compile(r"(What does )(.+)( (?:let|allow) (?:you|users)(?: to)? do\?)"),
    "deed": re.compile(r"(What does )(.+)( \w+\?)"),
}

_OPEN_ENDS = (
    ("Who invented {}?", ("invent", "inventor", "author", "design", "designer", "creator")),
    ("What does {} cost?", ("cost", "price", "fee", "money", "paid")),
    ("Which company maintains {}?", ("company", "maintain", "maintainer", "vendor", "owner")),
)
"""Questions that notes on a subject often leave open, and words that would answer them."""


@dataclass(frozen=True, slots=True)
class Turn:
    """A question of a conversation. ``alone`` is the same question made whole, "" when it is so.

    ``home`` is the section that answers it, None for one that no section answers.
    """

    question: DraftQuestion
    home: NoteSection | None
    alone: str = ""


@dataclass(frozen=True, slots=True)
class _Framed:
    """A drafted question cut at its subject."""

    home: NoteSection
    question: DraftQuestion
    before: str
    subject: str
    after: str

    @property
    def plural(self) -> bool:
        return self.before.endswith((" are ", " were "))


def conversations(
    drafted: Sequence[tuple[NoteSection, DraftQuestion]], every: Sequence[NoteSection]
) -> Iterator[list[Turn]]:
    """Conversations of three or four turns, in the order of the questions that open them.

    ``drafted``: questions with the sections that answer them; ``every``: all sections of the vault.
    A question opens a conversation, or stands in one as an ellipsis, never both.
    """
    by_text: dict[str, _Framed] = {}
    for home, question in drafted:
        if (found := _framed(home, question)) is not None:
            by_text.setdefault(question.text, found)
    framed = list(by_text.values())
    used: set[int] = set()
    for number, opening in enumerate(framed):
        if number in used:
            continue
        used.add(number)
        turns = [Turn(opening.question, opening.home)]
        turns += _by_pronoun(opening)
        partner = _partner(opening, number, framed, used)
        last = opening
        if partner is not None:
            last = framed[partner]
            used.add(partner)
            short = DraftQuestion(
                f"And {last.subject}?",
                last.question.snippet,
                f"{last.question.rule}, ellipsis",
                last.question.category,
                last.question.fact,
            )
            turns.append(Turn(short, last.home, last.question.text))
        turns += _by_open_end(last, every, number)
        if len(turns) >= FEWEST_TURNS:
            yield turns
        elif partner is not None:
            used.discard(partner)


def _framed(home: NoteSection, question: DraftQuestion) -> _Framed | None:
    frame = _FRAMES.get(question.rule)
    match = frame.fullmatch(question.text) if frame else None
    return None if match is None else _Framed(home, question, *match.groups())


def _by_pronoun(opening: _Framed) -> list[Turn]:
    """The follow-up that the sentence behind the one of the opening answers, or a later sentence
    that begins with the same subject; at most one."""
    lines = [flat(sentence) for sentence in opening.home.sentences]
    snippet = flat(opening.question.snippet)
    place = lines.index(snippet) if snippet in lines else len(lines)
    for distance, sentence in enumerate(opening.home.sentences[place + 1 :], 1):
        found = question_on(sentence, opening.subject, by_pronoun=distance == 1)
        if found is not None and found[2] != opening.question.text:
            rule, text, alone = found
            question = DraftQuestion(text, sentence, f"{rule}, pronoun", "factual", sentence)
            return [Turn(question, opening.home, alone)]
    return []


def _partner(
    opening: _Framed, number: int, framed: Sequence[_Framed], used: set[int]
) -> int | None:
    """A question of the same form about something else: of the same note, else the next one."""
    alike = [
        other
        for other, candidate in enumerate(framed)
        if other != number
        and other not in used
        and (candidate.before, candidate.after) == (opening.before, opening.after)
        and candidate.subject.casefold() != opening.subject.casefold()
        and candidate.question.rule == opening.question.rule
    ]
    same_note = [other for other in alike if framed[other].home.rel_path == opening.home.rel_path]
    return next(iter(same_note or alike), None)


def _by_open_end(last: _Framed, every: Sequence[NoteSection], number: int) -> list[Turn]:
    """A question on the last subject for which no section that names it holds a telling word.

    ``number`` turns the list round, so that not all conversations end in the same one.
    """
    subject_words = set(content_words(fold(last.subject)))
    words_of = [set(content_words(fold(section.text))) for section in every]
    about = [found for found in words_of if subject_words and subject_words <= found]
    first = number % len(_OPEN_ENDS)
    for text, answers in (*_OPEN_ENDS[first:], *_OPEN_ENDS[:first]):
        telling = {word for answer in answers for word in content_words(answer)}
        if not any(telling & found for found in about):
            short = text.format("them" if last.plural else "it")
            question = DraftQuestion(short, "", "not in the notes", "general", "")
            return [Turn(question, None, text.format(last.subject))]
    return []
