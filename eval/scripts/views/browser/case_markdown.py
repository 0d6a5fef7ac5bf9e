"""A case as Markdown, to be pasted into an issue or a chat: pure, and no text of it acts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from records.notes import CaseNote
from terminal.tables import counted
from views.browser.rows import score
from views.case import Case
from views.report.text import markdown_fence, markdown_line, visible

_PASSAGE = 600
"""Characters of a passage that are copied."""

_PASSAGES = 10


def case_markdown(run_id: str, detail: Case, state: str, notes: Sequence[CaseNote]) -> str:
    """Question, answer, why it fails, gold with ranks, passages and scores of a case of a run."""
    return "\n".join(_lines(run_id, detail, state, notes)).rstrip("\n") + "\n"


def _lines(run_id: str, detail: Case, state: str, notes: Sequence[CaseNote]) -> Iterator[str]:
    repeat = f" (repeat {detail.repeat})" if detail.repeat else ""
    yield f"## {markdown_line(detail.case_id)}{repeat}, run {markdown_line(run_id)}"
    yield from ("", f"**{markdown_line(state)}**", "", "Question:")
    yield from markdown_fence(detail.question)
    if detail.no_answer:
        what, _, why = detail.no_answer.partition(": ")
        yield from (f"{what}:", *markdown_fence(why))
    else:
        yield "The bot abstained:" if detail.abstained else "Answer:"
        yield from markdown_fence(detail.answer or "(no answer)")
    for note in notes:
        yield f"- note: {markdown_line(note.line(), 2000)}"
    for claim in detail.claims:
        if claim.verdict in ("unsupported", "contradicted"):
            yield f"- claim {claim.verdict}: {markdown_line(claim.text)}"
    for gold in detail.gold:
        rank = "not scored" if detail.hits is None else "not retrieved"
        rank = f"rank {gold.rank}" if gold.rank else rank
        yield f"- gold, {rank}: {markdown_line(gold.location)}"
    for label, text in detail.labels:
        yield f"- {markdown_line(label)}: {markdown_line(text)}"
    yield from ("", f"Retrieved: {counted(len(detail.passages), 'passage')}")
    for passage in detail.passages[:_PASSAGES]:
        gold_mark = " **gold**" if passage.gold else ""
        yield from ("", f"{passage.rank}. {markdown_line(passage.location)}{gold_mark}")
        text = visible(passage.text)
        yield from markdown_fence(f"{text[:_PASSAGE]} …" if len(text) > _PASSAGE else text)
    if len(detail.passages) > _PASSAGES:
        yield f"and {len(detail.passages) - _PASSAGES} more"
    yield from ("", "Scores:", "")
    for section, line in detail.lines.items():
        values = [f"{name} {score(v)}" for name, v in line.scores.items() if v is not None]
        yield f"- {section}: {markdown_line(', '.join(values) or line.status, 2000)}"
