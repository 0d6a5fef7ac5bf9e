"""A case as Markdown, to be pasted into an issue or a chat: no text of it acts."""

from __future__ import annotations

from dataclasses import replace

from terminal.page import Block, Heading, Page, PassageBlock
from views.case import Case
from views.case_blocks import ShownWith, case_blocks, cut
from views.page import markdown

_PARTS = ("question", "notes", "answer", "claims", "expected", "passages", "values")


def case_markdown(run_id: str, case: Case, view: ShownWith) -> str:
    """Question, answer, why it fails, gold with ranks, passages and scores of a case of a run."""
    title = f"{case.case_id}{f' (repeat {case.repeat})' if case.repeat else ''}, run {run_id}"
    blocks = map(_with_text, case_blocks(case, _PARTS, replace(view, brief=True)))
    return markdown([Page("", [Heading(title, 2), *blocks])])


def _with_text(block: Block) -> Block:
    """A passage with the beginning of its text."""
    return (
        replace(block, text=cut(block.text), loud=True)
        if isinstance(block, PassageBlock)
        else block
    )
