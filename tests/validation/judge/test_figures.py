"""The report: figures by hand, what is withheld, slices, corrected means, worst disagreements."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import cohen_kappa_score

from validation.claims import JudgedClaim, Key
from validation.judge import Draws, _disagreements, _labelled_pairs, report

DRAWS = Draws(resamples=200)


def claim(case: int, number: int, verdict: str = "supported", **more: Any) -> JudgedClaim:
    return JudgedClaim(
        f"q{case}", 0, str(number), f"Claim {number}.", verdict, source=f"{case}.md", **more
    )


def judged(table: dict[tuple[int, str], int], per_case: int = 1) -> tuple[list[JudgedClaim], Any]:
    """Claims of which ``table[human, verdict]`` were so labelled and judged."""
    rows = [cell for cell, count in sorted(table.items()) for _ in range(count)]
    claims = [claim(n // per_case, n % per_case, verdict) for n, (_, verdict) in enumerate(rows)]
    human = {one.key: label for one, (label, _) in zip(claims, rows, strict=True)}
    return claims, human


def test_figures_by_hand() -> None:
    claims, human = judged(
        {(1, "supported"): 36, (1, "not_found"): 4, (0, "supported"): 10, (0, "contradicted"): 30}
    )
    found = report(claims, human, DRAWS, 0)
    expected = {"supported_supported": 36, "supported_not": 4, "not_supported": 10, "not_not": 30}
    assert found["confusion"] == expected
    assert (found["n"], found["supported"], found["unsupported"]) == (80, 40, 40)
    assert found["prevalence"] == 0.5
    figures = found["figures"]
    assert figures["sensitivity"]["value"] == 0.9
    assert figures["specificity"]["value"] == 0.75
    assert figures["balanced_accuracy"]["value"] == pytest.approx(0.825)
    # p_o = 66/80; chance: 0.5 * 46/80 + 0.5 * 34/80 = 0.5; kappa = (0.825 - 0.5) / 0.5
    assert figures["kappa"]["value"] == pytest.approx(0.65)
    low, high = figures["kappa"]["ci95"]
    assert low < 0.65 < high
    assert figures["auroc"]["value"] is None  # this judge gives no score
    assert found["threshold"] is None


def test_below_thirty_of_a_class_there_are_no_figures() -> None:
    claims, human = judged({(1, "supported"): 200, (0, "contradicted"): 29})
    found = report(claims, human, DRAWS, 0)
    assert found["too_few"]
    assert found["figures"] is None
    assert found["threshold"] is None
    assert found["corrected"]["rogan_gladen"] is None
    assert found["confusion"]["not_not"] == 29
    claims, human = judged({(1, "supported"): 200, (0, "contradicted"): 30})
    assert report(claims, human, DRAWS, 0)["figures"] is not None


def test_the_rate_is_corrected_by_how_often_the_judge_errs_on_each_side() -> None:
    """It passes 72 of 80 true claims (0.9) and 16 of 80 false ones (specificity 0.8), 88 of 160 in
    all: (0.55 + 0.8 - 1) / (0.9 + 0.8 - 1) = 0.5, which is the share of true claims."""
    claims, human = judged(
        {(1, "supported"): 72, (1, "not_found"): 8, (0, "supported"): 16, (0, "contradicted"): 64}
    )
    corrected = report(claims, human, DRAWS, 0)["corrected"]
    assert corrected["rogan_gladen"]["mean"] == pytest.approx(0.5)


def test_a_perfect_judge_keeps_an_honest_interval() -> None:
    claims, human = judged({(1, "supported"): 40, (0, "contradicted"): 30})
    figures = report(claims, human, DRAWS, 0)["figures"]
    assert figures["specificity"]["value"] == 1.0
    # Every draw gives 1.0; Wilson knows that 30 of 30 leaves 1.96² / (30 + 1.96²) = 0.1135 open
    low, high = figures["specificity"]["ci95"]
    assert (low, high) == (pytest.approx(1 - 0.1135, abs=1e-3), 1.0)


def test_slices_show_counts_and_figures_where_there_are_enough() -> None:
    claims, human = judged(
        {(1, "supported"): 18, (1, "not_found"): 2, (0, "supported"): 3, (0, "contradicted"): 9}
    )
    claims = [replace(one, slices={"category": "factual"}) for one in claims]
    claims[0] = replace(claims[0], slices={"category": "reasoning"})
    by = report(claims, human, DRAWS, 0)["by"]["category"]
    assert set(by) == {"factual", "reasoning"}
    # The first claim (people 0, judge contradicted) is in the other slice: 8 of 11 are found here
    expected = (31, 11, 26)
    assert (by["factual"]["n"], by["factual"]["unsupported"], by["factual"]["agree"]) == expected
    assert by["factual"]["specificity"] == pytest.approx(8 / 11)
    assert by["factual"]["sensitivity"] == 0.9
    assert (by["reasoning"]["n"], by["reasoning"]["kappa"]) == (1, None)


def test_whole_answers_are_graded_0_to_5() -> None:
    # Three answers of two claims. People: 2, 1, 0 supported (5, 3, 0, a half counts up);
    # judge: 2, 2, 0 (5, 5, 0)
    claims = [claim(case, n, "supported") for case in (0, 1) for n in (1, 2)]
    claims += [claim(2, n, "not_found") for n in (1, 2)]
    labels = (1, 1, 1, 0, 0, 0)
    human = {one.key: label for one, label in zip(claims, labels, strict=True)}
    found = report(claims, human, DRAWS, 0)["answers"]
    assert found["n"] == 3
    assert found["weighted_kappa"] == pytest.approx(
        cohen_kappa_score([5, 3, 0], [5, 5, 0], weights="quadratic", labels=range(6))
    )
    del human[claims[0].key]  # an answer that is labelled in part does not count
    assert report(claims, human, DRAWS, 0)["answers"]["n"] == 2


def test_corrected_means_by_hand() -> None:
    # Four cases of one claim; the judge passes all, people know three: 1, 1, 0.
    claims = [claim(case, 1) for case in range(4)]
    human: dict[Key, int] = {claims[0].key: 1, claims[1].key: 1, claims[2].key: 0}
    found = report(claims, human, DRAWS, 0)["corrected"]
    assert (found["claim_rate"], found["faithfulness"], found["groundedness"]) == (1, 1, 5)
    assert found["ppi"] is None  # three labels are too few
    # Sixty cases, half labelled: 20 supported, 10 not: 1 + (20 - 30) / 30
    claims = [claim(case, 1) for case in range(60)]
    human = {one.key: int(place < 20) for place, one in enumerate(claims[:30])}
    found = report(claims, human, DRAWS, 0)["corrected"]
    assert found["ppi"]["mean"] == pytest.approx(2 / 3)
    assert found["ppi"]["ci95"][0] < 2 / 3 < found["ppi"]["ci95"][1]
    assert found["labels_only"]["mean"] == pytest.approx(2 / 3)


def test_when_all_is_labelled_nothing_is_corrected() -> None:
    claims, human = judged({(1, "supported"): 40, (0, "contradicted"): 40})
    found = report(claims, human, DRAWS, 0)["corrected"]
    assert (found["ppi"], found["ppi_plus"]) == (None, None)
    assert found["labels_only"]["mean"] == 0.5
    assert found["rogan_gladen"]["mean"] == 0.5


def test_threshold_is_fitted_on_one_half_and_shown_on_the_other() -> None:
    # Supported claims score 0.8, others 0.6, and the judge passes from 0.5 on: all. A cut at 0.7
    # is perfect on any half.
    rows = [(n % 2, 0.8 if n % 2 else 0.6) for n in range(80)]
    claims = [claim(n, 1, score=score) for n, (_, score) in enumerate(rows)]
    human = {one.key: label for one, (label, _) in zip(claims, rows, strict=True)}
    found = report(claims, human, DRAWS, 0)
    assert found["figures"]["auroc"]["value"] == 1.0
    assert found["threshold"]["cut"] == pytest.approx(0.7)
    assert found["threshold"]["test_balanced_accuracy"] == 1.0
    assert found["threshold"]["present_balanced_accuracy"] == 0.5
    assert found["threshold"]["fit_n"] == 40


def test_worst_are_false_passes_the_surest_first() -> None:
    claims = [
        claim(0, 1, "not_found", score=0.1),
        claim(1, 1, "supported", score=0.6),
        claim(2, 1, "supported", score=0.9),
        claim(3, 1, "supported", score=0.9),
    ]
    human = {claims[0].key: 1, claims[1].key: 0, claims[2].key: 0, claims[3].key: 1}
    pairs = _labelled_pairs(claims, human, dict.fromkeys(human, 1.0))
    found = _disagreements(pairs, 10)
    assert [row["case_id"] for row in found] == ["q2", "q1", "q0"]
    assert [row["human"] for row in found] == ["not_supported", "not_supported", "supported"]
    assert len(_disagreements(pairs, 1)) == 1


def test_the_same_seed_gives_the_same_report() -> None:
    claims, human = judged({(1, "supported"): 35, (1, "x"): 5, (0, "supported"): 5, (0, "x"): 30})
    assert report(claims, human, DRAWS, 3) == report(claims, human, DRAWS, 3)


@given(
    st.lists(st.tuples(st.integers(0, 1), st.sampled_from(["supported", "no"])), min_size=1),
    st.integers(1, 3),
)
def test_everything_stays_in_its_range(rows: list[tuple[int, str]], per_case: int) -> None:
    claims = [claim(n // per_case, n % per_case, said) for n, (_, said) in enumerate(rows * 30)]
    labels = [label for label, _ in rows * 30]
    human = {one.key: label for one, label in zip(claims, labels, strict=True)}
    found = report(claims[: len(rows)] + claims, human, Draws(resamples=20), 2)
    for row in (found["figures"] or {}).values():
        assert row["value"] is None or -1 <= row["value"] <= 1
    for name in ("ppi", "ppi_plus", "labels_only", "rogan_gladen"):
        row = found["corrected"][name]
        assert row is None or 0 <= row["ci95"][0] <= row["mean"] <= row["ci95"][1] <= 1
