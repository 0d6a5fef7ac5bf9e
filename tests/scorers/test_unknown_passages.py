"""What is scored where nobody knows the passages of an answer, and where there were none."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
from tests.rows import each_row

from ragmetrics.catalogue import SECTIONS
from ragmetrics.text.tfidf import Frequencies
from records.cases import GoldSupport, TestCase
from records.results import TestResult
from records.scores import ScoreLine, write_scores
from scorers.context import ContextScorer
from scorers.groundedness import GroundednessScorer
from scorers.pipeline import check_response
from scorers.retrieval import RetrievalScorer
from scorers.sections import _most_common_reason
from scorers.show import _remarks

CASE = TestCase("a", "How long?", answerable=True, expected_outcome="no_results")
CASE.gold_supports = [GoldSupport("a.md", "Returns")]

ANSWER = "Goods are taken back within 30 days of the invoice."


def scores(scorer: Any, result: TestResult) -> tuple[dict[str, Any], dict[str, str]]:
    row, _ = scorer.score(CASE, result)
    names = [metric.name for metric in scorer.metrics]
    return dict(zip(names, row.values, strict=True)), dict(row.reasons)


@each_row(
    ("more", "value", "reason"),
    [
        ({}, None, "passages are not mapped"),
        ({"absent": {"retrieved": "no list at hits"}}, "failed", "no list at hits"),
    ],
)
def test_unknown_passages_are_no_zero(more: Any, value: Any, reason: str) -> None:
    result = TestResult("a", answer=ANSWER, **more)
    for scorer in (RetrievalScorer(), ContextScorer(Frequencies())):
        values, reasons = scores(scorer, result)
        assert set(values.values()) == {value}
        assert reasons == {"*": reason}
    values, reasons = scores(GroundednessScorer(), result)
    for name in ("claim_support_rate", "unsupported_claims", "citation_coverage", "contexts_exist"):
        assert (values[name], reasons[name]) == (value, reason)
    assert values["answer_not_empty"] == 1.0
    assert check_response(CASE, result).values["outcome_match"] == 0.0  # not no_results


def test_an_empty_list_is_zero() -> None:
    result = TestResult("a", answer=ANSWER, retrieved=[])
    values, _ = scores(RetrievalScorer(), result)
    assert (values["recall@5"], values["mrr"], values["precision@1"]) == (0.0, 0.0, 0.0)
    values, reasons = scores(ContextScorer(Frequencies()), result)
    assert set(values.values()) == {None}
    values, reasons = scores(GroundednessScorer(), result)
    assert (values["claim_support_rate"], reasons["claim_support_rate"]) == (0.0, "no contexts")
    assert check_response(CASE, result).values["outcome_match"] == 1.0  # no_results


def test_a_bot_that_names_no_sources_is_asked_for_none() -> None:
    result = TestResult("a", answer=ANSWER, retrieved=[])
    values, _ = scores(GroundednessScorer(), result)
    assert (values["citation_coverage"], values["has_citations"]) == (0.0, 0.0)
    values, reasons = scores(GroundednessScorer(names_sources=False), result)
    assert (values["citation_coverage"], values["has_citations"]) == (None, None)
    assert reasons["citation_coverage"] == "the bot names no sources"


@each_row("tells_one", [True, False])
def test_a_bot_that_reports_one_passage_of_each_document(tmp_path: Path, tells_one: bool) -> None:
    api = {"one_passage_per_document": True} if tells_one else {}
    (tmp_path / "config.json").write_bytes(orjson.dumps({"schema": 1, "api": api}))

    def remarks(name: str) -> str:
        section: dict[str, Any] = {"failed": {}}
        return " ".join(_remarks(tmp_path, {}, Path("set.jsonl"), section, SECTIONS[name]))

    names = ("retrieval", "context", "groundedness", "abstention")
    with_remark = [name for name in names if "one passage of each document" in remarks(name)]
    assert with_remark == (["context", "groundedness"] if tells_one else [])


REASONS = {f"metric_{n}": f"no label {n}" for n in range(12)}


def test_of_reasons_that_are_as_common_the_first_metric_s_is_said(tmp_path: Path) -> None:
    """Sets of texts have another order in each process; the metrics of a line have not."""
    line = ScoreLine("a", 0, "not_applicable", dict.fromkeys(REASONS), REASONS)
    write_scores(tmp_path, "pipeline", [line])
    assert _most_common_reason(tmp_path, "pipeline") == "no label 0 (1 case)"


def test_the_reason_of_most_cases_is_said(tmp_path: Path) -> None:
    lines = [
        ScoreLine(name, 0, "not_applicable", {"m": None}, {"m": why})
        for name, why in (("a", "rare"), ("b", "usual"), ("c", "usual"))
    ]
    write_scores(tmp_path, "pipeline", lines)
    assert _most_common_reason(tmp_path, "pipeline") == "usual (2 cases)"
