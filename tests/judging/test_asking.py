"""One opinion: missing ids, foreign ids, quotes that stand nowhere, failures."""

from __future__ import annotations

from typing import Any

from tests.rows import each_row

from clients.http import finish
from judging.kinds import Material
from judging.opinion import ask
from judging.types import FAILURES, JudgeTask, JudgeVerdict
from records.verdicts import KINDS

SALT = b"s" * 32
CONTEXTS = [
    {"id": "c1", "text": "The fee is 15 euros."},
    {"id": "c2", "text": "The tour begins at noon."},
]
CLAIMS = [
    {"id": "1", "text": "The fee is 15 euros."},
    {"id": "2", "text": "The tour begins at noon."},
    {"id": "3", "text": "Dogs are welcome."},
]
MATERIAL = Material("Q?", "A.", contexts=CONTEXTS, claims=CLAIMS)
FEE, NOON = ("supported", "fee is 15 euros", "c1"), ("supported", "begins at noon", "c2")


def asked(scripted: Any, reply: Any, kind: str = "groundedness", of: Material = MATERIAL) -> Any:
    """The opinion, and the judge, which answers by a reply or by a function of the task."""
    judge = scripted(reply if callable(reply) else lambda task: reply)
    return finish(ask(judge, KINDS[kind], of, salt=SALT)), judge


def test_every_item_once_in_order(scripted: Any, verdicts: Any) -> None:
    opinion, judge = asked(scripted, verdicts(n3="not_found", n1=FEE, n2=NOON))
    assert [e["id"] for e in opinion.entries] == ["1", "2", "3"]
    assert [e["verdict"] for e in opinion.entries] == ["supported", "supported", "not_found"]
    assert len(judge.tasks) == 1


def test_only_missing_items_are_asked_again(scripted: Any, verdicts: Any) -> None:
    replies = iter([verdicts(n1=FEE), verdicts(n2=NOON, n3="not_found")])
    opinion, judge = asked(scripted, lambda task: next(replies))
    assert [task.inputs["ids"] for task in judge.tasks] == [["1", "2", "3"], ["2", "3"]]
    assert [e["verdict"] for e in opinion.entries] == ["supported", "supported", "not_found"]
    assert opinion.more_calls[0]["why"] == "missing"


def test_what_stays_missing_is_a_failure_and_no_verdict(scripted: Any, verdicts: Any) -> None:
    opinion, judge = asked(scripted, verdicts(n1=FEE))
    assert (opinion.failure, opinion.entries) == ("incomplete", [])
    assert "2, 3" in opinion.message
    assert [task.inputs["ids"] for task in judge.tasks] == [["1", "2", "3"], ["2", "3"]]


@each_row("kind", [KINDS["groundedness"], KINDS["context_precision"], KINDS["correctness"]])
def test_stored_replies_that_lack_ids_are_a_failure(
    scripted: Any, verdicts: Any, kind: Any
) -> None:
    """A cache gives what was once taken for whole; it is not checked again on its way."""
    judge = scripted(lambda task: "")

    async def stored(task: JudgeTask) -> JudgeVerdict:
        return JudgeVerdict("k", verdicts(n99="supported"), cached=True)

    judge.ask = stored
    material = Material("Q?", "A.", contexts=CONTEXTS[:1], claims=CLAIMS, facts=FACTS)
    opinion = finish(ask(judge, kind, material, salt=SALT))
    assert (opinion.failure, opinion.entries) == ("incomplete", [])
    assert "no verdict for the id" in opinion.message


def test_foreign_ids_are_dropped_and_counted(scripted: Any, verdicts: Any) -> None:
    reply = verdicts(n1=FEE, n2=NOON, n3="not_found", n4=FEE, n99="supported")
    opinion, _ = asked(scripted, reply | {"manipulation": True})
    assert (opinion.dropped, len(opinion.entries), opinion.manipulation) == (2, 3, True)


def test_a_quote_is_asked_for_once_more_then_unverified(scripted: Any, verdicts: Any) -> None:
    invented = ("supported", "dogs are very welcome here", "c1")
    opinion, judge = asked(scripted, verdicts(n1=FEE, n2=NOON, n3=invented))
    assert [task.inputs["ids"] for task in judge.tasks] == [["1", "2", "3"], ["3"]]
    assert "letter by letter" in judge.tasks[1].messages[1]["content"]
    last = opinion.entries[2]
    assert (last["verdict"], last["said"]) == ("quote_unverified", "supported")
    assert opinion.dropped == 2  # the follow-up asked about 3 alone


def test_a_follow_up_may_change_its_mind(scripted: Any, verdicts: Any) -> None:
    bad = verdicts(n1=FEE, n2=NOON, n3=("supported", "nowhere at all", "c1"))
    replies = iter([bad, verdicts(n3="not_found")])
    opinion, _ = asked(scripted, lambda task: next(replies))
    assert (opinion.entries[2]["verdict"], opinion.failure) == ("not_found", None)


def test_a_contradiction_needs_no_quote(scripted: Any, verdicts: Any) -> None:
    opinion, _ = asked(scripted, verdicts(n1="contradicted", n2=NOON, n3="not_found"))
    assert opinion.entries[0]["verdict"] == "contradicted"


@each_row("kind", sorted(FAILURES))
@each_row("at", [1, 2])
def test_no_failure_becomes_a_verdict(scripted: Any, verdicts: Any, kind: str, at: int) -> None:
    """At the first call, or when missing ids are asked again."""
    replies = iter([*[verdicts(n1=FEE)] * (at - 1), kind])
    opinion, _ = asked(scripted, lambda task: next(replies))
    assert (opinion.failure, opinion.entries) == (kind, [])


def test_a_failed_check_of_quotes_is_a_failure(scripted: Any, verdicts: Any) -> None:
    bad = ("supported", "nowhere at all", "c1")
    replies = iter([verdicts(n1=FEE, n2=NOON, n3=bad), "transport"])
    assert asked(scripted, lambda task: next(replies))[0].failure == "transport"


FACTS = [{"id": "f1", "text": "The fee is 15 euros."}]
SAID = Material("Q?", "It costs 15 euros.", "Fifteen euros is the price.", CONTEXTS, [], FACTS)


@each_row(
    ("kind", "quote", "context", "verdict", "expected"),
    [
        ("correctness", "costs 15 euros", "", "present", "present"),
        ("correctness", "fee is 15 euros", "", "present", "quote_unverified"),
        ("context_recall", "fee is 15 euros", "c1", "attributed", "attributed"),
        ("context_recall", "costs 15 euros", "c1", "attributed", "quote_unverified"),
    ],
)
def test_quotes_come_from_where_the_kind_says(
    scripted: Any, verdicts: Any, kind: str, quote: str, context: str, verdict: str, expected: str
) -> None:
    reply = {"addresses_question": True} | verdicts(f1=(verdict, quote, context))
    assert asked(scripted, reply, kind, SAID)[0].entries[0]["verdict"] == expected


def test_a_quote_may_be_of_the_reference_and_a_useful_passage_needs_none(
    scripted: Any, verdicts: Any
) -> None:
    claim = Material("Q?", "A.", "Fifteen euros is the price.", (), CLAIMS[:1], FACTS)
    reply = verdicts(n1=("supported", "Fifteen euros is", "f9"))
    opinion, _ = asked(scripted, reply, "answer_correctness", claim)
    assert opinion.entries[0]["context"] == "reference"
    chunk = Material("Q?", contexts=CONTEXTS[:1])
    opinion, _ = asked(
        scripted, verdicts(c1=("useful", "not in it", "")), "context_precision", chunk
    )
    assert opinion.entries[0]["verdict"] == "useful"


@each_row("verdict", ["support", "partial"])
def test_a_verdict_of_half_credit_needs_its_quote_too(
    scripted: Any, verdicts: Any, verdict: str
) -> None:
    material = Material("Q?", "It costs 15 euros.", nuggets=[{"id": "g1", "text": "15 euros"}])
    opinion, _ = asked(scripted, verdicts(g1=(verdict, "costs 15 euros", "")), "nuggets", material)
    assert opinion.entries[0]["verdict"] == verdict
    opinion, _ = asked(scripted, verdicts(g1=(verdict, "costs 20 euros", "")), "nuggets", material)
    (entry,) = opinion.entries
    assert (entry["verdict"], entry["said"]) == ("quote_unverified", verdict)
    assert [again["why"] for again in opinion.more_calls] == ["quote"]


def test_a_quote_beside_a_neutralised_token_is_found(scripted: Any, verdicts: Any) -> None:
    contexts = [{"id": "c1", "text": "Send <|eot_id|> to stop the stream."}]
    claims = [{"id": "1", "text": "A token stops the stream."}]
    material = Material("Q?", "A.", contexts=contexts, claims=claims)
    reply = verdicts(n1=("supported", "[token] to stop the stream", "c1"))
    assert asked(scripted, reply, of=material)[0].entries[0]["verdict"] == "supported"
