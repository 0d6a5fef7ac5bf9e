"""The page of one case: its blocks as one document or two, its other views, and as Markdown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import orjson

from terminal.page import Block, Heading, Page, PassageBlock, Sides, plain_words
from terminal.plot import sparkline
from terminal.safe_text import one_line
from terminal.tables import counted
from views.browser.document import Blank, Doc, level
from views.browser.rows import MAIN
from views.case import Case
from views.case_blocks import ShownWith, case_blocks, cut
from views.page import markdown
from views.runs import Trend
from views.text import score, score_pair

LEFT = ("question", "history", "notes", "answer", "claims", "expected", "judged", "values")

RIGHT = ("tools", "searches", "passages", "trace")

ALONE = (
    *("question", "history", "notes", "answer", "claims", "expected", "tools", "searches"),
    *("passages", "judged", "values", "trace"),
)

HEAD = ("question", "changed", "notes")

WIDEST_NAME = 40
"""Cells of the column of metric names."""


def case_docs(
    blank: Blank, case: Case, view: ShownWith, *, full: bool, two: bool
) -> tuple[Doc, Doc | None]:
    """The page as one document, or as two side by side."""
    left = blank()
    if not two:
        left.draw(case_blocks(case, ALONE, view), full=full)
        return left, None
    right = blank()
    left.draw(case_blocks(case, LEFT, view))
    right.draw(case_blocks(case, RIGHT, view), full=full)
    return left, right


def pair_docs(blank: Blank, case: Case, view: ShownWith, *, two: bool) -> tuple[Doc, Doc | None]:
    """A case in two runs, one below the other, or as two documents side by side."""
    left = blank()
    if not two:
        parts = (*HEAD, "answer", "values", "passages", "expected")
        left.draw(case_blocks(case, parts, view))
        return left, None
    right = blank()
    left.draw(case_blocks(case, HEAD, view))
    right.draw(case_blocks(case, ("expected",), view))
    for part in ("answer", "passages"):
        _draw_sides(left, right, case_blocks(case, (part,), view))
    level(left, right)
    left.draw(case_blocks(case, ("values",), view))
    level(left, right)
    return left, right


def _draw_sides(left: Doc, right: Doc, blocks: Sequence[Block]) -> None:
    """A part of two runs, what is of each in its document, the rows level."""
    level(left, right)
    title = next(plain_words(block.words) for block in blocks if isinstance(block, Heading))
    for block in blocks:
        if isinstance(block, Sides):
            for doc, name, run in zip((left, right), block.names, ("Base", "New"), strict=True):
                doc.part(f"{run}: {name}" if title == "Answer" else f"{title} in {name}")
            for row in block.rows:
                for doc, side in zip((left, right), row, strict=True):
                    doc.draw(side)
                level(left, right)


def conversation_doc(blank: Blank, turns: Sequence[tuple[Case, str, bool]], current: str) -> Doc:
    """A conversation turn by turn; each turn with its state in words and whether it fails."""
    doc = blank()
    name = turns[0][0].conversation if turns else ""
    failing = [case.turn for case, _, fails in turns if fails]
    broke = f"turn {failing[0]} is the first that fails" if failing else "no turn fails"
    doc.part("Conversation", f"{name} · {counted(len(turns), 'turn')} · {broke}")
    if not turns:
        doc.line("The case belongs to no conversation.", "dim")
    for case, state, fails in turns:
        here = " · the case that was open" if case.case_id == current else ""
        doc.part(f"Turn {case.turn}", f"{case.case_id}{here}")
        parts = ("question", "answer", "tools", "searches", "gold")
        _, *blocks = case_blocks(case, parts, ShownWith(state, failing=fails))
        doc.draw(blocks)
    return doc


def raw_doc(blank: Blank, detail: Case) -> Doc:
    """The result as JSON."""
    doc = blank()
    doc.part("Result as written in the file", detail.case_id)
    for line in _indented(detail.raw).split("\n"):
        doc.line(line)
    return doc


def _indented(line: bytes) -> str:
    """A JSON line over several lines; unchanged where it is no JSON."""
    try:
        value: Any = orjson.loads(line)
    except orjson.JSONDecodeError:
        return line.decode("utf-8", "replace")
    return orjson.dumps(value, option=orjson.OPT_INDENT_2).decode()


def trend_doc(blank: Blank, case_id: str, trend: Trend | None) -> Doc:
    """The scores of a case over all runs, a line a metric; None: they are still being read."""
    doc = blank()
    if trend is None:
        doc.part("Trend", case_id)
        doc.line("reading all runs …", "dim")
        return doc
    doc.part("Trend", f"{case_id} in {counted(len(trend.runs), 'run')}, the oldest first")
    if not trend.runs:
        doc.line("No run has scored this case yet.", "dim")
    scored = [line for line in trend.metrics if any(value is not None for value in line.values)]
    width = min(max((len(line.metric) for line in scored), default=0), WIDEST_NAME)
    main = sorted(
        (line for line in scored if line.metric in MAIN), key=lambda line: MAIN.index(line.metric)
    )
    section = ""
    for title, line in [("main metrics", line) for line in main] + [
        (line.section, line) for line in scored if line not in main
    ]:
        if title != section:
            section = title
            doc.line(section, "rule")
        scores = [value for value in line.values if value is not None]
        doc.add(f"  {one_line(line.metric, WIDEST_NAME):<{width}} ", "key")
        doc.add(sparkline(line.values, line.breaks, unicode=not doc.ascii))
        doc.line(f"  {_ends(scores, doc)}", "dim" if len(set(scores)) == 1 else "")
    if any(line.breaks for line in trend.metrics):
        sign = "|" if doc.ascii else "┊"
        doc.line(f"{sign} before it the metric was defined in another way", "dim")
    doc.part("Runs", "the oldest first")
    for run_id, started in trend.runs:
        doc.add(f"{one_line(started[:16].replace('T', ' ')):<17}", "dim")
        doc.line(one_line(run_id, 200))
    for problem in trend.problems:
        doc.line(f"! {problem}", "warn")
    return doc


def _ends(scores: Sequence[float], doc: Doc) -> str:
    """The first and the last score, and how far they went in between."""
    arrow = "->" if doc.ascii else "→"
    if len(set(scores)) == 1:
        return f"{score(scores[0])} in all"
    low, high = min(scores), max(scores)
    ends = f" {arrow} ".join(score_pair(scores[0], scores[-1]))
    inside = {scores[0], scores[-1]} == {low, high}
    return ends if inside else f"{ends}, between {score(low)} and {score(high)}"


_PARTS = ("question", "notes", "answer", "claims", "expected", "passages", "values")


def case_markdown(run_id: str, case: Case, view: ShownWith) -> str:
    """Question, answer, why it fails, gold with ranks, passages and scores of a case of a run."""
    title = f"{case.case_id}{f' (repeat {case.repeat})' if case.repeat else ''}, run {run_id}"
    blocks = [
        replace(block, text=cut(block.text), loud=True)
        if isinstance(block, PassageBlock)
        else block
        for block in case_blocks(case, _PARTS, replace(view, brief=True))
    ]
    return markdown([Page("", [Heading(title, 2), *blocks])])
