"""Schemas that leave a model no room, and less of them where a server refuses."""

from __future__ import annotations

from typing import Any

from jsonschema import Draft202012Validator
from msgspec.structs import replace
from tests.rows import each_row

from clients.http import finish
from judging.kinds import FACTS, Material, make_task
from judging.protocols import ServerCapabilities
from judging.schema_limits import LEFT_OUT, PLAIN, SchemaLimits, _loosened
from judging.types import JudgeTask, JudgeVerdict, Usage
from records.verdicts import KINDS, JudgeIdentity

SALT = b"s" * 32
TWO = [{"id": "1", "text": "One."}, {"id": "2", "text": "Two."}]
MATERIAL = Material("Q?", "A.", contexts=[{"id": "c1", "text": "One."}], claims=TWO)
TASK = make_task(KINDS["groundedness"], MATERIAL, salt=SALT)


def entry(name: str, **other: str) -> dict[str, str]:
    base = {"id": name, "context": "c1", "quote": "", "reason": "", "verdict": "not_found"}
    return base | other


def reply(*entries: dict[str, str], notes: str = "") -> dict[str, Any]:
    return {"notes": notes, "verdicts": list(entries), "manipulation": False}


def fits(value: dict[str, Any], step: int = 0) -> bool:
    schema = _loosened(TASK, step).schema
    Draft202012Validator.check_schema(schema)
    return Draft202012Validator(schema).is_valid(value)


WRONG = {
    "nothing": reply(),
    "one of two": reply(entry("1")),
    "one too many": reply(entry("1"), entry("2"), entry("2")),
    "a foreign id": reply(entry("1"), entry("3")),
    "a foreign block": reply(entry("1"), entry("2", context="c2")),
    "endless notes": reply(entry("1"), entry("2"), notes="a" * 5000),
    "an endless quote": reply(entry("1"), entry("2", quote="a" * 5000)),
}


@each_row("name", WRONG)
def test_the_schema_alone_tells_what_cannot_be_used(name: str) -> None:
    assert fits(reply(entry("1"), entry("2", context="")))
    assert not fits(WRONG[name])
    assert fits(WRONG[name], PLAIN)
    assert not fits(reply(entry("1", verdict="maybe")), PLAIN), "verdicts are never open"
    long = name.startswith(("endless", "an endless"))
    assert fits(WRONG[name], 1) is long, "the first step lets only lengths of texts go"


def test_a_reply_has_all_fields_and_no_others() -> None:
    whole = reply(entry("1"), entry("2"))
    assert fits(whole)
    assert not fits(whole | {"more": 1})
    assert not fits(reply(entry("1", more="x"), entry("2")))
    assert not fits({name: value for name, value in whole.items() if name != "manipulation"})


def test_lists_of_texts_have_their_lengths() -> None:
    questions = make_task(KINDS["answer_relevancy"], Material(answer="A."), salt=SALT).schema
    found = questions["properties"]["questions"]
    assert (found["minItems"], found["maxItems"]) == (3, 3)
    facts = make_task(FACTS, Material(reference="R."), salt=SALT).schema["properties"]["facts"]
    assert (facts["minItems"], facts["maxItems"]) == (1, 12)
    both = Material("Q?", "A.", "R.", claims=TWO, facts=[{"id": "f1", "text": "F."}])
    schema = make_task(KINDS["answer_correctness"], both, salt=SALT).schema
    item = schema["properties"]["verdicts"]["items"]["properties"]
    assert item["context"]["enum"] == ["reference", "facts", "f1", ""]


class Picky:
    """A server behind a cache: refuses schemas that hold one of ``words``."""

    empty = False

    def __init__(
        self,
        *words: str,
        refusal: str = "HTTP 400: Invalid schema",
        kind: str = "rejected",
        provider: str = "unknown",
        mode: str = "json_schema",
    ) -> None:
        self.identity = JudgeIdentity(provider, "m", revision="1", strength="revision")
        self.capabilities = ServerCapabilities(mode)
        self.words, self.refusal, self.kind = words, refusal, kind
        self.sent: list[JudgeTask] = []
        self.kept: list[JudgeTask] = []

    def parameters(self, task: JudgeTask) -> dict[str, Any]:
        return {}

    def stored(self, task: JudgeTask) -> JudgeVerdict | None:
        return JudgeVerdict("k", {}, cached=True) if task in self.kept else None

    async def ask(self, task: JudgeTask) -> JudgeVerdict:
        self.sent.append(task)
        verdict = JudgeVerdict("k", {}, asks=1, attempts=1, usage=Usage(10, 1, 11), cost_usd=0.25)
        if not any(word in str(task.schema) for word in self.words):
            self.kept.append(task)
            return verdict
        bad = {"data": None, "failure": self.kind, "message": self.refusal}
        asks = int(self.kind == "schema")
        return replace(verdict, **bad, asks=asks, cost_usd=0.5 if asks else None)


@each_row(
    ("words", "calls", "left_out"),
    [((), 1, LEFT_OUT[0]), (("maxLength",), 2, LEFT_OUT[1]), (("minItems",), 3, LEFT_OUT[2])],
)
def test_a_refused_schema_is_sent_with_less(words: Any, calls: int, left_out: Any) -> None:
    server = Picky(*words)
    judge = SchemaLimits(server)
    assert finish(judge.ask(TASK)).ok
    assert (len(server.sent), judge.left_out) == (calls, left_out)
    other = make_task(KINDS["groundedness"], MATERIAL, salt=SALT, repeat=1)
    assert finish(judge.ask(other)).ok
    assert len(server.sent) == calls + 1, "what the server takes is kept in mind"
    again = SchemaLimits(server)
    assert again.holds(TASK)
    assert finish(again.ask(TASK)).cached
    assert len(server.sent) == calls + 1, "a new start finds what is there, in whatever form"


def test_replies_that_do_not_fit_are_paid_and_counted() -> None:
    server = Picky("minItems", kind="schema", refusal="verdicts: [] is too short")
    verdict = finish(SchemaLimits(server).ask(TASK))
    assert verdict.ok
    # two forms were answered and did not fit, the third did: 0.5 + 0.5 + 0.25
    assert (verdict.asks, verdict.cost_usd, verdict.usage.total_tokens) == (3, 1.25, 33)


@each_row(
    ("kind", "message"),
    [
        ("transport", "HTTP 500: overloaded"),
        ("rejected", "HTTP 404: no such model"),
        ("refused", "I cannot"),
        ("truncated", "length"),
        ("incomplete", "no verdict for the id 1"),
    ],
)
def test_other_failures_are_not_the_schemas_fault(kind: str, message: str) -> None:
    server = Picky("verdicts", kind=kind, refusal=message)
    judge = SchemaLimits(server)
    assert finish(judge.ask(TASK)).failure == kind
    assert (len(server.sent), judge.left_out) == (1, ())


def test_a_request_that_is_refused_in_every_form_teaches_nothing() -> None:
    server = Picky("verdicts")
    judge = SchemaLimits(server)
    assert finish(judge.ask(TASK)).failure == "rejected"
    assert (len(server.sent), judge.left_out) == (3, ())


def test_what_is_known_of_a_server_is_not_tried() -> None:
    strict = Picky(provider="openai")
    finish(SchemaLimits(strict).ask(TASK))
    assert "maxLength" not in str(strict.sent[0].schema)
    assert "minItems" in str(strict.sent[0].schema)
    free = Picky(mode="tool")
    finish(SchemaLimits(free).ask(TASK))
    assert free.sent[0].schema == _loosened(TASK, PLAIN).schema
