"""Settling a case with another annotator in a session of the set: what differs, what is chosen."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from extras.annotators import adjudication
from extras.annotators.adjudication import Disagreement
from labeller.case_state import GOLD, CaseState, EditResult, Record, timestamp
from labeller.worklist import OPEN, SKIPPED, status_of
from records.errors import StorageError
from terminal.actions import ActionRefused

if TYPE_CHECKING:
    from labeller.plain import PlainLabeller
    from labeller.session import Session
    from labeller.store import LabelStore


class Settling:
    """The labels of other annotators beside those of a session of the set.

    `others` are their decided cases by name: a pool of judged rows has none. Refuses when their
    files cannot be read.
    """

    def __init__(self, session: Session, store: LabelStore) -> None:
        self._session = session
        self.others = _decided(store) if session.annotator == GOLD else {}

    def disagreements(self, name: str) -> list[Disagreement]:
        """Where the labels of the current case and those of `name` differ.

        A is what the set said when the first choice was taken, so that the list stands still.
        """
        session = self._session
        theirs, state = self._labels_of(name), session.ledger[session.current]
        return adjudication.disagreements(state, theirs, name, session.rows())

    def adjudicate(self, name: str, index: int, choice: str) -> str:
        """Take ``a``, ``b``, the ``union`` or ``neither`` for one disagreement."""
        if choice not in adjudication.CHOICES:
            raise ActionRefused(f"A choice is one of: {', '.join(adjudication.CHOICES)}.")
        items = self.disagreements(name)
        if not 0 <= index < len(items):
            raise ActionRefused("There is no such disagreement.")
        theirs, item = self._labels_of(name), items[index]
        message = f"{item.text}: {adjudication.choice_words(item, choice)}"

        def settled(state: CaseState) -> EditResult:
            after = adjudication.settled(state, theirs, name, item, choice)
            return EditResult("adjudicate", after, message)

        return self._session.do(settled)

    def adjudicated(self, name: str) -> str:
        """Confirm the case as it was settled. Refuses while something was not chosen."""
        undecided = [item for item in self.disagreements(name) if not item.choice]
        if undecided:
            raise ActionRefused(f"{len(undecided)} not chosen yet: {undecided[0].text}.")
        session = self._session
        by, at = session.annotator, timestamp(session.now())
        message = f"{session.current} is settled with {name}"

        def confirmed(state: CaseState) -> EditResult:
            return EditResult("adjudicated", adjudication.confirmed(state, by=by, at=at), message)

        return session.do(confirmed)

    def _labels_of(self, name: str) -> Record:
        if name not in self.others:
            raise ActionRefused(f"There are no labels of {name} here.")
        theirs = self.others[name].get(self._session.current)
        if theirs is None:
            raise ActionRefused(f"{name} has not labelled {self._session.current}.")
        return theirs


def _decided(store: LabelStore) -> dict[str, Mapping[str, Record]]:
    try:
        judgements = store.others
    except StorageError as error:
        raise ActionRefused(error.message) from None
    decided = {
        name: {
            c: judged[c] for c in judged if status_of(judged[c], judged[c]) not in (OPEN, SKIPPED)
        }
        for name, judged in sorted(judgements.items())
    }
    return {name: cases for name, cases in decided.items() if cases}


def obey(plain: PlainLabeller, rest: str) -> str:
    """Do a line of line mode: NAME lists, NAME 2 union chooses, NAME done confirms."""
    from labeller.plain import number_in

    words = rest.split()
    settling = Settling(plain.session, plain.store)
    if not words:
        names = ", ".join(settling.others) or "none"
        raise ActionRefused(f"Write D NAME; annotators: {names}.")
    name = words[0]
    if words[1:] == ["done"]:
        return settling.adjudicated(name)
    if len(words) == 3:
        return settling.adjudicate(name, number_in(words[1], "disagreement") - 1, words[2])
    items = settling.disagreements(name)
    for item in items:
        plain.say(f"{item.index + 1} {item.text}: A {item.a}, B {item.b}; {item.choice or '?'}")
    return f"{len(items)} disagreements; D {name} 1 a|b|union|neither, then D {name} done"
