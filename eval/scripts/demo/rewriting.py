"""Makes a follow-up question whole: it takes along what the last questions were about.

``And after a return?`` says nothing to a search by itself. Behind it are put the terms of the last
``LAST_TURNS`` questions that it lacks, newest first. A term counts ``weight`` to the power of its
age: with 0.5 one of the last question counts 0.5, of the question before that 0.25. Words that
make a question's form, and words that many passages hold, are left behind. Answers are not read.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from threading import Lock

from demo.index import terms
from demo.retriever import QUESTION_WORDS

LAST_TURNS = 3
"""Earlier questions that are looked at."""

LEAST_RARITY = 0.25
"""Inverse document frequency of a term that is taken along, as a share of an unknown term's: of
thousand passages fewer than one in six hold it."""

MOST_SESSIONS = 1000
"""Sessions that a server remembers; the one that was silent longest is forgotten first."""


@dataclass(frozen=True, slots=True)
class FollowUp:
    """``text`` is the question with its terms of earlier questions behind it.

    ``carried`` weighs each of these terms, in (0, 1]. A term of the question itself counts 1.
    """

    question: str
    text: str
    carried: Mapping[str, float] = field(default_factory=dict)


def rewrite(
    question: str, earlier: Sequence[str], weight: float, rarity: Callable[[str], float]
) -> FollowUp:
    """``question`` made whole by ``earlier`` questions, oldest first.

    ``weight`` in [0, 1] is that of the last question's terms; with 0 nothing is taken along.
    """
    own = set(terms(question))
    least = LEAST_RARITY * rarity(" ")  # no term has a space: an unknown one
    carried: dict[str, float] = {}
    for age, text in enumerate(reversed(earlier[-LAST_TURNS:]), start=1):
        for term in terms(text) if weight else ():
            if term not in own | QUESTION_WORDS and rarity(term) >= least:
                carried.setdefault(term, weight**age)
    return FollowUp(question, " ".join([question, *carried]), carried)


class Sessions:
    """The questions of each session, for requests that send no history. Safe between threads."""

    def __init__(self) -> None:
        self._questions: OrderedDict[str, list[str]] = OrderedDict()
        self._lock = Lock()

    def take(self, session: str, question: str) -> list[str]:
        """The session's last questions, oldest first; remembers ``question`` behind them."""
        with self._lock:
            questions = self._questions.setdefault(session, [])
            self._questions.move_to_end(session)
            earlier = list(questions)
            questions[:] = [*earlier, question][-LAST_TURNS:]
            if len(self._questions) > MOST_SESSIONS:
                self._questions.popitem(last=False)
            return earlier
