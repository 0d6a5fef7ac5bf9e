"""The first line of a comparison and the first screen of a run: every sentence by hand."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.rows import each_row

from decisions.case_rules import Basis, CaseRules
from decisions.case_verdict import Ruling, RunVerdicts
from decisions.change import Change
from decisions.comparison import Comparison
from decisions.coverage import Coverage
from decisions.diagnosis import DiagnosisFinding
from decisions.effects import Spread, minimum_detectable_effect
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
from decisions.headline import bot_noise, cases_needed, repeat_advice, repeated_mde, with_headline
from decisions.joint import Headline, PrimaryTable, decide, headline_of
from decisions.measures import Measure
from decisions.metric_words import amounts, finding
from decisions.primary import lead_of
from ragmetrics import catalogue, retrieval
from ragmetrics.catalogue.cases import RULES
from ragmetrics.matching import Matches
from ragmetrics.stats.arrays import np
from records.errors import StorageError
from records.id_numbers import id_number
from records.targets import Target
from terminal.page import DataColumn, plain_words

SPREAD = Spread(100, 100.0, 0.09, 0.9, 1.0, 1.0)
"""Of 100 cases one in ten changes by 1."""


def row(name: str, base: float, new: float, verdict: Any, **more: Any) -> Change:
    section, _, metric = name.partition(".")
    values: dict[str, Any] = {"primary": True, "n": 100, "units": 100, "p_joint": 0.01} | more
    fixed: dict[str, Any] = {"spread": SPREAD, "mde": 0.08, "critical": 2.4}
    fixed["ones"] = round(100 * base), round(100 * new)
    values = fixed | values
    return Change(
        section, metric, True, base=base, new=new, delta=new - base, verdict=verdict, **values
    )


def said(headline: Headline, *rows: Change, **more: Any) -> list[str]:
    found = Comparison("old", "new", rows, headline, **more)
    return list(with_headline(found, {"context": {"redundancy_tfidf": Target("<", 0.2)}}).says)


RECALL = row("retrieval.evidence_recall@5", 0.68, 0.81, "better")
QUIET = row("pipeline.pass", 0.49, 0.5, "no evidence", noise=(0.0, 0.0))
FELL = row("pipeline.pass", 0.6, 0.48, "worse")


def price(name: str, ratio: float, verdict: str) -> Change:
    section, _, metric = name.partition(".")
    medians = 58.8, 58.8 * ratio
    return Change(section, metric, False, ratio=ratio, verdict=verdict, n=100, medians=medians)  # type: ignore


def test_a_win_says_what_the_others_could_have_shown_and_what_it_costs() -> None:
    redundancy = Change("context", "redundancy_tfidf", False, base_mean=0.186, new_mean=0.206, n=8)
    slower = price("pipeline.latency_ms", 2.4, "worse")
    cheaper = price("pipeline.cost_usd", 0.59, "better")
    assert said("BETTER", RECALL, QUIET, redundancy, slower, cheaper) == [
        "BETTER: finds 81 % of the needed evidence (68 % before).",
        "No fall is shown in 1 other primary metric: a fall of 8 points or more would show.",
        "Calls cost 41 % less.",
        "The median call takes 141 ms (58.8 before), if the load was the same.",
        "Look at targets no longer met: redundancy_tfidf 0.186 → 0.206 (target < 0.2).",
        "Next: gate_run.py --run new --baseline old.",
    ]
    few = said("BETTER", RECALL, replace(redundancy, n=7))
    assert not any(line.startswith("Look at") for line in few)


def test_the_widest_miss_of_a_target_is_named_first() -> None:
    """Recall misses > 0.7 by .2, redundancy misses < 0.2 by .006."""
    aims = {
        "context": {"redundancy_tfidf": Target("<", 0.2)},
        "retrieval": {"evidence_recall@5": Target(">", 0.7)},
    }
    small = Change("context", "redundancy_tfidf", False, base_mean=0.186, new_mean=0.206, n=8)
    large = Change("retrieval", "evidence_recall@5", True, base_mean=0.8, new_mean=0.5, n=8)
    comparison = Comparison("old", "new", (small, large))
    text = next(s for s in with_headline(comparison, aims).says if s.startswith("Look at"))
    assert text.index("evidence_recall@5") < text.index("redundancy_tfidf")


def test_a_win_beside_a_suspected_fall_names_it_first() -> None:
    suspect = row("abstention.decision_right", 0.79, 0.74, "no evidence", look=True)
    first, second = said("BETTER", RECALL, suspect)
    assert first == (
        "BETTER, but right decisions to answer or to decline may have fallen: 79 → 74 of 100. It "
        "finds 81 % of the needed evidence (68 % before)."
    )
    assert second.startswith("Next:"), "nothing is left that could not have fallen unseen"


def test_a_loss_a_trade_off_and_their_next_steps() -> None:
    assert said("WORSE", FELL) == [
        "WORSE: passes every check on 48 of 100 questions (60 before).",
        "Next: see which cases broke: browse_runs.py old new.",
    ]
    first, *_, last = said("MIXED", RECALL, FELL)
    assert first == (
        "MIXED: finds 81 % of the needed evidence (68 % before), but passes every check on 48 of "
        "100 questions (60 before)."
    )
    assert last == (
        "Next: see which cases broke: browse_runs.py old new; before the next comparison, write "
        "which metric counts most as lead under [decide] of eval/targets.toml."
    ), "the winner is never proposed"


def test_nothing_clear_says_what_would_show_it() -> None:
    """D² (1 + cπ) − cuπD − cs² = 0 gives the printed size; as many cases make 4 points."""
    needed = cases_needed(QUIET, 0.04)
    assert needed is not None
    first, then = said("NO CLEAR DIFFERENCE", QUIET)
    assert first == (
        "NO CLEAR DIFFERENCE: 100 cases could miss ±8 points of responses that pass every check."
    )
    assert then == f"To see 4 points, about {-(-needed // 10) * 10} cases are needed."
    *_, last = said("NO CLEAR DIFFERENCE", replace(QUIET, noise=None))
    assert last == (
        "run_eval.py --repeat 2 --limit 30 tells whether asking each question again would help."
    )


def test_repeats_are_advised_where_the_bot_varies_more_than_the_cases() -> None:
    """Of the variance .09 the bot's own is .08: three answers leave .01 + .08 / 3 = .037."""
    noisy = replace(QUIET, noise=(0.08, 0.08 / 3))
    smaller = repeated_mde(noisy)
    assert smaller is not None
    assert smaller < (minimum_detectable_effect(SPREAD, 2.4) or 0)
    assert repeat_advice([noisy]).startswith("pass varies more by the bot than by the cases")
    assert repeat_advice([replace(QUIET, noise=(0.04, 0.0))]) == ""
    assert repeat_advice([replace(QUIET, noise=(0.08, 0.08))]) == "", "repeats take nothing away"
    stability = {"repeats": 2, "metrics": {"pass": {"within": 0.06}}}
    # the base was asked twice, the new run once: .06 (1/2 + 1) now, .06 (2/3) with three each
    assert bot_noise({"stability": stability}, {}, "pass") == pytest.approx((0.09, 0.04))
    assert bot_noise({}, {}, "pass") is None


def test_the_same_within_a_margin_leaves_the_choice_to_the_reader() -> None:
    equal = row("pipeline.pass", 0.5, 0.5, "equal")
    slower = price("pipeline.latency_ms", 1.4, "worse")
    cheaper = price("pipeline.cost_usd", 0.59, "better")
    assert said("SAME", equal, slower, cheaper, margin=0.05) == [
        "SAME within 5 points; calls of the new run cost 41 % less: you choose.",
        "The median call takes 82.3 ms (58.8 before), if the load was the same.",
    ]


def test_a_partial_run_and_a_metric_of_one_run_alone_are_incomplete() -> None:
    lost = {"missing": (0, 40), "asked": (146, 146), "compared": 106}
    rest = {"rest": "NO CLEAR DIFFERENCE", "rest_rows": (replace(QUIET, mde=0.121),)}
    first, then = said("WORSE", FELL, **rest, **lost)
    assert first == (
        "INCOMPLETE: 40 of 146 cases have no result in new (run_eval.py --resume --run-id new); on "
        "the other 106 no difference is clear (could miss ±13 points of responses that pass every "
        "check)."
    )
    assert then == "Next: get these results, score them (eval_suite.py), and compare again."
    (first,) = said("BETTER", RECALL, half=(("pipeline.pass", True),), rest="BETTER")
    assert first == (
        "INCOMPLETE: pipeline.pass is scored in old, not in new; in the others it is better: finds "
        "81 % of the needed evidence (68 % before)."
    )


def test_what_is_missing_hides_nothing_that_is_worse() -> None:
    half = (("groundedness.claim_support_rate", True),)
    first, last = said("WORSE", FELL, half=half, rest="WORSE")
    assert first == (
        "WORSE: passes every check on 48 of 100 questions (60 before); "
        "groundedness.claim_support_rate is scored in old, not in new."
    )
    assert last == "Next: see which cases broke: browse_runs.py old new."
    first = said("MIXED", RECALL, FELL, half=half, rest="MIXED")[0]
    assert first.startswith("MIXED: finds 81 % of the needed evidence")
    lost = {"missing": (0, 40), "asked": (146, 146), "compared": 106}
    first = said("WORSE", FELL, rest="WORSE", rest_rows=(FELL,), **lost)[0]
    assert first == (
        "WORSE: passes every check on 48 of 100 questions (60 before), on the 106 cases that both "
        "runs have results of; 40 of 146 cases have no result in new (run_eval.py --resume "
        "--run-id new)."
    )


def test_few_cases_and_fixed_documents_are_said() -> None:
    few = row("pipeline.pass", 1.0, 0.0, "too few", n=4, units=4)
    assert said("TOO FEW", few) == ["TOO FEW: 4 cases to compare; 6 are needed."]
    scope = "on these 3 documents; other documents may differ"
    first = said("BETTER", RECALL, scope=scope)[0]
    assert first.endswith(f"(68 % before), {scope}.")


def test_a_count_is_said_of_cases_that_were_counted() -> None:
    """146 cases of 0 and 1 are counted; with repeats, and of what is shared out, it is a share; a
    rank is neither."""

    def words(name: str, base: float, new: float, ones: Any = None) -> tuple[Any, str]:
        section, _, metric = name.partition(".")
        found = Change(section, metric, True, base=base, new=new, n=146, ones=ones)
        return amounts(found), finding(found)

    passed = "passes every check on 61 of 146 questions (70 before)"
    assert words("pipeline.pass", 70 / 146, 61 / 146, (70, 61)) == (("70", "61", " of 146"), passed)
    shared = "passes every check on 41.8 % of questions (42.3 % before)"
    assert words("pipeline.pass", 0.423, 0.418) == (("42.3", "41.8", " %"), shared)
    evidence = "finds 79 % of the needed evidence (72 % before)"
    assert words("retrieval.evidence_recall@5", 0.72, 0.79, (105, 115))[1] == evidence
    claims = "supports in an average answer 99.5 % of claims with passages (99 % before)"
    assert words("groundedness.claim_support_rate", 0.989, 0.995)[1] == claims
    early = "how early the first right passage comes: 0.333 (0.500 before)"
    assert words("retrieval.mrr", 0.5, 1 / 3)[1] == early
    assert words("pipeline.pass", 0.5, 0.5)[0] == ("50", "50", " %")
    assert words("judged.correctness", 3.25, 4.0)[0] == ("3.250", "4.000", "")


def test_many_cases_that_changed_both_ways_are_the_news() -> None:
    moved = replace(QUIET, rose=30, fell=30, n=140, mde=0.29)
    assert said("NO CLEAR DIFFERENCE", moved)[0] == (
        "NO CLEAR DIFFERENCE: 60 of 140 cases changed, 30 each way; they could miss ±29 points of "
        "responses that pass every check."
    )
    few = replace(moved, rose=14, fell=13)  # 27 of 140 are under a fifth
    assert "each way" not in said("NO CLEAR DIFFERENCE", few)[0]
    uneven = said("NO CLEAR DIFFERENCE", replace(moved, rose=26, fell=34))[0]
    assert "60 of 140 cases changed, 26 for the better;" in uneven


def test_the_size_of_what_is_proven() -> None:
    """An interval of 1 to 6 points where 5 matter; without a margin, less than a point."""
    small = replace(RECALL, interval=(0.01, 0.06), delta=0.035)
    assert said("BETTER", small, margin=0.05)[0].startswith(
        "BETTER, by 1 to 6 points (5 matter): finds 81 % "
    )
    assert said("BETTER", small)[0].startswith("BETTER: ")
    tiny = replace(RECALL, interval=(0.002, 0.008), delta=0.005)
    assert said("BETTER", tiny)[0].startswith("BETTER, by less than a point: ")
    large = replace(RECALL, interval=(0.06, 0.2), delta=0.13)
    assert said("BETTER", small, large, margin=0.05)[0].startswith("BETTER: "), "one matters"
    within = replace(RECALL, verdict="equal", interval=(0.001, 0.009), delta=0.005)
    assert said("SAME", within, margin=0.05) == [
        "SAME within 5 points (needed evidence in the first 5 passages .5 points higher, not by "
        "chance)."
    ]


LEAD = "retrieval.evidence_recall@5"


def test_the_lead_decides_the_word() -> None:
    first, *_, last = said("BETTER", RECALL, FELL, lead=LEAD)
    assert first == (
        "BETTER in what you lead by: finds 81 % of the needed evidence (68 % before); worse: "
        "passes every check on 48 of 100 questions (60 before)."
    )
    assert last == "Next: see which cases broke: browse_runs.py old new."
    better = row("pipeline.pass", 0.5, 0.6, "better")
    fell = row(LEAD, 0.81, 0.68, "worse")
    assert said("WORSE", fell, better, lead=LEAD)[0] == (
        "WORSE in what you lead by: finds 68 % of the needed evidence (81 % before); better: "
        "passes every check on 60 of 100 questions (50 before)."
    )
    open_lead = row(LEAD, 0.8, 0.79, "no evidence")
    start = "NO CLEAR DIFFERENCE in what you lead by "
    others = "; better: passes every check on 60 of 100 questions (50 before)."
    assert said("NO CLEAR DIFFERENCE", open_lead, better, lead=LEAD)[0] == (
        f"{start}(a fall of 8 points would have been seen){others}"
    )
    suspect = replace(open_lead, look=True)
    assert said("NO CLEAR DIFFERENCE", suspect, better, lead=LEAD)[0] == (
        f"{start}(needed evidence in the first 5 passages may have fallen: 80 → 79 %){others}"
    )
    assert said("WORSE", open_lead, FELL, lead=LEAD)[0].startswith("WORSE: passes every check")
    gone = said("INCOMPLETE", better, lead=LEAD, rest="INCOMPLETE")[0]
    assert gone == (
        f"INCOMPLETE: {LEAD}, which you lead by, has no score in either run; in the others it is "
        "better: passes every check on 60 of 100 questions (50 before)."
    )


@each_row(
    ("lead", "others", "word"),
    [
        ("better", ("worse",), "BETTER"),
        ("worse", ("better", "better"), "WORSE"),
        ("no evidence", ("better", "no evidence"), "NO CLEAR DIFFERENCE"),
        ("equal", ("better",), "NO CLEAR DIFFERENCE"),
        ("no evidence", ("worse",), "WORSE"),
        ("equal", ("better", "worse"), "MIXED"),
        ("no verdict", ("better",), "INCOMPLETE"),
        ("no verdict", ("worse",), "WORSE"),
        ("equal", ("equal",), "SAME"),
    ],
)
def test_the_word_with_a_lead(lead: Any, others: tuple[Any, ...], word: Headline) -> None:
    coverage = Coverage(9)
    rows = [
        Change("x", str(at), True, verdict=verdict, coverage=coverage)
        for at, verdict in enumerate((lead, *others))
    ]
    assert headline_of(rows, "x.0") == word
    assert headline_of(rows[::-1], "x.0") == word


def test_one_row_a_family_at_its_main_cut_off() -> None:
    """The seeds' metrics are always among them."""
    ks = (1, 3, 5, 10)
    names = [row.name for row in catalogue.at_cutoffs(catalogue.SECTIONS["retrieval"].metrics, ks)]
    chosen = catalogue.main_names("retrieval", names)
    seeds = {"recall_any@5", "recall_all@5", "mrr", "precision@5", "f1@5", "ndcg@5"}
    assert seeds | {"scope_miss", "attribution_hit"} <= {*chosen}
    stems = [name.partition("@")[0] for name in chosen]
    assert len(stems) == len(set(stems))
    assert catalogue.main_names("retrieval", ["ndcg@3", "ndcg@10", "mine"]) == ["ndcg@3", "mine"]
    assert "groundedness_judged" in str(catalogue.main_names("judged", ["groundedness_judged"]))


def flips(fall: int, rise: int, n: int = 40) -> tuple[list[float], list[float]]:
    """0/1 scores of which so many fall and rise."""
    base = [1.0] * fall + [0.0] * rise + [1.0] * (n - fall - rise)
    new = [0.0] * fall + [1.0] * rise + [1.0] * (n - fall - rise)
    return base, new


def test_a_lead_metric_is_tested_first_and_the_others_after_it() -> None:
    """7 of 7 changed cases fall: alone p = 2/2^7 / 2 = .0078. As the lead that is .0078 / .8; as
    another one beside a lead that is not significant .0078 / .2 = .039."""
    moved, still = flips(7, 0), flips(2, 2)

    def p_of(lead: str) -> list[float | None]:
        a, b = (np.array([x, y]).T for x, y in zip(moved, still, strict=True))
        table = PrimaryTable(("x.moved", "x.still"), range(40), np.arange(40), a, b)  # type: ignore
        decision = decide(table, lead=lead)
        assert [row.p_worse for row in decision.rows] == gate
        return [row.p_joint for row in decision.rows]

    a, b = (np.array([x, y]).T for x, y in zip(moved, still, strict=True))
    table = PrimaryTable(("x.moved", "x.still"), range(40), np.arange(40), a, b)  # type: ignore
    gate = [row.p_worse for row in decide(table).rows]
    assert p_of("x.moved")[0] == pytest.approx(1 / 2**7 / 0.8)
    assert p_of("x.still")[0] == pytest.approx(1 / 2**7 / 0.2)


def test_a_lead_must_be_a_primary_metric(tmp_path: Path) -> None:
    path = tmp_path / "targets.toml"
    path.write_text('[decide]\nlead = "pipeline.pass"\n')
    assert lead_of(("pipeline.pass",), path) == "pipeline.pass"
    path.write_text('[decide]\nlead = "retrieval.mrr"\n')
    with pytest.raises(StorageError, match=r"lead: retrieval.mrr is no primary metric; name one"):
        lead_of(("pipeline.pass",), path)
    path.write_text('[decide]\nlead = "mrr"\n')
    with pytest.raises(StorageError, match=r"decide\.lead: write section\.metric, such as"):
        lead_of(("pipeline.pass",), path)


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


RECALL_AT_5 = measure("evidence_recall@5", 0.795, "> 0.7")

RUN_PATH = RunPath("run", {"need evidence": 126, "find all of it": 106}, 96, 0.861)


def test_the_gain_of_a_reranker_needs_the_same_answers_and_one_search() -> None:
    """From .795 to .861; not of other answers, of several searches, or for a gain of .001."""

    def said(own: Measure, path: RunPath | None) -> str:
        return rerank_sentence({("retrieval", own.metric): own}, path)

    text = "A perfect reranker would bring evidence_recall@5 from 0.795 to 0.861."
    assert said(RECALL_AT_5, RUN_PATH) == text
    silent = [
        (replace(RECALL_AT_5, per_search=3), RUN_PATH),
        (replace(RECALL_AT_5, n=125), RUN_PATH),
        (replace(RECALL_AT_5, mean=0.86), RUN_PATH),
        (RECALL_AT_5, None),
    ]
    assert [said(*pair) for pair in silent] == [""] * 4
    finding = DiagnosisFinding("x", "It is noisy.", "the ranking.", ())
    measures = {("retrieval", RECALL_AT_5.metric): RECALL_AT_5}
    assert to_do([finding, finding], measures, RUN_PATH) == [
        "It is noisy. Look at the ranking.",
        text,
    ]


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
    name = "recall_all@5 (by document)"
    by_document = {"mean": {name: 9 / 12, "recall_all@5": None}, "n": {name: 12}}
    assert evidence_sentence({"retrieval": by_document}) == (
        "Where labels name files alone, the bot finds all needed evidence in the first 5 passages "
        "for 9 of 12 questions, by document. No target, verdict or failing case counts that; "
        "score_retrieval.py --match doc, after the suite, lets them."
    )


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
    # 45 characters: the id has 10 and the reason 23, so 45 - 10 - 23 - 5 = 7 are left.
    (line,) = worst_blocks([WorstFailure("x" * 10, 0, "without a gold passage", "Who is it?")], 45)
    assert plain_words(line.words) == f"{'x' * 10}: without a gold passage. "  # type: ignore[union-attr]
