"""The report as a page for Markdown: its sentences, its tables, and the first cases in full."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from decisions.repeat_rows import EXPLAINED
from terminal.page import Block, Conclusion, Heading, Page, Prose, Quotation, items, number
from views.report import tables, words
from views.report.text import one_line

Data = Mapping[str, Any]


def report_page(report: Data) -> Page:
    """The whole report. Texts of questions, answers and marked passages are quotations."""
    return Page(f"Report of run {one_line(report['run_id'])}", list(_blocks(report)))


def _blocks(report: Data) -> Iterator[Block]:
    facts = [("cases", words.count(report["cases"]))]
    facts += [("failed calls", words.count(report["failed_calls"])), *words.head_facts(report)]
    yield Prose(", ".join(f"{name}: {one_line(value)}" for name, value in facts))
    if report["comparison"]:
        yield Conclusion(report["comparison"]["says"][0])
    yield from items(report["headline"])
    yield Prose(report["verdict"]["says"], "strong")
    yield from map(Prose, report["verdict"]["doubts"])
    for key, title in words.NOT_MET:
        if aims := report["verdict"][key]:
            yield Prose(f"{title}: {', '.join(map(words.aim, aims))}")
    yield from items(
        f"{part['name']}: {words.tile(part)[1]}, {words.status(part)}"
        for part in report["perspectives"]
    )
    yield from (Prose(f"Note: {note}") for note in report["notes"])
    if report["comparison"]:
        yield from _comparison(report["comparison"])
    if trend := report["trend"]:
        yield Heading("Trend of the primary metrics")
        yield from items(alert for line in trend["lines"] for alert in line["alerts"])
        yield tables.trend(trend)
    if sweep := report.get("sweep"):
        yield Heading(f"Sweep {one_line(sweep['sweep_id'])}")
        yield from items(sweep["says"])
        yield tables.sweep(sweep)
    yield Heading("Diagnosis")
    for finding in report["diagnosis"]:
        because = f" ({'; '.join(finding['because'])})" if finding["because"] else ""
        yield Prose(f"{finding['says']}{because} Look at {finding['look_at']}", item=1)
    yield Heading("Metrics")
    for part in report["perspectives"]:
        yield Heading(part["name"].capitalize(), 3)
        yield from map(Prose, part["notes"])
        yield tables.metrics(part)
    yield Prose("* an interval to be doubted; marks in metrics.json says why.")
    yield Prose("≈ too close to call: the 95 % interval includes the target.")
    yield from (Heading("Slices"), Prose(report["slices_missing"]))
    for found in report["slices"]:
        of = "" if found["of"] == "cases" else f" ({found['of']})"
        yield Heading(f"By {words.spaced(found['dimension'])}{of}", 3)
        yield tables.slices(found)
        if found["left_out"]:
            yield Prose(f"{words.count(found['left_out'])} smaller slices are left out.")
    yield Heading("Rank of the first relevant passage")
    ranks = report["first_relevant"]
    yield Prose(words.rank_text(ranks) if ranks["n"] else words.NO_RANKS)
    if ranks["n"]:
        yield tables.ranks(ranks)
    yield from _latency(report["latency"], report["outcomes"])
    if report["stability"]:
        yield from (Heading("Repeats"), Prose(EXPLAINED))
    for part in report["stability"]:
        yield Heading(f"{part['section']}, {part['repeats']} of each case", 3)
        yield from items(part["passes"])
        yield tables.stability(part)
    yield from _calibration(report)
    correlations = report["correlations"]
    yield Heading(f"Correlations of metrics ({correlations['method']})")
    if len(correlations["metrics"]) < 2:
        yield Prose("Two metrics with scores of single answers are needed.")
    else:
        yield Prose("Each r with the number of answers; an en dash: undefined.")
        yield tables.correlations(correlations)
    yield from _conversations(report)
    yield from (Heading("Worst answers"), Prose(words.worst_text(report["worst"])))
    listed = report["worst"]["listed"]
    if len(listed) > words.IN_MARKDOWN:
        yield Prose(f"Here stand the first {words.IN_MARKDOWN}; the page has all of them.")
    for described in listed[: words.IN_MARKDOWN]:
        yield from _answer(described)
    if prompts := report["prompts"]["wrong"]:
        yield Heading("Texts that the guardrails judged wrongly")
        listed_count = len(report["prompts"]["listed"])
        yield Prose(f"{prompts} labelled texts; {listed_count} are listed.")
        yield tables.prompts(report["prompts"])
    yield Heading("Errors")
    yield tables.errors(report["errors"]) if report["errors"] else Prose(words.no_errors(report))
    yield Heading("What was not applicable")
    missing = report["not_applicable"]
    yield tables.not_applicable(missing) if missing else Prose(words.nothing_missing(report))
    yield Heading("Configuration")
    for part in report["configuration"]:
        yield from (Heading(part["part"].capitalize(), 3), tables.configuration(part))


def _conversations(report: Data) -> Iterator[Block]:
    """The conversations that fail, each with its turns and the queries of their searches."""
    if "conversations" not in report:
        return
    yield Heading("Conversations")
    yield Prose(words.conversations_text(report["conversations"]))
    answers = report["worst"]["listed"]
    failing = [talk for talk in report["conversations"] if talk["first_failing"] is not None]
    for talk in failing[: words.IN_MARKDOWN]:
        yield Prose(f"{one_line(talk['name'])}, from turn {talk['first_failing']} on", item=1)
        for place in talk["turns"]:
            answer = answers[place]
            fails = answer["turn"] in talk["failing"]
            state = f"fails: {words.why_text(answer)}" if fails else "ok"
            question = one_line(answer["question"]["text"], 400)
            yield Prose(f"turn {answer['turn']}: {question} ({state})", item=2)
            for step in answer.get("searches", {}).get("steps", ()):
                query = one_line(step["query"]["text"], 400)
                yield Prose(f"search: {query} ({step['says']})", item=3)


def _comparison(found: Data) -> Iterator[Block]:
    """What changed since the baseline: rows of metrics, and the cases that flipped."""
    yield Heading(f"What changed since {one_line(found['base_id'])}")
    yield from items(found["says"][1:])
    for key in ("controls", "varied", "notes"):
        yield from items(found[key])
    for title, key in (("Primary", "primary"), ("Exploratory", "exploratory")):
        if rows := found[key]:
            yield from (Heading(f"{title} metrics", 3), tables.compared(rows))
    if found.get("cases_say"):
        yield Heading("Cases that broke or were fixed", 3)
        yield Prose(found["cases_say"])
        for case in found["cases_changed"]:
            if case["kind"]:
                why = f": {'; '.join(case['why'])}" if case["why"] else ""
                yield Prose(f"{case['kind']}: {one_line(case['case_id'], 80)}{why}", item=1)
    for flips in found["flips"]:
        yield Heading(one_line(flips["says"]), 3)
        for side, total in (("worse", "fell_behind"), ("better", "gained")):
            shown = flips[side][: words.IN_MARKDOWN]
            for case_id, base, new in shown:
                yield Prose(f"{one_line(case_id, 80)}: {number(base)} → {number(new)}", item=1)
            if more := flips[total] - len(shown):
                yield Prose(f"{words.count(more)} more {side}.", item=1)


def _latency(latency: Data, outcomes: Data) -> Iterator[Block]:
    yield Heading("Latency and cost")
    if latency["stages"]:
        yield tables.latency(latency)
        yield Prose(words.largest_text(latency["stages"]))
    else:
        yield Prose("The bot tells no times, or score_pipeline.py has not been run.")
    yield from items(words.totals(latency))
    if outcomes["rows"]:
        yield from (Heading("How responses ended", 3), tables.outcomes(outcomes))


def _calibration(report: Data) -> Iterator[Block]:
    reliability = report["confidence"]
    yield from (Heading("Calibration"), Heading("The bot's confidence", 3))
    if "bins" in reliability:
        yield Prose(words.ece_text(reliability))
        if reliability["left_out"]:
            yield Prose(f"Left out: {words.counts(reliability['left_out'])}.")
        yield tables.reliability(reliability)
    else:
        yield Prose(f"Not shown: {reliability['reason']}.")
    if not report["judge_calibrations"]:
        yield from (Heading("The judge", 3), Prose(words.no_judge(report)))
    for found in report["judge_calibrations"]:
        yield Heading(f"The judge of {found['metric']}", 3)
        yield from map(Prose, words.judge_text(found))
        yield from (table for _, table in tables.judge(found))
        for row in found["worst"]:
            case = one_line(f"{row['case_id']} {row['claim_id']}")
            who = f"people {row['human']}, judge {row['verdict']}"
            yield Prose(f"{case}: {who}: {one_line(row['claim']['text'], 400)}", item=1)


def _answer(described: Data) -> Iterator[Block]:
    """One case in full; of its passages the text of those with a mark."""
    repeat = f" (repeat {described['repeat']})" if described["repeat"] else ""
    yield Heading(f"{one_line(described['case_id'], 80)}{repeat}", 3)
    yield _text("Question", described["question"])
    if described["error"]:
        yield Prose(f"The call failed: {one_line(described['error'], 400)}")
    state = words.answer_state(described)
    yield _text(f"Answer{f' ({state})' if state else ''}", described["answer"])
    if described["reference_answer"]:
        yield _text("Reference answer", described["reference_answer"])
    if before := described["before"]:
        yield _text("Answer before", before["answer"])
    yield from items(map(words.change_text, described["changes"]))
    for name in ("fails", "warnings", "notes", "because"):
        lead = {"fails": "fails: ", "warnings": "warning: ", "notes": "note: "}.get(name, "")
        yield from items(f"{lead}{why}" for why in described.get(name, ()))
    for claim in described["claims"]:
        text = one_line(claim["text"]["text"], 400)
        yield Prose(f"not supported ({number(claim['score'])}): {text}", item=1)
    for judged in described["verdicts"]:
        blame = f", {words.spaced(judged['blame'])}" if judged["blame"] else ""
        verdict = f"{judged['kind']} {words.spaced(judged['verdict'])}{blame}"
        yield Prose(f"judge: {verdict}: {one_line(judged['text']['text'], 400)}", item=1)
    for gold in described["gold"]:
        rank = f"found at rank {gold['rank']}" if gold["rank"] else "not retrieved"
        yield Prose(f"wanted: {gold['place']} ({rank})", item=1)
    for passage in described["retrieved"]:
        marks = [name for key, name in words.PASSAGE_MARKS if passage[key]]
        named = f" ({', '.join(marks)})" if marks else ""
        name = f"{passage['rank']}. {passage['place']}{named}"
        if passage["text"] and marks:  # those without a mark are named; the page holds their text
            yield _text(name, passage["text"])
        else:
            yield Prose(name)
    if described["retrieved_more"]:
        yield Prose(f"{described['retrieved_more']} more are not shown.")


def _text(name: str, text: Data | None) -> Quotation:
    if not text:
        return Quotation(name, "No text.")
    more = words.more(text["left_out"])
    return Quotation(name, text["text"] + (f" {more}" if more else ""))
