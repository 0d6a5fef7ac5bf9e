"""How the report says things, on the page and in Markdown alike, from its typed parts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from msgspec import UNSET

from decisions.measures import Measure
from ragmetrics.pipeline import is_largest
from records.results import UNREADABLE
from terminal.page import between, number
from terminal.tables import counted
from views.report.model import (
    CalibrationPart,
    CaseLinks,
    CaseTable,
    FirstRanks,
    Perspective,
    Reliability,
    RunLatency,
    StageLatency,
    TargetAim,
    TargetsVerdict,
)
from views.report.report import (
    AnswerSide,
    AnswersInFull,
    CaseChange,
    ReportAnswer,
    ReportConversation,
    RunReport,
    ShownSearch,
)
from views.report.text import one_line

MARKS = ("p50", "p95", "p99", "max")
"""Percentiles of latency, in the order of their marks in the chart."""

PASSAGE_MARKS = (("gold", "relevant"), ("cited", "cited"))

MOST_WHY = 6
"""Missed targets in the line that opens an answer; the answer itself has them all."""

_TOOL = 60
"""Characters of a tool's name that are shown."""

CONTENTS = (
    ("where", "Where it fails"),
    ("cases", "All cases"),
    ("changes", "What changed"),
    ("trend", "Trend"),
    ("diagnosis", "Diagnosis"),
    ("metrics", "Metrics"),
    ("slices", "Slices"),
    ("ranks", "Ranks"),
    ("latency-head", "Latency and cost"),
    ("calibration", "Calibration"),
    ("correlations", "Correlations"),
    ("errors", "Errors"),
    ("not-applicable", "Not applicable"),
    ("conversations", "Conversations"),
    ("worst", "Cases in full"),
    ("configuration", "Configuration"),
)
"""The sections of the page: anchor and title."""

FIRST_CHANGES = 5
"""Cases that broke, and cases that were fixed, at the top of the page."""

IN_PRINT = 10
"""Answers in full that are printed; the list, and the passages, are for the screen."""

IN_MARKDOWN = 20
"""Answers in full that report.md has."""

PASSED = {True: ("✓", "met"), False: ("✗", "missed")}

OPEN = ("?", "open")

CLOSE = " ≈"
"""Beside a result that is too close to call: its 95 % interval includes the target."""

NO_SCORES = "No scores of single answers are there."

NO_RANKS = "No answer with both passages and gold was read."


def contents(report: RunReport, sections: Mapping[str, Any]) -> list[tuple[str, str]]:
    """The sections that this report has; ``sections``: those made of blocks."""
    drawn = {"cases", "diagnosis", "metrics", "worst", *sections}
    drawn |= {"conversations"} if report.conversations is not UNSET else set()
    added = ((key, sections[key].title) for key in report.of_extras or ())
    entries = [entry for entry in CONTENTS if entry[0] in drawn]
    at = next(n for n, entry in enumerate(entries) if entry[0] == "diagnosis")
    return [*entries[:at], *added, *entries[at:]]


def count(n: int) -> str:
    return f"{n:,}"


def milliseconds(value: float) -> str:
    return f"{value:,.1f}" if value < 1000 else f"{value:,.0f}"


def percentile(stage: StageLatency, mark: str) -> str:
    """A percentile of a stage in milliseconds; a star when it is the longest time."""
    return milliseconds(getattr(stage, mark)) + ("*" if is_largest(mark, stage.n) else "")


def largest_text(stages: Sequence[StageLatency]) -> str:
    """The meaning of the stars in the table of times; "" where there is none."""
    if any(is_largest(mark, stage.n) for stage in stages for mark in MARKS):
        return "* with so few responses the percentile is the longest time."
    return ""


def interval(measure: Measure) -> str:
    """The 95 % interval, with a star when it is to be doubted."""
    return between(measure.ci95) + ("*" if measure.mark and measure.ci95 else "")


def mark(measure: Measure) -> tuple[str, str]:
    """Sign and word for the result of the target; both empty without one."""
    if measure.target is None:
        return ("", "")
    return OPEN if measure.passed is None else PASSED[measure.passed]


def aim(target: TargetAim) -> str:
    """A target of the verdict: the metric, its mean, and what was wanted."""
    measure = target.metric.measure
    mean = "" if measure.mean is None else f" {number(measure.mean)}"
    return f"{measure.metric}{mean} ({measure.target}){CLOSE * target.metric.close}"


def not_met(verdict: TargetsVerdict) -> Iterator[tuple[str, str, Sequence[TargetAim]]]:
    """The lists of targets in the verdict, each with its key and title."""
    for key, title in (
        ("missed", "Missed"),
        ("unsure", "Met, but too close to call"),
        ("open", "No verdict"),
    ):
        if aims := getattr(verdict, key):
            yield key, title, aims


def no_answer_tag(error: str) -> str:
    """The word for an answer that is not there: it failed, or could not be read."""
    return UNREADABLE if error.startswith(f"{UNREADABLE}: ") else "failed"


def no_answer_text(error: str) -> str:
    """Why an answer is not there, in a sentence."""
    if no_answer_tag(error) == UNREADABLE:
        return f"The answer could not be read: {error.removeprefix(f'{UNREADABLE}: ')}"
    return f"The call failed: {error}"


def answer_state(answer: AnswerSide) -> str:
    """Whether the bot abstained, and how sure it was."""
    parts = []
    if answer.abstained:
        why = answer.abstain_reason
        parts.append("abstained" + (f": {why}" if why else ""))
    if answer.confidence is not None:
        parts.append(f"confidence {number(answer.confidence)}")
    return ", ".join(parts)


def ece_text(reliability: Reliability) -> str:
    """The reliability, in a sentence."""
    bias = reliability.bias or 0.0
    lean = "too sure" if bias > 0 else "too modest"
    return (
        f"Expected calibration error {number(reliability.ece)} over {reliability.n:,} "
        f"answers (0 is perfect); the bot is {lean} by {number(abs(bias))} on "
        f"average. Brier score {number(reliability.brier)}. Success: {reliability.success}."
    )


def conversations_text(talks: Sequence[ReportConversation]) -> str:
    """In how many of the conversations shown a turn fails, and their order."""
    fails = sum(talk.first_failing is not None for talk in talks)
    return (
        f"In {fails:,} of {counted(len(talks), 'conversation')} a turn fails. The one that fails "
        "at the earliest turn comes first. A conversation is shown with those of its turns that "
        "are among the cases in full."
    )


def turns_text(talk: ReportConversation) -> str:
    """How many turns of a conversation are shown and fail."""
    failing = len(talk.failing)
    verb = "fails" if failing == 1 else "fail"
    text = f"{counted(len(talk.turns), 'turn')}, {failing} of them {verb}"
    absent = ", ".join(map(str, talk.absent))
    return f"{text}; not shown: turn{'s' * (len(talk.absent) > 1)} {absent}" if absent else text


def why_text(answer: ReportAnswer) -> str:
    """Why an answer fails, the most harmful reasons first."""
    reasons = answer.fails
    more = len(reasons) - MOST_WHY
    return "; ".join([*reasons[:MOST_WHY], *([f"{more} more"] if more > 0 else [])])


def search_times(step: ShownSearch) -> str:
    """The start and duration of a search; "" when they are unknown."""
    start, took = step.start_ms, step.latency_ms
    parts = [f"at {start:,.0f} ms"] if start is not None else []
    parts += [f"took {took:,.0f} ms"] if took is not None else []
    tool = one_line(step.tool, _TOOL) if step.tool else ""
    return ", ".join([*([tool] if tool else []), *parts])


def worst_text(worst: AnswersInFull) -> str:
    """Which answers are shown in full, how many are not, and in which order."""
    listed = len(worst.listed)
    if not worst.answers:
        return NO_SCORES
    text = str(worst.verdicts["says"])
    left_out = worst.left_out
    text += (
        f" {listed:,} answers are shown in full, {left_out:,} are left out"
        if left_out
        else " All answers are shown in full"
    )
    if worst.by:
        return f"{text}, those with the worst {worst.by} first."
    return (
        f"{text}: first those that broke or were fixed, then failed calls, then those that fail, "
        "by the most harmful reason."
    )


WITHOUT_SCRIPT = 100
"""Rows of the list of cases that a browser without JavaScript shows."""


def list_text(case_list: CaseTable) -> str:
    """The content of the list of cases, and the part that is left out."""
    shown, left_out = len(case_list.rows), case_list.left_out
    if not shown:
        return NO_SCORES
    states = {row.state for row in case_list.rows}
    unread = f" {UNREADABLE}," if UNREADABLE in states else ""
    text = f"{shown:,} answers, the worst first: broke, fails, fixed, warns,{unread} ok."
    if left_out:
        text += f" {left_out:,} more are left out; browse_runs.py shows all of them."
    return text


def links_text(links: CaseLinks) -> str:
    """The answers behind a figure: how many answers, and which."""
    label = "answer" if links.count == 1 else "answers"
    return f"{links.count:,} {label if links.label is UNSET else links.label}"


def change_text(change: CaseChange) -> str:
    """The change of a case's score: ``pass 1 → 0``."""
    return f"{change.metric} {short(change.base)} → {short(change.new)}"


def short(score: float) -> str:
    """A score in two digits; whole ones bare."""
    return f"{score:.0f}" if score == int(score) else f"{score:.2f}"


def more(left_out: int) -> str:
    """How much of a text is not shown; "" for nothing."""
    return f"… {left_out:,} more characters" if left_out else ""


def plain_value(value: Any) -> str:
    """A value of a foreign JSON object in a cell: numbers rounded, lists joined."""
    if isinstance(value, bool) or value is None:
        return {True: "yes", False: "no", None: "–"}[value]
    if isinstance(value, float):
        return number(value)
    if isinstance(value, list):
        return ", ".join(map(plain_value, value))
    return str(value)


def spaced(name: str | None) -> str:
    """A name of the data as words."""
    return (name or "").replace("_", " ")


def counts(table: Mapping[str, int]) -> str:
    return ", ".join(f"{n:,} {spaced(name)}" for name, n in table.items())


def head_facts(report: RunReport) -> list[tuple[str, str]]:
    """The facts that name the run at the top: when it was made, what was asked."""
    rows = {
        f"{part.part}.{row.name}": row.value for part in report.configuration for row in part.rows
    }
    head = (
        ("made", "run.finished"),
        ("bot", "api.url"),
        ("model", "answerer.model"),
        ("embedding model", "index.embedding_model"),
    )
    if "run.finished" in rows:
        rows["run.finished"] = _moment(rows["run.finished"])
    facts = [(name, rows[key]) for name, key in head if key in rows]
    short = report.config_hash
    return facts + ([("configuration", short[:12])] if short else [])


def _moment(written: str) -> str:
    """A time of config.json to the minute; other text unchanged."""
    utc = len(written) == 25 and written.endswith("+00:00")
    return f"{written[:16].replace('T', ' ')} UTC" if utc else written


def meanings(perspective: Perspective) -> list[tuple[str, str]]:
    """Each metric once, without its cut-offs, and its meaning."""
    texts: dict[str, str] = {}
    for metric in perspective.metrics:
        name, text = (
            metric.measure.metric,
            metric.meaning or "defined by a plugin or another script",
        )
        stem = name.partition("@")[0]
        texts[stem if texts.get(stem, text) == text else name] = text
    return list(texts.items())


def rank_text(ranks: FirstRanks) -> str:
    """The table of ranks, in sentences."""
    text = (
        f"{ranks.n:,} answers with gold; of {ranks.not_found:,} no relevant passage was retrieved."
    )
    if ranks.says:
        text += (
            f" Success: {ranks.says}. If success falls with the rank although gold was "
            "retrieved, the bot overlooks what stands further down in its context."
        )
    return text


def totals(latency: RunLatency) -> list[str]:
    """Budgets of the run, tokens and cost, a sentence each; nothing that is not there."""
    lines = []
    for row in latency.budgets:
        outcome = "met" if row["kept"] else "missed"
        lines.append(
            f"Budget for {row['percentile']} of the total time: {row['budget_ms']:,.0f} ms, "
            f"{outcome} ({milliseconds(row['ms'])} ms over {row['n']:,} responses)."
        )
    if latency.tokens:
        lines.append(f"Tokens: {counts(latency.tokens)}.")
    if latency.cost_usd is not None:
        lines.append(f"Cost: {latency.cost_usd:.4f} USD.")
    return lines


def coefficient(r: float | None) -> str:
    """A correlation with two decimals; an en dash for an undefined one, and no minus zero."""
    return "–" if r is None else f"{r:.2f}".replace("-0.00", "0.00")


def shade(r: float | None) -> str:
    """The class of a correlation's cell on a page: m4 … p4, or none for an undefined one."""
    return "none" if r is None else f"c{round(r * 4)}".replace("c-", "m").replace("c", "p")


def no_errors(report: RunReport) -> str:
    """The sentence in place of a table of failed calls."""
    failed = report.failed_calls
    return (
        f"Failed calls: {failed:,}. Why is not known without results.jsonl."
        if failed
        else ("No call failed.")
    )


def no_judge(report: RunReport) -> str:
    """The sentence in place of the judge's calibration."""
    if any(part.name == "judged" for part in report.perspectives):
        return "The judge of this run was not compared with people (calibrate_judge.py does that)."
    return "No judge was asked (judge_answers.py does that)."


def nothing_missing(report: RunReport) -> str:
    """The sentence in place of a table of reasons for missing scores."""
    return "Every answer has every score." if report.worst.answers else NO_SCORES


def judge_text(calibration: CalibrationPart) -> list[str]:
    """Who judged, against whose labels, and whether they are enough, in sentences."""
    prompt = f", prompt {calibration.prompt}" if calibration.prompt else ""
    who = ", ".join(calibration.annotators) or "no annotator"
    lines = [
        f"{calibration.metric} by {calibration.judge}{prompt}, against {calibration.n:,} "
        f"{calibration.items} of {calibration.sources:,} {calibration.groups}, "
        f"labelled by {who}."
    ]
    if calibration.alpha is not None:
        lines.append(f"People among themselves: Krippendorff's alpha {number(calibration.alpha)}.")
    if calibration.too_few:
        lines.append(f"Too few to tell: {calibration.too_few}.")
    return lines
