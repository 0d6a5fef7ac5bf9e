"""A comparison on the terminal."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from decisions.compare import TOO_FEW
from decisions.effects import normal_critical, power_of
from decisions.flips import Flip, Flips, FlipSide, Ranks
from decisions.rows import SCORED, SIGNS, Comparison, MetricRow, RowVerdict, shown
from ragmetrics.stats.means import UNRELIABLE_BELOW
from terminal import tables
from terminal.tables import counted, harmless, number, plain

if TYPE_CHECKING:
    from rich.console import Console


STYLES = {"better": "green", "worse": "red", "mixed": "red", "differs": "yellow"}

ANSWER = 600
"""Characters of an answer that are shown."""


def print_comparison(console: Console, comparison: Comparison, everything: bool = False) -> None:
    """What changed, remarks, the primary metrics, and the others that show a difference. Outside a
    terminal all metrics are shown, so that a search finds each."""
    everything = everything or not console.is_terminal
    _say(console, _cases_line(comparison), "bold")
    for title, differences in (
        ("MUST BE THE SAME, BUT DIFFERS", comparison.controls),
        ("Changed", comparison.varied),
    ):
        if differences:
            _say(console, f"{title}:")
        for difference in differences:
            _say(console, f"  {plain(str(difference), 300)}")
    for note in _remarks(comparison):
        _say(console, plain(f"! {note}", 2000), "yellow")
    primary, loud, rest = _parts(comparison)
    _print_rows(console, PRIMARY_TITLE, primary)
    others = loud + rest if everything else loud
    tested = sum(row.p_bh is not None for row in loud + rest)
    _print_rows(console, _explored_title(tested), others)
    if not everything and rest:
        _say(console, f"{len(rest)} more without evidence of a difference: --all shows them.")


def print_answer(console: Console, comparison: Comparison) -> None:
    """What the words mean, and last the headline."""
    console.print()
    for line in _legend(comparison):
        _say(console, line, "dim")
    console.print()
    first, *more = _headline(comparison)
    _say(console, plain(first, 2000), "bold")
    for line in more:
        _say(console, plain(line, 2000), _style_of(line))


def _say(console: Console, text: str, style: str | None = None) -> None:
    """A line of prose: folded on a terminal, whole in a file."""
    console.print(text, style=style, soft_wrap=not console.is_terminal)


def _style_of(line: str) -> str | None:
    return next((style for name, style in STYLES.items() if line.startswith(SIGNS[name])), None)


def _print_rows(
    console: Console, title: str, rows: Sequence[MetricRow], first: str = "metric"
) -> None:
    if not rows:
        return
    _say(console, f"\n{plain(title)}")
    lines: list[tuple[str, ...]] = [tuple(map(plain, _cells(row))) for row in rows]
    styles = [STYLES.get(row.verdict) for row in rows]
    head: tuple[str, ...] = (first, *HEAD[1:])
    droppable: tuple[str, ...] = LEAST_NEEDED
    if tables.has_room(console) and (drawn := _pictures(rows, tables.draws_unicode(console))):
        head = (*head[:-1], drawn[0], head[-1])
        lines = [(*line[:-1], part, line[-1]) for line, part in zip(lines, drawn[1:], strict=True)]
        droppable = (drawn[0], *droppable)
    tables.print_columns(
        console, head, lines, styles=styles, droppable=droppable, left=(head[-2], "verdict")
    )


def _pictures(rows: Sequence[MetricRow], unicode: bool) -> list[str]:
    """The head of a column and, for each row, its difference and interval around 0; [] when none
    has one. One scale for all of them; ratios and differences above 1 have no picture."""
    spans = [
        max(abs(row.delta or 0.0), *map(abs, row.interval or (0.0, 0.0)))
        if row.delta is not None and row.ratio is None
        else 0.0
        for row in rows
    ]
    widest = max((span for span in spans if span <= 1), default=0.0)
    if not widest:
        return []
    end = math.ceil(widest * 20) / 20
    drawn = [
        tables.picture(row.interval, row.delta, 0.0, low=-end, high=end, unicode=unicode)
        if row.ratio is None
        else ""
        for row in rows
    ]
    return [tables.scale(f"−{end:g}", f"+{end:g}", "0"), *drawn]


def print_slices(console: Console, comparison: Comparison) -> None:
    """A table for each primary metric, a row for each slice."""
    for title, rows in _slices(comparison).items():
        text = f"{title} (exploratory; p after Benjamini-Hochberg over all slices)"
        _print_rows(console, text, rows, title.rpartition(" ")[2])


def print_matrix(console: Console, comparisons: Sequence[Comparison]) -> None:
    """Several runs beside their base: mean and, with its sign, the difference."""
    base = comparisons[0]
    head = (
        "metric",
        plain(base.base_id),
        *(plain(comparison.new_id) for comparison in comparisons),
    )
    _say(console, "\nPrimary metrics of all runs (p corrected for all runs and metrics together)")
    tables.print_columns(console, head, _matrix_lines(comparisons))
    legend = "  ".join(f"{sign} {verdict}" for verdict, sign in SIGNS.items())
    _say(console, f"{legend}   against {plain(base.base_id)}")


def _matrix_lines(comparisons: Sequence[Comparison]) -> list[tuple[str, ...]]:
    """Metric, base's mean, then mean, difference and sign of the verdict for each run; the
    headlines last."""
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


def _matrix_cell(row: MetricRow | None) -> str:
    if row is None or row.new_mean is None:
        return "–"
    sign = SIGNS.get(row.verdict, "")
    return f"{number(row.new_mean)} ({_change(row)}) {sign}".rstrip()


def print_flips(console: Console, flips: Flips) -> None:
    """The cases that changed most, with their answers."""
    _say(console, f"\n{plain(_flips_summary(flips))}")
    for title, changed in (("Got worse", flips.worse), ("Got better", flips.better)):
        for flip in changed:
            _say(console, f"\n{title}: {plain(flip.case_id)}  {_flip_title(flip)}")
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


def print_power(console: Console, comparison: Comparison, drop: float) -> None:
    """The chance of finding a true difference of ``drop``, for the spread of these two runs."""
    _say(
        console,
        f"\nPower of this verdict against a true difference of {shown(drop)}, now and with n cases",
    )
    tables.print_columns(console, POWER_HEAD, _power_rows(comparison, drop))


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
    yield f"**{first}**"
    yield ""
    yield from _list([*more, _cases_line(comparison)])
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
    primary, loud, rest = _parts(comparison)
    tested = sum(row.p_bh is not None for row in loud + rest)
    yield from _markdown_table(PRIMARY_TITLE, primary)
    yield from _markdown_table(_explored_title(tested), loud)
    if rest:
        yield f"<details><summary>{len(rest)} metrics without evidence</summary>"
        yield ""
        yield from _rows(rest)
        yield ""
        yield "</details>"
        yield ""
    for name, rows in _slices(comparison).items():
        yield from _markdown_table(f"{code(name)} (exploratory)", rows)
    yield from (*_list(_legend(comparison)), "")


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
    yield "Primary metrics: mean, difference from the first run, verdict."
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


HEAD = (
    "metric",
    "base",
    "scored",
    "new",
    "scored ",
    "difference",
    "95 % interval",
    "p",
    "verdict",
)

LEAST_NEEDED = ("scored ", "scored", "p", "95 % interval")
"""Columns that a narrow terminal does without, in this order."""

PRIMARY_TITLE = "Primary metrics: they decide (p of one joint test of all of them)"

POWER_NS = (60, 200, 1000)

POWER_HEAD = ("metric", "n", "MDE", "now", *(f"n={n}" for n in POWER_NS))

FIRST: dict[RowVerdict, int] = {"worse": 0, "mixed": 1, "better": 2, "differs": 3}

NAMED = 8
"""Metrics of one verdict that the headline names."""


def _explored_title(tested: int) -> str:
    return f"Exploratory metrics ({counted(tested, 'test')}; false discovery rate 5 %)"


def _cases_line(comparison: Comparison) -> str:
    names = f"{comparison.base_id} → {comparison.new_id}"
    text = f"{plain(names)}: {counted(comparison.cases, 'case')} in both"
    return f"{text}; {comparison.clusters}" if comparison.clusters else text


def _headline(comparison: Comparison) -> list[str]:
    """The answer: the verdict of the primary metrics in a word, which ones say it, and how many
    exploratory metrics differ."""
    primary = [row for row in comparison.rows if row.primary and row.effect is not None]
    word = comparison.headline
    counts = Counter(row.verdict for row in primary)
    parts = [f"{counts[name]} {words}" for name, words in VERDICT_WORDS if counts[name]]
    text = f"{word}: of {counted(len(primary), 'primary metric')} {', '.join(parts)}."
    if not primary:
        text = "LOOK: " if word == "LOOK" else ""
        text += "No primary metric could be tested: no case has one in both runs."
    lines = [text]
    for name in ("worse", "mixed", "better"):
        lines += _named(name, [row for row in primary if row.verdict == name])
    if suspects := [row for row in primary if row.look]:
        names = ", ".join(f"{row.metric} {_change(row)}" for row in suspects)
        lines.append(f"▽ may be worse, without enough evidence: {names}")
    lines += _explored_lines(comparison)
    gone = [row.metric for row in comparison.rows if row.primary and row.verdict == "only in base"]
    return lines + ([f"no longer measured: {', '.join(gone)}"] if gone else [])


VERDICT_WORDS: tuple[tuple[RowVerdict, str], ...] = (
    ("worse", "worse"),
    ("mixed", "mixed"),
    ("better", "better"),
    ("equal", "equal within the margin"),
    ("no evidence", "without evidence of a difference"),
    ("too few", "with too few cases or documents to tell"),
)


def _named(name: str, rows: Sequence[MetricRow]) -> list[str]:
    if not rows:
        return []
    names = [f"{row.metric} {_change(row)}" for row in rows[:NAMED]]
    more = f", and {len(rows) - NAMED} more" if len(rows) > NAMED else ""
    return [f"{SIGNS[name]} {name}: {', '.join(names)}{more}"]


def _explored_lines(comparison: Comparison) -> list[str]:
    rows = [row for row in comparison.rows if row.p_bh is not None]
    if not rows:
        return []
    telling = [row for row in rows if row.verdict in FIRST]
    if not telling:
        return [f"Exploratory: none of {counted(len(rows), 'metric')} shows a difference."]
    bad = [row for row in telling if row.bad]
    good = [row for row in telling if row.verdict == "better"]
    text = f"Exploratory: of {counted(len(rows), 'metric')} {len(bad)} worse, {len(good)} better"
    if other := len(telling) - len(bad) - len(good):
        text += f", {other} differ"
    names = [f"{row.metric} {_change(row)}" for row in bad[:NAMED]]
    if len(bad) > NAMED:
        names.append(f"and {len(bad) - NAMED} more")
    return [f"{text}." + (f" Worse: {', '.join(names)}." if names else "")]


def _legend(comparison: Comparison) -> list[str]:
    """What the words of the tables mean, as far as they occur."""
    rows = [*comparison.rows, *comparison.slices]
    lines = [
        "A verdict needs a p of at most 0.05, corrected for the number of metrics, and a 95 % "
        "interval without 0. scored: cases with a score, of all cases."
    ]
    if any(row.mde for row in rows if row.verdict == "no evidence"):
        lines.append(
            "No evidence is not «no change»: MDE is the smallest true difference that this verdict "
            "would find 4 times in 5; a smaller one may be there, unseen."
        )
    if any(row.metric.endswith(SCORED) for row in rows):
        lines.append(f"NAME{SCORED}: share of the answered cases that have a score of NAME at all.")
    if any(row.ratio is not None for row in rows):
        lines.append("1.12×: the new run's value is 1.12 times the base's in a typical case.")
    return lines


def _cells(row: MetricRow) -> tuple[str, ...]:
    """Metric, both means with their coverage, difference, interval, corrected p, verdict."""
    interval = "–"
    if row.ratio_interval is not None:
        interval = " to ".join(map(_times, row.ratio_interval))
    elif row.interval is not None:
        mark = "*" if row.n < UNRELIABLE_BELOW else ""
        interval = f"{_signed(row.interval[0])} to {_signed(row.interval[1])}{mark}"
    return (
        row.metric if row.slice is None else row.slice.partition("=")[2],
        number(row.base if row.base is not None else row.base_mean),
        _coverage(row.base_n, row.base_cases),
        number(row.new if row.new is not None else row.new_mean),
        _coverage(row.new_n, row.new_cases),
        _change(row),
        interval,
        _p_value(row.p_adjusted),
        _verdict(row),
    )


def _coverage(scored: int, cases: int) -> str:
    return f"{scored:,}/{cases:,}" if cases else "–"


def _change(row: MetricRow) -> str:
    """The difference, or the ratio of times, costs and tokens."""
    return _signed(row.delta) if row.ratio is None else f"{_times(row.ratio)}×"


def _times(ratio: float | None) -> str:
    """Two decimals, three significant digits of what is small."""
    return f"{ratio or 0:.2f}" if ratio is None or ratio >= 0.1 else f"{ratio:.3g}"


def _verdict(row: MetricRow) -> str:
    """The verdict in words; with no evidence, what this n could have shown."""
    if row.verdict == "mixed":
        return f"{SIGNS['mixed']} mixed: {_times(row.ratio_totals)}× in all"
    if row.verdict == "no evidence":
        look = "▽ look" if row.look else "no evidence"
        if row.mde is None:
            return look
        size = f"{_times(row.mde)}×" if row.ratio is not None else number(row.mde)
        return f"{look} (MDE {size})"
    if row.verdict == "too few":
        return f"too few to tell ({row.units})"
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
    """Primary rows in their own order, other rows with something to say (worse ones first), and the
    rest; measured ones only."""
    measured = [row for row in comparison.rows if _is_measured(row)]
    primary = [row for row in measured if row.primary]
    others = [row for row in measured if not row.primary]
    telling = {*FIRST, "only in base", "only in new"}
    loud = [row for row in others if row.verdict in telling]
    loud.sort(key=lambda row: FIRST.get(row.verdict, len(FIRST)))
    return primary, loud, [row for row in others if row.verdict not in telling]


def _is_measured(row: MetricRow) -> bool:
    """Whether any of the two runs has a value."""
    return row.base_mean is not None or row.new_mean is not None


def _remarks(comparison: Comparison) -> list[str]:
    return [*comparison.notes, *_uneven(comparison)]


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
        if (row.lost or row.gained) and (row.primary or row.verdict in FIRST):
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


def _power_rows(comparison: Comparison, drop: float) -> list[tuple[str, ...]]:
    """For each primary metric with differences: n, MDE, power against a change of ``drop``."""
    lines = []
    for row in comparison.rows:
        spread = row.effect.spread if row.primary and row.effect else None
        if spread is None or row.mde is None or row.ratio is not None:
            continue
        many = normal_critical(comparison.tested)
        chances = [power_of(drop, spread, comparison.critical, row.n)]
        chances += [power_of(drop, spread, many, n) for n in POWER_NS]
        cells = (row.metric, f"{row.n:,}", number(row.mde))
        lines.append((*cells, *("–" if c is None else f"{100 * c:.0f} %" for c in chances)))
    return lines
