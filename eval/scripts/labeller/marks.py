"""Marking as pure functions: a case's state and a row go in, the state after the mark comes out.

A mark is a gold support that points at the row's passage: in which group, with what grade and
which snippets. Raises ActionRefused, with one sentence, for what cannot be marked so.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from labeller.case_state import CaseState
from labeller.passages import Chunk, Span, joined, without
from labeller.rows import ChunkRow, SupportView
from labeller.supports import (
    USUAL_GRADE,
    Support,
    from_chunk,
    groups_of,
    letter_at,
    merged,
    read_supports,
    short_name,
    spans_in,
    with_auto,
    with_spans,
    without_chunk,
    write_supports,
)
from records.judged import heading, norm_path, segments
from terminal.actions import ActionRefused


def _with_supports(state: CaseState, supports: Sequence[Support]) -> CaseState:
    """The state with other supports; the first makes the case answerable and open to confirm."""
    case = write_supports(state.case, supports)
    if supports and case.get("answerable") is not True:
        case["answerable"] = True
    judgement = state.judged(decision="answerable" if supports else None, confirmed=False)
    judgement.setdefault("decision", None)
    letter = min(state.letter, letter_at(len(groups_of(supports))))
    return CaseState(case, judgement, letter)


def toggle(state: CaseState, row: ChunkRow) -> CaseState:
    """Mark a row, or take its mark away."""
    supports = read_supports(state.case)
    if row.marked:
        return _with_supports(state, _unmarked(state, row, supports))
    marked = _marked(state, row.chunk, supports)
    if marked == supports:
        raise ActionRefused(f"Row {row.label} has no text of its own; its heading is a support.")
    return _with_supports(state, marked)


def toggle_range(state: CaseState, rows: Sequence[ChunkRow]) -> CaseState:
    """Mark all rows; when all are marked, take the marks away."""
    supports = read_supports(state.case)
    all_marked = all(row.marked for row in rows)
    for row in rows:
        if all_marked:
            supports = _unmarked(state, row, supports)
        elif not row.marked:
            supports = _marked(state, row.chunk, supports)
    return _with_supports(state, supports)


def grade(state: CaseState, row: ChunkRow, value: int) -> CaseState:
    """Grade a row 1 to 3, marking it if need be."""
    supports, indices = _marking(state, row)
    for index in indices:
        supports[index] = supports[index].having(grade=value)
    return _with_supports(state, supports)


def stepped_grade(row: ChunkRow, step: int) -> int:
    """The grade of a row one up or down; 0 below 1, which is no mark."""
    now = 0 if not row.marked else USUAL_GRADE if row.grade is None else int(row.grade)
    return max(0, min(3, now + step))


def group(state: CaseState, row: ChunkRow, letter: str) -> CaseState:
    """Put a row's support into one group, marking it if need be."""
    letters = _group_letter(letter)
    supports, indices = _marking(state, row)
    for index in indices:
        supports[index] = replace(supports[index], letters=letters)
    return _with_supports(state, supports)


def share(state: CaseState, row: ChunkRow, letter: str) -> CaseState:
    """Add a marked row's support to one more group, or take it out of that group."""
    letters = _group_letter(letter)
    need_mark(row)
    supports = read_supports(state.case)
    for index in row.supports:
        supports[index] = replace(supports[index], letters=supports[index].letters ^ letters)
    if not groups_of(supports):
        raise ActionRefused("One group must hold something; unmark the row instead.")
    return _with_supports(state, supports)


def next_group(state: CaseState) -> CaseState:
    """Let the following marks of this case join a new group: an alternative (OR)."""
    letter = letter_at(len(groups_of(read_supports(state.case))))
    if letter == "A":
        raise ActionRefused("Group A is empty; mark its rows first.")
    if letter == state.letter:
        raise ActionRefused(f"Group {letter} is empty; mark its rows first.")
    return replace(state, letter=letter)


def shortened(state: CaseState, row: ChunkRow) -> tuple[int, str]:
    """The row's support, by index, and its heading without the last segment."""
    need_mark(row)
    index = row.supports[0]
    parts = segments(read_supports(state.case)[index].data.get("heading_path"))
    if not parts:
        raise ActionRefused("The support is the whole file already.")
    return index, heading(parts[:-1])


def lengthened(state: CaseState, row: ChunkRow) -> tuple[int, str]:
    """The row's support, by index, and its heading with one more segment of the row's own."""
    need_mark(row)
    index = row.supports[0]
    own = segments(row.chunk.heading_path)
    parts = segments(read_supports(state.case)[index].data.get("heading_path"))
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
    new = Support(
        {"rel_path": norm_path(rel_path), "heading_path": heading(heading_path)},
        frozenset(state.letter),
    )
    supports = read_supports(state.case)
    if any(support.anchor == new.anchor for support in supports):
        raise ActionRefused(f"{short_name(new)} is a support already.")
    return _with_supports(state, [*supports, new]), short_name(new)


def remove_support(state: CaseState, index: int) -> tuple[CaseState, str]:
    """Take a support away, whether a row shows it or not. Also its name."""
    supports = read_supports(state.case)
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
    supports = read_supports(state.case)
    marking = [supports[index] for index in row.supports]
    gone = {s.anchor for s in marking if without_chunk(s, row.chunk) is None}
    labels: list[str] = []
    for view, support in zip(views, supports, strict=True):
        if support.anchor in gone:
            labels += [label for label in view.rows if label != row.label]
    return labels


def need_mark(row: ChunkRow) -> None:
    """Raises ActionRefused for a row that is not marked."""
    if not row.marked:
        raise ActionRefused(f"Row {row.label} is not marked.")


def _marking(state: CaseState, row: ChunkRow) -> tuple[list[Support], Sequence[int]]:
    """The supports with the row marked, and which of them mark it; a fresh mark by its heading."""
    supports = read_supports(state.case)
    if row.marked:
        return supports, row.supports
    supports = _marked(state, row.chunk, supports)
    anchor = from_chunk(row.chunk, {}, "A").anchor
    return supports, [i for i, support in enumerate(supports) if support.anchor == anchor]


def _marked(state: CaseState, chunk: Chunk, supports: Sequence[Support]) -> list[Support]:
    """The supports with a passage added: to the support of its heading, or as a new one."""
    new = from_chunk(chunk, state.case, state.letter)
    for index, support in enumerate(supports):
        if support.anchor == new.anchor:
            added = with_auto(support, chunk, state.case)
            return [*supports[:index], added, *supports[index + 1 :]]
    return [*supports, new]


def _unmarked(state: CaseState, row: ChunkRow, supports: Sequence[Support]) -> list[Support]:
    """The supports without what a row gives them; one that rests on nothing else goes."""
    before = read_supports(state.case)
    marking = {before[index].anchor for index in row.supports}
    left = []
    for support in supports:
        rest = without_chunk(support, row.chunk) if support.anchor in marking else support
        if rest is not None:
            left.append(rest)
    return left


def _moved(state: CaseState, index: int, **anchor: str) -> tuple[CaseState, str]:
    supports = read_supports(state.case)
    moved = supports[index] = _support_at(supports, index).having(**anchor)
    return _with_supports(state, merged(supports)), short_name(moved)


def _support_at(supports: Sequence[Support], index: int) -> Support:
    if not 0 <= index < len(supports):
        raise ActionRefused(f"There is no support {index + 1}.")
    return supports[index]


def _group_letter(letter: str) -> frozenset[str]:
    name = letter.strip().upper()
    if len(name) != 1 or not "A" <= name <= "Z":
        raise ActionRefused("A group is a letter.")
    return frozenset(name)
