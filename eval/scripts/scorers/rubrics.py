"""The section ``rubrics``: a judge's verdicts on answers by the user's rubrics. It asks no judge. A
verdict at or above the rubric's target scores 1, any other 0; its rank is kept as well. A verdict
whose quote was found nowhere reaches no target and has no rank. A failed judgement is no score."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from decisions.judge_calibration import fitting, stored_calibrations
from ragmetrics.catalogue import METRICS
from ragmetrics.catalogue.metric import Metric
from ragmetrics.catalogue.rubrics import RANK, row_of
from ragmetrics.stats.calibration import MIN_CLASS
from ragmetrics.stats.tally import FAILED, Value, average
from records import verdicts as records_verdicts
from records.cases import TestCase
from records.judgements import STALE, Judgement, Verdicts, gather
from records.results import TestResult
from records.rubrics import PREFIX, Rubric, of_prompt, with_aims
from records.rubrics import SECTION as NAME
from records.runs import VERDICTS
from records.scores import ScoreLine
from records.verdicts import QUOTE_UNVERIFIED, VerdictReader, of_judge
from scorers.contract import NOTHING, Evidence, NothingToScore, ScoreRow, ScoringJob, SectionScorer
from scorers.panel import PanelAgreement, print_panel, votes_of

if TYPE_CHECKING:
    from rich.console import Console

NOT_CALIBRATED = f"not calibrated: fewer than {MIN_CLASS} labels of people (calibrate_judge.py)"

_NO_RANK = "its quote was found nowhere"


@dataclass
class RubricScorer:
    """Scores one answer from its verdicts by rubrics. ``calibrated``: their names."""

    verdicts: Verdicts
    rubrics: tuple[Rubric, ...]
    calibrated: frozenset[str] = frozenset()
    metrics: tuple[Metric, ...] = field(init=False)

    section = NAME

    def __post_init__(self) -> None:
        self.metrics = tuple(row for rubric in self.rubrics for row in _rows(rubric))

    @property
    def options(self) -> dict[str, Any]:
        """The judge as in config.json, with the prompts of rubrics alone."""
        return {"judge": with_aims(self.verdicts.judge, self.rubrics)}

    def score(self, case: TestCase, result: TestResult) -> tuple[ScoreRow, Evidence]:
        """Score one answer by the mean of several opinions."""
        opinions, stale = self.verdicts.opinions(case, result)
        values: list[Value] = []
        reasons: dict[str, str] = {}
        said, failed = [], {}
        for rubric in self.rubrics:
            judgements = [
                opinions[n][rubric.metric] for n in sorted(opinions) if rubric.metric in opinions[n]
            ]
            share, rank, why = _scores(rubric, judgements, STALE if stale else "not judged")
            values += [share] if rubric.binary else [share, rank]
            reasons |= {rubric.name: why} if not isinstance(share, float) else {}
            if not rubric.binary and not isinstance(rank, float):
                reasons[f"{rubric.name}{RANK}"] = why or _NO_RANK
            if judgements and judgements[0].status == "ok":
                said.append(_verdict_entry(rubric, judgements))
            elif judgements and judgements[0].status == "failed":
                failed[rubric.name] = judgements[0].reason
        evidence = ({"rubrics": said} if said else {}) | ({"failed": failed} if failed else {})
        own = {
            r.metric: opinions[0][r.metric] for r in self.rubrics if r.metric in opinions.get(0, {})
        }
        return ScoreRow(tuple(values), tuple(reasons.items())), evidence | votes_of(own)

    def aggregate(
        self, section: dict[str, Any], lines: Iterator[ScoreLine], seed: int
    ) -> dict[str, Any]:
        """Add to the means how often each verdict was given, by rubric, and the rubrics themselves.
        Rubrics that people have not checked are marked."""
        counts: dict[str, Counter[str]] = defaultdict(Counter)
        panel = PanelAgreement(self.verdicts.judge)
        for line in lines:
            panel.add(line.evidence or NOTHING)
            for one in (line.evidence or NOTHING).get("rubrics", ()):
                counts[one["name"]][one["verdict"]] += 1
        given = {}
        for rubric in self.rubrics:
            words = [*rubric.labels, QUOTE_UNVERIFIED]
            given[rubric.name] = {
                word: counts[rubric.name][word]
                for word in words
                if word in rubric.labels or counts[rubric.name][word]
            }
            if rubric.name not in self.calibrated:
                for row in _rows(rubric):
                    earlier = section["marks"].get(row.name)
                    text = f"{earlier}; {NOT_CALIBRATED}" if earlier else NOT_CALIBRATED
                    section["marks"][row.name] = text
        told = {rubric.name: _rubric_summary(rubric) for rubric in self.rubrics}
        calls_of = {row.name: (r.metric,) for r in self.rubrics for row in _rows(r)}
        kinds = {rubric.metric: records_verdicts.rubric_kind(rubric) for rubric in self.rubrics}
        return section | {"distribution": given, "rubrics": told} | panel.section(calls_of, kinds)


def _rows(rubric: Rubric) -> tuple[Metric, ...]:
    """The share, and of a scale the mean rank."""
    ask, labels = " ".join(rubric.ask.split()), len(rubric.labels)
    names = (rubric.name,) if rubric.binary else (rubric.name, f"{rubric.name}{RANK}")
    return tuple(row_of(name, ask, labels, rubric.version) for name in names)


def _rubric_summary(rubric: Rubric) -> dict[str, Any]:
    """What a reader of the numbers should know of a rubric."""
    return {
        "ask": " ".join(rubric.ask.split()),
        "labels": list(rubric.labels),
        "target": rubric.target,
        "direction": rubric.direction,
        "version": rubric.version,
    }


def _scores(rubric: Rubric, judgements: list[Judgement], missing: str) -> tuple[Value, Value, str]:
    """Share, rank, and why there is none."""
    if not judgements:
        return None, None, missing
    for judgement in judgements:
        if judgement.status == "failed":
            return FAILED, FAILED, f"judge failed: {judgement.reason}"
    sound = [judgement for judgement in judgements if judgement.status == "ok"]
    if not sound:
        return None, None, judgements[0].reason
    labels = [judgement.verdicts[0] for judgement in sound]
    share = average([(float(rubric.reaches(label)),) for label in labels])[0]
    ranks = [rank for label in labels if (rank := rubric.goodness(label)) is not None]
    return share, (sum(ranks) / len(ranks) if ranks else None), ""


def _verdict_entry(rubric: Rubric, judgements: list[Judgement]) -> dict[str, Any]:
    """The verdict of the first opinion with its quote and reason, and those of the others."""
    (entry,) = judgements[0].entries
    said: dict[str, Any] = {"name": rubric.name, "verdict": entry["verdict"]}
    said["good"] = rubric.reaches(entry["verdict"])
    said |= {key: entry[key] for key in ("said", "quote", "reason") if entry.get(key)}
    others = [judgement.verdicts[0] for judgement in judgements[1:] if judgement.status == "ok"]
    return said | ({"others": others} if others else {})


def make_scorer(job: ScoringJob, reader: VerdictReader | None = None) -> RubricScorer:
    """A scorer of the verdicts by rubrics that the run has.

    Raises NothingToScore where there are none of the judge in config.json, and StorageError for a
    rubric that has the name of a metric.
    """
    path = job.folder / VERDICTS
    judge = records_verdicts.judge_of(job.folder)
    belongs = of_judge(judge)
    lines = [
        line for line in (reader or VerdictReader(path)).read() if line["metric"].startswith(PREFIX)
    ]
    found: dict[str, Rubric] = {}
    for line in filter(belongs, lines):
        if (rubric := of_prompt(line["prompt"])) is not None:
            found[line["metric"]] = rubric  # the last one: its target is the present one
    if not found:
        raise NothingToScore(
            f"{job.folder.name}: no verdicts by a rubric of the judge in config.json; "
            "judge_answers.py --metrics rubrics.NAME asks for them."
        )
    rubrics = tuple(found[metric] for metric in sorted(found))
    stored, aimed = stored_calibrations(job.folder), with_aims(judge, rubrics)
    enough = frozenset(
        rubric.name
        for rubric in rubrics
        if (record := fitting(rubric.metric, aimed, stored)[0]) is not None
        and not record["too_few"]
    )
    return RubricScorer(gather(lines, judge), rubrics, enough)


def taken_names(rubrics: Iterable[Rubric]) -> list[str]:
    """Return the rubrics with the name of a toolkit metric, which would confuse their numbers."""
    metrics = {metric.name for metric in METRICS}
    return sorted(rubric.name for rubric in rubrics if rubric.name in metrics)


@dataclass(frozen=True)
class RubricOptions:
    """No options, since a rubric is fixed by its verdicts."""


def _show_more(console: Console, section: Mapping[str, Any]) -> None:
    """How often each verdict was given, a table a rubric, worst first."""
    from terminal.tables import plain, print_rows

    print_panel(console, section)
    for name, rubric in section["rubrics"].items():
        console.print(f"{name}: {plain(rubric['ask'])}")
        given = section["distribution"][name]
        total = sum(given.values())
        rows = [
            (
                plain(word.replace("_", " ")) + " (target)" * (word == rubric["target"]),
                str(count),
                f"{count / total:.1%}" if total else "",
            )
            for word, count in given.items()
        ]
        print_rows(console, ("verdict", "answers", "share"), rows)


SECTION = SectionScorer(
    options=RubricOptions,
    scorer=lambda job, options: make_scorer(job),
    show_more=_show_more,
    in_processes=False,
)
