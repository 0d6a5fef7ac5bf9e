"""Which case comes next: status of a case, order of the queue, filters, progress."""

from __future__ import annotations

import hashlib
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Final, NamedTuple

from labeller.case_state import Record
from labeller.label_options import ORDERS
from records import extras
from records.cases import DRAFT
from terminal.actions import ActionRefused
from terminal.tables import counted

OPEN, LABELLED, UNANSWERABLE = "open", "labelled", "unanswerable"
SKIPPED, CANNOT_TELL = "skipped", "cannot_tell"
STATUSES: Final = (OPEN, LABELLED, UNANSWERABLE, SKIPPED, CANNOT_TELL)
IDLE_SECONDS: Final = 600.0
"""A longer stay on one question counts as a break and not as work."""


class CaseSummary(NamedTuple):
    """The list of questions' row of a case. A tuple: thousands are made at the start."""

    id: str
    question: str
    status: str
    flagged: bool
    category: str
    tags: tuple[str, ...]

    @property
    def folded(self) -> str:
        """The text that a search for words reads: id and question, casefolded."""
        return f"{self.id}\n{self.question}".casefold()


class Progress(NamedTuple):
    """Counts over all cases; the time is None until a case was confirmed in this session."""

    counts: Counter[str]
    """Cases by their status."""
    flagged: int
    seconds_each: float | None

    @property
    def done(self) -> int:
        """Cases that were decided: labelled, unanswerable, or said to be beyond telling."""
        return sum(self.counts[status] for status in (LABELLED, UNANSWERABLE, CANNOT_TELL))

    @property
    def seconds_left(self) -> float | None:
        """The time that the other cases take at this pace."""
        left = self.counts[OPEN] + self.counts[SKIPPED]
        return None if self.seconds_each is None else self.seconds_each * left

    def says(self) -> str:
        """The counts in words."""
        n = self.counts
        return (
            f"{self.done} of {n.total()} done: {n[LABELLED]} labelled, {n[UNANSWERABLE]} "
            f"unanswerable, {n[CANNOT_TELL]} cannot tell; {n[OPEN]} open, {n[SKIPPED]} "
            f"later, {self.flagged} flagged"
        )


def is_draft(case: Record) -> bool:
    """Did a program draft the case, and has no person accepted it yet?"""
    return DRAFT in (case.get("tags") or ())


def status_of(case: Record, judgement: Record) -> str:
    """The status of a case. Labels of the set count as confirmed; a draft is open until it is."""
    decision = judgement.get("decision")
    if decision == SKIPPED:
        return SKIPPED
    if judgement.get("confirmed"):
        return LABELLED if decision == "answerable" else str(decision)
    if decision is not None or "decision" in judgement:
        return OPEN
    if is_draft(case):
        return OPEN
    if case.get("gold_supports"):
        return LABELLED
    return UNANSWERABLE if case.get("answerable") is False else OPEN


def summary_of(case: Record, judgement: Record) -> CaseSummary:
    """The list entry of a case."""
    tags = case.get("tags")
    return CaseSummary(
        str(case["id"]),
        str(case.get("question") or ""),
        status_of(case, judgement),
        bool(judgement.get("flag")),
        str(case.get("category") or ""),
        tuple(map(str, tags)) if tags else (),
    )


def progress_of(summaries: Collection[CaseSummary], seconds: Sequence[float]) -> Progress:
    """Progress on some cases; `seconds` are the times of those confirmed in this session."""
    each = None
    if seconds:
        from statistics import median

        each = median(seconds)
    counts = Counter([summary.status for summary in summaries])
    return Progress(counts, sum([summary.flagged for summary in summaries]), each)


def shuffle_key(*parts: str) -> bytes:
    """A sort key that looks random, and is the same wherever the same parts are hashed."""
    return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass")).digest()


def queue_orders() -> tuple[str, ...]:
    """The orders that the questions can come in, then those that extras add."""
    return (*ORDERS, *(name for _, name, _ in extras.added(extras.LABEL_ORDERS)))


def _parse_filter(text: str, lost: Callable[[str], bool]) -> Callable[[CaseSummary], bool]:
    """A test for list entries: all words must hold, in any case. Refuses an unknown status.

    ``status:open``, ``flag``, ``tag:x``, ``category:x``, ``anchor:lost``, ``id:x``; any other word
    must stand in the id or the question.
    """
    tests = [_test(word, lost) for word in text.casefold().split()]
    return lambda summary: all(test(summary) for test in tests)


def _test(word: str, lost: Callable[[str], bool]) -> Callable[[CaseSummary], bool]:
    name, colon, value = word.partition(":")
    if word in ("flag", "flag:", "status:flagged"):
        return lambda summary: summary.flagged
    if word == "anchor:lost":
        return lambda summary: lost(summary.id)
    if colon and name == "status":
        statuses = [status for status in STATUSES if value and status.startswith(value)]
        if not statuses:
            names = ", ".join(STATUSES)
            raise ActionRefused(f"status {value!r} is unknown; use one of: {names}.")
        return lambda summary: summary.status in statuses
    fields: dict[str, Callable[[CaseSummary], bool]] = {
        "tag": lambda summary: value in map(str.casefold, summary.tags),
        "category": lambda summary: summary.category.casefold().startswith(value),
        "id": lambda summary: value in summary.id.casefold(),
    }
    return fields[name] if colon and name in fields else lambda summary: word in summary.folded


class WorkQueue:
    """The cases of a set as they come up, the filtered part of them, and the open one.

    `lost` tells whether a case has a support that none of its chunks shows. `opened` is called with
    each case that is opened.
    """

    def __init__(
        self,
        order: str,
        *,
        seed: str,
        priority: Mapping[str, float],
        lost: Callable[[str], bool],
        opened: Callable[[str], None],
    ) -> None:
        self.order, self.filter, self.current = order, "", ""
        self.ids: list[str] = []
        """All cases in the order of the set."""
        self.summaries: dict[str, CaseSummary] = {}
        self.sequence: list[str] = []
        """All cases in the order of the queue."""
        self.visible: list[str] = []
        """Those that the filter lets through."""
        self.trail: list[str] = []
        """The cases that were open before, the last one last."""
        self._seed, self._priority, self._lost, self._opened = seed, priority, lost, opened
        self._positions: dict[str, int] = {}
        self._seconds: list[float] = []
        self._progress: Progress | None = None

    def __contains__(self, case_id: object) -> bool:
        return case_id in self.summaries

    def load(self, summaries: dict[str, CaseSummary]) -> None:
        """Take all cases anew, in the order of the set."""
        self.ids, self.summaries, self._progress = [*summaries], summaries, None
        self._arrange()
        if self.current and self.current not in self:
            self.open_first()

    def put(self, case_id: str, summary: CaseSummary, position: int | None) -> None:
        """Take the state of a case; a new one comes at `position` of the set, None at its end."""
        previous = self.summaries.get(case_id)
        self.summaries[case_id] = summary
        if previous != summary:
            self._progress = None
        if previous is None:
            self.ids.insert(len(self.ids) if position is None else position, case_id)
            self._arrange()

    def remove(self, case_id: str) -> None:
        """Take a case out, if it is there; another one opens if it was open."""
        if self.summaries.pop(case_id, None) is None:
            return
        self._progress = None
        self.ids.remove(case_id)
        self._arrange()
        if self.current == case_id:
            self.open_first()

    def progress(self) -> Progress:
        """Counts over all cases, pace and time left; counted when a case changed."""
        if self._progress is None:
            self._progress = progress_of(self.summaries.values(), self._seconds)
        return self._progress

    def add_time(self, seconds: float) -> None:
        """A case was confirmed after that many seconds."""
        self._seconds.append(seconds)
        self._progress = None

    def set_order(self, order: str) -> str:
        """Put the queue in another order: one of `queue_orders`.

        ``random`` is by a hash of seed and id, so a new case does not move the others. The orders
        that teach most first (``failing``, ``uncertain``, those of extras) go by priority, highest
        first, then as in the file; cases without one come last. Refuses another name.
        """
        if order not in queue_orders():
            orders = ", ".join(queue_orders())
            raise ActionRefused(f"order {order!r} is unknown; use one of: {orders}.")
        self.order = order
        self._arrange()
        return f"order: {order}"

    def set_filter(self, text: str) -> str:
        """Show only the cases that `text` asks for, see `_parse_filter`."""
        test = _parse_filter(text.strip(), self._lost)
        self.filter = text.strip()
        self.visible = [c for c in self.sequence if test(self.summaries[c])]
        return f"{len(self.visible)} of {counted(len(self.sequence), 'case')}"

    def _arrange(self) -> None:
        sequence = list(self.ids)
        if self.order == "random":
            sequence.sort(key=lambda case_id: shuffle_key(self._seed, case_id))
        elif self.order != "file":
            sequence.sort(key=lambda case_id: -self._priority.get(case_id, float("-inf")))
        self.sequence = self.visible = sequence
        self._positions = {case_id: position for position, case_id in enumerate(sequence)}
        if self.filter:
            self.set_filter(self.filter)

    @property
    def position_and_total(self) -> tuple[int, int]:
        """The open case's place in the queue from 1, and the number of cases."""
        return self._here + 1, len(self.sequence)

    @property
    def _here(self) -> int:
        return self._positions.get(self.current, -1)

    def goto(self, case_id: str) -> str:
        """Open a case by its id."""
        if case_id not in self:
            raise ActionRefused(f"There is no case {case_id}.")
        if case_id != self.current:
            if self.current:
                self.trail.append(self.current)
            self.current = case_id
            self._opened(case_id)
        return case_id

    def goto_number(self, number: int) -> str:
        """Open the n-th case of the queue, from 1."""
        if not 1 <= number <= len(self.sequence):
            raise ActionRefused(f"There is no question {number}; there are {len(self.sequence)}.")
        return self.goto(self.sequence[number - 1])

    def next(self) -> None:
        """Open the next visible case; the current one may be hidden itself."""
        index = bisect_right(self.visible, self._here, key=self._positions.__getitem__)
        self._goto_visible(index, "This is the last one.")

    def previous(self) -> None:
        """Open the visible case before."""
        index = bisect_left(self.visible, self._here, key=self._positions.__getitem__) - 1
        self._goto_visible(index, "This is the first one.")

    def _goto_visible(self, index: int, otherwise: str) -> None:
        if not 0 <= index < len(self.visible):
            raise ActionRefused(otherwise)
        self.goto(self.visible[index])

    def next_open(self) -> None:
        """Open the next open case; the skipped ones come when no other is open."""
        if not self.onward():
            raise ActionRefused("No other case is open.")

    def onward(self) -> bool:
        """The same, but stay and return False when no other is open."""
        case_id = self._open_after(self.current, self.visible)
        return case_id is not None and bool(self.goto(case_id))

    def back(self) -> None:
        """Open the case that was looked at before this one."""
        while self.trail:
            case_id = self.trail.pop()
            if case_id in self and case_id != self.current:
                self.current = case_id
                self._opened(case_id)
                return
        raise ActionRefused("There is no earlier case.")

    def open_first(self, last: str = "") -> None:
        """Open the case `last` while it is open, else the first open one."""
        if last in self and self.summaries[last].status == OPEN:
            self.goto(last)
            return
        self.current = ""
        if first := self._open_after("", self.sequence) or next(iter(self.sequence), ""):
            self.goto(first)

    def _open_after(self, case_id: str, cases: Sequence[str]) -> str | None:
        """The open one of `cases` after a case, round the end; a skipped one when none is open."""
        start = cases.index(case_id) + 1 if case_id in cases else 0
        turned = [*cases[start:], *cases[:start]]
        for status in (OPEN, SKIPPED):
            for other in turned:
                if other != case_id and self.summaries[other].status == status:
                    return other
        return None

    def upcoming(self, ahead: int) -> list[str]:
        """The open case and the next `ahead` ones to decide."""
        cases: list[str] = []
        case_id: str | None = self.current
        while case_id and case_id not in cases and len(cases) <= ahead:
            cases.append(case_id)
            case_id = self._open_after(case_id, self.visible)
        return cases

    def find(self, text: str) -> str | None:
        """The next case with `text` in its id or question, round the end."""
        folded, start = text.casefold(), self._here + 1
        turned = [*self.sequence[start:], *self.sequence[:start]]
        return next((c for c in turned if folded in self.summaries[c].folded), None)
