"""Each rule of the diagnosis, and that nothing is concluded from what was not measured."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tests.definitions import definition_of
from tests.rows import each_row

from decisions.diagnosis import diagnose, health
from decisions.measures import Measure, band, known_metrics, measures, targets_text
from ragmetrics.catalogue import SECTIONS
from records.targets import Target

GOOD, BAD = True, False


def measure(section: str, metric: str, mean: float | None, passed: bool | None) -> Measure:
    target = None if passed is None else "> 0.5"
    return Measure(section, metric, mean, None, 9, 0, 0, "", True, target, passed)


def found(*more: Measure, **states: bool) -> dict[tuple[str, str], Measure]:
    """Every metric with a target of the named sections passes or fails."""
    rows = [
        measure(section, metric, 0.9 if state else 0.1, state)
        for section, state in states.items()
        for metric in SECTIONS[section].targets
    ]
    return {(one.section, one.metric): one for one in (*rows, *more)}


def rules(known: dict[tuple[str, str], Measure]) -> list[str]:
    return [finding.rule for finding in diagnose(known)]


@each_row(
    ("states", "expected"),
    [
        ({"retrieval": GOOD, "groundedness": BAD}, ["retrieval_good_groundedness_bad"]),
        ({"groundedness": BAD}, ["groundedness_bad"]),
        ({"retrieval": BAD, "context": GOOD}, ["retrieval_bad_context_good"]),
        ({"retrieval": BAD, "context": BAD}, ["retrieval_bad", "context_bad"]),
        ({"retrieval": BAD}, ["retrieval_bad"]),
        ({"safety": BAD}, ["safety_bad"]),
        ({"pipeline": BAD}, ["pipeline_bad"]),
        ({"retrieval": GOOD, "context": GOOD, "safety": GOOD}, ["all_good"]),
        ({}, ["nothing_measured"]),
    ],
)
def test_rules_of_the_perspectives(states: dict[str, bool], expected: list[str]) -> None:
    assert rules(found(**states)) == expected


@each_row(
    ("precision", "recall", "rule"),
    [
        (0.7, 0.49, ["high_precision_low_recall"]),
        (0.49, 0.7, ["low_precision_high_recall"]),
        (0.69, 0.49, []),
        (0.5, 0.9, []),
    ],
)
def test_precision_against_recall(precision: float, recall: float, rule: list[str]) -> None:
    rows = [
        measure("retrieval", "precision@1", precision, None),
        measure("retrieval", "recall@5", recall, None),
    ]
    assert [name for name in rules(found(*rows)) if "precision" in name] == rule


def test_judged_numbers_come_before_those_of_the_ranks() -> None:
    rows = [
        measure("retrieval", "precision@1", 0.9, None),
        measure("retrieval", "recall@5", 0.1, None),
        measure("judge", "context_precision", 0.3, None),
        measure("judge", "context_recall", 0.9, None),
    ]
    assert "low_precision_high_recall" in rules(found(*rows))


def test_faithful_against_relevant() -> None:
    claims = ("groundedness", "claim_support_rate")
    near = ("embedding", "answer_relevance")
    assert "faithful_but_irrelevant" in rules(
        found(measure(*claims, 0.9, True), measure(*near, 0.1, False))
    )
    assert "relevant_but_unfaithful" in rules(
        found(measure(*claims, 0.1, False), measure(*near, 0.9, True))
    )
    assert rules(found(measure(*claims, 0.9, True), measure(*near, None, None))) == ["all_good"]


def test_missed_targets_that_no_rule_explains_are_no_good_health() -> None:
    far = measure("embedding", "context_relevance", 0.1, False)
    (finding,) = diagnose(found(far, retrieval=GOOD))
    assert finding.rule == "unexplained"
    assert finding.says == "1 target is missed, and no rule here says why."
    assert [text.partition(" (")[0] for text in finding.because] == ["context_relevance 0.100"]
    missed = found(measure("embedding", "answer_relevance", 0.5, False))
    assert rules(missed) == ["unexplained"]
    met = found(measure("embedding", "answer_relevance", 0.9, True))
    assert diagnose(met)[0].says == "No fault shows in embedding."


def test_a_bot_that_quotes_is_not_blamed_for_the_words_of_the_reference() -> None:
    claims = measure("groundedness", "claim_support_rate", 0.9, True)
    quotes = measure("groundedness", "mean_claim_support", 0.97, None)
    words = measure("groundedness", "mean_claim_support", 0.6, None)
    near = measure("embedding", "answer_relevance", 0.1, False)
    judged = measure("judged", "answer_relevancy", 0.1, False)
    assert rules(found(claims, quotes, near)) == ["quotes_unlike_reference"]
    assert rules(found(claims, words, near)) == ["faithful_but_irrelevant"]
    assert rules(found(claims, quotes, judged)) == ["faithful_but_irrelevant"]


def test_abstention() -> None:
    bold = measure("abstention", "hallucination_on_unanswerable", 0.31, None)
    shy = measure("abstention", "over_refusal", 0.3, None)
    assert rules(found(bold, shy)) == ["answers_the_unanswerable"]


def test_what_was_not_measured_is_neither_good_nor_bad() -> None:
    known = found(measure("retrieval", "ndcg@5", None, None))
    assert health(known, "retrieval") is None
    assert rules(known) == ["nothing_measured"]
    few = replace(measure("retrieval", "ndcg@5", 0.9, True), n=7, passed=None)
    for row, says in ((known, "No target could be checked."), (found(few), "each needs 8 cases.")):
        (finding,) = diagnose(row)
        assert finding.says.endswith(says)
    half = found(measure("safety", "auc", 0.9, True), measure("safety", "tpr_at_fpr_1", None, None))
    assert health(half, "safety") is True


def test_what_a_finding_says_to_look_at() -> None:
    parts = found(measure("safety", "auc", 0.9, True), measure("safety", "tpr_at_fpr_1", 0, False))
    assert diagnose(parts)[0].look_at.startswith("the guardrail thresholds")
    mixes = found(measure("safety", "auc", 0.5, False))
    assert diagnose(mixes)[0].look_at.startswith("the detector itself")
    assert diagnose(mixes)[0].because == ("auc 0.500 (target > 0.5)",)
    known = found(measure("retrieval", "scope_miss", 0.2, None), retrieval=BAD)
    assert diagnose(known)[0].look_at.startswith("folder selection")
    outcome = measure("pipeline", "outcome_match", 0.5, None)
    unmeasured = measure("pipeline", "citations_ok", None, None)
    known = found(outcome, unmeasured, measure("retrieval", "mrr", 0.2, None), pipeline=BAD)
    (finding,) = (each for each in diagnose(known) if each.rule == "pipeline_bad")
    assert finding.because == ("pass 0.100 (target > 0.5)", "outcome_match 0.500")


@each_row(
    ("name", "mean", "expected"),
    [
        ("retrieval/mrr", 0.9, "excellent"),
        ("retrieval/mrr", 0.7, "good"),
        ("retrieval/mrr", 0.5, "fair"),
        ("retrieval/mrr", 0.499, "poor"),
        ("retrieval/mrr", None, None),
        ("context/redundancy_ngram", 0.05, None),  # low is good: met or missed, no band
        ("embedding/context_relevance", 0.9, None),  # a cosine is no share
        ("groundedness/unsupported_claims", 0.9, None),  # a count
    ],
)
def test_bands(name: str, mean: float | None, expected: str | None) -> None:
    ends = None if mean is None else (mean, mean)
    assert band(mean, known_metrics()[definition_of(*name.split("/"))], ends) == expected


@each_row(
    ("ci95", "expected"),
    [
        ((0.5, 0.89), "good"),  # fair and good
        ((0.71, 1.0), "good"),  # good and excellent
        ((0.499, 0.89), "too few to tell"),  # poor, fair and good
        ((0.5, 0.9), "too few to tell"),  # fair, good and excellent
        (None, "too few to tell"),  # one case, or all cases share one document
    ],
)
def test_no_band_where_the_interval_spans_more_than_two(
    ci95: tuple[float, float] | None, expected: str
) -> None:
    assert band(0.75, known_metrics()[definition_of("retrieval", "mrr")], ci95) == expected


SECTION: dict[str, Any] = {
    "definitions": {name: definition_of("retrieval", name) for name in ("mrr", "scope_miss")},
    "mean": {"mrr": 0.5, "scope_miss": None},
    "ci95": {"mrr": [0.25, 0.75], "scope_miss": None},
    "n": {"mrr": 4, "scope_miss": 0},
    "not_applicable": {"mrr": 1, "scope_miss": 5},
    "failed": {"mrr": 2, "scope_miss": 2},
}


def test_measures_of_a_section() -> None:
    aims = {"mrr": Target(">=", 0.5), "scope_miss": Target("<", 0.1), "typo": Target(">", 0)}
    rows = measures({"retrieval": SECTION}, {"retrieval": aims, "elsewhere": aims})
    mrr = rows["retrieval", "mrr"]
    assert (mrr.mean, mrr.ci95) == (0.5, (0.25, 0.75))
    assert (mrr.n, mrr.not_applicable, mrr.failed) == (4, 1, 2)
    # 0.25 to 0.75 reaches over poor, fair and good
    assert (mrr.passed, mrr.band, mrr.target) == (None, "too few to tell", ">= 0.5")
    miss = rows["retrieval", "scope_miss"]
    assert (miss.passed, miss.higher_is_better) == (None, False)
    assert rows["retrieval", "typo"].mean is None
    assert len(rows) == 3


@each_row(
    ("n", "bound", "fewest", "verdict"),
    [
        (8, 0.5, 8, "met"),  # 0.5 >= 0.5
        (8, 0.6, 8, "missed"),
        (7, 0.5, 8, "too few to say"),
        (7, 0.6, 8, "too few to say"),
        (1, 0.6, 0, "missed"),  # as a gate asks
        (0, 0.6, 8, "not measured"),
    ],
)
def test_a_target_is_neither_met_nor_missed_on_fewer_than_eight_cases(
    n: int, bound: float, fewest: int, verdict: str
) -> None:
    section = {"definitions": {}, "mean": {"mrr": 0.5 if n else None}, "ci95": {}, "n": {"mrr": n}}
    section |= {"not_applicable": {}, "failed": {}}
    aims = {"retrieval": {"mrr": Target(">=", bound)}}
    (row,) = measures({"retrieval": section}, aims, fewest=fewest).values()
    assert (row.verdict, row.to_dict()["verdict"]) == (verdict, verdict)


def test_targets_are_counted_in_words() -> None:
    verdicts = [*(["met"] * 16), *(["missed"] * 8), *(["too few to say"] * 3), None]
    text = targets_text(verdicts)  # type: ignore[arg-type]
    assert text == "16 of 27 targets met, 8 missed, 3 too few to say"
    assert targets_text(["not measured", None]) == "0 of 1 target met, 1 not measured"
    assert targets_text([None]) == "No target is set for what was measured"
