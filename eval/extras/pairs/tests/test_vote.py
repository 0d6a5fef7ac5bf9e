"""The vote of a panel: majority of the votes asked, the middle of a scale, missing votes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from tests.rows import each_row

from clients.http import finish
from extras.pairs.votes import Panel, vote
from judging.cost import JudgingTotals
from judging.kinds import FACTS, Material, make_task
from judging.opinion import ask
from records.verdicts import KINDS, QUOTE_UNVERIFIED

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
    opinion = asked(
        panel_of(
            lambda task: verdicts(n1=FEE),
            lambda task: verdicts(n1="contradicted"),
            lambda task: verdicts(n1="not_found"),
        )
    )
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
