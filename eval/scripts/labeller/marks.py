"""Marking as pure functions: a case's state and a row go in, the change comes out.

A mark is a gold support that points at the row's passage: which needs it meets, with what grade and
which snippets. Raises ActionRefused, with one sentence, for what cannot be marked so.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from labeller import supports as gold
from labeller.case_state import CaseState, EditResult, undecided
from labeller.passages import Span, joined, locate, trimmed, without
from labeller.rows import ChunkRow, sentences_of
from labeller.supports import USUAL_GRADE, Needs, Support, short_name, spans_in
from records.judged import heading, norm_path, segments
from terminal.actions import ActionRefused
from terminal.tables import counted


def _with_supports(
    state: CaseState, supports: Sequence[Support], layout: Needs | None = None
) -> CaseState:
    """The state with other supports; the first makes the case answerable and open to confirm."""
    layout = layout or state.layout
    case = gold.write_supports(state.case, supports, layout)
    layout = gold.tidied(gold.needs_from(supports, layout))
    if not supports:
        case = undecided(case)
    elif case.get("answerable") is not True:
        case["answerable"] = True
    judgement = state.judged(decision="answerable" if supports else None, confirmed=False)
    judgement.setdefault("decision", None)
    return CaseState(case, judgement).laid_out(layout)


def supports_of(state: CaseState) -> list[Support]:
    """The supports of a case with the needs that each meets now."""
    return gold.read_supports(state.case, state.layout)


def toggle(state: CaseState, row: ChunkRow) -> EditResult:
    """Mark a row, or take its mark away."""
    supports = supports_of(state)
    if row.marked:
        after = _with_supports(state, _unmarked(state, row, supports))
        others = ", ".join(_unmarked_with(row, supports))
        words = f"row {row.label} is not marked{', nor is ' * bool(others)}{others}"
        return _changed("toggle", state, after, words, row)
    marked = _marked(state, row, supports)
    if marked == supports:
        raise ActionRefused(f"Row {row.label} has no text of its own; its heading is a support.")
    return _changed("toggle", state, _with_supports(state, marked), "", row)


def toggle_range(state: CaseState, rows: Sequence[ChunkRow]) -> EditResult:
    """Mark all rows; when all are marked, take the marks away."""
    supports = supports_of(state)
    all_marked = all(row.marked for row in rows)
    for row in rows:
        if all_marked:
            supports = _unmarked(state, row, supports)
        elif not row.marked:
            supports = _marked(state, row, supports)
    done = "not marked" if all_marked else "marked"
    words = f"rows {rows[0].label} to {rows[-1].label} are {done}"
    return _changed("toggle_range", state, _with_supports(state, supports), words)


def grade(state: CaseState, row: ChunkRow, value: int) -> EditResult:
    """Grade a row 1 to 3, marking it if need be; grade 1, related, is not required. 0 unmarks."""
    if not 0 <= value <= 3:
        raise ActionRefused("A grade is 0, 1, 2 or 3.")
    if value == 0:
        _need_mark(row)
        return toggle(state, row)
    supports, indices = _marking(state, row)
    for index in indices:
        support = supports[index]
        parts = frozenset[int]() if value == 1 else support.parts
        if value > 1 and not parts and support.data.get("grade") == 1:
            parts = _open(state)
        supports[index] = replace(support.having(grade=value), parts=parts)
    after = _with_supports(state, supports)
    words = f"row {row.label}: grade {value}"
    if value == 1 or _parts(after, row) != row.parts:
        words += f"; {_counting(after, row)}"
    return _changed("grade", state, after, words, row)


def grade_step(state: CaseState, row: ChunkRow, step: int) -> EditResult:
    """Grade a row one up or down; below 1 the mark goes."""
    now = 0 if not row.marked else USUAL_GRADE if row.grade is None else int(row.grade)
    return grade(state, row, max(0, min(3, now + step)))


def group(state: CaseState, row: ChunkRow, number: int) -> EditResult:
    """Let a row meet one need and no other, marking it if need be; 0: it is not required."""
    layout = _with_part(state.layout, number)
    supports, indices = _marking(state, row)
    for index in indices:
        supports[index] = replace(supports[index], parts=frozenset({number} - {0}))
    return _changed("group", state, _with_supports(state, supports, layout), "", row)


def share(state: CaseState, row: ChunkRow, number: int) -> EditResult:
    """Let a marked row meet one more need, or that need no longer; 0: it is not required."""
    _need_mark(row)
    layout = _with_part(state.layout, number)
    supports = supports_of(state)
    for index in row.supports:
        parts = supports[index].parts ^ {number} if number else frozenset[int]()
        supports[index] = replace(supports[index], parts=parts)
    return _changed("share", state, _with_supports(state, supports, layout), "", row)


def _with_part(layout: Needs, number: int) -> Needs:
    """The needs, with a new one when its number is the next; it is not the one that marks join."""
    if number == 0 or number <= len(layout.parts):
        return layout
    return replace(gold.opened(layout, number), open=layout.open)


def open_need(state: CaseState, number: int | None) -> EditResult:
    """Let marks join a need; 0: they are not required; None: a new need."""
    layout = gold.new_part(state.layout) if number is None else gold.opened(state.layout, number)
    return EditResult("open_need", state.laid_out(layout), gold.open_words(layout))


def turn_needs(state: CaseState) -> EditResult:
    """Show needs as ways, or ways as needs."""
    return EditResult("turn_needs", state.laid_out(gold.turned(gold.tidied(state.layout))), "")


def _open(state: CaseState) -> frozenset[int]:
    """The need that marks join, if any."""
    return frozenset({state.layout.open} - {0})


def shorten(state: CaseState, row: ChunkRow) -> EditResult:
    """Shorten the heading of a row's support by its last segment; without one: the whole file."""
    parts = _segments(state, row)
    if not parts:
        raise ActionRefused("The support is the whole file already.")
    return set_heading(state, row.supports[0], heading(parts[:-1]))


def lengthen(state: CaseState, row: ChunkRow) -> EditResult:
    """Lengthen the heading of a row's support by the next segment of the row's own heading."""
    parts, own = _segments(state, row), segments(row.chunk.heading_path)
    if own[: len(parts)] != parts or len(own) == len(parts):
        raise ActionRefused("The support has the row's whole heading already.")
    return set_heading(state, row.supports[0], heading(own[: len(parts) + 1]))


def _segments(state: CaseState, row: ChunkRow) -> tuple[str, ...]:
    """The heading of a row's first support, in its segments."""
    _need_mark(row)
    return segments(supports_of(state)[row.supports[0]].data.get("heading_path"))


def set_heading(state: CaseState, index: int, heading_path: str) -> EditResult:
    """Give a support another heading; supports that become the same are joined."""
    return _moved("set_heading", state, index, heading_path=heading(heading_path))


def reanchor(state: CaseState, row: ChunkRow) -> EditResult:
    """Give the support of a row that was found elsewhere the row's own path and heading."""
    _need_mark(row)
    anchor = {"rel_path": row.chunk.rel_path, "heading_path": heading(row.chunk.heading_path)}
    return _moved("reanchor", state, row.supports[0], **anchor)


def add_support(state: CaseState, rel_path: str, heading_path: str = "") -> EditResult:
    """Add a support by path and heading, for a passage that no query finds."""
    if not rel_path.strip():
        raise ActionRefused("A support needs the path of its file.")
    anchor = {"rel_path": norm_path(rel_path), "heading_path": heading(heading_path)}
    new = Support(anchor, _open(state))
    supports = supports_of(state)
    if any(support.identity == new.identity for support in supports):
        raise ActionRefused(f"{short_name(new)} is a support already.")
    after = _with_supports(state, [*supports, new])
    return _changed("add_support", state, after, f"support added: {short_name(new)}")


def remove_support(state: CaseState, index: int) -> EditResult:
    """Take a support away, whether a row shows it or not."""
    supports = supports_of(state)
    gone = _support_at(supports, index)
    after = _with_supports(state, [s for s in supports if s is not gone])
    return _changed("remove_support", state, after, f"support removed: {short_name(gone)}")


def pick(state: CaseState, row: ChunkRow, sentence_index: int) -> EditResult:
    """Pick a sentence of a row as a snippet, or drop it."""
    sentences = sentences_of(row, state.case)
    if not 0 <= sentence_index < len(sentences):
        raise ActionRefused(f"There is no sentence {sentence_index + 1}.")
    sentence = sentences[sentence_index]
    return _picked("pick", state, row, (sentence.start, sentence.end))


def select(state: CaseState, row: ChunkRow, start: int, end: int) -> EditResult:
    """Pick the characters ``text[start:end]`` of a row as a snippet, or drop them."""
    span = trimmed(row.chunk.text, (max(0, start), max(0, end)))
    if span is None:
        raise ActionRefused("Nothing is selected.")
    return _picked("select", state, row, span)


def _picked(action: str, state: CaseState, row: ChunkRow, span: Span) -> EditResult:
    """The state with a span picked, or dropped. Automatic snippets give way."""
    supports, indices = _marking(state, row)
    support, text = supports[indices[0]], row.chunk.text
    spans = [] if support.auto or not row.marked else spans_in(support, text)
    covered = any(a <= span[0] and span[1] <= b for a, b in joined(text, spans))
    spans = without(spans, span) if covered else [*spans, span]
    picked = supports[indices[0]] = gold.with_spans(support, row.chunk, spans)
    unique = text.casefold().count(text[span[0] : span[1]].casefold()) == 1
    words = f"row {row.label}: {counted(len(spans_in(picked, text)), 'snippet')}"
    words += "" if unique else "; not unique here"
    return EditResult(action, _with_supports(state, supports), words)


def _changed(
    action: str, before: CaseState, after: CaseState, words: str, row: ChunkRow | None = None
) -> EditResult:
    """The result of an action in words, else what the row counts for; and the groups that went."""
    lost = gold.lost_groups(before.case, after.case)
    words = words or (_counting(after, row) if row else "")
    words += f"; {lost} dropped" if lost else ""
    return EditResult(action, after, words, row.chunk.key if row else "")


def _parts(state: CaseState, row: ChunkRow) -> tuple[int, ...]:
    """The needs that a row meets whose marks are in the state."""
    here = row.number - 1
    marking = [s for s in supports_of(state) if here in locate(s.data, row.pool)[0]]
    return tuple(sorted(set().union(*(support.parts for support in marking))))


def _counting(state: CaseState, row: ChunkRow) -> str:
    """What a marked row counts for, in words."""
    return f"row {row.label} {gold.membership(state.layout, _parts(state, row))}"


def _unmarked_with(row: ChunkRow, supports: Sequence[Support]) -> list[str]:
    """Labels of the other rows that lose their mark when `row` does."""
    marking = [supports[index] for index in row.supports]
    gone = [s for s in marking if gold.without_chunk(s, row.chunk) is None]
    positions = [position for s in gone for position in locate(s.data, row.pool)[0]]
    return [row.labels[position] for position in positions if position != row.number - 1]


def _need_mark(row: ChunkRow) -> None:
    """Raises ActionRefused for a row that is not marked."""
    if not row.marked:
        raise ActionRefused(f"Row {row.label} is not marked.")


def _marking(state: CaseState, row: ChunkRow) -> tuple[list[Support], Sequence[int]]:
    """The supports with the row marked, and which of them mark it; a fresh mark by its place."""
    supports = supports_of(state)
    if row.marked:
        return supports, row.supports
    supports = _marked(state, row, supports)
    own = gold.from_chunk(row.chunk, state.case, _open(state), row.pool).identity
    return supports, [i for i, support in enumerate(supports) if support.identity == own]


def _marked(state: CaseState, row: ChunkRow, supports: Sequence[Support]) -> list[Support]:
    """The supports with a passage added: to the support of its place, or as a new one."""
    new = gold.from_chunk(row.chunk, state.case, _open(state), row.pool)
    for index, support in enumerate(supports):
        if support.identity == new.identity:
            added = gold.with_auto(support, row.chunk, state.case, row.pool)
            added = replace(added, parts=support.parts | new.parts)
            return [*supports[:index], added, *supports[index + 1 :]]
    return [*supports, new]


def _unmarked(state: CaseState, row: ChunkRow, supports: Sequence[Support]) -> list[Support]:
    """The supports without what a row gives them; one that rests on nothing else goes."""
    before = supports_of(state)
    marking = {before[index].identity for index in row.supports}
    left = []
    for support in supports:
        rest = gold.without_chunk(support, row.chunk) if support.identity in marking else support
        if rest is not None:
            left.append(rest)
    return left


def _moved(action: str, state: CaseState, index: int, **anchor: str) -> EditResult:
    supports = supports_of(state)
    moved = supports[index] = _support_at(supports, index).having(**anchor)
    after = _with_supports(state, gold.merged(supports))
    return EditResult(action, after, f"support: {short_name(moved)}")


def _support_at(supports: Sequence[Support], index: int) -> Support:
    if not 0 <= index < len(supports):
        raise ActionRefused(f"There is no support {index + 1}.")
    return supports[index]
