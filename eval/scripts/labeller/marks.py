"""Marking as pure functions: a case's state and a row go in, the state after the mark comes out.

A mark is a gold support that points at the row's passage: which needs it meets, with what grade and
which snippets. Raises ActionRefused, with one sentence, for what cannot be marked so.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from labeller.case_state import CaseState, undecided
from labeller.needs import Needs, new_part, opened, tidied, turned, with_groups
from labeller.passages import Span, joined, without
from labeller.rows import ChunkRow, SupportView
from labeller.supports import (
    USUAL_GRADE,
    Support,
    from_chunk,
    merged,
    needs_from,
    read_supports,
    short_name,
    spans_in,
    with_auto,
    with_spans,
    without_chunk,
)
from records.judged import heading, norm_path, segments
from terminal.actions import ActionRefused


def _with_supports(
    state: CaseState, supports: Sequence[Support], layout: Needs | None = None
) -> CaseState:
    """The state with other supports; the first makes the case answerable and open to confirm."""
    layout = tidied(needs_from(supports, layout or state.layout))
    case = dict(state.case)
    if supports or "gold_supports" in case:
        case["gold_supports"] = [support.data for support in supports]
    case = with_groups(case, layout)
    if not supports:
        case = undecided(case)
    elif case.get("answerable") is not True:
        case["answerable"] = True
    judgement = state.judged(decision="answerable" if supports else None, confirmed=False)
    judgement.setdefault("decision", None)
    return CaseState(case, judgement).laid_out(layout)


def supports_of(state: CaseState) -> list[Support]:
    """The supports of a case with the needs that each meets now."""
    return read_supports(state.case, state.layout)


def toggle(state: CaseState, row: ChunkRow) -> CaseState:
    """Mark a row, or take its mark away."""
    supports = supports_of(state)
    if row.marked:
        return _with_supports(state, _unmarked(state, row, supports))
    marked = _marked(state, row, supports)
    if marked == supports:
        raise ActionRefused(f"Row {row.label} has no text of its own; its heading is a support.")
    return _with_supports(state, marked)


def toggle_range(state: CaseState, rows: Sequence[ChunkRow]) -> CaseState:
    """Mark all rows; when all are marked, take the marks away."""
    supports = supports_of(state)
    all_marked = all(row.marked for row in rows)
    for row in rows:
        if all_marked:
            supports = _unmarked(state, row, supports)
        elif not row.marked:
            supports = _marked(state, row, supports)
    return _with_supports(state, supports)


def grade(state: CaseState, row: ChunkRow, value: int) -> CaseState:
    """Grade a row 1 to 3, marking it if need be. Grade 1, related, is not required."""
    supports, indices = _marking(state, row)
    for index in indices:
        support = supports[index]
        parts = frozenset[int]() if value == 1 else support.parts
        if value > 1 and not parts and support.data.get("grade") == 1:
            parts = _open(state)
        supports[index] = replace(support.having(grade=value), parts=parts)
    return _with_supports(state, supports)


def stepped_grade(row: ChunkRow, step: int) -> int:
    """The grade of a row one up or down; 0 below 1, which is no mark."""
    now = 0 if not row.marked else USUAL_GRADE if row.grade is None else int(row.grade)
    return max(0, min(3, now + step))


def group(state: CaseState, row: ChunkRow, number: int) -> CaseState:
    """Let a row meet one need and no other, marking it if need be; 0: it is not required."""
    layout = _with_part(state.layout, number)
    supports, indices = _marking(state, row)
    for index in indices:
        supports[index] = replace(supports[index], parts=frozenset({number} - {0}))
    return _with_supports(state, supports, layout)


def share(state: CaseState, row: ChunkRow, number: int) -> CaseState:
    """Let a marked row meet one more need, or that need no longer; 0: it is not required."""
    need_mark(row)
    layout = _with_part(state.layout, number)
    supports = supports_of(state)
    for index in row.supports:
        parts = supports[index].parts ^ {number} if number else frozenset[int]()
        supports[index] = replace(supports[index], parts=parts)
    return _with_supports(state, supports, layout)


def _with_part(layout: Needs, number: int) -> Needs:
    """The needs, with a new one when its number is the next; it is not the one that marks join."""
    if number == 0 or number <= len(layout.parts):
        return layout
    return replace(opened(layout, number), open=layout.open)


def open_need(state: CaseState, number: int | None) -> CaseState:
    """Let marks join a need; 0: they are not required; None: a new need."""
    layout = new_part(state.layout) if number is None else opened(state.layout, number)
    return state.laid_out(layout)


def turn(state: CaseState) -> CaseState:
    """Show needs as ways, or ways as needs."""
    return state.laid_out(turned(tidied(state.layout)))


def _open(state: CaseState) -> frozenset[int]:
    """The need that marks join, if any."""
    return frozenset({state.layout.open} - {0})


def shortened(state: CaseState, row: ChunkRow) -> tuple[int, str]:
    """The row's support, by index, and its heading without the last segment."""
    need_mark(row)
    index = row.supports[0]
    parts = segments(supports_of(state)[index].data.get("heading_path"))
    if not parts:
        raise ActionRefused("The support is the whole file already.")
    return index, heading(parts[:-1])


def lengthened(state: CaseState, row: ChunkRow) -> tuple[int, str]:
    """The row's support, by index, and its heading with one more segment of the row's own."""
    need_mark(row)
    index = row.supports[0]
    own = segments(row.chunk.heading_path)
    parts = segments(supports_of(state)[index].data.get("heading_path"))
    if own[: len(parts)] != parts or len(own) == len(parts):
        raise ActionRefused("The support has the row's whole heading already.")
    return index, heading(own[: len(parts) + 1])


def set_heading(state: CaseState, index: int, heading_path: str) -> tuple[CaseState, str]:
    """Give a support another heading; supports that become the same are joined. Also its name."""
    return _moved(state, index, heading_path=heading(heading_path))


def reanchor(state: CaseState, row: ChunkRow) -> tuple[CaseState, str]:
    """Give the support of a row that was found elsewhere the row's own path and heading."""
    need_mark(row)
    chunk = row.chunk
    return _moved(
        state,
        row.supports[0],
        rel_path=chunk.rel_path,
        heading_path=heading(chunk.heading_path),
    )


def add_support(state: CaseState, rel_path: str, heading_path: str) -> tuple[CaseState, str]:
    """Add a support by path and heading, for a passage that no query finds. Also its name."""
    if not rel_path.strip():
        raise ActionRefused("A support needs the path of its file.")
    anchor = {"rel_path": norm_path(rel_path), "heading_path": heading(heading_path)}
    new = Support(anchor, _open(state))
    supports = supports_of(state)
    if any(support.identity == new.identity for support in supports):
        raise ActionRefused(f"{short_name(new)} is a support already.")
    return _with_supports(state, [*supports, new]), short_name(new)


def remove_support(state: CaseState, index: int) -> tuple[CaseState, str]:
    """Take a support away, whether a row shows it or not. Also its name."""
    supports = supports_of(state)
    gone = _support_at(supports, index)
    return _with_supports(state, [s for s in supports if s is not gone]), short_name(gone)


def pick(state: CaseState, row: ChunkRow, span: Span) -> tuple[CaseState, int]:
    """Pick characters of a row as a snippet, or drop them. Also the number of snippets then.

    Automatic snippets give way.
    """
    supports, indices = _marking(state, row)
    support, text = supports[indices[0]], row.chunk.text
    spans = [] if support.auto or not row.marked else spans_in(support, text)
    covered = any(a <= span[0] and span[1] <= b for a, b in joined(text, spans))
    spans = without(spans, span) if covered else [*spans, span]
    picked = supports[indices[0]] = with_spans(support, row.chunk, spans)
    return _with_supports(state, supports), len(spans_in(picked, text))


def unmarked_with(state: CaseState, row: ChunkRow, views: Sequence[SupportView]) -> list[str]:
    """Labels of the other rows that lose their mark when `row` does."""
    supports = supports_of(state)
    marking = [supports[index] for index in row.supports]
    gone = {s.identity for s in marking if without_chunk(s, row.chunk) is None}
    labels: list[str] = []
    for view, support in zip(views, supports, strict=True):
        if support.identity in gone:
            labels += [label for label in view.rows if label != row.label]
    return labels


def need_mark(row: ChunkRow) -> None:
    """Raises ActionRefused for a row that is not marked."""
    if not row.marked:
        raise ActionRefused(f"Row {row.label} is not marked.")


def _marking(state: CaseState, row: ChunkRow) -> tuple[list[Support], Sequence[int]]:
    """The supports with the row marked, and which of them mark it; a fresh mark by its place."""
    supports = supports_of(state)
    if row.marked:
        return supports, row.supports
    supports = _marked(state, row, supports)
    own = from_chunk(row.chunk, state.case, _open(state), row.pool).identity
    return supports, [i for i, support in enumerate(supports) if support.identity == own]


def _marked(state: CaseState, row: ChunkRow, supports: Sequence[Support]) -> list[Support]:
    """The supports with a passage added: to the support of its place, or as a new one."""
    new = from_chunk(row.chunk, state.case, _open(state), row.pool)
    for index, support in enumerate(supports):
        if support.identity == new.identity:
            added = with_auto(support, row.chunk, state.case, row.pool)
            added = replace(added, parts=support.parts | new.parts)
            return [*supports[:index], added, *supports[index + 1 :]]
    return [*supports, new]


def _unmarked(state: CaseState, row: ChunkRow, supports: Sequence[Support]) -> list[Support]:
    """The supports without what a row gives them; one that rests on nothing else goes."""
    before = supports_of(state)
    marking = {before[index].identity for index in row.supports}
    left = []
    for support in supports:
        rest = without_chunk(support, row.chunk) if support.identity in marking else support
        if rest is not None:
            left.append(rest)
    return left


def _moved(state: CaseState, index: int, **anchor: str) -> tuple[CaseState, str]:
    supports = supports_of(state)
    moved = supports[index] = _support_at(supports, index).having(**anchor)
    return _with_supports(state, merged(supports)), short_name(moved)


def _support_at(supports: Sequence[Support], index: int) -> Support:
    if not 0 <= index < len(supports):
        raise ActionRefused(f"There is no support {index + 1}.")
    return supports[index]
