"""What the page of one case in two runs says: what changed, both answers, both rankings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from browser.case_page import answer_part, gold_part, passages_part
from browser.document import LABEL_WIDTH, SAYS, STYLES, Blank, Doc
from browser.lines import score
from browser.model import Detail

RANK_INDENT = 13
WIDEST_NAME = 40
"""Cells of the column of metric names."""


@dataclass(frozen=True, slots=True)
class Side:
    """One of the two: the run's name, the case in it, and why it fails (empty: it does not)."""

    name: str
    detail: Detail
    fails: str

    @property
    def state(self) -> str:
        return f"fails: {self.fails}" if self.fails else "succeeds"


def head_part(doc: Doc, base: Side, new: Side, word: str, style: str) -> None:
    """The question and what became of the case."""
    doc.part("Question", new.detail.case_id)
    doc.line(new.detail.question, "term")
    doc.add(f"{word}  ", style)
    doc.line(f"base {base.name} {base.state}; new {new.name} {new.state}")
    for side in (base, new):
        for problem in side.detail.problems:
            doc.line(f"! {side.name}: {problem}", "warn")


def ranks_part(doc: Doc, base: Side, new: Side) -> None:
    """Ranks of gold before and after, one line a gold support."""
    doc.part("Gold ranks", "base, new")
    arrow = "->" if doc.ascii else "→"
    sides = (base.detail, new.detail)
    if any(detail.hits is None for detail in sides):
        doc.line("not scored in both runs: score_retrieval.py has no score here", "dim")
        return
    golds = zip(base.detail.gold, new.detail.gold, strict=False)
    for before, after in golds:
        ranks = [str(gold.rank) if gold.rank else "none" for gold in (before, after)]
        style = "dim" if before.rank == after.rank else "good"
        if before.rank and (after.rank is None or after.rank > before.rank):
            style = "bad"
        doc.add(f"{ranks[0]:>4} {arrow} {ranks[1]:<4} ".ljust(RANK_INDENT), style)
        doc.hang(after.place, RANK_INDENT)
    lists = [", ".join(map(str, detail.hits or ())) or "none" for detail in sides]
    doc.line(f"gold chunks at: base {lists[0]}; new {lists[1]}", "dim")


def changes_part(doc: Doc, base: Side, new: Side) -> None:
    """Scores that differ."""
    before, after = base.detail.values(), new.detail.values()
    names = [name for name in after if name in before and before[name] != after[name]]
    same = sum(1 for name in after if name in before) - len(names)
    doc.part("Scores that changed", f"{len(names)} changed, {same} equal")
    arrow = "->" if doc.ascii else "→"
    width = min(max([LABEL_WIDTH, *map(len, names)]), WIDEST_NAME)
    for name in names:
        doc.pair(name, f"{score(before[name])} {arrow} {score(after[name])}", width=width)


def side_part(doc: Doc, side: Side, title: str) -> None:
    """One run's answer and its claims that are not supported."""
    answer_part(doc, side.detail, f"{title}: {side.name}", side.state)
    for claim in side.detail.claims:
        if claim.verdict in ("unsupported", "contradicted"):
            doc.line(
                f"{doc.sign(claim.verdict)} {SAYS[claim.verdict]}: {claim.note}",
                STYLES[claim.verdict],
            )


def pair_docs(
    blank: Blank, base: Side, new: Side, change: tuple[str, str], *, two: bool
) -> tuple[Doc, Doc | None]:
    """The page as one document, one run under the other, or as two side by side."""
    left = blank()
    head_part(left, base, new, *change)
    if two:
        right = blank()
        ranks_part(right, base, new)
        for doc, side, title in ((left, base, "Base"), (right, new, "New")):
            side_part(doc, side, title)
            passages_part(doc, side.detail, full=False, title=f"Retrieved in {side.name}")
        changes_part(left, base, new)
        gold_part(right, new.detail)
        return left, right
    side_part(left, base, "Base")
    side_part(left, new, "New")
    ranks_part(left, base, new)
    changes_part(left, base, new)
    passages_part(left, base.detail, full=False, title=f"Retrieved in base {base.name}")
    passages_part(left, new.detail, full=False, title=f"Retrieved in new {new.name}")
    gold_part(left, new.detail)
    return left, None


def flips(keys: Sequence[tuple[int, int]], before: bytearray, after: bytearray) -> dict[int, str]:
    """New row to broke or fixed, for pairs of rows whose success differs."""
    found = {}
    for base, new in keys:
        if bool(before[base]) != bool(after[new]):
            found[new] = "broke" if after[new] else "fixed"
    return found
