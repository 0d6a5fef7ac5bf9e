"""A run beside its baseline: blocks of a report, and the page that compare_runs.py writes.

Every verdict is that of decisions/; here nothing is calculated, only put into words and rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from decisions import compare_words
from decisions.case_changes import CaseFlips, PairVerdicts, Ways, changes_of, read_pair
from decisions.case_rules import read_case_rules
from decisions.change import Change
from decisions.committed import compare_pair, is_committed_alone
from decisions.compare import CompareOptions, clusters_of
from decisions.compare_words import row_groups
from decisions.comparison import Comparison
from decisions.conversations import SHOWN, ConversationFlips, find_changes
from decisions.flips import Flips, find_flips, interest
from decisions.metric_words import catalogue_row, outcome_of
from decisions.slices import Embed, common_slices
from records import extras
from records.clusters import AUTO, read_clusters
from records.notes import CaseNote, read_notes
from records.run import Run, Runs
from records.targets import TARGETS
from terminal.page import (
    AnyColumn,
    Block,
    CaseRef,
    Chart,
    Conclusion,
    DataColumn,
    DataTable,
    Heading,
    Page,
    Prose,
    Section,
    Sides,
    Tag,
    Term,
    Tone,
    Whisker,
    WhiskerColumn,
    items,
    number,
    term_column,
)
from terminal.tables import counted
from views.case_blocks import ShownWith
from views.case_files import first_answers, read_asked
from views.report.cases import (
    FIGURE_BYTES,
    PAGE_BYTES,
    SECTIONS,
    ShownCase,
    case_section,
    numbered,
    size_of,
)
from views.text import one_line

MOST_FLIPS = 100
"""Cases of one metric, each way, that are looked up; the others are counted."""

LISTED = 20
"""Cases of a list that are named."""

FIRST_CHANGES = 5
"""Cases that broke, and cases that were fixed, at the top of a document."""

_MOST_WHY = 3


@dataclass(frozen=True)
class BaselineComparison:
    """A comparison with the cases that changed. ``table``: of the baseline.

    ``changes``: in words, by case id, of the cases that broke or were fixed, then of those in which
    only a primary metric changed; ``ways``: of the first ones, which of the two; ``pair``: the
    verdicts on both, where they are known. ``remarks``: on what was counted together.
    """

    comparison: Comparison
    table: Run
    flips: Sequence[Flips]
    changes: Mapping[str, Sequence[str]]
    ways: Mapping[str, Ways]
    pair: PairVerdicts | None
    cases: CaseFlips | None
    talks: ConversationFlips | None
    in_common: Sequence[str]
    of_extras: Sequence[Block]
    remarks: Sequence[str] = ()


def compare_with(
    base: Path,
    table: Run,
    eval_set: Path,
    targets: Path,
    *,
    ignore_invariants: bool = False,
    rescored: int = 0,
    labels_dir: Path | None = None,
    embed: Embed | None = None,
) -> BaselineComparison:
    """Compare a run with its baseline as compare_runs.py does. If git keeps only the metrics.json
    of the baseline, compare the primary metrics. ``table``: of the run; it keeps what is read.
    ``rescored``: re-labelled cases for which the baseline was scored again.

    Raises IncomparableError for runs that were not measured alike, StorageError for a run that is
    not scored or a damaged file.
    """
    tables, new = Runs(table), table.folder
    clusters, remarks = clusters_of((new, base), eval_set, AUTO, tables, targets)
    options = CompareOptions(
        eval_set=eval_set,
        labels_dir=labels_dir,
        rescored=rescored,
        targets=targets,
        ignore_invariants=ignore_invariants,
        override="--ignore-invariants",
    )
    comparison = compare_pair(base, new, options, clusters, tables)
    folders = base, new
    compared = of_comparison(
        comparison, folders, eval_set, targets, tables, labels_dir=labels_dir, embed=embed
    )
    return replace(compared, remarks=remarks)


def of_comparison(
    comparison: Comparison,
    folders: tuple[Path, Path],
    eval_set: Path,
    targets: Path,
    tables: Runs,
    *,
    labels_dir: Path | None = None,
    embed: Embed | None = None,
) -> BaselineComparison:
    """A comparison that was made already, with the cases that broke, were fixed, or changed in a
    primary metric. ``tables``: what was read of the runs."""
    base, new = folders
    moved = [row for row in comparison.rows if row.primary and (row.rose or row.fell)]
    moved = [] if is_committed_alone(base) else sorted(moved, key=interest)
    flips = [find_flips(base, new, row, MOST_FLIPS, eval_set, tables=tables) for row in moved]
    pair = read_pair(base, new, read_case_rules(targets), tables)
    cases = changes_of(pair, MOST_FLIPS)
    ways = {case.case_id: case.way for case in cases.changed} if cases else {}
    clustering = read_clusters(eval_set) if eval_set.exists() else None
    return BaselineComparison(
        comparison,
        tables[base],
        flips,
        changes_by_case(flips, ways),
        ways,
        None if pair.unknown else pair,
        cases,
        find_changes(pair, eval_set),
        common_slices(pair, eval_set, labels_dir, embed).sentences() if cases else (),
        [
            block
            for added in extras.code_of(extras.COMPARED)
            for block in added.of_runs(base, [new], clustering, seed=0)
        ],
    )


def changes_by_case(flips: Sequence[Flips], ways: Mapping[str, Ways]) -> dict[str, list[str]]:
    """By case, which scores changed, ``pass 1 → 0``: first what broke, then what was fixed, then
    what else moved, for the worse first."""
    groups: tuple[list[str], ...] = ([], [])
    changes: dict[str, list[str]] = {case_id: [] for case_id in ways}
    for found in flips:
        name = found.metric.partition(".")[2]
        for better, flip in [(0, f) for f in found.worse] + [(1, f) for f in found.better]:
            change = f"{name} {short(flip.base)} → {short(flip.new)}"
            changes.setdefault(flip.case_id, []).append(change)
            groups[better].append(flip.case_id)
    ordered = dict.fromkeys((*ways, *groups[0], *groups[1]))
    return {case_id: changes[case_id] for case_id in ordered}


def short(score: float) -> str:
    """A score in two digits; whole ones bare."""
    return f"{score:.0f}" if score == int(score) else f"{score:.2f}"


def sentences(comparison: Comparison) -> dict[str, tuple[str, str]]:
    """By primary metric a sentence on its change, and its verdict; those that changed first."""
    ranks = {"worse": 0, "mixed": 0, "better": 1}
    rows = [row for row in compare_words.row_groups(comparison)[0] if _tells(row)]
    rows.sort(key=lambda row: ranks.get(row.verdict, 1 if row.look else 2))
    return {row.name: (outcome_of(row), row.verdict) for row in rows}


def _tells(row: Change) -> bool:
    return row.verdict == "no verdict" or None not in (row.new, row.base)


# As blocks


_LOOKS = {"worse": "worse", "mixed": "worse", "better": "better"}


def head_blocks(
    compared: BaselineComparison, questions: Mapping[str, str], in_common: Sequence[str] = ()
) -> Iterator[Block]:
    """The verdict, a picture of the primary metrics, and the first cases that changed.

    ``questions``: of these, by case id. ``in_common``: what failing cases have in common.
    """
    comparison = compared.comparison
    first, *more = comparison.says or (comparison.headline,)
    yield Conclusion(first)
    if comparison.changed in more:
        more.remove(comparison.changed)
        yield Prose(one_line(comparison.changed, 600), "strong")
    caption = (
        "Left: ○ before, ● after, │ target. Right: the difference with its 95 % interval; a "
        "bracket under it spans what this set cannot detect. ▲ better, ▼ worse, · no evidence."
    )
    primary = compare_words.row_groups(comparison)[0]
    left: list[Block] = [Chart("changes", primary, caption)]
    left += [Prose(line, "quiet") for line in more]
    right = [*common_blocks([*in_common, *compared.in_common])]
    for way, title in (("broke", "Broke"), ("fixed", "Fixed")):
        right += _first_changes(compared, way, title, questions)
    yield Sides([(left, right)], look="first")
    lines = [
        Prose(
            text,
            "good" if verdict == "better" else "bad" if verdict in _LOOKS else None,
            1,
            "sentences",
        )
        for text, verdict in sentences(comparison).values()
    ]
    told = ". ".join(
        filter(
            None, (compare_words.cases_line(comparison), compare_words.explored_line(comparison))
        )
    )
    title = compared.cases.says() if compared.cases else "The main measures in words"
    yield Section(one_line(title, 1200), [*lines, Prose(told, "quiet")], level=0)


def common_blocks(lines: Sequence[str]) -> Iterator[Block]:
    """The slices in which more cases fail than elsewhere."""
    if lines:
        yield Heading("What failing cases have in common", 2)
        yield from (Prose(one_line(line, 600), item=1, look="common") for line in lines)


def _first_changes(
    compared: BaselineComparison, way: str, title: str, questions: Mapping[str, str]
) -> Iterator[Block]:
    cases = [case for case in (compared.cases.changed if compared.cases else ()) if case.way == way]
    if not cases or compared.cases is None:
        return
    count = next(n for name, n in compared.cases.counts.items() if name == way)
    more = f", the first {FIRST_CHANGES}" if len(cases) > FIRST_CHANGES else ""
    yield Heading(f"{title}: {counted(count, 'case')}{more}", 2, anchor=f"{way}-first")
    for case in cases[:FIRST_CHANGES]:
        fact = f"{'was: ' if way == 'fixed' and case.fact else ''}{one_line(case.fact, 80)}"
        question = one_line(questions.get(case.case_id, ""), 90)
        words = (CaseRef(case.case_id), " ", Tag(fact, "strong"), f" {question}")
        yield Prose(words, item=1, look=f"flipped {way}")


def comparison_blocks(compared: BaselineComparison) -> Iterator[Block]:
    """The changes since the baseline: settings, rows of metrics, and the cases that changed."""
    comparison = compared.comparison
    primary, telling, quiet = compare_words.row_groups(comparison)
    for title, lines in (
        ("Must be the same, but differs", map(str, comparison.controls)),
        ("Changed in the configuration", map(str, comparison.varied)),
        ("Before you read on", [*compared.remarks, *compare_words.remarks(comparison)]),
    ):
        if shown := [one_line(line, 400) for line in lines]:
            yield Heading(title, 3)
            yield from items(shown)
    if primary:
        yield Heading("Primary metrics", 3)
        caption = "Primary metrics decide the verdict (p-values from one joint test)"
        yield compared_table(primary, caption)
    yield from _changed_cases(compared)
    for found in compared.flips:
        yield from _flip_blocks(found)
    if compared.talks is not None:
        yield from talk_blocks(compared.talks)
    for block in compared.of_extras:
        yield replace(block, level=3) if isinstance(block, Heading) else block
    if telling:
        yield Heading("Exploratory metrics", 3)
        tests = sum(row.p_bh is not None for row in telling + quiet)
        caption = f"Exploratory metrics that differ ({tests} tests; false discovery rate 5 %)"
        yield compared_table(telling, caption)
    yield Prose(
        "On the page the arrow goes from the value before to the value now; the line is the 95 % "
        "interval of the difference, drawn from the value before.",
        "quiet",
    )
    folded = f"{len(quiet)} metrics that show no difference"
    yield compared_table(quiet, "Metrics that show no difference", folded)
    legend = [*compare_words.contradictions(comparison), *compare_words.legend(comparison)]
    yield from (Prose(one_line(line, 400), "quiet") for line in legend)


def _changed_cases(compared: BaselineComparison) -> Iterator[Block]:
    """The cases that broke or were fixed, and why."""
    if compared.cases is None:
        return
    yield Heading("Cases that broke or were fixed", 3)
    yield Prose(compared.cases.says())
    for case in compared.cases.changed:
        why = f": {one_line('; '.join(case.reasons[:_MOST_WHY]), 400)}" if case.reasons else ""
        yield Prose((f"{case.way}: ", CaseRef(case.case_id), why), item=1)


def _flip_blocks(found: Flips) -> Iterator[Block]:
    """The cases that one metric changed most for."""
    yield Heading(one_line(compare_words.flips_summary(found)), 3)
    for side, flips, total in (
        ("worse", found.worse, found.fell_behind),
        ("better", found.better, found.gained),
    ):
        if flips:
            yield Heading(f"For the {side}", 4)
        for flip in flips[:LISTED]:
            change = f": {number(flip.base)} → {number(flip.new)}"
            yield Prose((CaseRef(flip.case_id), change), item=1)
        yield from _more(total - min(len(flips), LISTED), side)


def _more(count: int, what: str) -> Iterator[Block]:
    if count > 0:
        yield Prose(f"{count:,} more {what}.", item=1)


def talk_blocks(talks: ConversationFlips) -> Iterator[Block]:
    """The conversations that changed, some of each way."""
    yield Heading(one_line(talks.summary(), 300), 3)
    for talk in (*talks.broke[:SHOWN], *talks.earlier[:SHOWN], *talks.fixed[:SHOWN]):
        repeat = f" (repeat {talk.repeat})" if talk.repeat else ""
        name = f"{one_line(talk.conversation, 80)}{repeat}: {talk.says()} ("
        question = f") {one_line(talk.question)}"
        yield Prose((name, CaseRef(talk.case_id, talk.repeat), question), item=1)


def compared_table(rows: Iterable[Change], caption: str, folded: str = "") -> DataTable[Change]:
    """Metrics of two runs, with an arrow from the value before to the value now."""

    def shade(row: Change) -> str:
        return f"say {row.verdict.replace(' ', '-')}"

    def term(row: Change) -> Term:
        metric = catalogue_row(row.metric)
        note = "(lower is better)" if row.higher_is_better is False else ""
        words = metric.in_words(row.metric) if metric else ""
        return Term(row.metric, words, metric.meaning if metric else "", note)

    def column(own: DataColumn[Change]) -> DataColumn[Change]:
        return DataColumn(own.name, own.cell)

    *middle, verdict, miss = compare_words.COLUMNS[1:]
    columns: list[AnyColumn[Change]] = [
        term_column("metric", term),
        *map(column, middle),
        replace(column(verdict), words=True, shade=shade),
        column(miss),
        WhiskerColumn(_arrow),
    ]
    return DataTable(columns, list(rows), caption=caption, folded=folded, look="metrics cards")


def _arrow(row: Change) -> Whisker | None:
    """From the value before to the value now; where the difference's interval would put that."""
    metric = catalogue_row(row.metric)
    if metric is None or row.base is None or row.new is None:
        return None
    low, high = row.interval or (row.new - row.base, row.new - row.base)
    tones: dict[str, Tone] = {"better": "good", "worse": "bad"}
    return Whisker(
        (row.base + low, row.base + high),
        row.new,
        low=metric.low,
        high=metric.high,
        before=row.base,
        tone=tones.get(row.verdict),
    )


def comparisons_page(
    comparisons: Sequence[Comparison],
    folders: Sequence[Path],
    eval_set: Path,
    labels_dir: Path | None,
    failures: Sequence[str] = (),
    targets: Path = TARGETS,
    tables: Runs | None = None,
    embed: Embed | None = None,
) -> Page:
    """Comparisons with the same base, ``folders[0]``.

    Of a single comparison the cases that broke or were fixed are shown in full, as many as the page
    has room for. ``tables``: what was read of the runs.
    """
    names = [comparisons[0].base_id, *(comparison.new_id for comparison in comparisons)]
    title = " → ".join(names) if len(names) == 2 else ", ".join(names)
    blocks: list[Block] = [
        Prose((Tag("Failed", "bad"), f" {one_line(reason, 400)}"), look="note")
        for reason in failures
    ]
    for place, comparison in enumerate(comparisons, 1):
        if len(comparisons) > 1:
            name = f"{one_line(comparison.base_id)} → {one_line(comparison.new_id)}"
            own = _several(comparison)
            blocks.append(Section(name, own, f"run-{place}", open=True))
        else:
            tables, (base, new) = tables or Runs(), folders
            compared = of_comparison(
                comparison,
                (base, new),
                eval_set,
                targets,
                tables,
                labels_dir=labels_dir,
                embed=embed,
            )
            cases, left_out = _changed_answers(compared, tables[new], eval_set, labels_dir)
            questions = {case.case_id: case.question for _, case, _ in cases}
            blocks += head_blocks(compared, questions)
            blocks.append(
                Section("Metrics and cases", [*comparison_blocks(compared)], "changes", open=True)
            )
            if cases:
                more: list[Block] = [Prose(f"{left_out:,} more are left out.")] * bool(left_out)
                shown = [*more, *numbered(section for section, _, _ in cases)]
                title_of = "The cases that changed, in full"
                blocks.append(Section(title_of, shown, "worst", open=True))
    return Page(one_line(title), blocks)


def _several(comparison: Comparison) -> list[Block]:
    """One of several comparisons: its verdict, and the metrics that decide or differ."""
    primary, telling, _ = row_groups(comparison)
    first, *more = comparison.says or (comparison.headline,)
    return [
        Prose(first, "strong"),
        *(Prose(line, "quiet") for line in more),
        *(Prose(text, item=1, look="sentences") for text, _ in sentences(comparison).values()),
        compared_table(primary, "Primary metrics"),
        compared_table(telling, "Exploratory metrics that differ"),
    ]


def _changed_answers(
    compared: BaselineComparison, new: Run, eval_set: Path, labels_dir: Path | None
) -> tuple[list[ShownCase], int]:
    """The cases that changed, as both runs answered them, and how many found no room."""
    ids = list(compared.changes)
    cases = read_asked(eval_set, labels_dir, ids)
    before = first_answers(compared.table, ids, cases, SECTIONS)
    now = first_answers(new, ids, cases, SECTIONS)
    notes: Mapping[str, Sequence[CaseNote]] = read_notes(eval_set, labels_dir)
    room = PAGE_BYTES - FIGURE_BYTES
    shown: list[ShownCase] = []
    for case_id in (case_id for case_id in ids if case_id in now):
        view = ShownWith(
            notes=notes.get(case_id, ()),
            before=before.get(case_id),
            way=compared.ways.get(case_id, ""),
            changes=compared.changes[case_id],
            brief=True,
        )
        section = case_section(now[case_id], view)
        room -= size_of(section)
        if room < 0:
            break
        shown.append((section, now[case_id], view))
    return shown, len(ids) - len(shown)
