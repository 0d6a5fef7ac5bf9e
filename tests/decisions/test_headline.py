"""The first line: every verdict in a sentence, by hand."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.rows import each_row

from decisions.change import Change
from decisions.comparison import Comparison
from decisions.coverage import Coverage
from decisions.effects import Spread, minimum_detectable_effect
from decisions.headline import bot_noise, cases_needed, repeat_advice, repeated_mde, with_headline
from decisions.joint import Headline, PrimaryTable, decide, headline_of
from decisions.metric_words import amounts, finding
from decisions.primary import lead_of
from ragmetrics import catalogue
from ragmetrics.stats.arrays import np
from records.errors import StorageError
from records.targets import Target

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
