"""Which claims are drawn, what a label then stands for, and what is said of the way to the goal."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from tests.rows import each_row
from tests.validation.judge.judged_run import JudgedRun

from records.claim_labels import ClaimDraw, read_labels
from storage import StorageError
from validation.claims import JudgedClaim, together
from validation.claims import JudgedClaims as Judged
from validation.drawing import class_supply, drawn_claims, label_weights, run_mean, strata_of
from validation.goal import label_goal, labels_more, name_of
from validation.judge import Draws, report
from validation.labels import join


def claim(number: int, verdict: str = "supported", score: float | None = None) -> JudgedClaim:
    name = f"q{number:03d}"
    return JudgedClaim(name, 0, "1", f"Claim {number}.", verdict, score, source=name)


def passed_and_doubted(passed: int, doubted: int) -> list[JudgedClaim]:
    """Claims without a score."""
    verdicts = ["supported"] * passed + ["not_found"] * doubted
    return [claim(number, verdict) for number, verdict in enumerate(verdicts)]


def test_strata_are_the_verdict_and_halves_by_score() -> None:
    claims = [claim(n, "supported", 0.5 + n / 100) for n in range(24)]
    claims += [claim(24 + n, "not_found", n / 100) for n in range(5)]
    strata = strata_of(claims)
    # The 24 passed ones are cut at their middle, 0.62; five are too few to be cut
    assert {strata[one.key] for one in claims[:12]} == {"passed 1/2"}
    assert {strata[one.key] for one in claims[12:24]} == {"passed 2/2"}
    assert {strata[one.key] for one in claims[24:]} == {"doubted"}
    # A judge without scores: its words tell the doubted ones apart, where there are enough
    words = passed_and_doubted(30, 12) + [claim(90 + n, "contradicted") for n in range(3)]
    expected = {"passed": 30, "doubted: not_found": 12, "doubted": 3}
    assert Counter(strata_of(words).values()) == expected


def test_both_classes_come_first_and_a_larger_sample_adds() -> None:
    claims = passed_and_doubted(180, 20)
    drawn = drawn_claims(claims, 100, 7)
    assert drawn_claims(list(reversed(claims)), 60, 7) == drawn[:60]
    assert [item.claim for item in drawn_claims(claims, 100, 8)] != [item.claim for item in drawn]
    doubted = [not item.claim.supported for item in drawn]
    # Half of every ten, until all twenty are drawn with the fortieth; and in no telling order
    assert [sum(doubted[start : start + 10]) for start in range(0, 50, 10)] == [5, 5, 5, 5, 0]
    assert doubted[:10] != [True, False] * 5
    assert doubted[:10] != [False, True] * 5
    assert len({item.claim.key for item in drawn}) == 100
    # Each label says how much of its stratum was drawn up to it: 80 of 180 in the end
    shares = [item.draw.probability for item in drawn if item.claim.supported]
    assert shares == pytest.approx([place / 180 for place in range(1, 81)])
    assert drawn[0].draw.sample == "strata:7"
    assert len(drawn_claims(claims, 500, 7)) == 200


def test_more_labels_go_where_the_judge_is_unsure() -> None:
    # Halves of mean score about .5 and .95: sqrt(.25) to sqrt(.0475), 0.5 to 0.218, which is 70 %
    # of 40 labels to the first: 28
    claims = [claim(n, "supported", 0.5 if n < 50 else 0.95) for n in range(100)]
    drawn = drawn_claims(claims, 40, 0)
    assert Counter(item.draw.stratum for item in drawn) == {"passed 1/2": 28, "passed 2/2": 12}


def test_a_label_stands_for_its_share_of_the_stratum() -> None:
    # 8 passed of which 2 are labelled, 2 doubted of which 2 are: 4 claims a label, and 1
    claims = passed_and_doubted(8, 2)
    drawn = drawn_claims(claims, 4, 0)
    draws = {item.claim.key: item.draw for item in drawn}
    found = label_weights(claims, list(draws), draws)
    assert not found.equal
    assert sorted(found.weights.values()) == pytest.approx([0.4, 0.4, 1.6, 1.6])  # mean 1
    assert found.strata is not None
    # Drawn from all alike (older labels): every label counts the same
    older = label_weights(claims, list(draws), dict.fromkeys(draws, ClaimDraw("random:0")))
    assert (older.equal, set(older.weights.values())) == (True, {1.0})
    # Another judge passes all: what was stored with the labels counts, and no stratum is its own
    other = [replace(one, verdict="supported") for one in claims]
    stored = label_weights(other, list(draws), draws)
    assert stored.weights == pytest.approx(found.weights)
    assert stored.strata is None


def test_figures_are_those_of_all_claims_and_not_of_the_labelled() -> None:
    # The judge passes 80 and doubts 40. 40 of each are labelled: of the passed 10 are unsupported,
    # of the doubted 8 supported. A label of the passed stands for two claims, else for one.
    claims = passed_and_doubted(80, 40)
    drawn = drawn_claims(claims, 80, 0)
    of = {True: 0, False: 0}
    human, draws = {}, {}
    for item in drawn:
        judged = item.claim.supported
        of[judged] += 1
        human[item.claim.key] = int(of[judged] > 10 if judged else of[judged] <= 8)
        draws[item.claim.key] = item.draw
    assert of == {True: 40, False: 40}
    found = report(claims, human, Draws(resamples=20), 0, drawn=draws)
    assert found["weighted"]
    assert found["confusion"]["supported_supported"] == 30  # counts stay counts
    figures = found["figures"]
    # supported: 60 passed, 8 doubted; unsupported: 20 passed, 32 doubted
    assert figures["sensitivity"]["value"] == pytest.approx(60 / 68)
    assert figures["specificity"]["value"] == pytest.approx(32 / 52)
    assert found["prevalence"] == pytest.approx(68 / 120)
    # (60 + 32) / 120 = 23/30 observed; chance (68 * 80 + 52 * 40) / 120² = 47/90
    assert figures["kappa"]["value"] == pytest.approx((23 / 30 - 47 / 90) / (1 - 47 / 90))
    corrected = found["corrected"]
    # 2/3 * 30/40 + 1/3 * 8/40 = 68/120, by strata as by weights
    assert corrected["stratified"]["mean"] == pytest.approx(68 / 120)
    assert corrected["ppi"]["mean"] == pytest.approx(68 / 120)
    assert corrected["labels_only"]["mean"] == pytest.approx(68 / 120)
    low, high = corrected["stratified"]["ci95"]
    assert low < 68 / 120 < high
    assert high - low < corrected["labels_only"]["ci95"][1] - corrected["labels_only"]["ci95"][0]


def test_the_line_says_how_many_labels_are_missing() -> None:
    claims = passed_and_doubted(60, 60)
    order = drawn_claims(claims, 120, 0)
    goal = label_goal(claims, order, "groundedness", {}, 100, 5.0)
    assert "too few" not in goal.opening
    assert "120 judged claims, by the judge's verdicts 60 supported and 60" in goal.opening
    assert "From 30 supported and 30 unsupported on they calibrate" in goal.opening
    names = [name_of(item.claim.key) for item in order]
    assert "0 supported and 0 unsupported (30 each calibrate)" in goal.progress({}, False)
    assert "an interval after about 10 more labels" in goal.progress({}, False)
    few = goal.progress(dict.fromkeys(names[:20], "supported"), False)
    strata = strata_of(claims)
    mean = run_mean(claims, {item.claim.key: 1 for item in order[:20]}, strata)
    assert mean is not None
    half = mean.half_width({"passed": 10, "doubted: not_found": 10})
    assert half is not None
    assert f"faithfulness 100 % ±{100 * half:.1f} points; ±5: about " in few
    # As many more as it says bring the half width to 5 points or less, one fewer does not
    more = int(few.rpartition("about ")[2].split()[0])
    for extra, enough in ((more, True), (more - 1, False)):
        counts = Counter(strata[item.claim.key] for item in order[: 20 + extra])
        width = mean.half_width(counts)
        assert width is not None
        assert (width <= 0.05) is enough
    assert goal.progress(dict.fromkeys(names, "supported"), True).endswith("±5 reached")


def test_what_a_run_cannot_give_is_said_with_what_would() -> None:
    claims = passed_and_doubted(108, 2)
    goal = label_goal(claims, drawn_claims(claims, 110, 0), "groundedness", {}, 100, 5.0)
    assert "the first use only: 2 unsupported claims are too few to calibrate" in goal.opening
    assert "108 supported and 2 unsupported" in goal.opening
    assert "About 15 runs like this would be enough" in goal.opening  # 30 / 2
    # People found ten of the passed ones unsupported: 12 in all, 30 / 12 = 2.5
    human = {one.key: 0 for one in claims[:10]}
    assert class_supply(claims, human).runs_needed(30, 1) == 3
    none = passed_and_doubted(50, 0)
    goal = label_goal(none, drawn_claims(none, 50, 0), "groundedness", {}, 100, 5.0)
    assert "More runs like this will not help" in goal.opening
    assert "doubts" not in goal.opening  # for it doubts none
    tiny = passed_and_doubted(1, 0)
    goal = label_goal(tiny, drawn_claims(tiny, 1, 0), "groundedness", {}, 100, 5.0)
    assert "This run has 1 judged claim, by the judge's verdicts 1 supported" in goal.opening
    assert "neither end" in goal.opening
    assert goal.progress({}, False) == "0 supported and 0 unsupported (30 each calibrate)"
    small = label_goal(passed_and_doubted(60, 60), [], "groundedness", {}, 40, 5.0)
    assert "--set sample=40 is too few" in small.opening


def test_labels_more_is_the_least_number() -> None:
    assert (
        labels_more(lambda counts: counts["a"] >= 3, Counter(a=1), ["b", "a", "b", "a", "a"]) == 4
    )
    assert labels_more(lambda counts: counts["a"] >= 3, Counter(a=3), []) == 0
    assert labels_more(lambda counts: counts["a"] >= 3, Counter(), ["a"]) is None


def test_runs_are_labelled_together_and_equal_answers_count_once(judged_run: JudgedRun) -> None:
    judge = [{"provider": "p"}]
    own = Judged([replace(claim(1), answer="A."), replace(claim(2), answer="B.")], judge, [])
    other = Judged([replace(claim(1), answer="A."), replace(claim(2), answer="C.")], judge, [])
    both = together(own, {"old": other})
    expected = [("q001", 0, "1"), ("q002", 0, "1"), ("old/q002", 0, "1")]
    assert [one.key for one in both.claims] == expected
    lines = [
        {"case_id": "q002", "claim_id": "1", "label": word, "answer_sha256": one.answer_sha256}
        for one, word in zip(both.claims[1:], ("supported", "not_supported"), strict=True)
    ]
    path = judged_run.folder / "maria.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    joined = join(read_labels([path]), both.claims, "groundedness")
    assert joined.human == {("q002", 0, "1"): 1, ("old/q002", 0, "1"): 0}
    # The judge is compared on both runs, the shares are the run's own: 2 of 2 claims
    found = report(both.claims, joined.human, Draws(resamples=20), 0)
    assert (found["n"], found["judged_claims"], found["corrected"]["claim_rate"]) == (2, 3, 1.0)
    with pytest.raises(StorageError, match="another judge"):
        together(own, {"old": Judged(other.claims, [{"provider": "q"}], [])})


@each_row(
    ("fields", "message"),
    [
        ({"stratum": "passed"}, "stratum_size: must be the number of claims"),
        (
            {"stratum": "passed", "stratum_size": 5, "probability": 0},
            "probability: must be above 0",
        ),
        ({"stratum": 3}, "stratum: must be a text"),
    ],
)
def test_a_broken_draw_is_named(tmp_path: Path, fields: dict[str, object], message: str) -> None:
    path = tmp_path / "a.jsonl"
    line = {"case_id": "q", "claim_id": "1", "label": "supported"} | fields
    path.write_text(json.dumps(line) + "\n")
    with pytest.raises(StorageError, match=message):
        read_labels([path])


def test_claims_on_which_a_panel_is_split_come_first() -> None:
    """In every ten, and more often than their share: 10 of 100 claims are split, and by sqrt(p
    (1 - p)) of .5 against .05 they weigh 10 x .5 = 5 against 90 x .218 = 19.6: a fifth."""
    verdicts = ["supported"] * 50 + ["not_found"] * 50
    claims = [replace(claim(n, verdict), split=n % 10 == 0) for n, verdict in enumerate(verdicts)]
    assert Counter(strata_of(claims).values()) == {
        "passed: split": 5,
        "passed: agreed": 45,
        "doubted: split": 5,
        "doubted: agreed": 45,
    }
    drawn = drawn_claims(claims, 20, 7)
    for block in (drawn[:10], drawn[10:]):
        split = [bool(one.claim.split) for one in block]
        assert split == sorted(split, reverse=True)
    # two of either verdict first; a fifth of 20 are 4, so there is none among the next ten yet
    assert [bool(one.claim.split) for one in drawn[:5]] == [True] * 4 + [False]
    assert sum(bool(one.claim.split) for one in drawn_claims(claims, 50, 7)) >= 9
    human = {one.claim.key: int(one.claim.supported) for one in drawn}
    design = label_weights(claims, list(human), {one.claim.key: one.draw for one in drawn})
    # every claim stands for as many as its stratum has, so the labels stand for all 100
    split_weight = sum(w for key, w in design.weights.items() if claims[int(key[0][1:])].split)
    assert split_weight / sum(design.weights.values()) == pytest.approx(0.1)
