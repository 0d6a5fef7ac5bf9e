"""The report as Markdown: the same data, in tables and fenced texts. Foreign text stays text."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from terminal.tables import number
from views.report import words
from views.report.text import one_line, visible

METRIC_HEAD = ("metric", "mean", "target", "verdict", "95 % interval", "n", "coverage", "band")


def markdown(report: Mapping[str, Any]) -> str:
    """The whole report. Texts of questions, answers and marked passages stand in fences."""
    return "\n".join(_lines(report)) + "\n"


def _lines(report: Mapping[str, Any]) -> Iterator[str]:
    yield f"# Report of run {safe(report['run_id'])}"
    yield ""
    facts = [("cases", words.count(report["cases"]))]
    facts += [("failed calls", words.count(report["failed_calls"])), *words.head_facts(report)]
    yield ", ".join(f"{name}: {safe(value)}" for name, value in facts)
    yield from ("", f"**{report['verdict']['says']}**", "")
    yield from (f"{safe(doubt)}\n" for doubt in report["verdict"]["doubts"])
    for key, title in words.NOT_KEPT:
        if aims := report["verdict"][key]:
            yield f"{title}: {', '.join(safe(words.aim(one)) for one in aims)}\n"
    for one in report["perspectives"]:
        yield f"- {safe(one['name'])}: {words.HEALTH[one['healthy']]}, {words.status(one)}"
    for note in report["notes"]:
        yield from ("", f"Note: {safe(note)}")
    yield from _diagnosis(report["diagnosis"])
    yield from _metrics(report["perspectives"])
    yield from _slices(report["slices"])
    yield from _ranks(report["first_relevant"])
    yield from _latency(report["latency"], report["outcomes"])
    yield from _confidence(report["confidence"])
    if not report["judge_calibrations"]:
        yield from ("", "### The judge", "", words.no_judge(report))
    for one in report["judge_calibrations"]:
        yield from _judge(one)
    yield from _correlations(report["correlations"])
    yield from ("", "## Worst answers", "", words.worst_text(report["worst"]))
    for one in report["worst"]["listed"]:
        yield from _answer(one)
    yield from _prompts(report["prompts"])
    yield from ("", "## Errors")
    yield from _errors(report["errors"]) if report["errors"] else ("", words.no_errors(report))
    yield from ("", "## What was not applicable")
    missing = report["not_applicable"]
    yield from _not_applicable(missing) if missing else ("", words.nothing_missing(report))
    yield from _configuration(report["configuration"])


def _diagnosis(findings: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    yield from ("", "## Diagnosis", "")
    for one in findings:
        because = f" ({safe('; '.join(one['because']))})" if one["because"] else ""
        yield f"- {one['says']}{because} Look at {one['look_at']}"


def _metrics(perspectives: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    yield from ("", "## Metrics")
    for one in perspectives:
        yield from ("", f"### {safe(one['name'].capitalize())}")
        for note in one["notes"]:
            yield from ("", safe(note))
        yield from table(METRIC_HEAD, map(_metric, one["metrics"]))
    yield "\\* fewer than 20 cases: the interval is unreliable."
    yield "≈ too close to call: the 95 % interval includes the target."


def _metric(one: Mapping[str, Any]) -> tuple[str, ...]:
    name = one["metric"] + ("" if one["higher_is_better"] else " (lower is better)")
    return (
        name,
        number(one["mean"]),
        one["target"] or "",
        " ".join(words.mark(one)).strip() + (words.CLOSE if one["close"] else ""),
        words.interval(one),
        words.count(one["n"]),
        words.percent(one["coverage"]),
        one["band"] or "",
    )


def _slices(tables: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    yield from ("", "## Slices")
    for one in tables:
        of = "" if one["of"] == "cases" else f" ({one['of']})"
        yield from ("", f"### By {safe(words.spaced(one['dimension']))}{of}")
        head = (words.spaced(one["dimension"]), "n", *(c["metric"] for c in one["columns"]))
        rows = (
            (row["value"], words.count(row["n"]), *(_cell(cell, row) for cell in row["cells"]))
            for row in one["rows"]
        )
        yield from table([safe(name) for name in head], rows)
        if one["left_out"]:
            yield f"{words.count(one['left_out'])} smaller slices are left out."


def _cell(cell: Mapping[str, Any], row: Mapping[str, Any]) -> str:
    fewer = cell["mean"] is not None and cell["n"] != row["n"]
    return number(cell["mean"]) + (f" ({words.count(cell['n'])})" if fewer else "")


def _ranks(found: Mapping[str, Any]) -> Iterator[str]:
    yield from ("", "## Rank of the first relevant passage")
    if not found["n"]:
        yield from ("", words.NO_RANKS)
        return
    rows = [(bin_["rank"], bin_["count"]) for bin_ in found["bins"]]
    rows.append(("none found", found["not_found"]))
    shown = ((rank, words.count(n), words.percent(n / found["n"])) for rank, n in rows)
    yield from table(("rank", "answers", "share"), shown)


def _latency(found: Mapping[str, Any], outcomes: Mapping[str, Any]) -> Iterator[str]:
    yield from ("", "## Latency and cost")
    if found["stages"]:
        rows = (
            (
                one["stage"],
                *(words.milliseconds(one[m]) for m in words.MARKS),
                words.count(one["n"]),
            )
            for one in found["stages"]
        )
        yield from table(("stage, ms", *words.MARKS, "n"), rows)
    else:
        yield from ("", "The bot tells no times, or score_pipeline.py has not been run.", "")
    yield from (f"- {safe(line)}" for line in words.totals(found))
    if outcomes["rows"]:
        yield from ("", "### How responses ended")
        head = ("expected", *(safe(name) for name in outcomes["columns"]))
        rows = ((row["expected"], *map(words.count, row["counts"])) for row in outcomes["rows"])
        yield from table(head, rows)


def _confidence(found: Mapping[str, Any]) -> Iterator[str]:
    yield from ("", "## Calibration", "", "### The bot's confidence", "")
    if "bins" in found:
        yield words.ece_text(found)
        if found["left_out"]:
            yield f"Left out: {words.counts(found['left_out'])}."
        rows = (
            (
                f"{one['from']:.1f} – {one['to']:.1f}",
                words.count(one["n"]),
                number(one["confidence"]),
                words.percent(one["success"]),
                " – ".join(map(words.percent, one["ci95"])),
            )
            for one in found["bins"]
        )
        yield from table(("confidence", "n", "mean", "successes", "95 % interval"), rows)
    else:
        yield f"Not shown: {found['reason']}."


def _judge(found: Mapping[str, Any]) -> Iterator[str]:
    yield from ("", f"### The judge of {safe(found['metric'])}", "")
    yield from (safe(line) for line in words.judge_text(found))
    for one in found["tables"]:
        yield from table([safe(name) for name in one["head"]], one["rows"])
    if found["figures"]:
        yield from table(("figure", "value", "95 % interval"), map(_figure, found["figures"]))
    if found["shares"]:
        head = (f"share {found['good']}", "mean", "95 % interval")
        yield from table(head, map(_figure, found["shares"]))
    for one in found["worst"]:
        claim, case = safe(one["claim"]["text"]), safe(f"{one['case_id']} {one['claim_id']}")
        yield f"- {case}: people {safe(one['human'])}, judge {safe(one['verdict'])}: {claim}"


def _figure(one: Mapping[str, Any]) -> tuple[str, str, str]:
    return one["name"], number(one["value"]), words.ends(one["ci95"])


def _correlations(found: Mapping[str, Any]) -> Iterator[str]:
    yield from ("", f"## Correlations of metrics ({found['method']})")
    names = [one["metric"] for one in found["metrics"]]
    if len(names) < 2:
        yield from ("", "Two metrics with scores of single answers are needed.")
        return
    yield from ("", "Each r with the number of answers; an en dash: undefined.")
    rows = (
        (f"{place}. {name}", *map(_pair, found["r"][place - 1], found["n"][place - 1]))
        for place, name in enumerate(names, start=1)
    )
    yield from table(("", *(str(place) for place in range(1, len(names) + 1))), rows)


def _pair(r: float | None, n: int) -> str:
    return f"{words.coefficient(r)} ({words.count(n)})"


def _answer(one: Mapping[str, Any]) -> Iterator[str]:
    repeat = f" (repeat {one['repeat']})" if one["repeat"] else ""
    yield from ("", f"### {safe(one['case_id'], 80)}{repeat}", "", "Question:")
    yield from fenced(one["question"]["text"] + _more(one["question"]))
    state = words.answer_state(one)
    yield f"Answer{f' ({safe(state)})' if state else ''}:"
    answer = one["answer"]
    yield from fenced(answer["text"] + _more(answer)) if answer else ("", "No text.", "")
    if one["reference_answer"]:
        yield "Reference answer:"
        yield from fenced(one["reference_answer"]["text"] + _more(one["reference_answer"]))
    for miss in one["misses"]:
        score = f"{miss['metric']} is {number(miss['score'])}, wanted {miss['wanted']}"
        yield f"- {safe(miss['section'])}: {safe(score)}"
    yield from (f"- {safe(why)}" for why in one["because"])
    for claim in one["claims"]:
        yield f"- not supported ({number(claim['score'])}): {safe(claim['text']['text'])}"
    for said in one["verdicts"]:
        blame = f", {words.spaced(said['blame'])}" if said["blame"] else ""
        told = f"{said['kind']} {words.spaced(said['verdict'])}{blame}"
        yield f"- judge: {safe(told)}: {safe(said['text']['text'])}"
    for gold in one["gold"]:
        rank = f"found at rank {gold['rank']}" if gold["rank"] else "not retrieved"
        yield f"- wanted: {safe(gold['place'])} ({rank})"
    for passage in one["retrieved"]:
        marks = [name for key, name in words.PASSAGE_MARKS if passage[key]]
        told = f" ({', '.join(marks)})" if marks else ""
        yield from ("", f"{passage['rank']}\\. {safe(passage['place'])}{told}")
        if passage["text"] and marks:  # those without a mark are named; the page holds their text
            yield from fenced(passage["text"]["text"] + _more(passage["text"]))
    if one["retrieved_more"]:
        yield f"{one['retrieved_more']} more are not shown."


def _more(text: Mapping[str, Any]) -> str:
    more = words.more(text["left_out"])
    return f" {more}" if more else ""


def _prompts(found: Mapping[str, Any]) -> Iterator[str]:
    if not found["wrong"]:
        return
    yield from ("", "## Texts that the guardrails judged wrongly")
    yield from ("", f"{found['wrong']} labelled texts; {len(found['listed'])} are listed.")
    rows = (
        (
            one["id"],
            words.spaced(one["kind"]),
            words.spaced(one["category"]),
            words.plain_value(one["score"]),
            one["text"]["text"] if one["text"] else "",
        )
        for one in found["listed"]
    )
    yield from table(("id", "kind", "category", "score", "text"), rows, text=5)


def _errors(rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    shown = (
        (one["kind"], words.count(one["count"]), one["example"], ", ".join(one["cases"]))
        for one in rows
    )
    yield from table(("kind", "calls", "such as", "cases"), shown)


def _not_applicable(rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    shown = (
        (one["section"], one["reason"], words.count(one["answers"]), ", ".join(one["metrics"]))
        for one in rows
    )
    yield from table(("perspective", "reason", "answers", "metrics"), shown, text=2)


def _configuration(parts: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    yield from ("", "## Configuration")
    for one in parts:
        yield from ("", f"### {one['part'].capitalize()}")
        yield from table(
            ("setting", "value"), ((row["name"], row["value"]) for row in one["rows"]), text=2
        )


SPECIAL = re.compile(
    r"[\\`*\[\]|<&~$]"  # anywhere
    r"|(?<!\w)[_@]|_(?!\w)"  # emphasis and mentions; not the signs within recall_all@5
    r"|^[>#+=-]"  # at the beginning of a line
    r"|:(?=//)|(?<=www)\."  # addresses, which readers make links of
)

_TICKS = re.compile("`+")

Rows = Iterable[Sequence[str]]


def safe(text: str, limit: int = 400) -> str:
    """Foreign text on one line, with every sign that Markdown could read escaped."""
    return SPECIAL.sub(r"\\\g<0>", one_line(text, limit))


def fenced(text: str) -> Iterator[str]:
    """A text in a code block whose fence is longer than any run of backticks in it."""
    shown = visible(text)
    fence = "`" * max(3, 1 + max(map(len, _TICKS.findall(shown)), default=0))
    yield from ("", f"{fence}text", *shown.split("\n"), fence, "")


def table(head: Sequence[str], rows: Rows, text: int = 1) -> Iterator[str]:
    """A table whose first ``text`` columns are left-aligned; cells are escaped."""
    yield ""
    yield "| " + " | ".join(head) + " |"
    yield "|" + "---|" * text + "---:|" * (len(head) - text)
    for row in rows:
        yield "| " + " | ".join(safe(cell) for cell in row) + " |"
    yield ""
