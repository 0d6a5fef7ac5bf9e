"""A comparison on the terminal."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from decisions.compare import TOO_FEW
from decisions.flips import Flip, Flips, FlipSide, Ranks
from decisions.rows import SIGNS, Comparison, MetricRow, RowVerdict, shown
from ragmetrics.stats.means import UNRELIABLE_BELOW
from ragmetrics.stats.significance import ALPHA, power
from terminal.tables import NARROWEST, counted, harmless, number, plain

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table


STYLES = {"better": "green", "worse": "red", "differs": "yellow"}

ANSWER = 600
"""Characters of an answer that are shown."""


def print_comparison(console: Console, comparison: Comparison, everything: bool = False) -> None:
    """What changed, remarks, the declared metrics, and the others that show a difference."""
    names = f"{comparison.base_id} → {comparison.new_id}"
    console.print(f"{plain(names)}: {counted(comparison.cases, 'case')} in both")
    for number_of_line, line in enumerate(_headline(comparison)):
        console.print(plain(line, 2000), style=_style_of(line) if number_of_line else "bold")
    _print_changes(console, comparison)
    for note in _remarks(comparison):
        console.print(plain(f"! {note}", 2000), style="yellow")
    family, loud, rest = _parts(comparison)
    if family:
        tested = sum(row.p is not None for row in family)
        _print_rows(console, f"Declared metrics (p after Holm, {tested} tests)", family)
    others = loud + rest if everything else loud
    tested = sum(row.p is not None for row in loud + rest)
    if others:
        title = f"Other metrics (p after Benjamini-Hochberg, {tested} tests; exploratory)"
        _print_rows(console, title, others)
    if not everything and rest:
        console.print(f"{len(rest)} more without evidence of a difference: --all shows them.")
    console.print()
    for line in _legend([*family, *others, *comparison.slices]):
        console.print(line, style="dim")


def _style_of(line: str) -> str:
    return next((style for name, style in STYLES.items() if line.startswith(SIGNS[name])), "red")


def _print_changes(console: Console, comparison: Comparison) -> None:
    for title, differences in (
        ("MUST BE THE SAME, BUT DIFFERS", comparison.controls),
        ("Changed", comparison.varied),
    ):
        if differences:
            console.print(f"{title}:")
        for difference in differences:
            console.print(f"  {plain(str(difference), 300)}", soft_wrap=True)


def _print_rows(
    console: Console, title: str, rows: Sequence[MetricRow], first: str = "metric"
) -> None:
    console.print(f"\n{plain(title)}")
    table = _table((first, *HEAD[1:]), ("verdict",))
    for row in rows:
        name, *row_cells = _cells(row)
        table.add_row(plain(name, 80), *row_cells, style=STYLES.get(row.verdict))
    console.print(table)
    if any(0 < row.n < UNRELIABLE_BELOW and row.interval for row in rows):
        console.print(f"* n < {UNRELIABLE_BELOW}: interval unreliable")


def _table(columns: Sequence[str], texts: Sequence[str] = ()) -> Table:
    """A borderless table. On a narrow terminal the first column and ``texts`` are folded: a number
    that is cut is a wrong one."""
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, padding=(0, 1, 0, 0))
    for index, name in enumerate(columns):
        if index == 0:
            table.add_column(name, overflow="fold", min_width=NARROWEST)
        elif name in texts:
            table.add_column(name, overflow="fold")
        else:
            table.add_column(name, justify="right", no_wrap=True)
    return table


def print_slices(console: Console, comparison: Comparison) -> None:
    """A table for each metric of the family, a row for each slice."""
    for title, rows in _slices(comparison).items():
        text = f"{title} (p after Benjamini-Hochberg over all slices)"
        _print_rows(console, text, rows, title.rpartition(" ")[2])


def print_matrix(console: Console, comparisons: Sequence[Comparison]) -> None:
    """Several runs beside their base: mean and, with its sign, the difference."""
    base = comparisons[0]
    head = (
        "metric",
        plain(base.base_id, 20),
        *(plain(comparison.new_id, 20) for comparison in comparisons),
    )
    console.print("\nDeclared metrics of all runs (p after Holm over all of them together)")
    _print_cells(console, head, _matrix_lines(comparisons))
    legend = "  ".join(f"{sign} {verdict}" for verdict, sign in SIGNS.items())
    console.print(f"{legend}   against {plain(base.base_id, 60)}")


def _matrix_lines(comparisons: Sequence[Comparison]) -> list[tuple[str, ...]]:
    """Metric, base's mean, then mean, difference and sign of the verdict for each run."""
    names = dict.fromkeys(
        row.name for comparison in comparisons for row in comparison.rows if row.family
    )
    lines = []
    for name in names:
        rows = [comparison.row(name) for comparison in comparisons]
        first = next(row for row in rows if row is not None)
        if any(row is not None and _is_measured(row) for row in rows):
            lines.append((first.metric, number(first.base_mean), *map(_matrix_cell, rows)))
    return lines


def _matrix_cell(row: MetricRow | None) -> str:
    if row is None or row.new_mean is None:
        return "–"
    sign = SIGNS.get(row.verdict, "")
    return f"{number(row.new_mean)} ({_signed(row.delta)}) {sign}".rstrip()


def print_flips(console: Console, flips: Flips) -> None:
    """The cases that changed most, with their answers."""
    console.print(f"\n{plain(_flips_summary(flips))}")
    for title, changed in (("Got worse", flips.worse), ("Got better", flips.better)):
        for flip in changed:
            console.print(f"\n{title}: {plain(flip.case_id, 60)}  {_flip_title(flip)}")
            console.print(f"  {plain(flip.question)}", soft_wrap=True)
            for name, text in _sides(flip):
                console.print(f"  {name}: {plain(text, ANSWER)}", soft_wrap=True)


def _sides(flip: Flip) -> Iterable[tuple[str, str]]:
    """The answers before and after, once when they are the same."""
    before, after = _answer(flip.base), _answer(flip.new)
    if before == after:
        return [("both", before)]
    return [("base", before), ("new ", after)]


def _answer(side: FlipSide) -> str:
    """What the bot said, or why it did not."""
    if side.error:
        return f"failed: {side.error}"
    return "(no answer recorded)" if side.answer is None else side.answer or "(empty)"


def print_power(console: Console, rows: Iterable[MetricRow], drop: float) -> None:
    """The chance of finding a true difference of ``drop``, for the spread of these two runs."""
    console.print(
        f"\nPower against a true difference of {shown(drop)}, now and with n cases (test at 5 %)"
    )
    _print_cells(console, _power_head(), _power_rows(rows, drop))
    console.print(
        "A normal approximation: too hopeful where fewer than about 10 cases would change."
    )


def _print_cells(console: Console, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    table = _table(columns)
    for row in rows:
        table.add_row(*(plain(cell) for cell in row))
    console.print(table)


MOST = 2000
"""Characters of an answer that are written."""


def render(
    comparisons: Sequence[Comparison], flips: Flips | None = None, failures: Sequence[str] = ()
) -> str:
    """The whole document."""
    lines: list[str] = []
    if failures:
        lines += ["**Failed:**", "", *(f"- {code(text)}" for text in failures), ""]
    if len(comparisons) > 1:
        lines += _matrix(comparisons)
    for comparison in comparisons:
        lines += [
            f"# {code(comparison.base_id)} → {code(comparison.new_id)}",
            "",
            *_comparison_lines(comparison),
        ]
    if flips is not None:
        lines += _flips(flips)
    return "\n".join(lines).rstrip() + "\n"


def _comparison_lines(comparison: Comparison) -> Iterator[str]:
    first, *more = _headline(comparison)
    yield f"**{first}** {counted(comparison.cases, 'case')} in both runs."
    yield ""
    yield from _list(more)
    for title, differences in (
        ("Must be the same, but differs", comparison.controls),
        ("Changed", comparison.varied),
    ):
        if differences:
            yield f"**{title}:**"
            yield ""
            yield from (f"- {code(str(difference))}" for difference in differences)
            yield ""
    yield from _list(_remarks(comparison))
    family, loud, rest = _parts(comparison)
    yield from _markdown_table("Declared metrics (p after Holm)", family)
    yield from _markdown_table("Other metrics with a difference (p after Benjamini-Hochberg)", loud)
    if rest:
        yield f"<details><summary>{len(rest)} metrics without evidence</summary>"
        yield ""
        yield from _rows(rest)
        yield ""
        yield "</details>"
        yield ""
    for name, rows in _slices(comparison).items():
        yield from _markdown_table(f"{code(name)} (p after Benjamini-Hochberg)", rows)
    yield from (*_legend([*family, *loud, *rest, *comparison.slices]), "")


def _list(texts: Iterable[str]) -> Iterator[str]:
    items = [f"- {code(text)}" for text in texts]
    if items:
        yield from [*items, ""]


def _markdown_table(title: str, rows: Sequence[MetricRow]) -> Iterator[str]:
    if rows:
        yield f"## {title}"
        yield ""
        yield from _rows(rows)
        yield ""


def _rows(rows: Sequence[MetricRow]) -> Iterator[str]:
    yield "| " + " | ".join(HEAD) + " |"
    yield "|---|" + "--:|" * (len(HEAD) - 2) + "---|"
    for row in rows:
        name, *row_cells = _cells(row)
        yield "| " + " | ".join([cell(name), *row_cells]) + " |"


def _matrix(comparisons: Sequence[Comparison]) -> Iterator[str]:
    names = [comparisons[0].base_id, *(comparison.new_id for comparison in comparisons)]
    yield "# All runs"
    yield ""
    yield "Declared metrics: mean, difference from the first run, verdict."
    yield ""
    yield "| metric | " + " | ".join(cell(name) for name in names) + " |"
    yield "|---|" + "--:|" * len(names)
    for name, *cells in _matrix_lines(comparisons):
        yield "| " + " | ".join([cell(name), *cells]) + " |"
    yield ""


def _flips(flips: Flips) -> Iterator[str]:
    yield "## Cases that changed most"
    yield ""
    yield code(_flips_summary(flips))
    yield ""
    for title, changed in (("Worse", flips.worse), ("Better", flips.better)):
        for flip in changed:
            yield f"### {title}: {code(flip.case_id)}"
            yield ""
            yield _flip_title(flip)
            yield ""
            yield from _fence(
                "\n".join([f"Q: {flip.question}", *(f"{n}: {t}" for n, t in _sides(flip))])
            )
            yield ""


def code(text: str) -> str:
    """A code span that the text cannot end; one line."""
    clean = clean_text(text).replace("\n", " ") or " "
    ticks = "`" * (_longest_run(clean) + 1)
    pad = " " if clean[0] == "`" or clean[-1] == "`" else ""
    return f"{ticks}{pad}{clean}{pad}{ticks}"


def cell(text: str) -> str:
    """The same within a table, where a bar ends even a code span, unless a backslash stands before
    it; two of them would not do."""
    return code(text.replace("\\|", "\\ |")).replace("|", "\\|")


def _fence(text: str) -> list[str]:
    """A fenced block that the text cannot end, cut to 2,000 characters."""
    clean = clean_text(text if len(text) <= MOST else f"{text[:MOST]}…")
    ticks = "`" * max(3, _longest_run(clean) + 1)
    return [f"{ticks}text", *clean.split("\n"), ticks]


def clean_text(text: str) -> str:
    """Without control, direction and hidden characters; line ends stay."""
    lines = re.split(r"\r\n|\r|\n", text)
    return "\n".join(harmless(line) for line in lines)


def _longest_run(text: str) -> int:
    return max((len(run) for run in re.findall("`+", text)), default=0)


HEAD = ("metric", "base", "new", "delta", "95 % interval", "p", "n", "verdict")

POWER_NS = (60, 200, 1000)

FIRST: dict[RowVerdict, int] = {"worse": 0, "better": 1, "differs": 2, "only in base": 3}

NAMED = 8
"""Metrics of one verdict that the headline names."""


def _headline(comparison: Comparison) -> list[str]:
    """The answer before the tables: what the declared metrics say, and which ones say it.

    Without a tested one among them the others speak, which are called exploratory.
    """
    declared = [row for row in comparison.rows if row.family and row.p is not None]
    rows = declared or [row for row in comparison.rows if row.p is not None]
    gone = [row.metric for row in comparison.rows if row.family and row.verdict == "only in base"]
    lost = [f"no longer measured: {', '.join(gone)}"] if gone else []
    if not rows:
        return ["No metric could be tested: no case has one in both runs.", *lost]
    counts = Counter(row.verdict for row in rows)
    verdicts: list[RowVerdict] = [name for name in ("worse", "better", "differs") if counts[name]]
    word = (
        "MIXED"
        if len(verdicts) > 1
        else verdicts[0].upper()
        if verdicts
        else "NO EVIDENCE of a difference"
    )
    parts = [f"{counts[name]} {name}" for name in verdicts]
    if rest := counts["no evidence"]:
        parts.append(f"{rest} without evidence of a difference")
    kind = "declared" if declared else "exploratory (none is declared)"
    lines = [f"{word}: of {len(rows)} {kind} metric{'s' * (len(rows) != 1)} {', '.join(parts)}."]
    for name in verdicts:
        matching = [row for row in rows if row.verdict == name]
        names = [f"{row.metric} {_signed(row.delta)}" for row in matching[:NAMED]]
        more = f", and {len(matching) - NAMED} more" if len(matching) > NAMED else ""
        lines.append(f"{SIGNS[name]} {name}: {', '.join(names)}{more}")
    return lines + lost


def _legend(rows: Iterable[MetricRow]) -> list[str]:
    """What the words of the tables mean, as far as they occur."""
    unseen = [row for row in rows if row.verdict == "no evidence" and row.mde]
    lines = [f"A verdict asks for a p below {ALPHA:g}, corrected for the number of tests."]
    if unseen:
        lines.append(
            "No evidence is not «no change»: MDE is the smallest true difference that this number "
            "of cases would show 4 times in 5; a smaller one may be there, unseen."
        )
    if any(row.interval and not row.interval[0] <= 0 <= row.interval[1] for row in unseen):
        lines.append(
            "An interval is that of one metric alone, so it may leave out 0 where the corrected p "
            "gives no evidence; fewer declared metrics (--metrics) show smaller differences."
        )
    return lines


def _cells(row: MetricRow) -> tuple[str, ...]:
    """Metric, both means, difference, interval, corrected p, paired cases, verdict."""
    interval = "–"
    if row.interval is not None:
        mark = "*" if row.n < UNRELIABLE_BELOW else ""
        interval = f"{_signed(row.interval[0])} to {_signed(row.interval[1])}{mark}"
    return (
        row.metric if row.slice is None else row.slice.partition("=")[2],
        number(row.base if row.base is not None else row.base_mean),
        number(row.new if row.new is not None else row.new_mean),
        _signed(row.delta),
        interval,
        _p_value(row.p_adjusted),
        f"{row.n:,}" if row.n else "–",
        _verdict(row),
    )


def _verdict(row: MetricRow) -> str:
    """The verdict in words; with no evidence, what this n could have shown."""
    if row.verdict == "no evidence":
        return f"no evidence (MDE {number(row.mde)})" if row.mde else "same"
    if row.verdict == "not tested" and row.delta is not None:
        return f"n < {TOO_FEW}: no test" if row.slice else "no test (whole run)"
    sign = SIGNS.get(row.verdict)
    return f"{sign} {row.verdict}" if sign else row.verdict


def _signed(value: float | None) -> str:
    """A difference with its sign."""
    if value is None:
        return "–"
    shown = number(value)
    return f"+{shown}" if value > 0 else shown.replace("-", "−")


def _p_value(p: float | None) -> str:
    """Three decimals; below that ``<.001``."""
    if p is None:
        return "–"
    return "<.001" if p < 0.001 else f"{p:.3f}"


def _parts(comparison: Comparison) -> tuple[list[MetricRow], list[MetricRow], list[MetricRow]]:
    """Rows of the family (worse ones first), other rows with something to say, and the rest;
    measured ones only."""
    measured = [row for row in comparison.rows if _is_measured(row)]
    family = sorted((row for row in measured if row.family), key=_rank)
    others = [row for row in measured if not row.family]
    telling = {"better", "worse", "differs", "only in base", "only in new"}
    loud = [row for row in others if row.verdict in telling]
    return family, loud, [row for row in others if row.verdict not in telling]


def _rank(row: MetricRow) -> int:
    return FIRST.get(row.verdict, len(FIRST) if row.mde else len(FIRST) + 1)


def _is_measured(row: MetricRow) -> bool:
    """Whether any of the two runs has a value."""
    return row.base_mean is not None or row.new_mean is not None


def _remarks(comparison: Comparison) -> list[str]:
    """The comparison's notes, and what was declared but cannot be seen in the tables."""
    absent = [row.metric for row in comparison.rows if row.family and not _is_measured(row)]
    notes = list(comparison.notes)
    if absent:
        notes.append(f"Declared, but no case of either run has a score: {', '.join(absent)}.")
    return [*notes, *_uneven(comparison)]


def _slices(comparison: Comparison) -> dict[str, list[MetricRow]]:
    """The measured slices of each metric, by ``metric by dimension``."""
    by_title: dict[str, list[MetricRow]] = {}
    for row in comparison.slices:
        if _is_measured(row) and row.slice is not None:
            title = f"{row.metric} by {row.slice.partition('=')[0]}"
            by_title.setdefault(title, []).append(row)
    return by_title


def _uneven(comparison: Comparison) -> Iterator[str]:
    """Metrics that the two runs scored for different cases; one sentence for those alike."""
    alike: dict[tuple[int, int, int, int], list[str]] = {}
    for row in comparison.rows:
        if (row.lost or row.gained) and (row.family or row.verdict in ("better", "worse")):
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


def _ranks(gold_ranks: Ranks | None) -> str:
    """Ranks of the gold supports, – for one that was not found."""
    if gold_ranks is None:
        return "unknown"
    return ", ".join("–" if rank is None else str(rank) for rank in gold_ranks) or "no gold"


def _flip_title(flip: Flip) -> str:
    """What happened to the score and to the ranks of the gold."""
    kind = f" ({flip.kind})" if flip.kind else ""
    title = f"{number(flip.base.score)} → {number(flip.new.score)}{kind}"
    if flip.base.ranks is None and flip.new.ranks is None:
        return title
    return f"{title}; gold at rank {_ranks(flip.base.ranks)} → {_ranks(flip.new.ranks)}"


def _flips_summary(flips: Flips) -> str:
    """How many cases changed, and how many of them flipped."""
    text = f"{flips.metric}: {counted(flips.gained, 'case')} better, {flips.fell_behind} worse"
    if flips.success is None:
        return f"{text}."
    return f"{text}; success (score {flips.success}) → failure {flips.broke}, back {flips.fixed}."


def _power_rows(rows: Iterable[MetricRow], drop: float) -> list[tuple[str, ...]]:
    """For each metric that changed at all: spread, n, MDE, power against a change of ``drop``."""
    lines = []
    for row in rows:
        if not row.sd or row.mde is None:
            continue
        chances = [power(drop, row.sd, n) for n in (row.n, *POWER_NS)]
        cells = (number(row.sd), f"{row.n:,}", number(row.mde))
        lines.append((row.metric, *cells, *(f"{100 * chance:.0f} %" for chance in chances)))
    return lines


def _power_head() -> Sequence[str]:
    """The columns of ``power_rows``."""
    return ("metric", "sd", "n", "MDE", "now", *(f"n={n}" for n in POWER_NS))
