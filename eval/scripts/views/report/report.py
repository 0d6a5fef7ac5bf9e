"""The typed report of a run, with its answers in full and its comparison with a baseline."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from msgspec import UNSET, UnsetType

from decisions import compare_words
from decisions.case_changes import Ways
from decisions.change import Change
from decisions.conversations import ConversationChange
from decisions.diagnosis import DiagnosisFinding
from decisions.evidence_path import RunPath
from decisions.flips import Flips
from ragmetrics.catalogue.metric import Metric
from views.report.model import (
    CalibrationPart,
    CallErrors,
    CaseTable,
    ConfigPart,
    CorrelationMatrix,
    CutText,
    FirstRanks,
    MissingScores,
    NoReliability,
    OutcomeTable,
    Perspective,
    Reliability,
    ReportPart,
    ReportTrend,
    RunLatency,
    SliceTable,
    StageLatency,
    TargetsVerdict,
    WrongPrompts,
)


class UnsupportedClaim(ReportPart, frozen=True):
    """A claim that no passage supports, its words and numbers that are missing."""

    text: CutText
    score: float | None
    missing: Sequence[str]
    numbers: Sequence[str]


class ShownVerdict(ReportPart, frozen=True):
    """The judge's verdict on a claim, a fact or a nugget."""

    kind: str
    verdict: str
    good: bool
    text: CutText
    quote: CutText | None
    reason: str | None
    blame: str | None


class WantedPassage(ReportPart, frozen=True):
    """A gold passage, and where it was found."""

    place: str
    quote: CutText | None
    rank: int | None


class ShownPassage(ReportPart, frozen=True):
    """A retrieved passage and its marks."""

    rank: int
    place: str
    score: float | None
    gold: bool
    cited: bool
    text: CutText | None


class ShownMessage(ReportPart, frozen=True):
    """A message before the question."""

    role: str
    text: CutText


class ShownNewPassage(ReportPart, frozen=True):
    """A passage that a search was the first to find."""

    rank: int
    place: str
    gold: bool | None


class ShownSearch(ReportPart, frozen=True):
    """A search on the way to an answer; ``bar``: when it ran, as begin and width."""

    query: CutText
    tool: str | None
    start_ms: float | None
    latency_ms: float | None
    bar: Sequence[float] | None
    failed: bool
    says: str
    new: Sequence[ShownNewPassage]
    new_more: int


class ShownSearches(ReportPart, frozen=True):
    """The searches on the way to an answer."""

    rewritten: CutText | None
    complete: str
    steps: Sequence[ShownSearch]
    more: int


class ShownCall(ReportPart, frozen=True):
    """A call of a tool, its result or error, and its score."""

    call: CutText
    result: CutText | None
    error: CutText | None
    says: str
    bad: bool


class ShownTools(ReportPart, frozen=True):
    """The calls of tools in order, and the expected ones that were not made."""

    says: str
    calls: Sequence[ShownCall]
    more: int
    missing: Sequence[CutText]


class CaseChange(ReportPart, frozen=True):
    """A primary score of a case that changed."""

    metric: str
    base: float
    new: float


class AnswerSide(ReportPart, frozen=True):
    """A run's answer and passages in a case."""

    answer: CutText | None
    error: str | None
    abstained: bool | None
    abstain_reason: str | None
    confidence: float | None
    because: Sequence[str]
    gold: Sequence[WantedPassage]
    claims: Sequence[UnsupportedClaim]
    retrieved: Sequence[ShownPassage]
    retrieved_more: int


class ReportAnswer(AnswerSide, frozen=True):
    """An answer in full: texts cut, passages marked, reasons in words.

    ``before``: what the other run answered where something changed; ``way``: broke or fixed.
    """

    case_id: str
    repeat: int
    category: str | None
    difficulty: str | None
    answerable: bool | None
    question: CutText
    reference_answer: CutText | None
    key_facts: Sequence[CutText]
    verdict: str
    fails: Sequence[str]
    warnings: Sequence[str]
    verdicts: Sequence[ShownVerdict]
    conversation: str | UnsetType = UNSET
    turn: int | UnsetType | None = UNSET
    history: Sequence[ShownMessage] | UnsetType = UNSET
    searches: ShownSearches | UnsetType = UNSET
    tools: ShownTools | UnsetType = UNSET
    changes: Sequence[CaseChange] = ()
    way: Ways | str = ""
    before: AnswerSide | None = None
    notes: Sequence[str] = ()


class ReportConversation(ReportPart, frozen=True):
    """A conversation: ``turns`` are places in the answers in full, ``absent`` the numbers of turns
    that are not among them."""

    name: str
    repeat: int
    turns: Sequence[int]
    first_failing: int | None
    failing: Sequence[int]
    absent: Sequence[int]


class ComparedMetric(ReportPart, frozen=True):
    """A metric of two runs, by the engine's own row."""

    row: Change
    catalogued: Metric | None
    says: str | None

    def to_dict(self) -> dict[str, Any]:
        """The row, with its metric's entry in the catalogue."""
        metric = self.catalogued
        return self.row.to_dict() | {
            "cells": compare_words.row_cells(self.row)[1:],
            "words": self.words,
            "meaning": self.meaning,
            "low": metric.low if metric else None,
            "high": metric.high if metric else None,
            "unit": metric.unit if metric else "",
            "says": self.says,
        }

    @property
    def words(self) -> str:
        return self.catalogued.in_words(self.row.metric) if self.catalogued else ""

    @property
    def meaning(self) -> str:
        return self.catalogued.meaning if self.catalogued else ""


class VerdictSentence(ReportPart, frozen=True):
    """The change of a primary metric."""

    text: str
    verdict: str


class MetricFlips(ReportPart, frozen=True):
    """The cases that one metric changed most for."""

    flips: Flips
    says: str

    def to_dict(self) -> dict[str, Any]:
        """Counts, and the cases each way as id, score before, score now."""
        sides = {"worse": self.flips.worse, "better": self.flips.better}
        return {
            "metric": self.flips.metric,
            "says": self.says,
            "fell_behind": self.flips.fell_behind,
            "gained": self.flips.gained,
        } | {
            way: [(f.case_id, f.base.score, f.new.score) for f in own] for way, own in sides.items()
        }


class ChangedAnswer(ReportPart, frozen=True):
    """A case that changed: what became of it and why, and which of its scores changed. ``fact``:
    why, in a few words."""

    case_id: str
    kind: str
    changes: Sequence[CaseChange]
    why: Sequence[str]
    question: str = ""
    fact: str = ""


class ChangedTurns(ReportPart, frozen=True):
    """The conversations that changed, some of each way."""

    says: str
    broke: Sequence[ConversationChange]
    earlier: Sequence[ConversationChange]
    fixed: Sequence[ConversationChange]

    def to_dict(self) -> dict[str, Any]:
        """The changes with their sentences."""
        ways = {"broke": self.broke, "earlier": self.earlier, "fixed": self.fixed}
        return {"says": self.says} | {
            way: [msgspec.to_builtins(talk) | {"says": talk.says()} for talk in own]
            for way, own in ways.items()
        }


class ComparisonPart(ReportPart, frozen=True):
    """A run against its baseline: verdicts, rows, remarks, and the cases that changed."""

    base_id: str
    new_id: str
    headline: str
    says: Sequence[str]
    cases: str
    sentences: Sequence[VerdictSentence]
    primary: Sequence[ComparedMetric]
    exploratory: Sequence[ComparedMetric]
    quiet: Sequence[ComparedMetric]
    explored: int
    controls: Sequence[str]
    varied: Sequence[str]
    notes: Sequence[str]
    legend: Sequence[str]
    explored_says: str = ""
    flips: Sequence[MetricFlips] = ()
    cases_changed: Sequence[ChangedAnswer] = ()
    cases_say: str = ""
    in_common: Sequence[str] = ()
    case_counts: Mapping[str, Any] | None = None
    conversations: ChangedTurns | UnsetType = UNSET
    of_extras: Sequence[Any] = ()
    """Blocks that extras add."""

    def to_dict(self) -> dict[str, Any]:
        """Its fields by name, without the blocks of extras, which are no data."""
        data = super().to_dict()
        del data["of_extras"]
        return data


class AnswersInFull(ReportPart, frozen=True):
    """The answers that are shown in full, and how many are not."""

    by: str | None
    answers: int
    verdicts: Mapping[str, Any]
    listed: Sequence[ReportAnswer]
    left_out: int


class RunReport(ReportPart, frozen=True):
    """The report of a run."""

    schema: int
    kind: str
    tool_version: str
    run_id: str
    config_hash: str | None
    eval_set_sha256: str | None
    asked: int | None
    cases: int
    missing: Any
    failed_calls: int
    headline: Sequence[str]
    in_common: Sequence[str]
    verdict: TargetsVerdict
    comparison: ComparisonPart | None
    trend: ReportTrend | None
    notes: Sequence[str]
    diagnosis: Sequence[DiagnosisFinding]
    perspectives: Sequence[Perspective]
    slices: Sequence[SliceTable]
    slices_missing: str
    first_relevant: FirstRanks
    latency: RunLatency
    outcomes: OutcomeTable
    confidence: Reliability | NoReliability
    judge_calibrations: Sequence[CalibrationPart]
    correlations: CorrelationMatrix
    worst: AnswersInFull
    prompts: WrongPrompts
    errors: Sequence[CallErrors]
    not_applicable: Sequence[MissingScores]
    configuration: Sequence[ConfigPart]
    case_list: CaseTable
    evidence_path: Sequence[RunPath] = ()
    latency_before: Sequence[StageLatency] = ()
    of_extras: Mapping[str, Sequence[Any]] | UnsetType = UNSET
    """Blocks that extras add, by the key of each, a heading first."""
    conversations: Sequence[ReportConversation] | UnsetType = UNSET
    unreadable: int | UnsetType = UNSET
    """Answers that could not be read."""

    def to_dict(self) -> dict[str, Any]:
        """Its fields by name, without the blocks of extras, which are no data."""
        data = super().to_dict()
        data.pop("of_extras", None)
        return data
