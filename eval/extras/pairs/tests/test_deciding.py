"""Pairs of answers: counts, test, interval, habits of the judge; values by hand."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from tests.rows import each_row

from clients.http import finish
from extras.pairs.deciding import (
    LENGTH_LABELS,
    PairHabits,
    decide_pairs,
    habits_of,
    length_bias,
    outcomes_by_case,
)
from extras.pairs.record import BASE, NEW, PairOpinion, PairOrder
from extras.pairs.votes import Panel, vote
from judging.cost import JudgingTotals
from judging.kinds import FACTS, Material, make_task
from judging.opinion import ask
from records.verdicts import KINDS, QUOTE_UNVERIFIED

FIRST, SECOND, EQUAL = "first", "second", "equal"
WINNER = ({FIRST: NEW, SECOND: BASE}, {FIRST: BASE, SECOND: NEW})


def opinion(case: str, one: str, two: str, number: int = 0) -> PairOpinion:
    """``one``: said with the run's answer first; ``two``: with the base's first."""
    orders = [PairOrder(v, WINNER[n].get(v, "")) for n, v in enumerate((one, two))]
    return PairOpinion(case, 0, number, tuple(orders))


@each_row(
    ("one", "two", "outcome"),
    [
        (FIRST, SECOND, 1),  # the run's answer both times
        (SECOND, FIRST, -1),
        (FIRST, FIRST, 0),  # the place
        (SECOND, SECOND, 0),
        (EQUAL, EQUAL, 0),
        (FIRST, EQUAL, 0),  # the same in both orders counts, nothing else
        (EQUAL, FIRST, 0),
        ("quote_unverified", SECOND, 0),
    ],
)
def test_only_the_same_answer_in_both_orders_wins(one: str, two: str, outcome: int) -> None:
    assert opinion("a", one, two).outcome == outcome


def test_equal_answers_are_undecided() -> None:
    assert PairOpinion("a", 0).outcome == 0


def test_opinions_and_repeats_of_a_case_are_averaged() -> None:
    said = [opinion("a", FIRST, SECOND), opinion("a", FIRST, FIRST, 1), opinion("b", SECOND, FIRST)]
    assert outcomes_by_case(said) == {"a": 0.5, "b": -1.0}


def test_counts_p_and_share() -> None:
    """20 won, 12 lost of 100: p is that of 32 fair coins, P(X <= 12) doubled with half of
    P(X = 12): (sum of C(32, k) for k < 12 plus C(32, 12) / 2) / 2^31 = .1628; the share 20/32."""
    values = np.array([1.0] * 20 + [-1.0] * 12 + [0.0] * 68)
    (found,) = decide_pairs([values])
    assert found.line() == "better 20, worse 12, undecided 68 of 100"
    assert found.p == pytest.approx(0.1628, abs=0.01)  # 9,999 flips
    assert found.share == pytest.approx(20 / 32)
    # difference .08, its variance (.32 - .08^2) / 99 with t(99): .08 +- 1.984 * .05628, over .32
    low, high = 0.5 + (0.08 - 0.11167) / 0.64, 0.5 + (0.08 + 0.11167) / 0.64
    assert found.interval == pytest.approx((low, high), abs=0.005)
    assert found.verdict == "no evidence"
    assert "would have been found 4 times in 5" in found.says()
    assert found.smallest is not None
    assert found.share is not None
    assert found.share < found.smallest < 1


def test_twice_as_many_are_a_verdict_and_the_other_way_round_the_opposite() -> None:
    values = np.array([1.0] * 40 + [-1.0] * 16 + [0.0] * 44)
    assert decide_pairs([values])[0].verdict == "better"
    assert decide_pairs([-values])[0].verdict == "worse"


def test_whole_clusters_are_flipped() -> None:
    """The same values in ten documents of six cases: each document counts once."""
    values = np.repeat([1.0, 1, 1, 1, 1, 1, 1, -1, -1, -1], 6)
    assert decide_pairs([values])[0].verdict == "better"  # 42 to 18, as if independent
    (found,) = decide_pairs([values], np.repeat(np.arange(10), 6))
    # 7 to 3 documents: 2 * (1 + 10 + 45 + 120 / 2) / 1024 = .2266
    assert found.p == pytest.approx(2 * (1 + 10 + 45 + 60) / 1024)
    assert (found.verdict, found.clusters) == ("no evidence", 10)


def test_too_few_documents_give_no_verdict() -> None:
    values = np.ones(50)
    (found,) = decide_pairs([values], np.repeat(np.arange(5), 10))
    assert found.verdict == "too few"
    assert "too few independent cases (5)" in found.says()


def test_missing_verdicts_are_no_ties() -> None:
    values = np.array([1.0, np.nan, -1.0, 0.0, np.nan, 1.0, 1.0, 0.0])
    (found,) = decide_pairs([values])
    assert found.line() == "better 3, worse 1, undecided 2 of 6"


@each_row("values", [np.zeros(30), np.full(30, np.nan), np.zeros(0)])
def test_without_a_decided_case_nothing_is_said(values: np.ndarray) -> None:
    (found,) = decide_pairs([values])
    assert (found.share, found.interval, found.smallest) == (None, None, None)
    assert found.verdict in ("no evidence", "too few")


def test_several_runs_are_tested_together() -> None:
    """24 to 10 alone is p = .0174; with nine others that say nothing the largest of ten counts."""
    rng = np.random.default_rng(3)
    one = np.array([1.0] * 24 + [-1.0] * 10 + [0.0] * 66)
    others = [rng.choice([1.0, -1.0, 0.0], 100, p=[0.17, 0.17, 0.66]) for _ in range(9)]
    alone = decide_pairs([one])[0]
    together = decide_pairs([one, *others])[0]
    assert alone.p is not None
    assert together.p is not None
    assert alone.p < 0.05 < together.p


def test_habits() -> None:
    """Places: 4 verdicts first (2 of a, 1 of b, 1 of c), 1 second of b, 1 second of d ... by hand:
    a first, first (the place decides); b first, second (won, longer); c second, first (lost,
    longer: the shorter answer won); d equal, second."""
    said = [opinion("a", FIRST, FIRST), opinion("b", FIRST, SECOND)]
    said += [opinion("c", SECOND, FIRST), opinion("d", EQUAL, SECOND), PairOpinion("e", 0)]
    longer = {("a", 0): 1, ("b", 0): 1, ("c", 0): 1, ("d", 0): -1}
    found = habits_of(said, longer)
    assert found == PairHabits(asked=4, by_order=1, first=4 / 7, longer=1, shorter=1)
    assert found.order_decided == 0.25
    assert PairHabits().order_decided is None


def test_length_by_the_pairs_that_judge_and_people_decided_differently() -> None:
    """Longer is the run's answer everywhere. 9 pairs judge longer and people shorter, 1 the
    reverse: P(X > 9) + P(X = 9) / 2 of ten coins is (1 + 5) / 1024; those on which both agree, and
    ties, say nothing."""
    judge = [1] * 9 + [-1] + [1] * 20 + [0] * 10
    people = [-1] * 9 + [1] + [1] * 20 + [1] * 10
    found = length_bias(judge, people, [1] * 40)
    assert (found.longer, found.shorter, found.labels) == (9, 1, 40)
    assert found.p == pytest.approx(6 / 1024)
    assert found.flagged
    turned = length_bias(judge, people, [-1] * 40)
    assert turned.p == pytest.approx(1 - (1 + 5) / 1024)  # the mirror image
    assert not turned.flagged


def test_length_is_not_tested_below_forty_labels() -> None:
    found = length_bias([1] * 39, [-1] * 39, [1] * 39)
    assert LENGTH_LABELS == 40
    assert (found.p, found.flagged) == (None, False)


def test_a_judge_that_says_what_people_say_has_no_length_bias() -> None:
    found = length_bias([1] * 40, [1] * 40, [1] * 40)
    assert (found.longer, found.shorter, found.p) == (0, 0, 0.5)


def test_lists_of_other_lengths_are_refused() -> None:
    with pytest.raises(ValueError, match="zip"):
        length_bias([1], [1, 0], [1])


SALT = b"s" * 32
SCALE = ("poor", "fair", "good", "fine")
CLAIMS = [{"id": "1", "text": "The fee is 15 euros."}]
CONTEXTS = [{"id": "c1", "text": "The fee is 15 euros."}]
MATERIAL = Material("Q?", "A.", contexts=CONTEXTS, claims=CLAIMS)
FEE, MADE_UP = ("supported", "fee is 15 euros", "c1"), ("supported", "free of charge", "c1")


@each_row(
    ("votes", "scale", "word"),
    [
        (("yes", "yes", "no"), (), "yes"),
        (("yes", "yes", None), (), "yes"),  # 2 of the 3 asked
        (("yes", "no", None), (), None),
        (("yes", None, None), (), None),  # 1 of 3 is no majority, whatever the others are
        (("yes", "yes", "no", "no"), (), None),  # half is not more than half
        (("supported", "contradicted", "not_found"), (), None),
        ((None, None), (), None),
        (("poor", "fine", "good"), SCALE, "good"),
        (("poor", "fine", None), SCALE, "poor"),  # of two the lower
        (("fine", "good", "poor", "fair"), SCALE, "fair"),  # of the two in the middle the lower
        (("fine", None, None), SCALE, None),
        ((True, False, False), (), False),
    ],
)
def test_what_a_vote_says(votes: Sequence[Any], scale: Sequence[str], word: Any) -> None:
    assert vote(votes, scale) == word


@pytest.fixture
def panel_of(scripted: Any) -> Callable[..., Panel]:
    """A panel of judges that answer by these scripts."""

    def make(*scripts: Any) -> Panel:
        judges = [scripted(script, f"judge-{number}") for number, script in enumerate(scripts)]
        for judge in judges:
            judge.totals = JudgingTotals(verdicts=1, cost_usd=0.5)
        return Panel(judges)

    return make


def asked(panel: Panel, material: Material = MATERIAL, name: str = "groundedness") -> Any:
    return finish(ask(panel, KINDS[name], material, salt=SALT))


def test_the_words_are_those_of_the_first_who_says_so(panel_of: Any, verdicts: Any) -> None:
    denies = lambda task: verdicts(n1="not_found")  # noqa: E731
    panel = panel_of(denies, lambda task: verdicts(n1=FEE), lambda task: verdicts(n1=FEE))
    opinion = asked(panel)
    (entry,) = opinion.entries
    assert (entry["verdict"], entry["quote"]) == ("supported", "fee is 15 euros")
    assert opinion.votes == {"1": ["not_found", "supported", "supported"]}
    assert len(opinion.calls) == 3
    assert panel.identity.provider == "panel"
    assert panel.totals.cost_usd == 1.5


def test_a_quote_that_is_nowhere_votes_for_nothing_found(panel_of: Any, verdicts: Any) -> None:
    lies = lambda task: verdicts(n1=MADE_UP)  # noqa: E731
    opinion = asked(panel_of(lies, lambda task: verdicts(n1="not_found"), lambda task: "refused"))
    (entry,) = opinion.entries
    assert entry["verdict"] == "not_found"
    assert opinion.votes == {"1": ["not_found", "not_found", None]}
    assert "refused" in next(iter(opinion.missing_votes.values()))
    alone = asked(panel_of(lies, lies))  # both made it up: the entry is one of theirs
    assert alone.entries[0]["verdict"] == "not_found" != QUOTE_UNVERIFIED


def test_without_a_majority_the_verdict_failed(panel_of: Any, verdicts: Any) -> None:
    replies = [verdicts(n1=said) for said in (FEE, "contradicted", "not_found")]
    opinion = asked(panel_of(*(lambda task, reply=reply: reply for reply in replies)))
    assert (opinion.failure, opinion.entries) == ("no_majority", [])
    assert opinion.votes["1"] == ["supported", "contradicted", "not_found"]
    opinion = asked(panel_of(lambda task: "transport", lambda task: "malformed"))
    assert opinion.failure == "transport"  # nobody voted at all


def test_who_was_not_paid_is_no_missing_vote(panel_of: Any, verdicts: Any) -> None:
    says = lambda task: verdicts(n1=FEE)  # noqa: E731
    assert asked(panel_of(says, says, lambda task: "budget")).failure == "budget"


def test_gold_facts_are_a_scale(panel_of: Any, verdicts: Any) -> None:
    material = Material("Q?", "The fee is 15.", nuggets=[{"id": "n1", "text": "The fee is 15."}])

    def says(word: str) -> Any:
        quote = "" if word == "none" else "fee is 15"
        entry = {"id": "n1", "quote": quote, "reason": "", "verdict": word}
        return lambda task: {"verdicts": [entry]}

    opinion = asked(panel_of(*map(says, ("support", "none", "partial"))), material, "nuggets")
    assert opinion.entries[0]["verdict"] == "partial"


def test_a_list_is_made_once_by_the_first_who_can(panel_of: Any) -> None:
    listed = {"facts": ["The fee is 15 euros."]}
    panel = panel_of(lambda task: "refused", lambda task: listed, lambda task: listed)
    task = make_task(FACTS, Material("Q?", reference="The fee is 15 euros."), salt=SALT)
    assert finish(panel.ask(task)).ok
    assert [len(member.tasks) for member in panel.members] == [1, 1, 0]
