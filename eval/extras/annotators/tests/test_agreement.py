"""Annotators side by side; expected values by hand."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from extras.annotators.agreement import (
    AnnotatorLabel,
    _compare,
    _graded_pairs,
    agreement,
    disagreement,
    labels_of,
)
from extras.annotators.kappa import cohen_kappa, overlap, positive_agreement, raw_agreement

Record = dict[str, Any]
FREE = ("guide.md", "Plans > Free")


def rows(**grades: float | None) -> list[Record]:
    return [
        {"key": key, "rel_path": f"{key}.md", "heading_path": "H", "grade": grade}
        for key, grade in grades.items()
    ]


def judged(state: str, grades: dict[str, float | None], supports: list[str]) -> Record:
    return {
        "decision": state,
        "confirmed": True,
        "answerable": state == "answerable",
        "gold_supports": [{"rel_path": f"{name}.md", "heading_path": "H"} for name in supports],
        "rows": rows(**grades),
    }


CASES = {f"q{n}": {"id": f"q{n}", "question": "?"} for n in range(1, 5)}
# q1: of five rows both saw four: both marked a; only B marked b; c and d neither.
# q2: A says answerable (marks a), B unanswerable. q3: both unanswerable. q4: only A.
ANNA = {
    "q1": judged("answerable", {"a": 3, "b": 0, "c": 0, "d": 0, "e": None}, ["a"]),
    "q2": judged("answerable", {"a": 2, "b": 0}, ["a"]),
    "q3": judged("unanswerable", {}, []),
    "q4": judged("answerable", {"a": 2}, ["a"]),
}
BEN = {
    "q1": judged("answerable", {"a": 2, "b": 2, "c": 0, "d": 0, "e": 0}, ["a", "b"]),
    "q2": judged("unanswerable", {"a": 0, "b": 0}, []),
    "q3": judged("unanswerable", {}, []),
    "q5": judged("answerable", {}, []),
}


@pytest.fixture
def both() -> dict[str, dict[str, AnnotatorLabel]]:
    return {"anna": labels_of(CASES, ANNA, "anna"), "ben": labels_of(CASES, BEN, "ben")}


def test_verdicts_are_the_decided_cases(both: dict[str, dict[str, AnnotatorLabel]]) -> None:
    assert list(both["anna"]) == ["q1", "q2", "q3", "q4"]
    assert list(both["ben"]) == ["q1", "q2", "q3"], "q5 is no case of the set"
    skipped = {"q1": {"decision": "skipped", "confirmed": False}}
    assert labels_of(CASES, skipped, "x") == {}


def test_the_set_itself_is_an_annotator() -> None:
    cases: dict[str, Record] = {
        "a": {"id": "a", "question": "?", "gold_supports": [{"rel_path": "x.md", "grade": 1}]},
        "b": {"id": "b", "question": "?"},
    }
    found = labels_of(cases, {}, "gold")
    assert list(found) == ["a"]
    assert found["a"].marks == {("x.md", ""): 1.0}


def test_figures_by_hand(both: dict[str, dict[str, AnnotatorLabel]]) -> None:
    found = _compare("anna", both["anna"], "ben", both["ben"])
    assert found["cases"] == 3
    # States: (ans, ans) (ans, un) (un, un): p_o = 2/3; p_e = (2*1 + 1*2)/9 = 4/9;
    # kappa = (2/3 - 4/9)/(5/9) = 2/5.
    assert found["state"]["raw"] == pytest.approx(2 / 3)
    assert found["state"]["kappa"] == pytest.approx(0.4)
    # Marks: q1 a(1,1) b(0,1) c(0,0) d(0,0), e not seen by A; q2 a(1,0) b(0,0): n = 6.
    # p_o = 4/6; A marks 2, B marks 2: p_e = (2*2 + 4*4)/36 = 5/9; kappa = (2/3-5/9)/(4/9) = 1/4.
    # Positive: 2*1/(2+2) = 1/2; overlap: 1/3.
    marks = found["marks"]
    assert marks["n"] == 6
    assert marks["raw"] == pytest.approx(2 / 3)
    assert marks["kappa"] == pytest.approx(1 / 4)
    assert marks["positive"] == pytest.approx(1 / 2)
    assert marks["overlap"] == pytest.approx(1 / 3)
    # q1 alone: p_o = 3/4; A marks 1, B 2 of 4: p_e = (1*2 + 3*2)/16 = 1/2; kappa = 1/2.
    question = found["questions"][0]
    assert (question["id"], question["raw"], question["kappa"]) == ("q1", 0.75, 0.5)
    assert found["questions"][2]["kappa"] is None, "no row to judge"


def test_an_interval_needs_ten_questions() -> None:
    cases = {f"q{n}": {"id": f"q{n}", "question": "?"} for n in range(12)}
    first = {
        c: judged("answerable" if n % 2 else "unanswerable", {}, []) for n, c in enumerate(cases)
    }
    other = {
        c: judged("answerable" if n % 3 else "unanswerable", {}, []) for n, c in enumerate(cases)
    }
    a, b = labels_of(cases, first, "a"), labels_of(cases, other, "b")
    found = _compare("a", a, "b", b)["state"]
    low, high = found["kappa_ci95"]
    assert -1 <= low <= found["kappa"] <= high <= 1
    few = {c: a[c] for c in list(a)[:9]}
    assert _compare("a", few, "b", b)["state"]["kappa_ci95"] is None


def test_disagreements_are_listed(both: dict[str, dict[str, AnnotatorLabel]]) -> None:
    found = _compare("anna", both["anna"], "ben", both["ben"])["disagreements"]
    assert [(item["id"], item["what"]) for item in found] == [
        ("q1", "needs"),
        ("q1", "b.md > H #b"),
        ("q2", "state"),
        ("q2", "a.md > H #a"),
    ]
    assert found[2] == {"id": "q2", "what": "state", "a": "answerable", "b": "unanswerable"}


def test_rows_of_one_annotator_against_supports_of_the_other() -> None:
    # The set's labels are headings; B's rows stand under them.
    gold = AnnotatorLabel("answerable", {("guide.md", "Plans"): 3.0})
    ben = AnnotatorLabel(
        "answerable",
        {FREE: 2.0},
        {"k1": (FREE, 2.0), "k2": (("guide.md", "Limits"), 0.0), "k3": (("faq.md", ""), 2.0)},
    )
    pairs = _graded_pairs(gold, ben)
    assert sorted(pairs.values()) == [(0.0, 0.0), (0.0, 2.0), (3.0, 2.0)]
    assert sorted(_graded_pairs(ben, gold).values()) == [(0.0, 0.0), (2.0, 0.0), (2.0, 3.0)]
    assert _graded_pairs(gold, gold) == {("guide.md", "Plans"): (3.0, 3.0)}


def test_all_annotators_together(both: dict[str, dict[str, AnnotatorLabel]]) -> None:
    found = agreement({**both, "carl": {"q1": AnnotatorLabel("unanswerable", {})}})
    assert [(pair["a"], pair["b"]) for pair in found["pairs"]] == [
        ("anna", "ben"),
        ("anna", "carl"),
        ("ben", "carl"),
    ]
    # Units (a,a,u) (a,u) (u,u): D_o = 2*(2*1)/2 + 2 = 2 + 2 = 4; totals a 3, u 4, n 7.
    # alpha = 1 - 6*4 / (2*3*4) = 0.
    assert found["alpha_state"] == pytest.approx(0)


def test_what_two_annotators_differ_on_most(both: dict[str, dict[str, AnnotatorLabel]]) -> None:
    # q1: overlap 1/2; q2: another state, and no mark of A's is B's; q3: agreed.
    assert disagreement(both) == pytest.approx({"q1": 0.5, "q2": 2.0, "q3": 0.0})


LABELS = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=40)


def marks(both: int, only_a: int, only_b: int, neither: int) -> tuple[list[bool], list[bool]]:
    """Two annotators' marks with the given counts."""
    a = [True] * both + [True] * only_a + [False] * only_b + [False] * neither
    b = [True] * both + [False] * only_a + [True] * only_b + [False] * neither
    return a, b


def test_two_marks_each_one_shared_among_twenty() -> None:
    # p_o = 18/20; each marks 2 of 20, so p_e = .1*.1 + .9*.9 = .82; kappa = .08/.18 = 4/9.
    # Dice = 2*1/(2+2) = 1/2; Jaccard = 1/3.
    a, b = marks(1, 1, 1, 17)
    assert raw_agreement(a, b) == pytest.approx(0.9)
    assert cohen_kappa(a, b) == pytest.approx(4 / 9)
    assert positive_agreement(a, b) == pytest.approx(0.5)
    assert overlap(a, b) == pytest.approx(1 / 3)


def test_kappa_is_undefined_where_both_always_say_the_same() -> None:
    assert cohen_kappa([True] * 5, [True] * 5) is None
    assert cohen_kappa([], []) is None
    assert raw_agreement([], []) is None
    assert positive_agreement([False], [False]) is None
    assert overlap([False], [False]) is None


def test_lists_of_different_length_are_refused() -> None:
    with pytest.raises(ValueError, match=r"zip|longer|shorter"):
        cohen_kappa([1, 2], [1])


@settings(deadline=None)  # the first call imports scikit-learn
@given(LABELS)
def test_kappa_equals_scikit_learn(pairs: list[tuple[int, int]]) -> None:
    from sklearn.metrics import cohen_kappa_score

    a, b = [x for x, _ in pairs], [y for _, y in pairs]
    ours = cohen_kappa(a, b)
    if ours is not None:
        assert ours == pytest.approx(cohen_kappa_score(a, b), abs=1e-12)


@given(LABELS)
def test_ranges_and_symmetry(pairs: list[tuple[int, int]]) -> None:
    a, b = [x for x, _ in pairs], [y for _, y in pairs]
    for figure in (cohen_kappa, raw_agreement):
        value = figure(a, b)
        assert value == figure(b, a)
        assert value is None or (-1 <= value <= 1 and math.isfinite(value))
        assert figure(a, a) in (None, 1)
    one, other = [x > 1 for x in a], [y > 1 for y in b]
    dice, jaccard = positive_agreement(one, other), overlap(one, other)
    assert (dice is None) == (jaccard is None)
    if dice is not None and jaccard is not None:
        # J = D / (2 - D) for any two sets
        assert jaccard == pytest.approx(dice / (2 - dice))
