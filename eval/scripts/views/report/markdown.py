"""The report as Markdown: the same data, in tables and fenced texts. Foreign text stays text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from decisions.compare_words import HEAD
from terminal.tables import number
from views.report import words
from views.report.text import markdown_fence as _fenced
from views.report.text import markdown_line as _safe

METRIC_HEAD = ("metric", "mean", "target", "verdict", "95 % interval", "n", "coverage", "band")


def markdown(report: Mapping[str, Any]) -> str:
    """The whole report. Texts of questions, answers and marked passages stand in fences."""
    return "\n".join(_lines(report)) + "\n"


def _lines(report: Mapping[str, Any]) -> Iterator[str]:
    yield f"# Report of run {_safe(report['run_id'])}"
    yield ""
    facts = [("cases", words.count(report["cases"]))]
    facts += [("failed calls", words.count(report["failed_calls"])), *words.head_facts(report)]
    yield ", ".join(f"{name}: {_safe(value)}" for name, value in facts)
    yield ""
    if found := report["comparison"]:
        yield f"**{_safe(found['says'][0])}**"
        yield ""
    yield from (f"- {_safe(line)}" for line in report["headline"])
    yield from ("", f"**{report['verdict']['says']}**", "")
    yield from (f"{_safe(doubt)}\n" for doubt in report["verdict"]["doubts"])
    for key, title in words.NOT_MET:
        if aims := report["verdict"][key]:
            yield f"{title}: {', '.join(_safe(words.aim(aim)) for aim in aims)}\n"
    for part in report["perspectives"]:
        yield f"- {_safe(part['name'])}: {words.tile(part)[1]}, {words.status(part)}"
    for note in report["notes"]:
        yield from ("", f"Note: {_safe(note)}")
    if report["comparison"]:
        yield from _comparison(report["comparison"])
    if report["trend"]:
        yield from _trend(report["trend"])
    if "sweep" in report:
        yield from _sweep(report["sweep"])
    yield from _diagnosis(report["diagnosis"])
    yield from _metrics(report["perspectives"])
    yield from _slices(report["slices"], report["slices_missing"])
    yield from _ranks(report["first_relevant"])
    yield from _latency(report["latency"], report["outcomes"])
    yield from _stability(report["stability"])
    yield from _confidence(report["confidence"])
    if not report["judge_calibrations"]:
        yield from ("", "### The judge", "", words.no_judge(report))
    for part in report["judge_calibrations"]:
        yield from _judge(part)
    yield from _correlations(report["correlations"])
    yield from _conversations(report)
    yield from ("", "## Worst answers", "", words.worst_text(report["worst"]))
    if len(report["worst"]["listed"]) > words.IN_MARKDOWN:
        yield f"Here stand the first {words.IN_MARKDOWN}; the page has all of them."
    for part in report["worst"]["listed"][: words.IN_MARKDOWN]:
        yield from _answer(part)
    yield from _prompts(report["prompts"])
    yield from ("", "## Errors")
    yield from _errors(report["errors"]) if report["errors"] else ("", words.no_errors(report))
    yield from ("", "## What was not applicable")
    missing = report["not_applicable"]
    yield from _not_applicable(missing) if missing else ("", words.nothing_missing(report))
    yield from _configuration(report["configuration"])


def _conversations(report: Mapping[str, Any]) -> Iterator[str]:
    """The conversations that fail, each with its turns and the queries of their searches."""
    if "conversations" not in report:
        return
    yield from ("", "## Conversations", "", words.conversations_text(report["conversations"]))
    answers = report["worst"]["listed"]
    failing = [talk for talk in report["conversations"] if talk["first_failing"] is not None]
    for talk in failing[: words.IN_MARKDOWN]:
        yield ""
        yield f"- {_safe(talk['name'])}, from turn {talk['first_failing']} on"
        for place in talk["turns"]:
            answer = answers[place]
            fails = answer["turn"] in talk["failing"]
            state = f"fails: {_safe(words.why_text(answer))}" if fails else "ok"
            yield f"  - turn {answer['turn']}: {_safe(answer['question']['text'])} ({state})"
            for step in answer.get("searches", {}).get("steps", ()):
                yield f"    - search: {_safe(step['query']['text'])} ({_safe(step['says'])})"


def _comparison(found: Mapping[str, Any]) -> Iterator[str]:
    """What changed since the baseline: rows of metrics, and the cases that flipped."""
    yield from ("", f"## What changed since {_safe(found['base_id'])}", "")
    yield from (f"- {_safe(line)}" for line in found["says"][1:])
    for key in ("controls", "varied", "notes"):
        yield from (f"- {_safe(line)}" for line in found[key])
    for title, key in (("Primary", "primary"), ("Exploratory", "exploratory")):
        if rows := found[key]:
            yield from ("", f"### {title} metrics")
            yield from _table(HEAD, ((row["metric"], *row["cells"]) for row in rows))
    if found.get("cases_say"):
        yield from ("", "### Cases that broke or were fixed", "", _safe(found["cases_say"]), "")
        for one in found["cases_changed"]:
            if one["kind"]:
                why = f": {_safe('; '.join(one['why']))}" if one["why"] else ""
                yield f"- {one['kind']}: {_safe(one['case_id'], 80)}{why}"
    for flips in found["flips"]:
        yield from ("", f"### {_safe(flips['says'])}", "")
        for side, total in (("worse", "fell_behind"), ("better", "gained")):
            shown = flips[side][: words.IN_MARKDOWN]
            for case_id, base, new in shown:
                yield f"- {_safe(case_id, 80)}: {number(base)} → {number(new)}"
            if more := flips[total] - len(shown):
                yield f"- {words.count(more)} more {side}."


def _trend(trend: Mapping[str, Any]) -> Iterator[str]:
    """The primary metrics by point of the history, oldest first."""
    yield from ("", "## Trend of the primary metrics", "")
    yield from (f"- {_safe(alert)}" for line in trend["lines"] for alert in line["alerts"])
    rows = []
    for at, point in enumerate(trend["points"]):
        means = (
            next((value["mean"] for value in line["values"] if value["point"] == at), None)
            for line in trend["lines"]
        )
        rows.append((point["label"], point["day"], *map(number, means)))
    yield from _table(("point", "day", *(line["metric"] for line in trend["lines"])), rows, text=2)


def _sweep(sweep: Mapping[str, Any]) -> Iterator[str]:
    """The settings that this run was asked beside, the best first."""
    yield from ("", f"## Sweep {_safe(sweep['sweep_id'])}", "")
    yield from (f"- {_safe(line)}" for line in sweep["says"])
    yield from _table(sweep["columns"], (row["cells"] for row in sweep["rows"]), text=2)


def _diagnosis(findings: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    yield from ("", "## Diagnosis", "")
    for finding in findings:
        because = f" ({_safe('; '.join(finding['because']))})" if finding["because"] else ""
        yield f"- {finding['says']}{because} Look at {finding['look_at']}"


def _metrics(perspectives: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    yield from ("", "## Metrics")
    for part in perspectives:
        yield from ("", f"### {_safe(part['name'].capitalize())}")
        for note in part["notes"]:
            yield from ("", _safe(note))
        yield from _table(METRIC_HEAD, map(_metric, part["metrics"]))
    yield "\\* an interval to be doubted; `marks` in metrics.json says why."
    yield "≈ too close to call: the 95 % interval includes the target."


def _metric(metric: Mapping[str, Any]) -> tuple[str, ...]:
    name = metric["metric"] + ("" if metric["higher_is_better"] else " (lower is better)")
    return (
        name,
        number(metric["mean"]),
        metric["target"] or metric["advisory"] or "",
        " ".join(words.mark(metric)).strip() + (words.CLOSE if metric["close"] else ""),
        words.interval(metric),
        words.count(metric["n"]),
        words.percent(metric["coverage"]),
        metric["band"] or "",
    )


def _slices(tables: Sequence[Mapping[str, Any]], missing: str) -> Iterator[str]:
    yield from ("", "## Slices")
    if missing:
        yield from ("", _safe(missing))
    for slices in tables:
        of = "" if slices["of"] == "cases" else f" ({slices['of']})"
        yield from ("", f"### By {_safe(words.spaced(slices['dimension']))}{of}")
        head = (words.spaced(slices["dimension"]), "n", *(c["metric"] for c in slices["columns"]))
        rows = (
            (row["value"], words.count(row["n"]), *(_cell(cell, row) for cell in row["cells"]))
            for row in slices["rows"]
        )
        yield from _table([_safe(name) for name in head], rows)
        if slices["left_out"]:
            yield f"{words.count(slices['left_out'])} smaller slices are left out."


def _cell(cell: Mapping[str, Any], row: Mapping[str, Any]) -> str:
    fewer = cell["mean"] is not None and cell["n"] != row["n"]
    return number(cell["mean"]) + (f" ({words.count(cell['n'])})" if fewer else "")


def _ranks(ranks: Mapping[str, Any]) -> Iterator[str]:
    yield from ("", "## Rank of the first relevant passage")
    if not ranks["n"]:
        yield from ("", words.NO_RANKS)
        return
    yield from ("", words.rank_text(ranks))
    rows = ((group["rank"], *words.rank_cells(group, ranks)) for group in words.rank_groups(ranks))
    yield from _table(("rank", *words.rank_head(ranks)), rows)


def _latency(latency: Mapping[str, Any], outcomes: Mapping[str, Any]) -> Iterator[str]:
    yield from ("", "## Latency and cost")
    if latency["stages"]:
        rows = (
            (
                stage["stage"],
                *(words.percentile(stage, mark) for mark in words.MARKS),
                words.count(stage["n"]),
            )
            for stage in latency["stages"]
        )
        yield from _table(("stage, ms", *words.MARKS, "n"), rows)
        if starred := words.largest_text(latency["stages"]):
            yield _safe(starred)
    else:
        yield from ("", "The bot tells no times, or score_pipeline.py has not been run.", "")
    yield from (f"- {_safe(line)}" for line in words.totals(latency))
    if outcomes["rows"]:
        yield from ("", "### How responses ended")
        head = ("expected", *(_safe(name) for name in outcomes["columns"]))
        rows = ((row["expected"], *map(words.count, row["counts"])) for row in outcomes["rows"])
        yield from _table(head, rows)


def _stability(sections: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """What repeats tell; nothing for a run that asked each case once."""
    if not sections:
        return
    yield from ("", f"## {words.REPEATS}", "", words.REPEATS_EXPLAINED)
    for part in sections:
        yield from ("", f"### {_safe(part['section'])}, {part['repeats']} of each case", "")
        yield from (f"- {line}" for line in part["passes"])
        if part["rows"]:
            yield from _table(words.REPEATS_HEAD, part["rows"])


def _confidence(reliability: Mapping[str, Any]) -> Iterator[str]:
    yield from ("", "## Calibration", "", "### The bot's confidence", "")
    if "bins" in reliability:
        yield words.ece_text(reliability)
        if reliability["left_out"]:
            yield f"Left out: {words.counts(reliability['left_out'])}."
        rows = (
            (
                f"{band['from']:.1f} – {band['to']:.1f}",
                words.count(band["n"]),
                number(band["confidence"]),
                words.percent(band["success"]),
                " – ".join(map(words.percent, band["ci95"])),
            )
            for band in reliability["bins"]
        )
        yield from _table(("confidence", "n", "mean", "successes", "95 % interval"), rows)
    else:
        yield f"Not shown: {reliability['reason']}."


def _judge(calibration: Mapping[str, Any]) -> Iterator[str]:
    yield from ("", f"### The judge of {_safe(calibration['metric'])}", "")
    yield from (_safe(line) for line in words.judge_text(calibration))
    for counts in calibration["tables"]:
        yield from _table([_safe(name) for name in counts["head"]], counts["rows"])
    if calibration["figures"]:
        yield from _table(
            ("figure", "value", "95 % interval"), map(_figure, calibration["figures"])
        )
    if calibration["shares"]:
        head = (f"share {calibration['good']}", "mean", "95 % interval")
        yield from _table(head, map(_figure, calibration["shares"]))
    for counts in calibration["worst"]:
        claim, case = (
            _safe(counts["claim"]["text"]),
            _safe(f"{counts['case_id']} {counts['claim_id']}"),
        )
        people, judge = _safe(counts["human"]), _safe(counts["verdict"])
        yield f"- {case}: people {people}, judge {judge}: {claim}"


def _figure(row: Mapping[str, Any]) -> tuple[str, str, str]:
    return row["name"], number(row["value"]), words.ends(row["ci95"])


def _correlations(correlations: Mapping[str, Any]) -> Iterator[str]:
    yield from ("", f"## Correlations of metrics ({correlations['method']})")
    names = [metric["metric"] for metric in correlations["metrics"]]
    if len(names) < 2:
        yield from ("", "Two metrics with scores of single answers are needed.")
        return
    yield from ("", "Each r with the number of answers; an en dash: undefined.")
    rows = (
        (
            f"{index}. {name}",
            *map(_pair, correlations["r"][index - 1], correlations["n"][index - 1]),
        )
        for index, name in enumerate(names, start=1)
    )
    yield from _table(("", *(str(index) for index in range(1, len(names) + 1))), rows)


def _pair(r: float | None, n: int) -> str:
    return f"{words.coefficient(r)} ({words.count(n)})"


def _answer(described: Mapping[str, Any]) -> Iterator[str]:
    repeat = f" (repeat {described['repeat']})" if described["repeat"] else ""
    yield from ("", f"### {_safe(described['case_id'], 80)}{repeat}", "", "Question:")
    yield from _fenced(described["question"]["text"] + _more(described["question"]))
    state = words.answer_state(described)
    yield f"Answer{f' ({_safe(state)})' if state else ''}:"
    if described["error"]:
        yield from ("", f"The call failed: {_safe(described['error'])}", "")
    answer = described["answer"]
    yield from _fenced(answer["text"] + _more(answer)) if answer else ("", "No text.", "")
    if described["reference_answer"]:
        yield "Reference answer:"
        yield from _fenced(
            described["reference_answer"]["text"] + _more(described["reference_answer"])
        )
    if before := described["before"]:
        yield "Answer before:"
        text = before["answer"]
        yield from _fenced(text["text"] + _more(text)) if text else ("", "No text.", "")
    for change in described["changes"]:
        yield f"- {_safe(words.change_text(change))}"
    yield from (f"- fails: {_safe(why)}" for why in described["fails"])
    yield from (f"- warning: {_safe(why)}" for why in described["warnings"])
    yield from (f"- note: {_safe(note, 2000)}" for note in described.get("notes", ()))
    yield from (f"- {_safe(why)}" for why in described["because"])
    for claim in described["claims"]:
        yield f"- not supported ({number(claim['score'])}): {_safe(claim['text']['text'])}"
    for judged in described["verdicts"]:
        blame = f", {words.spaced(judged['blame'])}" if judged["blame"] else ""
        verdict = f"{judged['kind']} {words.spaced(judged['verdict'])}{blame}"
        yield f"- judge: {_safe(verdict)}: {_safe(judged['text']['text'])}"
    for gold in described["gold"]:
        rank = f"found at rank {gold['rank']}" if gold["rank"] else "not retrieved"
        yield f"- wanted: {_safe(gold['place'])} ({rank})"
    for passage in described["retrieved"]:
        marks = [name for key, name in words.PASSAGE_MARKS if passage[key]]
        verdict = f" ({', '.join(marks)})" if marks else ""
        yield from ("", f"{passage['rank']}\\. {_safe(passage['place'])}{verdict}")
        if passage["text"] and marks:  # those without a mark are named; the page holds their text
            yield from _fenced(passage["text"]["text"] + _more(passage["text"]))
    if described["retrieved_more"]:
        yield f"{described['retrieved_more']} more are not shown."


def _more(text: Mapping[str, Any]) -> str:
    more = words.more(text["left_out"])
    return f" {more}" if more else ""


def _prompts(prompts: Mapping[str, Any]) -> Iterator[str]:
    if not prompts["wrong"]:
        return
    yield from ("", "## Texts that the guardrails judged wrongly")
    yield from ("", f"{prompts['wrong']} labelled texts; {len(prompts['listed'])} are listed.")
    rows = (
        (
            prompt["id"],
            words.spaced(prompt["kind"]),
            words.spaced(prompt["category"]),
            words.plain_value(prompt["score"]),
            prompt["text"]["text"] if prompt["text"] else "",
        )
        for prompt in prompts["listed"]
    )
    yield from _table(("id", "kind", "category", "score", "text"), rows, text=5)


def _errors(rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    shown = (
        (row["kind"], words.count(row["count"]), row["example"], ", ".join(row["cases"]))
        for row in rows
    )
    yield from _table(("kind", "calls", "such as", "cases"), shown)


def _not_applicable(rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    shown = (
        (row["section"], row["reason"], words.count(row["answers"]), ", ".join(row["metrics"]))
        for row in rows
    )
    yield from _table(("perspective", "reason", "answers", "metrics"), shown, text=2)


def _configuration(parts: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    yield from ("", "## Configuration")
    for part in parts:
        yield from ("", f"### {part['part'].capitalize()}")
        yield from _table(
            ("setting", "value"), ((row["name"], row["value"]) for row in part["rows"]), text=2
        )


Rows = Iterable[Sequence[str]]


def _table(head: Sequence[str], rows: Rows, text: int = 1) -> Iterator[str]:
    """A table whose first ``text`` columns are left-aligned; cells are escaped."""
    yield ""
    yield "| " + " | ".join(head) + " |"
    yield "|" + "---|" * text + "---:|" * (len(head) - text)
    for row in rows:
        yield "| " + " | ".join(_safe(cell) for cell in row) + " |"
    yield ""
