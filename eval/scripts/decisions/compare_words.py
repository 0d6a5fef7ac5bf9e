"""A comparison as words, cells of tables and a page: for the terminal, and for Markdown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Literal

from decisions.case_changes import CaseFlip, CaseFlips
from decisions.change import SIGNS, Change, ChangeVerdict
from decisions.compare import TOO_FEW
from decisions.comparison import Comparison, Difference
from decisions.conversations import SHOWN, ConversationFlip, ConversationFlips
from decisions.effects import ALPHA
from decisions.flips import Flips
from decisions.metric_words import unseen_size
from ragmetrics.stats.means import UNRELIABLE_BELOW
from terminal.page import (
    Block,
    Conclusion,
    DataColumn,
    DataTable,
    Heading,
    Page,
    Prose,
    Quoted,
    Tone,
    Whisker,
    WhiskerColumn,
    apart,
    items,
    number,
    p_value,
    p_words,
    plain_table,
    signed,
    signed_between,
    times,
)
from terminal.tables import counted, plain

PRIMARY_TITLE = "Primary metrics (these decide the verdict)"

_FIRST: dict[ChangeVerdict, int] = {"worse": 0, "mixed": 1, "better": 2, "differs": 3}


def explored_title(tested: int, worst: int | None = None) -> str:
    """``worst``: only so many rows are shown, all of them worse; None: all that differ."""
    rows = "metrics that differ" if worst is None else f"metrics that are worse, the first {worst}"
    return f"Exploratory {rows} ({counted(tested, 'test')})"


def cases_line(comparison: Comparison) -> str:
    names = f"{comparison.base_id} → {comparison.new_id}"
    text = f"{plain(names)}: {counted(comparison.cases, 'case')} in both"
    together = comparison.clusters.removeprefix(counted(comparison.cases, "case")).lstrip(":, ")
    return f"{text}; {together}" if together else text


def explored_line(comparison: Comparison) -> str:
    """How many exploratory metrics differ, in a sentence; "" when none was tested."""
    rows = [row for row in comparison.rows if row.p_bh is not None]
    if not rows:
        return ""
    counts = Counter(row.verdict for row in rows)
    text = f"Exploratory: of {counted(len(rows), 'metric')}"
    parts = [f"{counts[name]} {word}" for name, word in _WAYS if counts[name]]
    text += f" {', '.join(parts) or 'none differs'}"
    return text + (f"; --all compares {comparison.untested} more." if comparison.untested else ".")


_WAYS: tuple[tuple[ChangeVerdict, str], ...] = (
    ("worse", "worse"),
    ("mixed", "mixed"),
    ("better", "better"),
    ("differs", "differ"),
)


def legend(comparison: Comparison) -> list[str]:
    """The meaning of the words in the tables, as far as they occur."""
    rows = [*comparison.rows, *comparison.slices]
    lines = [
        "A verdict needs a p of at most 0.05 and a 95 % interval without 0. p of primary metrics "
        "is that of one joint test of all of them; of the others it is corrected for a false "
        "discovery rate of 5 %. compared: cases with a score in both runs, of all cases; base and "
        "new are means over these."
    ]
    if any(row.mde for row in rows if row.verdict == "no evidence"):
        lines.append(
            "“Unclear” is not “no change”: where ±9 points could be missed, a change smaller than "
            "9 points goes unseen more than 1 time in 5. The first line names the metric that "
            "could miss most. The gate only checks for drops, so it can detect smaller ones."
        )
    if any(row.ratio is not None for row in rows):
        lines.append(
            "1.12× means that the new value is 1.12 times the base value in a typical case."
        )
    return lines


def contradictions(comparison: Comparison) -> list[str]:
    """Why the p of a primary metric and its interval seem to say different things, a sentence each:
    p is of sign flips of all primary metrics, the interval is of Student's t and one metric."""
    rows = [row for row in comparison.rows if row.primary and row.p_joint is not None]
    return [text for row in rows if (text := _contradiction(row, comparison.tested))]


def _contradiction(row: Change, tested: int) -> str:
    p, limits = row.p_joint or 0.0, row.limits
    if limits is None or (p <= ALPHA) == (limits[0] > 0 or limits[1] < 0):
        return ""
    name, units = plain(row.metric, 80), counted(row.units, "case")
    if row.units < row.n:
        units = counted(row.units, "group") + " of cases"
    if p <= ALPHA:
        return (
            f"{name}: {p_words(p)}, but the interval contains 0, since it allows for a change that "
            "no case showed. A verdict needs both."
        )
    beside = f"{name}: the interval excludes 0, but {p_words(p)}"
    if 0.5**row.moved > ALPHA:
        return (
            f"{beside}: {row.moved} of {units} changed, and so few can give no p below "
            f"{p_value(0.5**row.moved)}. Trust p: for so few changes the interval is too narrow."
        )
    if tested > 1 and (row.p is None or row.p <= ALPHA):
        alone = "" if row.p is None else f" (by itself {p_words(row.p)})"
        return (
            f"{beside}, corrected for {tested} primary metrics{alone}. The interval is not "
            "corrected. A verdict needs both."
        )
    return f"{beside}. The two tests disagree, so this is not counted as a change."


def row_name(row: Change) -> str:
    """The metric, or of a slice its value."""
    return row.metric if row.slice is None else row.slice.partition("=")[2]


def interval_words(row: Change) -> str:
    """The 95 % interval of the difference or of the ratio; a star where cases are few."""
    if row.ratio_interval is not None:
        return " to ".join(map(times, row.ratio_interval))
    mark = "*" if row.interval is not None and row.n < UNRELIABLE_BELOW else ""
    return signed_between(row.interval) + mark


COLUMNS: tuple[DataColumn[Change], ...] = (
    DataColumn("metric", row_name, words=True, foreign=True),
    DataColumn("base", lambda row: _means(row)[0], drop=4),
    DataColumn("new", lambda row: _means(row)[1], drop=5),
    DataColumn("compared", lambda row: _compared(row)[2], drop=1),
    DataColumn("difference", lambda row: _change(row)),
    DataColumn("95 % interval", interval_words, drop=6),
    DataColumn("p", lambda row: p_value(row.p_adjusted), drop=7),
    DataColumn("verdict", lambda row: _verdict(row), words=True),
    DataColumn("could miss", lambda row: _could_miss(row), drop=3),
)
"""Of a table of metrics: both means over the cases that are compared, how many those are, the
difference, its interval, the corrected p, the verdict, and where no change is clear how large a
change these cases could miss."""


def _means(row: Change) -> tuple[str, ...]:
    base, new, _ = _compared(row)
    return apart(base, new)


def _compared(row: Change) -> tuple[float | None, float | None, str]:
    """Both means and the cases that they are over: those of both runs; of a metric that one run
    alone has, that run's."""
    cases, scored = max(row.base_cases, row.new_cases), row.n
    base, new = row.base, row.new
    if not cases or not (row.base_n and row.new_n):
        base, new, scored = row.base_mean, row.new_mean, row.base_n or row.new_n
    return base, new, f"{scored:,}/{cases:,}" if cases else "–"


def _change(row: Change) -> str:
    """The difference, or the ratio of times, costs and tokens."""
    return signed(row.delta) if row.ratio is None else f"{times(row.ratio)}×"


def change_of(row: Change) -> Whisker | None:
    """The difference of a metric with its interval, for a picture; None for a ratio.

    Also how far the target is from base and, without evidence, what could be missed. None without
    both values.
    """
    if row.ratio is not None or row.base is None or row.new is None or row.delta is None:
        return None
    if row.verdict == "no verdict":  # the few cases that are left are no picture of all
        return None
    target = None if row.target is None else row.target - row.base
    unseen = row.mde if row.verdict == "no evidence" else None
    return Whisker(row.interval, row.delta, target, before=0.0, unseen=unseen)


def _verdict(row: Change) -> str:
    if row.verdict == "mixed":
        return f"{SIGNS['mixed']} mixed: {times(row.ratio_totals)}× in all"
    if row.verdict == "no evidence":
        return "▽ look" if row.look else "unclear"
    if row.verdict == "no verdict" and row.coverage is not None:
        if row.coverage.chosen:
            return f"no verdict ({counted(row.coverage.chosen.cases, 'case')} changed)"
        return f"no verdict ({row.coverage.both:,} of {row.coverage.cases:,} left)"
    if row.verdict == "too few":
        return f"too few to tell ({row.units})"
    if row.verdict == "not tested" and row.delta is not None:
        return f"n < {TOO_FEW}: no test" if row.slice else "no test (whole run)"
    sign = SIGNS.get(row.verdict)
    return f"{sign} {row.verdict}" if sign else row.verdict


def _could_miss(row: Change) -> str:
    return unseen_size(row) if row.verdict == "no evidence" and row.mde is not None else ""


def row_groups(comparison: Comparison) -> tuple[list[Change], list[Change], list[Change]]:
    """Primary rows in their own order, other rows with something to say (worse ones first), and the
    rest; measured ones only."""
    measured = [row for row in comparison.rows if _is_measured(row)]
    primary = [row for row in measured if row.primary]
    others = [row for row in measured if not row.primary]
    telling = {*_FIRST, "only in base", "only in new"}
    loud = [row for row in others if row.verdict in telling]
    loud.sort(key=lambda row: _FIRST.get(row.verdict, len(_FIRST)))
    return primary, loud, [row for row in others if row.verdict not in telling]


def _is_measured(row: Change) -> bool:
    """Whether any of the two runs has a value."""
    return row.base_mean is not None or row.new_mean is not None


def remarks(comparison: Comparison, *, every: bool = True) -> list[str]:
    """The remarks that a reader must know. ``every``: also which cases single metrics lack."""
    fragile = [
        f"{row.metric}: the rise rests on many small gains; one case of {row.n:,} that loses all "
        "would undo it."
        for row in comparison.rows
        if row.fragile
    ]
    return [*comparison.notes, *fragile, *(_uneven(comparison) if every else ())]


def slice_tables(comparison: Comparison) -> dict[str, list[Change]]:
    """The measured slices of each metric, by ``metric by dimension``."""
    by_title: dict[str, list[Change]] = {}
    for row in comparison.slices:
        if _is_measured(row) and row.slice is not None:
            title = f"{row.metric} by {row.slice.partition('=')[0]}"
            by_title.setdefault(title, []).append(row)
    return by_title


def _uneven(comparison: Comparison) -> Iterator[str]:
    """Metrics that the two runs scored for different cases; one sentence for those alike."""
    alike: dict[tuple[int, int, int, int], list[str]] = {}
    for row in comparison.rows:
        if (row.lost or row.gained) and (row.primary or row.verdict in _FIRST):
            cases = max(row.base_cases, row.new_cases)
            alike.setdefault((row.lost, row.gained, row.n, cases), []).append(row.metric)
    for (lost, gained, compared, cases), names in alike.items():
        runs = ((lost, comparison.base_id), (gained, comparison.new_id))
        parts = [f"{count} only in {run}" for count, run in runs if count]
        first = lost or gained
        parts[0] = parts[0].replace(" only", f" case{'s' * (first != 1)} scored only", 1)
        left_out = "it is left out" if lost + gained == 1 else "these are left out"
        compared_of = f"{', '.join(names)} ({compared} of {cases} compared)"
        yield f"{compared_of}: {', '.join(parts)}; {left_out}."


def flips_summary(flips: Flips) -> str:
    """In how many cases a metric rose and fell."""
    return f"{flips.metric}: {counted(flips.gained, 'case')} better, {flips.fell_behind} worse."


REASONS = 2
"""Reasons that are named of a case where there is room; the most harmful ones."""


def flip_words(case: CaseFlip, reasons: int = REASONS) -> str:
    """Why a case fails, or why it did."""
    why = "; ".join(case.reasons[:reasons]) or "not by this run's own rules"
    return f"was: {why}" if case.way == "fixed" else why


def matrix_lines(comparisons: Sequence[Comparison]) -> list[tuple[str, ...]]:
    """Metric, base's mean, then mean, difference and sign of the verdict for each run; the
    headlines last. A difference over fewer cases than either mean tells how many."""
    names = dict.fromkeys(
        row.name for comparison in comparisons for row in comparison.rows if row.primary
    )
    lines = []
    for name in names:
        rows = [comparison.row(name) for comparison in comparisons]
        first = next(row for row in rows if row is not None)
        if any(row is not None and _is_measured(row) for row in rows):
            lines.append((first.metric, number(first.base_mean), *map(_matrix_cell, rows)))
    return [*lines, ("verdict", "", *(comparison.headline for comparison in comparisons))]


def _matrix_cell(row: Change | None) -> str:
    if row is None or row.new_mean is None:
        return "–"
    sign = SIGNS.get(row.verdict, "")
    cases = f", n {row.n:,}" if row.n and (row.lost or row.gained) else ""
    return f"{number(row.new_mean)} ({_change(row)}{cases}) {sign}".rstrip()


# The page

_TONES: dict[str, Tone] = {"better": "good", "worse": "bad", "mixed": "bad", "differs": "doubt"}

_HEADLINE_TONES: dict[str, Tone] = {
    "BETTER": "good",
    "WORSE": "bad",
    "MIXED": "bad",
    "INCOMPLETE": "doubt",
}

_BAD_SHOWN = 5
"""Exploratory metrics that are worse and shown without -v."""

_QUESTION = 200
"""Characters of a question that are shown."""


def compare_page(
    comparison: Comparison,
    *,
    cases: CaseFlips | None = None,
    flips: Sequence[Block] = (),
    talks: ConversationFlips | None = None,
    in_common: Sequence[Block] = (),
    paths: Sequence[Block] = (),
    every: bool = True,
) -> Page:
    """The changed settings, remarks, the primary metrics, the others, the changed cases, the
    verdict.

    ``every``: False leaves out what -v shows. ``flips``: the cases that one metric changed most
    for; ``paths``: where the evidence is lost.
    """
    blocks: list[Block] = [Prose(Quoted(cases_line(comparison)), "strong")]
    blocks += _changed("MUST BE THE SAME, BUT DIFFERS", comparison.controls)
    if every or not comparison.changed:  # which is one of the last lines
        blocks += _changed("Changed", comparison.varied)
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
    blocks += flips
    if cases is not None:
        blocks += [*_cases(cases, every), *in_common]
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
    said = {"no evidence": "unclear"}
    signs = "  ".join(f"{sign} {said.get(verdict, verdict)}" for verdict, sign in SIGNS.items())
    table = plain_table(head, matrix_lines(comparisons), title, foreign=True)
    return Page("All runs", [table, Prose((f"{signs}   against ", Quoted(base)))])


def failures_page(failures: Sequence[str]) -> Page:
    """The rules that were triggered, at the head of a document."""
    more = tuple(items(Quoted(text) for text in failures))
    return Page("", [Conclusion("Failed", "bad", more)])


def _changed(title: str, differences: Sequence[Difference]) -> Iterator[Block]:
    """Each difference with both values."""
    if differences:
        yield Prose(f"{title}:")
        yield from items(Quoted(plain(str(difference), 300)) for difference in differences)


_PICTURE = WhiskerColumn[Change](
    lambda row: Whisker(row.interval, row.delta, 0.0) if row.ratio is None else None,
    drop=2,
    around_zero=True,
)


_CHANGES = WhiskerColumn[Change](
    lambda row: change_of(row),
    drop=2,
    around_zero=True,
    changes=True,
    legend=(
        "○ before  ● after  ├─┤ 95 % interval  ░ could be missed  │ ◂ ▸ target",
        "o before  * after  [-] 95 % interval  . could be missed  | < > target",
    ),
)


def _metrics(
    title: str, rows: Sequence[Change], *, first: str = "metric", folded: bool = False
) -> DataTable[Change]:
    name, *middle, verdict, miss = COLUMNS
    picture = _CHANGES if title == PRIMARY_TITLE else _PICTURE
    head = DataColumn(first, name.cell, words=True, foreign=True)
    ends = (verdict, miss) if any(map(miss.cell, rows)) else (verdict,)
    return DataTable(
        (head, *middle, picture, *ends),
        rows,
        "" if folded else title,
        tone=lambda row: _TONES.get(row.verdict),
        folded=title if folded else "",
        hint=f"{title}: -v shows them.",
    )


def _cases(cases: CaseFlips, every: bool) -> Iterator[Block]:
    """How many cases broke and were fixed, and some of them with their reasons."""
    yield Heading(cases.says())
    ways: tuple[tuple[Literal["broke", "fixed"], Tone], ...] = (("broke", "bad"), ("fixed", "good"))
    more = []
    for way, tone in ways:
        listed = [case for case in cases.changed if case.way == way]
        for case in listed:
            why = flip_words(case, REASONS if every else 1)
            words = (f"{way.capitalize()}: ", Quoted(case.case_id), "  ", Quoted(why))
            yield Prose(words, tone, item=1)
        if listed and (left := cases.counts[way] - len(listed)):
            more.append(f"{left:,} more {way}")
    if more:
        most = max(cases.counts[way] for way, _ in ways)
        yield Prose(f"{', '.join(more)}: --set flips={most} lists all of them.", item=1)


def _conversations(talks: ConversationFlips, every: bool) -> Iterator[Block]:
    """The conversations that broke, were fixed, or fail at another turn."""
    if not every:
        yield Prose(talks.summary())
        return
    yield Heading(talks.summary())
    ways: tuple[tuple[Tone, tuple[ConversationFlip, ...]], ...] = (
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
