"""Scores abstention: whether the bot says so when it cannot know, and only then."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby, islice
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from ragmetrics import abstention, case_scores
from ragmetrics.catalogue.abstention import ROWS, RUN_ROWS
from ragmetrics.catalogue.metric import Metric
from ragmetrics.stats import exact, means
from ragmetrics.stats.intervals import ALONE, drawn_interval
from ragmetrics.text import language
from ragmetrics.text.words import clean
from records import verdicts as records_verdicts
from records.cases import TestCase
from records.errors import StorageError
from records.results import TestResult
from records.run import Run
from records.runs import VERDICTS
from records.scores import ScoreLine
from records.verdict_lines import text_sha256
from scorers.contract import NOTHING, Evidence, ScoreRow, ScoringJob, SectionScorer, add_metric
from scorers.loop import results_of

if TYPE_CHECKING:
    from rich.console import Console


DecideBy = Literal["auto", "api", "phrases", "judge"]

ASKS_BACK = "asks back instead of answering"

NO_ANSWER = "no answer"

EMPTY = "empty answer"

ALONE_BY_PHRASES = "by phrases alone"
"""Note on an abstention whose passages have no texts that could make it an answer."""

LANGUAGE_SAMPLE = 1000
"""Answers of a run from which its most frequent language is found."""

CELLS = (
    "answered_answerable",
    "abstained_answerable",
    "answered_unanswerable",
    "abstained_unanswerable",
)


class _JudgedReply(NamedTuple):
    """What a judge called an answer. ``by``: judge, or phrases where it needed none."""

    verdict: str
    by: str
    answer_sha256: str


Replies = Mapping[tuple[str, int], _JudgedReply]
"""Judge replies by case id and repeat."""


class AbstentionDecision(NamedTuple):
    """``abstained`` is None when nothing decides; ``why`` then says so.

    ``by``: api, phrases or judge. ``language``: one that the phrase lists do not cover.
    """

    abstained: bool | None
    by: str
    why: str = ""
    detection: abstention.Detection | None = None
    language: str | None = None


def decide(
    result: TestResult,
    by: DecideBy = "auto",
    replies: Replies = MappingProxyType({}),
    usual_language: str | None = None,
) -> AbstentionDecision:
    """Decide whether the bot abstained, by its own ``abstained``, else by the answer's wording.

    With ``judge``, what a judge said of this very answer goes before the wording. The wording tells
    an abstention wherever a phrase stands, but an answer only in a language that the phrase lists
    cover; ``usual_language`` is that of answers whose language nothing tells.
    """
    if by != "phrases" and result.abstained is not None:
        return AbstentionDecision(result.abstained, "api", result.abstain_reason or "")
    if by == "api":
        return AbstentionDecision(None, "api", "the bot does not say")
    if result.answer is None:
        return AbstentionDecision(None, "phrases", NO_ANSWER)
    reply = replies.get((result.test_case_id, result.repeat)) if by == "judge" else None
    if reply is not None and reply.answer_sha256 == text_sha256(clean(result.answer)):
        return _by_judge(reply)
    detection = _detect(result)
    if detection.state == "empty":
        return AbstentionDecision(None, "phrases", EMPTY, detection)
    if detection.abstained and not _has_passage_texts(result):
        return AbstentionDecision(
            True, "phrases", f"{detection.rule}, {ALONE_BY_PHRASES}", detection
        )
    if detection.state == "answered":
        spoken = _language_in(result, usual_language)
        if not language.is_covered(spoken):
            return AbstentionDecision(None, "phrases", case_scores.LANGUAGE, detection, spoken)
    return AbstentionDecision(detection.abstained, "phrases", detection.rule, detection)


def _has_passage_texts(result: TestResult) -> bool:
    passages = result.seen_chunks()
    return bool(passages) and case_scores.unusable(passages) is None


def _language_in(result: TestResult, usual: str | None = None) -> str | None:
    """The language of a result's answer; None when nothing tells it."""
    passages = (chunk.text for chunk in result.chunks())
    return language.language_of(result.answer or "", result.question, passages, usual)


def usual_language(folder: Path) -> str | None:
    """The most frequent language of a run's first 1,000 answers; None when no language is found.

    It is looked up before any result is scored, so that every process takes the same one. Faulty
    lines are passed over: the scoring that follows reports them all.
    """
    results_of(folder)
    results = Run(folder, tolerant=True).iter_results()
    answered = (result for result in results if (result.answer or "").strip())
    languages = map(_language_in, islice(answered, LANGUAGE_SAMPLE))
    counts = Counter(name for name in languages if name is not None)
    return max(counts, key=lambda name: (counts[name], name), default=None)


def _by_judge(reply: _JudgedReply) -> AbstentionDecision:
    """A partial answer is an answer; a question back is neither."""
    if reply.verdict == "asks_back":
        return AbstentionDecision(None, reply.by, ASKS_BACK)
    abstained = reply.verdict in ("abstained", "refused_policy")
    return AbstentionDecision(abstained, reply.by, reply.verdict)


def _detect(result: TestResult) -> abstention.Detection:
    """Phrase detection on a result, with its passages."""
    return abstention.detect_with_passages(result.answer, result.seen_chunks(), result.question)


@dataclass(frozen=True)
class AbstentionScorer:
    """Scores one result by the four-cell table answered x answerable.

    ``replies``: what the judge named ``judge`` said, for ``decide_by`` judge. ``usual_language``:
    the most frequent one of the run.
    """

    decide_by: DecideBy = "auto"
    replies: Replies = field(default_factory=dict)
    judge: str = ""
    usual_language: str | None = None

    section = "abstention"
    metrics: tuple[Metric, ...] = ROWS

    @property
    def options(self) -> dict[str, Any]:
        return {"decide_by": self.decide_by} | ({"judged_by": self.judge} if self.judge else {})

    def score(self, case: TestCase, result: TestResult) -> tuple[ScoreRow, Evidence]:
        """1.0 or 0.0 for the metrics of the case's half of the table; the others do not apply."""
        if case.answerable is None:
            return self._nothing("answerable is not labelled"), NOTHING
        decision = decide(result, self.decide_by, self.replies, self.usual_language)
        evidence = _evidence(decision, result, self.usual_language)
        if decision.abstained is None:
            return self._nothing(decision.why), evidence
        values = abstention.case_metrics(decision.abstained, case.answerable)
        other = "answerable" if case.answerable else "unanswerable"
        reasons = tuple((name, other) for name, value in values.items() if value is None)
        row = ScoreRow(tuple(values[metric.name] for metric in self.metrics), reasons)
        cell = "_".join(
            ("abstained" if decision.abstained else "answered",)
            + (("answerable",) if case.answerable else ("unanswerable",))
        )
        return row, {"cell": cell} | evidence

    def _nothing(self, reason: str) -> ScoreRow:
        return ScoreRow((None,) * len(self.metrics), (("*", reason),))

    def aggregate(
        self, section: dict[str, Any], lines: Iterator[ScoreLine], seed: int
    ) -> dict[str, Any]:
        """Add F1 over cases (repeats of a case count as their mean), the table, and who decided.

        Its interval is drawn by clusters of cases.
        """
        cells: Counter[str] = Counter()
        by: Counter[str] = Counter()
        disagree = unscored = failed = alone = 0
        parts: dict[tuple[int, str], means.Parts] = {}
        cases = 0
        for case_id, repeats in groupby(lines, key=lambda line: line.case_id):
            case_cells: list[str] = []
            state, cluster = "", ALONE
            for line in repeats:
                state, cluster = line.status, line.cluster_number
                evidence = line.evidence or NOTHING
                by.update([evidence["decided_by"]] if "cell" in evidence else [])
                disagree += "phrases" in evidence
                alone += str(evidence.get("why", "")).endswith(ALONE_BY_PHRASES)
                case_cells += [evidence["cell"]] if "cell" in evidence else []
            cells.update(case_cells)
            if case_cells:
                cases += 1
                unit = (cluster, case_id if cluster == ALONE else "")
                hits, wrong = parts.get(unit, (0.0, 0.0))
                more = _parts(case_cells)
                parts[unit] = (hits + more[0], wrong + more[1])
            else:
                failed += state == "failed"
                unscored += state != "failed"
        units = Counter(parts.values())
        hits, wrong = (
            exact.rounded(sum(exact.units(part[of]) * count for part, count in units.items()))
            for of in (0, 1)
        )
        value = means.f1(hits, wrong)
        ends = means.f1_interval(units, means.generator(seed, RUN_ROWS[0].definition))
        interval = None if ends is None else drawn_interval(*ends, units.total())
        n = cases if value is not None else 0
        unscored += cases - n
        add_metric(
            section, RUN_ROWS[0], value, interval, n=n, not_applicable=unscored, failed=failed
        )
        table = {name: cells[name] for name in CELLS}
        return section | {
            "cells": table,
            "decided_by": dict(sorted(by.items())),
            "phrases_disagree": disagree,
            "phrases_alone": alone,
        }


def _parts(cells: Sequence[str]) -> means.Parts:
    """A case's share of hits, and of false alarms and misses."""
    hits = cells.count("abstained_unanswerable")
    wrong = cells.count("abstained_answerable") + cells.count("answered_unanswerable")
    return hits / len(cells), wrong / len(cells)


def _evidence(
    decision: AbstentionDecision, result: TestResult, usual: str | None
) -> dict[str, Any]:
    """Who decided and by which sentence; what the phrases say where the bot says otherwise."""
    evidence: dict[str, Any] = {"decided_by": decision.by}
    if decision.why:
        evidence["why"] = decision.why
    if decision.language:
        evidence["language"] = decision.language
    detection = decision.detection
    if decision.by == "api" and decision.abstained is not None and result.answer is not None:
        detection = _detect(result)
        if detection.abstained == decision.abstained or detection.state == "empty":
            return evidence
        if detection.state == "answered" and not language.is_covered(_language_in(result, usual)):
            return evidence  # no phrase in a language without a list says nothing
        evidence["phrases"] = detection.state
    if detection is not None and detection.state != "answered":
        evidence["state"] = detection.state
    if detection is not None and detection.span is not None:
        evidence["span"] = list(detection.span)
    return evidence


def _replies(folder: Path) -> dict[tuple[str, int], _JudgedReply]:
    """What the run's judge called each answer. Raises StorageError when it was not asked."""
    path = folder / VERDICTS
    verdicts = Run(folder).verdicts(lambda line: bool(line["metric"] == "abstained_judged"))
    by_answer: dict[tuple[str, int], _JudgedReply] = {}
    for key, calls in verdicts.by_answer.items():
        line = calls.get(("abstained_judged", 0), {}).get(0)
        if line is not None and line["status"] == "ok":
            by = "phrases" if "by_code" in line["extra"] else "judge"
            asked = line["input"]
            sha256 = asked.get("answer_sha256") or text_sha256(asked.get("answer", ""))
            by_answer[key] = _JudgedReply(line["verdicts"][0]["verdict"], by, sha256)
    if not by_answer:
        raise StorageError(
            f"{path}: no verdicts on abstention; run judge_answers.py --metrics abstained_judged."
        )
    return by_answer


@dataclass(frozen=True)
class AbstentionOptions:
    """``decide_by``: the evidence that decides an abstention."""

    decide_by: DecideBy = "auto"


def _make_scorer(job: ScoringJob, options: AbstentionOptions) -> AbstentionScorer:
    """The scorer for a run, with what its judge said where that counts."""
    usual = usual_language(job.folder)
    if options.decide_by != "judge":
        return AbstentionScorer(options.decide_by, usual_language=usual)
    replies = _replies(job.folder)  # which says what is missing where no judge was asked
    judge = records_verdicts.identity_of(records_verdicts.judge_of(job.folder)["identity"])
    return AbstentionScorer(options.decide_by, replies, str(judge), usual)


def _show_more(console: Console, section: Mapping[str, Any]) -> None:
    """The four-cell table, who decided, and how often the wording says otherwise."""
    from terminal.tables import counted, print_rows

    cells = section["cells"]
    console.print()
    print_rows(
        console,
        ("results", "answered", "abstained"),
        [
            (kind, str(cells[f"answered_{kind}"]), str(cells[f"abstained_{kind}"]))
            for kind in ("answerable", "unanswerable")
        ],
    )
    names = {"api": "the bot's own field", "phrases": "the wording", "judge": "the judge"}
    by = ", ".join(f"{names[name]} ({count})" for name, count in section["decided_by"].items())
    console.print(f"Decided by {by or 'nothing'}.")
    if section.get("phrases_alone"):
        console.print(
            f"{counted(section['phrases_alone'], 'abstention')} decided by phrases alone: the run "
            "lacks the passages' texts, which would show plain answers (run_eval.py "
            "--store-full-text)."
        )
    if section["phrases_disagree"]:
        console.print(
            f"In {counted(section['phrases_disagree'], 'result')} the text and "
            "the bot's flag disagree (--set decide_by=phrases)."
        )


SECTION = SectionScorer(options=AbstentionOptions, scorer=_make_scorer, show_more=_show_more)
