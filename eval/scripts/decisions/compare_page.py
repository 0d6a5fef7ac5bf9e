"""A comparison as a page: for the terminal, and for Markdown."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from decisions.case_changes import CaseChanges
from decisions.compare_words import (
    COLUMNS,
    PRIMARY_TITLE,
    cases_line,
    changed_words,
    explored_title,
    flip_title,
    flips_summary,
    headline,
    legend,
    matrix_lines,
    remarks,
    row_groups,
    slice_tables,
)
from decisions.conversations import SHOWN, ConversationChange, ConversationChanges
from decisions.effects import normal_critical, power_of
from decisions.flips import Flip, Flips, FlipSide
from decisions.rows import SIGNS, Comparison, MetricRow, shown
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
    number,
    percent,
    plain_table,
)
from terminal.tables import plain

_TONES: dict[str, Tone] = {"better": "good", "worse": "bad", "mixed": "bad", "differs": "doubt"}

_ANSWER, _QUESTION = 600, 200
"""Characters of an answer and of a question that are shown."""

_POWER_NS = (60, 200, 1000)


def compare_page(
    comparison: Comparison,
    *,
    cases: CaseChanges | None = None,
    flips: Flips | None = None,
    talks: ConversationChanges | None = None,
    in_common: Sequence[Block] = (),
    drop: float | None = None,
) -> Page:
    """What changed, remarks, the primary metrics, the others, the cases that changed, the verdict.

    ``drop``: the true difference against which the power is told.
    """
    blocks: list[Block] = [Prose(Quoted(cases_line(comparison)), "strong")]
    for title, differences in (
        ("MUST BE THE SAME, BUT DIFFERS", comparison.controls),
        ("Changed", comparison.varied),
    ):
        if differences:
            blocks.append(Prose(f"{title}:"))
            blocks += items(Quoted(plain(str(difference), 300)) for difference in differences)
    blocks += [Prose(("! ", Quoted(note)), "doubt") for note in remarks(comparison)]
    primary, loud, rest = row_groups(comparison)
    tested = sum(row.p_bh is not None for row in loud + rest)
    blocks.append(_metrics(PRIMARY_TITLE, primary))
    blocks.append(_metrics(explored_title(tested), loud))
    quiet = f"{len(rest)} more without evidence of a difference"
    blocks.append(_metrics(quiet, rest, folded=True))
    for name, rows in slice_tables(comparison).items():
        title = f"{name} (exploratory; p after Benjamini-Hochberg over all slices)"
        blocks.append(_metrics(title, rows, first=name.rpartition(" ")[2]))
    if drop is not None:
        blocks.append(_power(comparison, drop))
    if flips is not None:
        blocks += _flips(flips)
    if cases is not None:
        blocks += [*_cases(cases), *in_common]
    if talks is not None:
        blocks += _conversations(talks)
    blocks.append(Prose(""))
    blocks += [Prose(line, "quiet") for line in legend(comparison)]
    first, *more = headline(comparison)
    blocks.append(
        Conclusion(first, more=tuple(Prose(Quoted(line), _tone_of(line)) for line in more))
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


def _tone_of(line: str) -> Tone | None:
    return next((tone for name, tone in _TONES.items() if line.startswith(SIGNS[name])), None)


_PICTURE = WhiskerColumn[MetricRow](
    lambda row: Whisker(row.interval, row.delta, 0.0) if row.ratio is None else None,
    drop=4,
    around_zero=True,
    draws="95 % interval",
)


def _metrics(
    title: str, rows: Sequence[MetricRow], *, first: str = "metric", folded: bool = False
) -> DataTable[MetricRow]:
    name, *middle, verdict = COLUMNS
    head = DataColumn(first, name.cell, words=True, foreign=True)
    return DataTable(
        (head, *middle, _PICTURE, verdict),
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


def _conversations(talks: ConversationChanges) -> Iterator[Block]:
    """The conversations that broke, were fixed, or fail at another turn."""
    yield Heading(talks.summary())
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


def _power(comparison: Comparison, drop: float) -> Block:
    """The chance of finding a true difference of ``drop``, for the spread of these two runs."""
    many = normal_critical(comparison.tested)
    rows = []
    for row in comparison.rows:
        spread = row.effect.spread if row.primary and row.effect else None
        if spread is None or row.mde is None or row.ratio is not None:
            continue
        chances = [power_of(drop, spread, comparison.critical, row.n)]
        chances += [power_of(drop, spread, many, n) for n in _POWER_NS]
        rows.append((row.metric, f"{row.n:,}", number(row.mde), *map(percent, chances)))
    title = "Power of this verdict against a true difference of"
    head = ("metric", "n", "MDE", "now", *(f"n={n}" for n in _POWER_NS))
    title += f" {shown(drop)}, now and with n cases"
    return plain_table(head, rows, title, foreign=True)
