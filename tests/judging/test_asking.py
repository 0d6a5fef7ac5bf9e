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


def test_every_item_once_in_order(scripted: Any, verdicts: Any) -> None:
    judge = scripted(lambda task: verdicts(n3="not_found", n1=FEE, n2=NOON))
    opinion = finish(ask(judge, KINDS["groundedness"], MATERIAL, salt=SALT))
    assert [e["id"] for e in opinion.entries] == ["1", "2", "3"]
    assert [e["verdict"] for e in opinion.entries] == ["supported", "supported", "not_found"]
    assert len(judge.tasks) == 1


def test_only_missing_items_are_asked_again(scripted: Any, verdicts: Any) -> None:
    def script(task: JudgeTask) -> Any:
        return (
            verdicts(n1=FEE)
            if "3" in task.inputs["ids"] and len(judge.tasks) == 1
            else (verdicts(n2=NOON, n3="not_found"))
        )

    judge = scripted(script)
    opinion = finish(ask(judge, KINDS["groundedness"], MATERIAL, salt=SALT))
    assert [task.inputs["ids"] for task in judge.tasks] == [["1", "2", "3"], ["2", "3"]]
    assert [e["verdict"] for e in opinion.entries] == ["supported", "supported", "not_found"]
    assert opinion.more_calls[0]["why"] == "missing"


def test_what_stays_missing_is_a_failure_and_no_verdict(scripted: Any, verdicts: Any) -> None:
    judge = scripted(lambda task: verdicts(n1=FEE))
    opinion = finish(ask(judge, KINDS["groundedness"], MATERIAL, salt=SALT))
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
    facts = [{"id": "f1", "text": "The fee is 15 euros."}]
    material = Material("Q?", "A.", contexts=CONTEXTS[:1], claims=CLAIMS, facts=facts)
    opinion = finish(ask(judge, kind, material, salt=SALT))
    assert (opinion.failure, opinion.entries) == ("incomplete", [])
    assert "no verdict for the id" in opinion.message


def test_foreign_ids_are_dropped_and_counted(scripted: Any, verdicts: Any) -> None:
    judge = scripted(
        lambda task: verdicts(n1=FEE, n2=NOON, n3="not_found", n4=FEE, n99="supported")
    )
    opinion = finish(ask(judge, KINDS["groundedness"], MATERIAL, salt=SALT))
    assert (opinion.dropped, len(opinion.entries)) == (2, 3)


def test_a_quote_is_asked_for_once_more_then_unverified(scripted: Any, verdicts: Any) -> None:
    invented = ("supported", "dogs are very welcome here", "c1")
    judge = scripted(lambda task: verdicts(n1=FEE, n2=NOON, n3=invented))
    opinion = finish(ask(judge, KINDS["groundedness"], MATERIAL, salt=SALT))
    assert [task.inputs["ids"] for task in judge.tasks] == [["1", "2", "3"], ["3"]]
    assert "letter by letter" in judge.tasks[1].messages[1]["content"]
    last = opinion.entries[2]
    assert (last["verdict"], last["said"]) == ("quote_unverified", "supported")
    assert opinion.dropped == 2  # the follow-up asked about 3 alone


def test_a_follow_up_may_change_its_mind(scripted: Any, verdicts: Any) -> None:
    def script(task: JudgeTask) -> Any:
        bad = ("supported", "nowhere at all", "c1")
        again = len(task.inputs["ids"]) == 1
        return verdicts(n3="not_found") if again else verdicts(n1=FEE, n2=NOON, n3=bad)

    opinion = finish(ask(scripted(script), KINDS["groundedness"], MATERIAL, salt=SALT))
    assert opinion.entries[2]["verdict"] == "not_found"
    assert opinion.failure is None


def test_a_contradiction_needs_no_quote(scripted: Any, verdicts: Any) -> None:
    judge = scripted(lambda task: verdicts(n1="contradicted", n2=NOON, n3="not_found"))
    assert (
        finish(ask(judge, KINDS["groundedness"], MATERIAL, salt=SALT)).entries[0]["verdict"]
        == "contradicted"
    )


@each_row("kind", sorted(FAILURES))
@each_row("at", [1, 2])
def test_no_failure_becomes_a_verdict(scripted: Any, verdicts: Any, kind: str, at: int) -> None:
    """At the first call, or when missing ids are asked again."""
    said = iter([*[verdicts(n1=FEE)] * (at - 1), kind])
    judge = scripted(lambda task: next(said))
    opinion = finish(ask(judge, KINDS["groundedness"], MATERIAL, salt=SALT))
    assert (opinion.failure, opinion.entries) == (kind, [])


def test_a_failed_check_of_quotes_is_a_failure(scripted: Any, verdicts: Any) -> None:
    bad = ("supported", "nowhere at all", "c1")
    said = iter([verdicts(n1=FEE, n2=NOON, n3=bad), "transport"])
    judge = scripted(lambda task: next(said))
    assert finish(ask(judge, KINDS["groundedness"], MATERIAL, salt=SALT)).failure == "transport"


def test_quotes_come_from_where_the_kind_says(scripted: Any, verdicts: Any) -> None:
    facts = [{"id": "f1", "text": "The fee is 15 euros."}]
    said = Material("Q?", "It costs 15 euros.", "Fifteen euros is the price.", CONTEXTS, [], facts)
    cases = [
        (KINDS["correctness"], verdicts(f1=("present", "costs 15 euros", "")), "present"),
        (KINDS["correctness"], verdicts(f1=("present", "fee is 15 euros", "")), "quote_unverified"),
        (
            KINDS["context_recall"],
            verdicts(f1=("attributed", "fee is 15 euros", "c1")),
            "attributed",
        ),
        (
            KINDS["context_recall"],
            verdicts(f1=("attributed", "costs 15 euros", "c1")),
            "quote_unverified",
        ),
    ]
    for kind, reply, wanted in cases:
        judge = scripted(lambda task, reply=reply: {"addresses_question": True} | reply)
        assert finish(ask(judge, kind, said, salt=SALT)).entries[0]["verdict"] == wanted
    claim = Material("Q?", "A.", "Fifteen euros is the price.", (), CLAIMS[:1], facts)
    judge = scripted(lambda task: verdicts(n1=("supported", "Fifteen euros is", "f9")))
    assert (
        finish(ask(judge, KINDS["answer_correctness"], claim, salt=SALT)).entries[0]["context"]
        == "reference"
    )
    chunk = Material("Q?", contexts=CONTEXTS[:1])
    judge = scripted(lambda task: verdicts(c1=("useful", "not in it", "")))
    assert (
        finish(ask(judge, KINDS["context_precision"], chunk, salt=SALT)).entries[0]["verdict"]
        == "useful"
    )


@each_row("verdict", ["support", "partial"])
def test_a_verdict_of_half_credit_needs_its_quote_too(
    scripted: Any, verdicts: Any, verdict: str
) -> None:
    material = Material("Q?", "It costs 15 euros.", nuggets=[{"id": "g1", "text": "15 euros"}])
    judge = scripted(lambda task: verdicts(g1=(verdict, "costs 15 euros", "")))
    assert (
        finish(ask(judge, KINDS["nuggets"], material, salt=SALT)).entries[0]["verdict"] == verdict
    )
    judge = scripted(lambda task: verdicts(g1=(verdict, "costs 20 euros", "")))
    opinion = finish(ask(judge, KINDS["nuggets"], material, salt=SALT))
    assert (opinion.entries[0]["verdict"], opinion.entries[0]["said"]) == (
        "quote_unverified",
        verdict,
    )
    assert [again["why"] for again in opinion.more_calls] == ["quote"]


def test_a_quote_beside_a_neutralised_token_is_found(scripted: Any, verdicts: Any) -> None:
    contexts = [{"id": "c1", "text": "Send <|eot_id|> to stop the stream."}]
    claims = [{"id": "1", "text": "A token stops the stream."}]
    judge = scripted(lambda task: verdicts(n1=("supported", "[token] to stop the stream", "c1")))
    material = Material("Q?", "A.", contexts=contexts, claims=claims)
    assert (
        finish(ask(judge, KINDS["groundedness"], material, salt=SALT)).entries[0]["verdict"]
        == "supported"
    )


def test_manipulation_is_seen_in_any_reply(scripted: Any, verdicts: Any) -> None:
    judge = scripted(
        lambda task: verdicts(n1=FEE, n2=NOON, n3="not_found") | {"manipulation": True}
    )
    assert finish(ask(judge, KINDS["groundedness"], MATERIAL, salt=SALT)).manipulation is True
