"""compare(): pairs, means, tests, verdicts, slices, clusters; and the cases that changed most."""

from __future__ import annotations

import tracemalloc
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.metrics_files import write_metrics
from tests.score_lines import read_lines, write_lines

from decisions import invariants
from decisions.case_changes import changes_of, read_pair
from decisions.change import Change
from decisions.compare import CompareOptions, compare, compare_many
from decisions.compare import clusters_of as clusters_of_runs
from decisions.flips import Flips, find_flips
from decisions.headline import failures
from options.values import Names
from ragmetrics.stats.significance import mcnemar
from records.cases import TestCase
from records.clusters import Clustering, clusters_of
from records.errors import StorageError
from records.file_access import open_plain
from records.metrics import load_metrics
from records.run import Run
from records.run import Runs as OpenRuns
from terminal.page import Page
from views.case_files import first_answers
from views.flips import flip_blocks
from views.page import markdown

Targets = Callable[[str], Path]
Runs = Any


def row_of(comparison: Any, name: str) -> Change:
    row: Change | None = comparison.row(name)
    assert row is not None
    return row


def test_one_metric_by_hand(runs: Runs) -> None:
    """Twelve cases: ten lose .5, one gains .5, one stays: delta = (-5 + .5) / 12."""
    base = runs.make("base", {"ndcg@5": [1.0] * 10 + [0.5, 0.5]})
    new = runs.make("new", {"ndcg@5": [0.5] * 10 + [1.0, 0.5]})
    row = row_of(compare(base, new, CompareOptions(metrics=("ndcg@5",))), "retrieval.ndcg@5")
    assert (row.n, row.rose, row.fell, row.units) == (12, 1, 10, 12)
    assert row.base == pytest.approx(11 / 12)
    assert row.new == pytest.approx(6.5 / 12)
    assert row.delta == pytest.approx(-4.5 / 12)
    # 11 differences of one size: of 2^11 patterns 2 have |sum| = 11 and 2 * 11 the observed 9,
    # of which the joint test counts half; a permutation test by itself counts them whole.
    assert row.p_joint == pytest.approx((2 + 22 / 2) / 2**11)
    assert row.p == pytest.approx(24 / 2**11)
    assert row.p_worse == pytest.approx((1 + 11 / 2) / 2**11)
    assert (row.test, row.verdict, row.primary) == ("joint sign-flip", "worse", True)
    assert row.interval is not None
    # sd² = (10 * .125² + .875² + .375²) / 11 = .096591; unseen changes add 1/12 * .5² / 11
    half = 2.200985 * ((0.0965909 + 0.25 / 12 / 11) / 12) ** 0.5
    assert row.interval == pytest.approx((-0.375 - half, -0.375 + half), abs=1e-6)


def test_a_binary_metric_takes_mcnemar_when_it_is_explored(runs: Runs) -> None:
    base = runs.make("base", {"outcome_match": [1.0] * 9 + [0.0] * 11}, "pipeline")
    new = runs.make("new", {"outcome_match": [1.0] * 18 + [0.0] * 2}, "pipeline")
    row = row_of(compare(base, new), "outcome_match")
    assert (row.rose, row.fell, row.test) == (9, 0, "McNemar mid-p")
    assert row.p == mcnemar(9, 0)[1]
    assert (row.verdict, row.primary) == ("better", False)


def test_evidence_that_is_compared_by_document_alone_is_named(runs: Runs) -> None:
    """Eight of twelve lose their file: no verdict by definition, but nobody may miss it."""
    name, by_document = "evidence_recall@5", "evidence_recall@5 (by document)"
    none: list[float | None] = [None] * 12
    base = runs.make("base", {name: none, by_document: [1.0] * 12})
    new = runs.make("new", {name: none, by_document: [0.0] * 8 + [1.0] * 4})
    found = compare(base, new)
    assert not row_of(found, f"retrieval.{by_document}").primary
    assert [note for note in found.notes if "the labels name files alone" in note] == [
        f"retrieval.{name}: the labels name files alone, so it decides only after "
        "score_retrieval.py --match doc for both runs."
    ]
    own = {name: [1.0] * 12}
    again = compare(runs.make("own", own), runs.make("other", own))
    assert not any("files alone" in note for note in again.notes)


@pytest.mark.parametrize(
    ("metric", "section", "verdict"),
    [
        ("ndcg@5", "retrieval", "better"),
        ("redundancy_ngram", "context", "worse"),
        ("over_refusal", "abstention", "worse"),
        ("my_own", "custom", "differs"),
    ],
)
def test_the_catalogue_says_which_way_is_better(
    runs: Runs, metric: str, section: str, verdict: str
) -> None:
    base = runs.make("base", {metric: [0.1] * 20}, section)
    new = runs.make("new", {metric: [0.6] * 20}, section)
    row = row_of(compare(base, new), metric)
    assert row.verdict == verdict


def test_measured_time_cost_and_tokens_are_better_when_less(runs: Runs) -> None:
    def measured(cost: float, last: float) -> list[Any]:
        return [
            {"latency_ms": {"total": ms}, "cost_usd": cost, "usage": {"total_tokens": 7}}
            for ms in (*([100.0 * cost] * 11), last)
        ]

    base = runs.make("base", {"pass": [1.0] * 12}, "pipeline", evidence=measured(2.0, 200.0))
    new = runs.make("new", {"pass": [1.0] * 12}, "pipeline", evidence=measured(1.0, 9000.0))
    found = compare(base, new)
    latency = row_of(found, "latency_ms")
    # Half as long in 11 of 12 cases, but 1100 + 9000 ms in all instead of 2200 + 200.
    assert latency.ratio == pytest.approx(0.5)
    assert latency.ratio_totals == pytest.approx(10_100 / 2400)
    assert (latency.test, latency.verdict) == ("signed ranks", "mixed")
    cost = row_of(found, "cost_usd")
    assert cost.ratio == pytest.approx(0.5)
    assert cost.verdict == "better"
    assert row_of(found, "total_tokens").verdict == "no evidence"


def test_only_cases_that_both_scored_are_compared(runs: Runs) -> None:
    base = runs.make("base", {"mrr": [1.0, 0.5, None, 0.25]}, ids=["a", "b", "c", "d"])
    new = runs.make("new", {"mrr": [0.25, 0.75, 1.0, None, 0.0]}, ids=["d", "b", "e", "a", "c"])
    found = compare(base, new)
    row = row_of(found, "mrr")
    # both: b (.5 → .75) and d (.25 → .25); base alone: a; new alone: c and e
    assert (row.n, row.lost, row.gained) == (2, 1, 2)
    assert row.delta == pytest.approx(0.125)
    assert (row.base_n, row.new_n) == (3, 4)
    assert (row.base_coverage, row.new_coverage) == (3 / 4, 4 / 5)
    assert row.base_mean == pytest.approx(1.75 / 3)
    assert row.new_mean == pytest.approx(2.0 / 4)
    assert (found.cases, found.only_base, found.only_new) == (4, 0, 1)
    assert any("0 cases are in base only and 1 in new only" in note for note in found.notes)


def test_repeats_are_averaged_within_their_case_first(runs: Runs) -> None:
    """Case q0 scores 1 and 0, q1 scores 1 and nothing: .5 and 1 against 0 and 1."""
    base = runs.make("base", {"mrr": [1.0, 0.0, 1.0, None]}, repeats=2)
    new = runs.make("new", {"mrr": [0.0, 0.0, 1.0, 1.0]}, repeats=2)
    row = row_of(compare(base, new), "mrr")
    assert (row.n, row.base, row.new, row.base_cases) == (2, 0.75, 0.5, 2)


def test_a_metric_of_one_run_alone_is_named(runs: Runs) -> None:
    base = runs.make("base", {"mrr": [1.0], "map@5": [None], "scope_miss": [0.0]})
    new = runs.make("new", {"mrr": [1.0], "map@5": [0.5], "ndcg@5": [None]})
    found = compare(base, new, CompareOptions(every=True))
    verdicts = {row.metric: row.verdict for row in found.rows}
    assert verdicts == {
        "mrr": "too few",
        "map@5": "only in new",
        "scope_miss": "only in base",
        "ndcg@5": "not tested",
    }


def test_numbers_of_the_whole_run_are_shown_without_a_test(runs: Runs) -> None:
    base = runs.make("base", {"detection_rate": [1.0]}, "safety", whole_run={"auc": 0.9})
    new = runs.make("new", {"detection_rate": [1.0]}, "safety", whole_run={"auc": 0.8})
    row = row_of(compare(base, new), "auc")
    assert (row.base, row.new, row.p, row.verdict) == (0.9, 0.8, None, "not tested")
    assert row.delta == pytest.approx(-0.1)
    assert row.base_coverage is None


def falling(values: list[float]) -> dict[str, list[float]]:
    return {"ndcg@5": values, "recall@5": values, "mrr": values}


def test_targets_toml_says_which_metrics_decide(runs: Runs, targets: Targets) -> None:
    """7 of 7 cases fall: 2 of 2^7 patterns are as extreme, counted half. Equal columns are flipped
    together, so that two of them are no more than one."""
    base = runs.make("base", falling([1.0] * 7 + [0.5] * 3))
    new = runs.make("new", falling([0.5] * 10))
    declared = 'decide = { primary = ["retrieval.ndcg@5", "retrieval.recall@5"] }\n'
    found = compare(base, new, CompareOptions(targets=targets(declared)))
    assert [row.metric for row in found.rows if row.primary] == ["ndcg@5", "recall@5"]
    assert [row.p_joint for row in found.rows] == [1 / 2**7, 1 / 2**7, None]
    assert [row.p_bh for row in found.rows] == [None, None, 2 / 2**7]
    assert found.headline == "WORSE"
    three = compare(base, new, CompareOptions(metrics=("ndcg@5", "recall@5", "retrieval.mrr")))
    assert [row.p_joint for row in three.rows] == [1 / 2**7] * 3


def test_several_runs_are_corrected_together(runs: Runs) -> None:
    """Four runs, each of which loses seven cases of its own: of 2^7 patterns of each 2 are as
    extreme, and the largest of four such statistics counts."""
    base = runs.make("base", {"mrr": [1.0] * 28})
    others = []
    for number in range(4):
        values = [1.0] * 28
        values[7 * number : 7 * number + 7] = [0.5] * 7
        others.append(runs.make(f"run{number}", {"mrr": values}))
    alone = compare(base, others[0], CompareOptions(metrics=("mrr",)))
    assert row_of(alone, "mrr").p_joint == 1 / 2**7
    found = compare_many(base, others, CompareOptions(metrics=("mrr",)))
    expected = (1 - (1 - 2 / 2**7) ** 4) / 2
    for comparison in found:
        assert row_of(comparison, "mrr").p_joint == pytest.approx(expected, abs=0.005)


def test_a_metric_that_is_not_primary_cannot_make_it_better(runs: Runs) -> None:
    """Five of twenty cases lose their passage while a statistic of the context rises in all."""
    one = [1.0] * 20
    base = runs.make("base", {"recall@5": one})
    runs.make("base", {"unique_token_ratio": [0.2] * 20}, "context")
    new = runs.make("new", {"recall@5": [0.0] * 5 + [1.0] * 15})
    runs.make("new", {"unique_token_ratio": [0.5] * 20}, "context")
    found = compare(base, new, CompareOptions(metrics=("recall@5",), every=True))
    assert row_of(found, "unique_token_ratio").verdict == "better"
    # 5 changed units: 2 of 2^5 patterns, counted half: .031, and the interval lies below 0.
    assert row_of(found, "recall@5").p_joint == 1 / 2**5
    assert found.headline == "WORSE"
    four = runs.make("four", {"recall@5": [0.0] * 4 + [1.0] * 16})
    runs.make("four", {"unique_token_ratio": [0.5] * 20}, "context")
    found = compare(base, four, CompareOptions(metrics=("recall@5",)))
    assert row_of(found, "recall@5").p_worse == 1 / 2**5
    assert (row_of(found, "recall@5").look, found.headline) == (True, "NO CLEAR DIFFERENCE")


def asked(cases: int) -> dict[str, Any]:
    """The head of a run's configuration that was asked all of ``cases``."""
    return {"dataset": {"sha256": "5" * 64, "cases": cases}, "run": {"selected": cases}}


def test_calls_that_failed_or_have_no_line_are_not_answered(runs: Runs) -> None:
    """11 of 90 calls fail, or their lines are gone: both are worse in answered and in pass."""
    ids = [f"q{number}" for number in range(90)]
    whole = asked(90)
    base = runs.make("base", {"pass": [1.0] * 90}, "pipeline", config=whole)
    gone = runs.make("gone", {"pass": [1.0] * 79}, "pipeline", ids=ids[11:], config=whole)
    failed = runs.make("failed", {"pass": [None] * 11 + [1.0] * 79}, "pipeline", config=whole)
    lines = read_lines(failed, "pipeline")
    lines[:11] = [line | {"status": "failed"} for line in lines[:11]]
    write_lines(failed, "pipeline", lines)
    options = CompareOptions(metrics=("pass", "answered"))
    for run in (gone, failed):
        write_answered(run)
    write_answered(base)
    for run in (gone, failed):
        found = compare(base, run, options)
        for name in ("answered", "pass"):
            row = row_of(found, name)
            assert (row.n, row.fell, row.verdict) == (90, 11, "worse"), (run, name)
            assert row.new == pytest.approx(79 / 90)
        assert found.headline == ("INCOMPLETE" if run == gone else "WORSE")
        lost = "INCOMPLETE: 11 of 90 cases have no result in gone (run_eval.py --resume --run-id "
        lost += "gone); on the other 79 no difference is clear (could miss ±11 points of responses "
        lost += "that pass every check)."
        assert (found.says[0] == lost) == (run == gone)
    assert any(
        "11 cases that gone was asked have no result" in n for n in compare(base, gone).notes
    )
    unknown = runs.make("unknown", {"pass": [1.0] * 79}, "pipeline", ids=ids[11:])
    write_answered(unknown)
    found = compare(base, unknown, options)
    assert row_of(found, "answered").n == 79, "nobody knows whether the other 11 were asked"
    assert any("11 cases are in base only" in note for note in found.notes)


def write_answered(run: Path) -> None:
    """Put pipeline.answered among the metrics of metrics.json, as the scorer does."""
    path = run / "metrics.json"
    metrics = load_metrics(path)
    metrics["sections"]["pipeline"]["mean"]["answered"] = 1.0
    write_metrics(path, metrics)


def test_equal_needs_a_margin(runs: Runs) -> None:
    values = [0.5] * 30 + [0.6] * 30
    base = runs.make("base", {"mrr": values})
    new = runs.make("new", {"mrr": values[::-1]})
    near = CompareOptions(metrics=("mrr",), margin=0.05)
    assert row_of(compare(base, new, near), "mrr").verdict == "equal"
    assert compare(base, new, near).headline == "SAME"
    narrow = CompareOptions(metrics=("mrr",), margin=0.01)
    assert row_of(compare(base, new, narrow), "mrr").verdict == "no evidence"


def test_slices_get_a_p_from_ten_cases_on(runs: Runs) -> None:
    base = runs.make("base", {"mrr": [1.0] * 19})
    new = runs.make("new", {"mrr": [0.5] * 19})
    parts = {f"q{i}": (("category", "a" if i < 10 else "b"), ("tag", "x")) for i in range(19)}
    found = compare(base, new, CompareOptions(metrics=("mrr",), by=("category",)), parts=parts)
    first, second = found.slices
    assert (first.slice, first.n, first.p) == ("category=a", 10, 2 / 2**10)
    assert first.verdict == "worse"
    assert (second.slice, second.n, second.p, second.interval) == ("category=b", 9, None, None)
    assert (second.delta, second.verdict) == (-0.5, "not tested")
    assert first.p_bh == first.p, "one test among the slices"


def documents(size: int, cases: int) -> Clustering:
    clusters = clusters_of(in_document(f"q{i}", f"{i // size}") for i in range(cases))
    assert clusters.sentence == f"{cases} cases in {cases // size} documents"
    return clusters


def in_document(case_id: str, name: str) -> TestCase:
    gold = [{"rel_path": name}]
    return msgspec.convert({"id": case_id, "question": "?", "gold_supports": gold}, TestCase)


def all_fell(runs: Runs, cases: int, clusters: Clustering | None = None) -> Any:
    base = runs.make("base", {"pass": [1.0] * cases}, "pipeline")
    new = runs.make("new", {"pass": [0.0] * cases}, "pipeline")
    return compare(base, new, CompareOptions(metrics=("pass",)), clusters=clusters)


def test_clusters_are_flipped_together(runs: Runs) -> None:
    """Sixteen cases of eight documents, or of two turns in eight conversations with a document for
    each turn: 2 of 2^8 patterns are as extreme, not 2 of 2^16. Five documents decide nothing."""
    turns = [in_document(f"q{i}", f"{i}") for i in range(16)]
    for place, case in enumerate(turns):
        case.conversation, case.turn = f"c{place // 2}", place % 2 + 1
    for clusters, kind in ((documents(2, 16), "documents"), (clusters_of(turns), "conversations")):
        found = all_fell(runs, 16, clusters)
        row = row_of(found, "pass")
        assert (row.n, row.units, row.p, row.p_joint) == (16, 8, 2 / 2**8, 1 / 2**8)
        assert (row.verdict, found.clusters) == ("worse", f"16 cases in 8 {kind}")
    assert row_of(all_fell(runs, 16), "pass").p_joint == pytest.approx(1 / 2**16, abs=1e-4)
    found = all_fell(runs, 20, documents(4, 20))
    row = row_of(found, "pass")
    assert (row.units, row.verdict, row.p_joint) == (5, "too few", None)
    assert found.headline == "TOO FEW"
    assert found.notes[0] == "pipeline.pass: too few groups of cases (5) to tell."


def test_a_document_that_outweighs_the_others_is_named_first(runs: Runs) -> None:
    """11 of 20 cases in one document, nine by themselves: 20² / (11² + 9) = 3.1 equal ones."""
    base = runs.make("base", {"pass": [1.0] * 20}, "pipeline")
    clusters = clusters_of(in_document(f"q{i}", "big.md") for i in range(11))
    found = compare(base, base, CompareOptions(metrics=("pass",)), clusters=clusters)
    assert found.notes[0].startswith(
        "pipeline.pass: 11 of 20 cases belong to one group (document: big.md), so they count as "
        "much as 3.1 of equal size"
    )


def test_memory_is_a_number_a_case_and_metric(runs: Runs) -> None:
    """20,000 cases, 5 metrics, two runs: 1.6 MB of numbers and about 6 MB of ids; lines as objects
    would be 50 MB."""
    scores = {f"recall@{k}": [(i * k) % 7 / 7 for i in range(20_000)] for k in range(1, 6)}
    base = runs.make("base", scores)
    new = runs.make("new", scores)
    Run(runs.make("few", {"recall@1": [1.0]})).section("retrieval")  # modules are no part of it
    tracemalloc.start()
    pairs = [Run(run).section("retrieval") for run in (base, new)]
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert pairs[0].cases == pairs[1].cases == 20_000
    assert peak < 12e6


def test_damaged_scores_are_named(runs: Runs, tmp_path: Path) -> None:
    base = runs.make("base", {"mrr": [1.0, 0.5]})
    bare = tmp_path / "results" / "bare"
    bare.mkdir()
    with pytest.raises(StorageError, match=r"bare: is not scored; run score_retrieval.py"):
        compare(base, bare)
    bad = {"case_id": "q9", "scores": {"mrr": "high"}}
    write_lines(base, "retrieval", [*read_lines(base, "retrieval"), bad])
    with pytest.raises(StorageError, match=r"retrieval\.jsonl:3: is not a score line"):
        compare(base, base)
    (base / "scores" / "retrieval.jsonl").unlink()
    with pytest.raises(StorageError, match=r"metrics\.json alone has no score lines"):
        compare(base, base)
    base = runs.make("base", {"mrr": [1.0, 0.5, 1.0]}, ids=["a", "b", "a"])
    with pytest.raises(StorageError, match=r"jsonl:3: .*'a' are not consecutive"):
        compare(base, base)


def test_a_section_that_one_lacks(runs: Runs) -> None:
    base = runs.make("base", {"mrr": [1.0]})
    new = runs.make("new", {"mrr": [1.0]})
    runs.make("base", {"groundedness": [5.0]}, "judged")
    found = compare(base, new)
    assert any("new has no scores of judged; run judge_answers.py" in n for n in found.notes)
    with pytest.raises(StorageError, match=r"run judge_answers.py --run new"):
        compare(base, new, CompareOptions(sections=("judged",)))
    with pytest.raises(StorageError, match=r"metric 'mmr': neither run has it.*retrieval\.mrr"):
        compare(base, base, CompareOptions(metrics=("mmr",)))


def flips(runs: Runs, metric: str, base: Any, new: Any, count: int = 9, **more: Any) -> Flips:
    section = more.pop("section", "retrieval")
    one = runs.make("base", {metric: base}, section, **more)
    other = runs.make("new", {metric: new}, section, **(more | {"answers": {"q0": "No."}}))
    row = compare(one, other).row(metric)
    assert row is not None
    return find_flips(one, other, row, count)


def ids(found: Any) -> list[str]:
    return [flip.case_id for flip in found]


def test_larger_changes_come_first(runs: Runs) -> None:
    """q0 fell by .2, q1 by .5, q2 by .3; q3 rose; q4 has no score now."""
    found = flips(runs, "ndcg@5", [0.6, 1.0, 0.4, 0.2, 0.3], [0.4, 0.5, 0.1, 0.9, None])
    assert (found.fell_behind, found.gained) == (3, 1)
    assert ids(found.worse) == ["q1", "q2", "q0"]
    assert ids(found.better) == ["q3"]


def test_less_is_better_where_the_catalogue_says_so(runs: Runs) -> None:
    found = flips(runs, "over_refusal", [0.0, 1.0], [1.0, 0.0], section="abstention")
    assert ids(found.worse) == ["q0"]
    assert ids(found.better) == ["q1"]
    found = flips(runs, "fact_dispersion", [2.0, 9.0], [7.0, 3.0], section="context")
    assert ids(found.worse) == ["q0"]
    assert len(flips(runs, "mrr", [1.0] * 5, [0.0] * 5, 2).worse) == 2


def test_ranks_answers_and_questions_stand_side_by_side(runs: Runs) -> None:
    evidence = [{"match": "doc", "found": [1, None]}, {"match": "doc", "found": []}]
    found = flips(
        runs, "mrr", [1.0, 0.5], [0.0, 0.5], evidence=evidence, answers={"q0": "Yes, always."}
    )
    read = [first_answers(Run(runs.folder / name), found.case_ids) for name in ("base", "new")]
    (flip,) = found.to_dict(*read)["worse"]
    ranks = {"error": None, "ranks": (1, None)}
    assert flip == {
        "case_id": "q0",
        "question": "About q0?",
        "base": {"score": 1.0, "answer": "Yes, always."} | ranks,
        "new": {"score": 0.0, "answer": "No."} | ranks,
    }
    (unread,) = found.to_dict({}, {})["worse"]
    assert (unread["question"], unread["new"]["answer"]) == ("", None)
    page = Page("", list(flip_blocks(found, read[0], read[1], ("base", "new"))))
    text = markdown([page])
    for part in ("mrr: 0 cases better, 1 worse.", "Got worse: `q0`", "Yes, always.", "No."):
        assert part in text


class TestFailing:
    def comparison(self, runs: Runs) -> Any:
        """mrr (primary) falls, ndcg@5 (exploratory) falls, map@5 (primary) is gone."""
        base = runs.make("base", {"mrr": [1.0] * 9, "ndcg@5": [1.0] * 9, "map@5": [1.0] * 9})
        new = runs.make("new", {"mrr": [0.5] * 9, "ndcg@5": [0.5] * 9, "map@5": [None] * 9})
        return compare_many(base, [new], CompareOptions(metrics=("mrr", "map@5")))

    @pytest.mark.parametrize(
        ("rules", "named"),
        [
            ("worse", ["retrieval.mrr is worse", "retrieval.map@5 is measured in base but not"]),
            ("any-worse", ["retrieval.mrr", "retrieval.map@5", "retrieval.ndcg@5"]),
            ("target", ["retrieval.ndcg@5 met its target > 0.6 in base and misses it in new."]),
            ("safety", []),
            ("cost", []),
            ("ndcg@5", ["retrieval.ndcg@5 is worse in new: -0.5000 over 9 cases"]),
            ("retrieval.mrr, map@5", ["retrieval.mrr", "retrieval.map@5"]),
            ("", []),
        ],
    )
    def test_each_rule_names_its_reasons(self, runs: Runs, rules: str, named: list[str]) -> None:
        found = failures(self.comparison(runs), Names().convert(rules, None, None))
        assert len(found) == len(named)
        for reason, text in zip(found, named, strict=True):
            assert reason.startswith(text)

    def test_a_name_that_nobody_has(self, runs: Runs) -> None:
        with pytest.raises(
            StorageError, match="--fail-on recal: not compared; write worse, target"
        ):
            failures(self.comparison(runs), ["recal"])

    def test_no_evidence_is_no_failure(self, runs: Runs) -> None:
        base = runs.make("base", {"mrr": [1.0] * 4})
        new = runs.make("new", {"mrr": [0.5] * 4})  # p = 2/16
        assert (
            failures([compare(base, new, CompareOptions(metrics=("mrr",)))], ["worse", "mrr"]) == []
        )


def test_a_comparison_reads_each_file_of_scores_once(
    runs: Runs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Clusters, tests, changed cases, flips: all of them look at the same columns."""
    scores = {"base": [1.0, 0.5, 0.25, 1.0] * 5, "new": [1.0, 0.25, 0.5, 0.5] * 5}
    for name, values in scores.items():
        runs.make(name, {"decision_right": [float(v > 0.3) for v in values]}, "abstention")
    base, new = (runs.make(name, {"mrr": values}) for name, values in scores.items())
    files_read: Counter[str] = Counter()

    def counting(address: Any) -> Any:
        files_read["/".join(Path(address).parts[-3:])] += 1
        return open_plain(address)

    monkeypatch.setattr(invariants, "_supports_per_chunk", lambda _: None)  # reads their heads
    monkeypatch.setattr("records.jsonl.open_plain", counting)
    tables = OpenRuns()
    clusters, _ = clusters_of_runs((base, new), tmp_path / "none.jsonl", "auto", tables)
    comparison = compare(base, new, clusters=clusters, tables=tables)
    row = next(row for row in comparison.rows if row.metric == "mrr")
    assert find_flips(base, new, row, 3, tables=tables).worse
    changes_of(read_pair(base, new, tables=tables), 3)
    sections = ("retrieval", "abstention")
    assert files_read == {
        f"{run}/scores/{name}.jsonl": 1 for run in ("base", "new") for name in sections
    }
