"""A comparison as a page: for the terminal, and for Markdown."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from decisions.case_changes import CaseChanges
from decisions.change import SIGNS, Change
from decisions.compare_words import (
    COLUMNS,
    PRIMARY_TITLE,
    cases_line,
    change_of,
    changed_words,
    contradictions,
    explored_line,
    explored_title,
    flip_title,
    flips_summary,
    legend,
    matrix_lines,
    remarks,
    row_groups,
    slice_tables,
)
from decisions.comparison import Comparison, Difference
from decisions.conversations import SHOWN, ConversationChange, ConversationChanges
from decisions.flips import Flip, Flips, FlipSide
from terminal.page import (
    Block,
    Conclusion,
    DataColumn,
    DataTable,
    Heading,
    Page,
    Prose,
    Quotation,
    Quoted,
    Tone,
    Whisker,
    WhiskerColumn,
    items,
    plain_table,
)
from terminal.tables import plain

_TONES: dict[str, Tone] = {"better": "good", "worse": "bad", "mixed": "bad", "differs": "doubt"}

_HEADLINE_TONES: dict[str, Tone] = {
    "BETTER": "good",
    "WORSE": "bad",
    "MIXED": "bad",
    "INCOMPLETE": "doubt",
}

_BAD_SHOWN = 5
"""Exploratory metrics that are worse and shown without -v."""

_ANSWER, _QUESTION = 600, 200
"""Characters of an answer and of a question that are shown."""


def compare_page(
    comparison: Comparison,
    *,
    cases: CaseChanges | None = None,
    flips: Flips | None = None,
    talks: ConversationChanges | None = None,
    in_common: Sequence[Block] = (),
    paths: Sequence[Block] = (),
    every: bool = True,
) -> Page:
    """The changed settings, remarks, the primary metrics, the others, the changed cases, the
    verdict.

    ``every``: False leaves out what -v shows. ``paths``: where the evidence is lost.
    """
    blocks: list[Block] = [Prose(Quoted(cases_line(comparison)), "strong")]
    blocks += _changed("MUST BE THE SAME, BUT DIFFERS", comparison.controls, True)
    blocks += _changed("Changed", comparison.varied, every)
    notes = remarks(comparison, every=every)
    blocks += [Prose(("! ", Quoted(note)), "doubt") for note in notes]
    primary, loud, rest = row_groups(comparison)
    tested = sum(row.p_bh is not None for row in loud + rest)
    blocks.append(_metrics(PRIMARY_TITLE, primary))
    blocks += [Prose(Quoted(text), "doubt") for text in contradictions(comparison)]
    shown_rows = loud if every else [row for row in loud if row.bad][:_BAD_SHOWN]
    only = len(shown_rows) if len(shown_rows) < len(loud) else None
    blocks.append(_metrics(explored_title(tested, only), shown_rows))
    quiet = f"{len(rest)} more that show no difference"
    if every:
        blocks.append(_metrics(quiet, rest, folded=True))
    blocks += [Prose(text, "quiet") for text in (explored_line(comparison),) if text]
    for name, rows in slice_tables(comparison).items():
        title = f"{name} (exploratory; p after Benjamini-Hochberg over all slices)"
        blocks.append(_metrics(title, rows, first=name.rpartition(" ")[2]))
    if flips is not None and every:
        blocks += _flips(flips)
    if cases is not None:
        blocks += [*_cases(cases), *in_common]
    blocks += paths
    if talks is not None:
        blocks += _conversations(talks, every)
    if every:
        blocks.append(Prose(""))
        blocks += [Prose(line, "quiet") for line in legend(comparison)]
    first, *more = comparison.says or (comparison.headline,)
    blocks.append(
        Conclusion(
            Quoted(first),
            _HEADLINE_TONES.get(comparison.headline),
            tuple(Prose(Quoted(line)) for line in more),
        )
    )
    return Page((Quoted(comparison.base_id), " → ", Quoted(comparison.new_id)), blocks)


def matrix_page(comparisons: Sequence[Comparison]) -> Page:
    """Several runs beside their base: mean and, with its sign, the difference."""
    base = plain(comparisons[0].base_id)
    title = "Primary metrics of all runs (p corrected for all runs and metrics together)"
    head = ("metric", base, *(plain(comparison.new_id) for comparison in comparisons))
    signs = "  ".join(f"{sign} {verdict}" for verdict, sign in SIGNS.items())
    table = plain_table(head, matrix_lines(comparisons), title, foreign=True)
    return Page("All runs", [table, Prose((f"{signs}   against ", Quoted(base)))])


def failures_page(failures: Sequence[str]) -> Page:
    """The rules that were triggered, at the head of a document."""
    more = tuple(items(Quoted(text) for text in failures))
    return Page("", [Conclusion("Failed", "bad", more)])


def _changed(title: str, differences: Sequence[Difference], every: bool) -> Iterator[Block]:
    """Each difference with both values, or the names alone."""
    if differences and (every or len(differences) <= _NAMES):
        yield Prose(f"{title}:")
        yield from items(Quoted(plain(str(difference), 300)) for difference in differences)
    elif differences:
        names = [plain(difference.name, 80) for difference in differences]
        more = f" and {len(names) - _NAMES} more" if len(names) > _NAMES else ""
        yield Prose((f"{title}: ", Quoted(", ".join(names[:_NAMES])), more))


_NAMES = 2
"""Differences of configuration that are named without -v."""


_PICTURE = WhiskerColumn[Change](
    lambda row: Whisker(row.interval, row.delta, 0.0) if row.ratio is None else None,
    drop=4,
    around_zero=True,
    draws="95 % interval",
)


_CHANGES = WhiskerColumn[Change](
    lambda row: change_of(row),
    drop=4,
    around_zero=True,
    draws="95 % interval",
    changes=True,
    least=80,
    legend=(
        "○ before  ● after  ├─┤ 95 % interval  ░ could be missed  │ ◂ ▸ target",
        "o before  * after  [-] 95 % interval  . could be missed  | < > target",
    ),
)


def _metrics(
    title: str, rows: Sequence[Change], *, first: str = "metric", folded: bool = False
) -> DataTable[Change]:
    name, *middle, verdict = COLUMNS
    drawn = title == PRIMARY_TITLE
    spares = "" if any(row.ratio is not None for row in rows) else "difference"
    picture = replace(_CHANGES, spares=spares) if drawn else _PICTURE
    head = DataColumn(first, name.cell, words=True, foreign=True)
    return DataTable(
        (head, *middle, picture, verdict),
        rows,
        "" if folded else title,
        tone=lambda row: _TONES.get(row.verdict),
        folded=title if folded else "",
        hint=f"{title}: -v shows them.",
    )


def _cases(cases: CaseChanges) -> Iterator[Block]:
    """How many cases broke and were fixed, and some of them with their reasons."""
    yield Heading(cases.says())
    ways: tuple[tuple[str, str, Tone], ...] = (
        ("broke", "Broke", "bad"),
        ("fixed", "Fixed", "good"),
    )
    for way, title, tone in ways:
        listed = [case for case in cases.changed if case.way == way]
        for case in listed:
            words = (f"{title}: ", Quoted(case.case_id), "  ", Quoted(changed_words(case)))
            yield Prose(words, tone, item=1)
        more = cases.counts["broke" if way == "broke" else "fixed"] - len(listed)
        if more and listed:
            yield Prose(f"{more:,} more: --flips {more + len(listed)} lists all of them.", item=1)


def _flips(flips: Flips) -> Iterator[Block]:
    """The cases that changed most, with their answers."""
    yield Heading(Quoted(flips_summary(flips)))
    for title, changed in (("Got worse", flips.worse), ("Got better", flips.better)):
        for flip in changed:
            yield Heading((f"{title}: ", Quoted(flip.case_id), f"  {flip_title(flip)}"), 3)
            yield Quotation("Q", plain(flip.question, _QUESTION))
            yield from (Quotation(name, text) for name, text in _answers(flip))


def _answers(flip: Flip) -> list[tuple[str, str]]:
    """The answers before and after, once when they are the same."""
    before, after = _answer(flip.base), _answer(flip.new)
    return [("both", before)] if before == after else [("base", before), ("new ", after)]


def _answer(side: FlipSide) -> str:
    """What the bot said, or why it did not."""
    if side.error:
        return plain(f"failed: {side.error}", _ANSWER)
    if side.answer is None:
        return "(no answer recorded)"
    return plain(side.answer, _ANSWER) or "(empty)"


def _conversations(talks: ConversationChanges, every: bool) -> Iterator[Block]:
    """The conversations that broke, were fixed, or fail at another turn."""
    yield Heading(talks.summary())
    if not every:
        return
    ways: tuple[tuple[Tone, tuple[ConversationChange, ...]], ...] = (
        ("bad", talks.broke),
        ("bad", talks.earlier),
        ("good", talks.fixed),
    )
    for tone, changed in ways:
        for talk in changed[:SHOWN]:
            repeat = f" (repeat {talk.repeat})" if talk.repeat else ""
            words = (Quoted(plain(talk.conversation, 80)), f"{repeat}: {talk.says()} (")
            question = Quoted(plain(talk.question, _QUESTION))
            yield Prose((*words, question, ")"), tone, item=1)
        if len(changed) > SHOWN:
            yield Prose(f"{len(changed) - SHOWN} more: --json has all of them.", item=1)
