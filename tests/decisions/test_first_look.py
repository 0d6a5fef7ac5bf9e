"""The first screen of a run: what is shown, in which order, and what a reranker could bring."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.rows import each_row

from decisions.case_rules import Basis, CaseRules
from decisions.case_verdict import Ruling, RunVerdicts
from decisions.diagnosis import DiagnosisFinding
from decisions.evidence_path import RunPath, reachable
from decisions.first_look import (
    WorstFailure,
    evidence_sentence,
    first_measures,
    rerank_sentence,
    target_table,
    to_do,
    worst_blocks,
    worst_cases,
)
from decisions.measures import Measure
from ragmetrics import retrieval
from ragmetrics.catalogue.cases import RULES
from ragmetrics.matching import Matches
from records.id_numbers import id_number
from terminal.page import DataColumn, plain_words


@each_row(
    ("ranks", "groups", "share"),
    [
        ([3, None], (), 0.5),  # one of two supports was retrieved
        ([7, 9, 11], (), 1.0),  # three passages fit into five
        ([1, 2, 3, 4, 5, 6, 7, None], (), 5 / 8),  # seven passages: five fit, of eight supports
        ([4, 4, 4, 1, 2, 3, 8, 9], (), 7 / 8),  # rank 4 has three supports: 3 + 1 + 1 + 1 + 1
        ([None, 8, 9], [[0], [1, 2]], 1.0),  # the second group is enough by itself
        ([None, None, 9], [[0], [1, 2]], 0.5),
    ],
)
def test_what_the_best_order_reaches_by_hand(
    ranks: list[int | None], groups: list[list[int]], share: float
) -> None:
    assert reachable(ranks, groups) == pytest.approx(share)


@given(st.lists(st.none() | st.integers(1, 12), min_size=1, max_size=9))
def test_the_best_order_is_never_worse_than_the_retrieved_one(ranks: list[int | None]) -> None:
    """evidence_recall@5 of the passages as they are, by the metric itself."""
    hits = sorted({rank for rank in ranks if rank is not None})
    ranking = retrieval.ranking(Matches(ranks, hits), [1] * len(ranks), None, 12)
    assert reachable(ranks) >= retrieval.evidence_recall(ranking, 5) - 1e-9


def measure(metric: str, mean: float, target: str | None = None, n: int = 126) -> Measure:
    passed = None if target is None else mean > float(target.split()[-1])
    return Measure("retrieval", metric, mean, None, n, 0, 0, "", True, target, passed)


RECALL = measure("evidence_recall@5", 0.795, "> 0.7")

PATH = RunPath("run", {"need evidence": 126, "find all of it": 106}, 96, 0.861)


def test_the_gain_of_a_reranker_needs_the_same_answers_and_one_search() -> None:
    """From .795 to .861; not of other answers, of several searches, or for a gain of .001."""

    def said(own: Measure, path: RunPath | None) -> str:
        return rerank_sentence({("retrieval", own.metric): own}, path)

    text = "A perfect reranker would bring evidence_recall@5 from 0.795 to 0.861."
    assert said(RECALL, PATH) == text
    silent = [
        (replace(RECALL, per_search=3), PATH),
        (replace(RECALL, n=125), PATH),
        (replace(RECALL, mean=0.86), PATH),
        (RECALL, None),
    ]
    assert [said(*pair) for pair in silent] == [""] * 4
    finding = DiagnosisFinding("x", "It is noisy.", "the ranking.", ())
    measures = {("retrieval", RECALL.metric): RECALL}
    assert to_do([finding, finding], measures, PATH) == ["It is noisy. Look at the ranking.", text]


def test_missed_targets_come_first_by_how_far_they_are_missed() -> None:
    """``b`` is primary and missed by .1, ``far`` by .5, ``near`` by .2 of .8; ``wide``, which has
    no range, by .9 of 3; ``a`` is met; ``free`` has no target; ``other`` is met and decides
    nothing."""
    rows = [
        measure("free", 0.5),
        measure("a", 0.9, "> 0.8"),
        measure("b", 0.7, "> 0.8"),
        measure("near", 0.6, "> 0.8"),
        measure("far", 0.3, "> 0.8"),
        replace(measure("wide", 3.9, "< 3"), passed=False),
        measure("other", 0.9, "> 0.8"),
    ]
    measures = {(row.section, row.metric): row for row in rows}
    primary = ["retrieval.free", "retrieval.a", "retrieval.b", "judged.none"]
    shown = first_measures(measures, primary)
    assert [row.metric for row in shown] == ["b", "far", "wide", "near", "a", "free"]
    tone = target_table(shown).tone
    assert tone is not None
    assert [tone(row) for row in shown] == ["bad", "bad", "bad", "bad", "quiet", None]
    target = next(c for c in target_table(shown).columns if getattr(c, "name", "") == "target")
    assert isinstance(target, DataColumn)
    few = replace(rows[1], passed=None)
    hint = replace(rows[0], advisory="advisory > 0.4")
    cells = [target.cell(row) for row in (rows[2], rows[1], few, rows[0], hint)]
    assert cells == ["> 0.8 ✗", "> 0.8 ✓", "> 0.8 ?", "", "advisory > 0.4"]


def test_the_sentence_counts_questions_with_all_their_evidence() -> None:
    """.761905 x 126 = 96; repeats are shares, for their mean counts no questions."""
    section = {"mean": {"recall_all@5": 96 / 126}, "n": {"recall_all@5": 126}}
    start = "Finds all needed evidence in the first 5 passages for"
    assert evidence_sentence({"retrieval": section}) == f"{start} 96 of 126 questions."
    repeated = section | {"stability": {"x": 1}}
    assert evidence_sentence({"retrieval": repeated}) == f"{start} 76 % of questions."
    assert evidence_sentence({"context": section}) == ""


def test_the_worst_cases_are_those_with_the_most_harmful_reasons(tmp_path: Path) -> None:
    """In the order of harm: answered, no gold, refused. ``flagged`` fails for the reason
    ``refused``, though a forbidden flag came with it. ``half`` fails in one of three answers."""
    bits = {rule.name: 1 << at for at, rule in enumerate(RULES)}
    broken = {
        "flagged": [bits["refused"] | bits["forbidden_flag"]],
        "lost": [bits["no_gold"]],
        "half": [0, bits["answered"], 0],
        "false": [bits["outcome"], bits["answered"]],
        "ok": [0],
        "gone": [bits["answered"]],
    }
    lines = (
        json.dumps({"id": name, "question": f"{name}?"}) + "\n" for name in broken if name != "gone"
    )
    (tmp_path / "set.jsonl").write_text("".join(lines))
    verdicts = RunVerdicts(Ruling(CaseRules(), Basis()))
    for name, answers in broken.items():
        for repeat, own in enumerate(answers):
            verdicts.broken[verdicts.number(id_number(name), repeat)] = own
    worst = worst_cases(verdicts, tmp_path / "set.jsonl", None)
    assert worst == [
        WorstFailure("false", 1, "answered though unanswerable", "false?"),
        WorstFailure("lost", 0, "without a gold passage", "lost?"),
        WorstFailure("flagged", 0, "declined an answerable question", "flagged?"),
    ]
    assert worst_cases(verdicts, tmp_path / "none.jsonl", None) == []
    first, _, _ = worst_blocks(worst, 60)
    assert plain_words(first.words) == "false: answered though unanswerable. false?"  # type: ignore[union-attr]


def test_a_line_leaves_out_a_question_that_has_no_room() -> None:
    """45 characters: the id has 10 and the reason 23, so 45 - 10 - 23 - 5 = 7 are left."""
    (line,) = worst_blocks([WorstFailure("x" * 10, 0, "without a gold passage", "Who is it?")], 45)
    assert plain_words(line.words) == f"{'x' * 10}: without a gold passage. "  # type: ignore[union-attr]
