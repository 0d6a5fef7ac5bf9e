"""Which case comes next: status of a case, order of the queue, filters, progress."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

Record = dict[str, Any]
DRAFT: Final = "draft"
"""The tag of a case that a program drafted and nobody has accepted yet."""
OPEN, LABELLED, UNANSWERABLE = "open", "labelled", "unanswerable"
SKIPPED, CANNOT_TELL = "skipped", "cannot_tell"
STATUSES: Final = (OPEN, LABELLED, UNANSWERABLE, SKIPPED, CANNOT_TELL)
FLAGGED: Final = "flagged"
ORDERS: Final = ("file", "random", "disagreement", "failing", "uncertain")
IDLE_SECONDS: Final = 600.0
"""A longer stay on one question counts as a break and not as work."""


class Brief(NamedTuple):
    """What the list of questions shows of a case. A tuple: thousands are made at the start."""

    id: str
    question: str
    status: str
    flagged: bool
    category: str
    tags: tuple[str, ...]

    @property
    def folded(self) -> str:
        """What a search for words looks at: id and question, casefolded."""
        return f"{self.id}\n{self.question}".casefold()


@dataclass(frozen=True)
class Progress:
    """Counts over all cases; the times are None until a case was confirmed in this session."""

    total: int
    open: int
    labelled: int
    unanswerable: int
    skipped: int
    cannot_tell: int
    flagged: int
    seconds_each: float | None
    seconds_left: float | None

    @property
    def done(self) -> int:
        """Cases that were decided: labelled, unanswerable, or said to be beyond telling."""
        return self.labelled + self.unanswerable + self.cannot_tell


def is_draft(case: Record) -> bool:
    """Did a program draft the case, with nobody having accepted it?"""
    return DRAFT in (case.get("tags") or ())


def status_of(case: Record, judgement: Record) -> str:
    """The status of a case. Labels that were in the set before count as confirmed, a draft's not.

    A draft counts as open until it is confirmed, which takes its tag away.
    """
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


def brief_of(case: Record, judgement: Record) -> Brief:
    """The list entry of a case."""
    tags = case.get("tags")
    return Brief(
        str(case["id"]),
        str(case.get("question") or ""),
        status_of(case, judgement),
        bool(judgement.get("flag")),
        str(case.get("category") or ""),
        tuple(map(str, tags)) if tags else (),
    )


def tally(briefs: Collection[Brief]) -> Counter[str]:
    """How many of `briefs` have each status, and how many are flagged."""
    counts = Counter([brief.status for brief in briefs])
    counts[FLAGGED] = sum([brief.flagged for brief in briefs])
    return counts


def progress_of(counts: Mapping[str, int], seconds: Sequence[float]) -> Progress:
    """Progress by a `tally`; `seconds` are the times of the cases confirmed in this session."""
    each = None
    if seconds:
        from statistics import median

        each = median(seconds)
    left = counts[OPEN] + counts[SKIPPED]
    return Progress(
        total=sum(counts[status] for status in STATUSES),
        flagged=counts[FLAGGED],
        seconds_each=each,
        seconds_left=None if each is None else each * left,
        **{status: counts[status] for status in STATUSES},
    )


def shuffle_key(*parts: str) -> bytes:
    """A sort key that looks random, and is the same wherever the same parts are hashed."""
    return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass")).digest()


def ordered(
    ids: Sequence[str], order: str, *, seed: str, priority: Mapping[str, float]
) -> list[str]:
    """`ids` in the order of the queue.

    ``random`` is by a hash of seed and id, so a new case does not move the others. The orders that
    teach most first (``disagreement``, ``failing``, ``uncertain``) go by `priority`, highest first,
    then as in the file; cases without a priority come last. Raises ValueError for another name.
    """
    if order not in ORDERS:
        raise ValueError(f"order {order!r} is unknown; use one of: {', '.join(ORDERS)}")
    if order == "file":
        return list(ids)
    if order == "random":
        return sorted(ids, key=lambda case_id: shuffle_key(seed, case_id))
    return sorted(ids, key=lambda case_id: -priority.get(case_id, float("-inf")))


def parse_filter(text: str, lost: Callable[[str], bool]) -> Callable[[Brief], bool]:
    """A test for list entries. All words must hold; case does not matter.

    ``status:open``, ``flag``, ``tag:x``, ``category:x``, ``anchor:lost``, ``id:x``; any other word
    must stand in the id or the question. `lost` tells whether a case has a support that none of
    its chunks shows. Raises ValueError for an unknown status.
    """
    tests = [_test(word, lost) for word in text.casefold().split()]
    return lambda brief: all(test(brief) for test in tests)


def _test(word: str, lost: Callable[[str], bool]) -> Callable[[Brief], bool]:
    name, colon, value = word.partition(":")
    if word in ("flag", "flag:", "status:flagged"):
        return lambda brief: brief.flagged
    if word == "anchor:lost":
        return lambda brief: lost(brief.id)
    if colon and name == "status":
        found = [status for status in STATUSES if value and status.startswith(value)]
        if not found:
            raise ValueError(f"status {value!r} is unknown; use one of: {', '.join(STATUSES)}")
        return lambda brief: brief.status in found
    if colon and name == "tag":
        return lambda brief: value in map(str.casefold, brief.tags)
    if colon and name == "category":
        return lambda brief: brief.category.casefold().startswith(value)
    if colon and name == "id":
        return lambda brief: value in brief.id.casefold()
    return lambda brief: word in brief.folded


def next_open(order: Sequence[str], briefs: Mapping[str, Brief], current: str) -> str | None:
    """The next open case after `current`, round the end; a skipped one only when none is open."""
    if not order:
        return None
    start = order.index(current) + 1 if current in order else 0
    turned = [*order[start:], *order[:start]]
    for wanted in (OPEN, SKIPPED):
        for case_id in turned:
            if case_id != current and briefs[case_id].status == wanted:
                return case_id
    return None
