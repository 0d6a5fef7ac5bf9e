"""The tables that the page and the Markdown of a report share, made of the report's own rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from decisions.compare_words import HEAD
from decisions.repeat_rows import EXPLAINED as EXPLAINED
from decisions.repeat_rows import STABILITY_HEAD
from terminal.page import CasesColumn, DataColumn, DataTable, between, number, percent, plain_table
from views.report import words
from views.report.text import one_line

Data = Mapping[str, Any]

ReportTable = DataTable[Data] | DataTable[Sequence[str]]

_COUNT = DataColumn[Data]("n", lambda row: words.count(row["n"]))


def _cases(name: str) -> CasesColumn[Data]:
    return CasesColumn(name, lambda row: row.get("cases"))


def ranks(found: Data) -> ReportTable:
    """Answers by the rank of their first relevant passage; the last row is of those without one."""

    def successes(group: Data) -> str:
        fewer = f" ({words.count(group['known'])})" if 0 < group["known"] < group["count"] else ""
        return percent(group["success"]) + fewer

    columns = [
        DataColumn[Data]("rank", lambda group: str(group["rank"])),
        DataColumn[Data]("answers", lambda group: words.count(group["count"])),
        DataColumn[Data]("share", lambda group: percent(group["count"] / found["n"])),
        DataColumn[Data]("successes", successes),
        DataColumn[Data]("95 % interval", lambda group: _shares(group["ci95"])),
    ]
    rows = [*found["bins"], {"rank": "none found"} | found["nowhere"]]
    # Without what says which answers are right there are no successes.
    return DataTable([*columns[: None if found["says"] else 3], _cases("cases")], rows)


def _shares(ends: Sequence[float] | None) -> str:
    return "–" if ends is None else " – ".join(map(percent, ends))


def latency(found: Data) -> ReportTable:
    """Milliseconds by stage."""
    rows = (
        [
            one_line(stage["stage"]),
            *(words.percentile(stage, mark) for mark in words.MARKS),
            words.count(stage["n"]),
        ]
        for stage in found["stages"]
    )
    return plain_table(("stage, ms", *words.MARKS, "n"), rows)


def stability(found: Data) -> ReportTable:
    """Where the repeats of a case vary."""
    return plain_table(STABILITY_HEAD, found["rows"])


def outcomes(found: Data) -> ReportTable:
    """Expected outcomes in rows, what happened in columns."""

    def column(at: int, name: str) -> DataColumn[Data]:
        return DataColumn(one_line(name), lambda row: words.count(row["counts"][at]))

    columns = [column(at, name) for at, name in enumerate(found["columns"])]
    expected = DataColumn[Data]("expected", lambda row: one_line(row["expected"]), words=True)
    return DataTable([expected, *columns, _cases("ended otherwise")], found["rows"])


def reliability(found: Data) -> ReportTable:
    """Answers by the bot's confidence."""
    return DataTable(
        [
            DataColumn[Data]("confidence", lambda row: f"{row['from']:.1f} – {row['to']:.1f}"),
            _COUNT,
            DataColumn[Data]("mean", lambda row: number(row["confidence"])),
            DataColumn[Data]("successes", lambda row: percent(row["success"])),
            DataColumn[Data]("95 % interval", lambda row: _shares(row["ci95"])),
            _cases("no success"),
        ],
        found["bins"],
    )


def figures(head: str, rows: Sequence[Data]) -> ReportTable:
    """Values with their intervals."""
    cells = ((row["name"], number(row["value"]), between(row["ci95"])) for row in rows)
    return plain_table((head, "value", "95 % interval"), cells)


def judge(found: Data) -> Iterator[tuple[str, ReportTable]]:
    """A judge against people, a caption each: counts of verdicts, figures, shares."""
    items = found["items"]
    for counts in found["tables"]:
        what = "what people say in rows, what the judge says in columns"
        rows = ([str(cell) for cell in row] for row in counts["rows"])
        yield f"{items.capitalize()}: {what}", plain_table(counts["head"], rows)
    if found["figures"]:
        yield "How the judge agrees with people", figures("figure", found["figures"])
    if found["shares"]:
        title = f"Share of {found['good']} {items} in this run, with the judge's errors taken out"
        yield (
            f"{title} where there are labels enough",
            figures(f"share {found['good']}", found["shares"]),
        )


def judge_slices(found: Data) -> ReportTable:
    """How the judge agrees with people, by slice."""
    names = ("specificity", "sensitivity", "kappa")
    rows = (
        (
            f"{words.spaced(row['dimension'])}: {one_line(row['value'], 60)}",
            *(words.count(row[name]) for name in ("n", "unsupported", "agree")),
            *(number(row[name]) for name in names),
        )
        for row in found["slices"]
    )
    return plain_table(("slice", "n", found["bad"], "agree", *names), rows)


def prompts(found: Data) -> ReportTable:
    """Attacks and leaks that passed, harmless texts that were stopped."""
    rows = (
        (
            one_line(row["id"], 60),
            words.spaced(row["kind"]),
            words.spaced(row["category"]),
            words.plain_value(row["score"]),
            one_line(row["text"]["text"], 600) if row["text"] else "",
        )
        for row in found["listed"]
    )
    return plain_table(("id", "kind", "category", "score", "text"), rows, words=5)


def errors(rows: Sequence[Data]) -> ReportTable:
    """Failed calls by kind."""

    def cases(row: Data) -> Data:
        return {"count": row["count"], "listed": [(case_id, 0) for case_id in row["cases"]]}

    return DataTable(
        [
            DataColumn[Data]("kind", lambda row: one_line(row["kind"]), words=True),
            DataColumn[Data]("calls", lambda row: words.count(row["count"])),
            DataColumn[Data]("such as", lambda row: one_line(row["example"], 300), words=True),
            CasesColumn[Data]("cases", cases),
        ],
        rows,
    )


def not_applicable(rows: Sequence[Data]) -> ReportTable:
    """Why scores are missing."""
    return DataTable(
        [
            DataColumn[Data]("perspective", lambda row: row["section"], words=True),
            DataColumn[Data]("reason", lambda row: one_line(row["reason"]), words=True),
            DataColumn[Data]("answers", lambda row: words.count(row["answers"])),
            DataColumn[Data](
                "metrics", lambda row: one_line(", ".join(row["metrics"]), 800), words=True
            ),
            _cases("cases"),
        ],
        rows,
    )


def configuration(part: Data) -> ReportTable:
    """The settings of one part of config.json."""
    rows = ((one_line(row["name"]), one_line(row["value"], 600)) for row in part["rows"])
    return plain_table(("setting", "value"), rows, words=2)


def sweep(found: Data) -> ReportTable:
    """The settings, the best first."""

    def name(row: Data) -> str:
        ahead, this = "◆ " * bool(row["pareto"]), " (this run)" * bool(row["this"])
        return f"{ahead}{one_line(row['cells'][0])}{this}"

    rows = ([name(row), *row["cells"][1:]] for row in found["rows"])
    return plain_table(found["columns"], rows, words=2)


def trend(found: Data) -> ReportTable:
    """The primary metrics by point of the history, oldest first."""
    means = [{value["point"]: value["mean"] for value in line["values"]} for line in found["lines"]]
    rows = (
        [
            one_line(point["label"], 60) + (" (this run)" if point["this"] else ""),
            point["day"],
            *(number(line.get(at)) for line in means),
        ]
        for at, point in enumerate(found["points"])
    )
    names = [line["metric"] for line in found["lines"]]
    return plain_table(("point", "day", *names), rows, words=2)


METRIC_HEAD = ("metric", "mean", "target", "verdict", "95 % interval", "n", "coverage", "band")

# Of Markdown alone: the page draws these with pictures, bands and links.


def metrics(part: Data) -> ReportTable:
    """The metrics of a perspective."""
    rows = (
        (
            row["metric"] + ("" if row["higher_is_better"] else " (lower is better)"),
            number(row["mean"]),
            row["target"] or row["advisory"] or "",
            " ".join(words.mark(row)).strip() + words.CLOSE * bool(row["close"]),
            words.interval(row),
            words.count(row["n"]),
            percent(row["coverage"]),
            row["band"] or "",
        )
        for row in part["metrics"]
    )
    return plain_table(METRIC_HEAD, rows)


def compared(rows: Sequence[Data]) -> ReportTable:
    """Metrics of two runs."""
    return plain_table(HEAD, ([row["metric"], *row["cells"]] for row in rows))


def slices(found: Data) -> ReportTable:
    """Means by the values of a dimension."""

    def mean(cell: Data, row: Data) -> str:
        fewer = cell["mean"] is not None and cell["n"] != row["n"]
        return number(cell["mean"]) + (f" ({words.count(cell['n'])})" if fewer else "")

    rows = (
        [one_line(row["value"], 60), words.count(row["n"]), *(mean(c, row) for c in row["cells"])]
        for row in found["rows"]
    )
    head = (words.spaced(found["dimension"]), "n", *(c["metric"] for c in found["columns"]))
    return plain_table(head, rows)


def correlations(found: Data) -> ReportTable:
    """Each r with the number of answers."""
    rows = (
        [
            f"{at}. {metric['metric']}",
            *(
                f"{words.coefficient(r)} ({words.count(n)})"
                for r, n in zip(found["r"][at - 1], found["n"][at - 1], strict=True)
            ),
        ]
        for at, metric in enumerate(found["metrics"], start=1)
    )
    return plain_table(("", *map(str, range(1, len(found["metrics"]) + 1))), rows)
