"""Which lines each kind of call gives: undefined inputs, verdicts by code, parts, repeats."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.rows import each_row

from clients.http import finish
from judging.answers import FACTS_FILE, FactStore
from judging.calls import CALLS, Settings
from judging.local import LocalJudge
from judging.types import JudgeTask
from records.cases import GoldFact
from storage import StorageError

SALT = b"s" * 32
Make = Callable[..., Settings]


@pytest.fixture
def settings(tmp_path: Path, scripted: Any) -> Make:
    def make(script: Any = None, **more: Any) -> Settings:
        def refuse(task: JudgeTask) -> Any:
            raise AssertionError(f"{task.prompt.name} was asked")

        judge = scripted(script or refuse)
        from judging import prompt_files

        facts = FactStore(tmp_path, judge.identity, prompt_files.load("facts").id)
        return Settings(judge, SALT, facts, **more)

    return make


REFUSAL = "I cannot find this in the documents."
UNANSWERABLE = "an unanswerable question"
CUT = {"length": 5000}
FACTS = {"expected_key_facts": ["The fee is 15 euros", "The tour begins at noon"]}
NUGGETS = {"gold_facts": [GoldFact("The fee is 15 euros"), GoldFact("It takes two hours")]}


@each_row(
    ("call", "answer", "case", "reason"),
    [
        ("groundedness", None, {}, "no answer"),
        ("groundedness", " ", {}, "empty answer"),
        ("groundedness", "Sure!", {}, "no claims"),
        ("groundedness", REFUSAL, {}, "abstention"),
        ("groundedness", "The fee is 15 euros.", {"abstained": True}, "abstention"),
        ("groundedness", "The fee is 15 euros.", CUT, "text was truncated"),
        ("correctness", None, FACTS, "no answer"),
        ("correctness", "Some words here.", {}, "no reference answer and no key facts"),
        ("correctness", "Some words here.", FACTS | {"answerable": False}, "unanswerable"),
        ("nuggets", "Some words here.", {}, "no gold_facts"),
        ("nuggets", None, NUGGETS, "no answer"),
        ("nuggets", "Some words here.", NUGGETS | {"answerable": False}, "unanswerable"),
        ("answer_correctness", "Some words.", {}, "no reference answer and no key facts"),
        ("context_precision", "x", {"chunks": ()}, "no contexts"),
        ("context_precision", "x", {"answerable": False}, "unanswerable"),
        ("context_precision", "x", CUT, "text was truncated"),
        ("context_recall", "x", {}, "no reference answer and no key facts"),
        ("context_recall", "x", FACTS | CUT, "text was truncated"),
        ("context_recall", "x", FACTS | {"answerable": False}, "unanswerable"),
        ("answer_relevancy", "", {}, "empty answer"),
        ("answer_relevancy", REFUSAL, {"answerable": False}, f"abstention on {UNANSWERABLE}"),
        ("abstained_judged", "", {}, "empty answer"),
    ],
)
def test_what_is_undefined_is_not_asked(
    settings: Make, subject: Any, call: str, answer: str | None, case: Any, reason: str
) -> None:
    (line,) = finish(CALLS[call](subject(answer, **case), settings(), 0))
    assert (line["status"], line["reason"], line["verdicts"]) == ("not_applicable", reason, [])


@each_row(
    ("call", "answer", "case", "verdicts"),
    [
        # no contexts under an answer that claims something: nothing is supported
        ("groundedness", "The fee is 15 euros.", {"chunks": ()}, ["not_found"]),
        ("context_recall", "x", FACTS | {"chunks": ()}, ["not_attributed"] * 2),
        ("correctness", "", FACTS, ["missing"] * 2),
        ("nuggets", "", NUGGETS, ["none"] * 2),
        ("answer_correctness", "", FACTS, []),
        ("answer_correctness", REFUSAL, FACTS, []),
        ("abstained_judged", REFUSAL, {}, ["abstained"]),
    ],
)
def test_what_the_definition_fixes_is_not_asked(
    settings: Make, subject: Any, call: str, answer: str, case: Any, verdicts: list[str]
) -> None:
    (line,) = finish(CALLS[call](subject(answer, **case), settings(), 0))
    assert line["status"] == "ok"
    assert [entry["verdict"] for entry in line["verdicts"]] == verdicts
    assert line["extra"]["by_code"]


CZECH = "Nemohu to říci, ale může to být pro ostatní, které jsou zde nebo byly podle toho."


@each_row("call", ["groundedness", "abstained_judged"])
def test_the_local_rules_read_no_language_without_phrases(
    settings: Make, subject: Any, call: str
) -> None:
    """They would take each refusal for an answer, and its sentence for an unsupported claim."""
    local = replace(settings(), judge=LocalJudge())
    (line,) = finish(CALLS[call](subject(CZECH), local, 0))
    assert (line["status"], line["reason"]) == ("not_applicable", "language")
    (line,) = finish(
        CALLS[call](subject("The fee is 15 euros, and the tour begins at noon."), local, 0)
    )
    assert line["status"] == "ok"


def test_a_model_reads_every_language(settings: Make, subject: Any, verdicts: Any) -> None:
    asked = settings(lambda task: verdicts(n1="abstained"))
    (line,) = finish(CALLS["abstained_judged"](subject(CZECH), asked, 0))
    assert [entry["verdict"] for entry in line["verdicts"]] == ["abstained"]


def test_a_long_list_of_claims_goes_in_blocks_of_twenty(settings: Make, subject: Any) -> None:
    answer = " ".join(f"Room {n} holds {n} green chairs." for n in range(1, 46))

    def script(task: JudgeTask) -> Any:
        entry = {"context": "", "quote": "", "reason": "", "verdict": "not_found"}
        return {"verdicts": [entry | {"id": name} for name in task.inputs["ids"]]}

    lines = finish(CALLS["groundedness"](subject(answer), settings(script), 0))
    parts = [(line["part"], line["parts"], len(line["verdicts"])) for line in lines]
    assert parts == [(0, 3, 20), (1, 3, 20), (2, 3, 5)]
    assert lines[2]["verdicts"][-1]["id"] == "45"
    assert len({line["extra"]["mark"] for line in lines}) == 1


def test_each_chunk_is_asked_about_alone(settings: Make, subject: Any, verdicts: Any) -> None:
    made = settings(lambda task: verdicts(c1="useful"))
    lines = finish(CALLS["context_precision"](subject(), made, 0))
    asked = [task.inputs["contexts"] for task in made.judge.tasks]  # type: ignore[attr-defined]
    assert [[c["id"] for c in one] for one in asked] == [["c1"], ["c1"]]  # same key in any run
    assert [line["verdicts"][0]["id"] for line in lines] == ["c1", "c2"]
    assert lines[1]["input"]["contexts"][0]["chunk_id"] == "k2"


def test_facts_are_decomposed_once_and_can_be_edited(
    settings: Make, subject: Any, verdicts: Any, tmp_path: Path
) -> None:
    asked: list[str] = []

    def script(task: JudgeTask) -> Any:
        asked.append(task.prompt.name)
        if task.prompt.name == "facts":
            return {"facts": ["The fee is 15 euros.", "The tour begins at noon."]}
        said = dict.fromkeys(task.inputs["ids"], ("present", "fee is 15 euros", ""))
        return {"addresses_question": True} | verdicts(**said)

    case = {"reference_answer": "15 euros, at noon."}
    made = settings(script)
    first = finish(CALLS["correctness"](subject(**case), made, 0))[0]
    finish(CALLS["correctness"](subject(repeat=1, **case), made, 0))
    assert asked == ["facts", "correctness", "correctness"]
    assert first["extra"]["facts_from"] == "reference_answer"
    assert [fact["id"] for fact in first["input"]["facts"]] == ["f1", "f2"]
    path = tmp_path / FACTS_FILE
    line = json.loads(path.read_text("utf-8"))
    path.write_text(json.dumps(line | {"facts": ["It costs 15 euros."]}) + "\n")
    again = finish(CALLS["correctness"](subject(**case), settings(script), 0))[0]
    assert [fact["text"] for fact in again["input"]["facts"]] == ["It costs 15 euros."]
    assert asked[3:] == ["correctness"]


def test_a_damaged_list_of_facts_is_named(settings: Make, tmp_path: Path) -> None:
    (tmp_path / FACTS_FILE).write_text('{"facts": 3}\n')
    with pytest.raises(StorageError, match=r"reference_facts\.jsonl:1: facts"):
        settings()


@each_row("call", ["correctness", "answer_correctness", "context_recall"])
def test_facts_that_cannot_be_had_are_a_failure(settings: Make, subject: Any, call: str) -> None:
    made = settings(lambda task: "truncated")
    (line,) = finish(CALLS[call](subject(reference_answer="15 euros."), made, 0))
    assert (line["status"], line["failure"], line["verdicts"]) == ("failed", "truncated", [])


def test_atomic_claims_come_from_the_judge_once(
    settings: Make, subject: Any, verdicts: Any
) -> None:
    asked: list[str] = []

    def script(task: JudgeTask) -> Any:
        asked.append(task.prompt.name)
        if task.prompt.name == "claims":
            return {"claims": ["The fee is 15 euros.", "", "The tour begins at noon."]}
        return verdicts(n1="not_found", n2="not_found")

    made, one = settings(script, atomic=True), subject(**FACTS)
    line = finish(CALLS["groundedness"](one, made, 0))[0]
    finish(CALLS["answer_correctness"](one, made, 0))
    assert asked == ["claims", "groundedness", "entailment"]
    assert [claim["span"] for claim in line["input"]["claims"]] == [None, None]


def test_a_short_answer_is_one_claim_against_the_reference(
    settings: Make, subject: Any, verdicts: Any
) -> None:
    made = settings(lambda task: verdicts(n1="not_found"))
    line = finish(CALLS["answer_correctness"](subject("15 euros", **FACTS), made, 0))[0]
    assert [claim["text"] for claim in line["input"]["claims"]] == ["15 euros"]


def test_a_line_holds_what_was_seen_and_said(settings: Make, subject: Any, verdicts: Any) -> None:
    said = verdicts(n1=("supported", "fee is 15 euros", "c1"), n2="not_found")
    (line,) = finish(CALLS["groundedness"](subject(), settings(lambda task: said), 0))
    text = "The tour begins at noon and takes two hours."
    assert line["input"]["contexts"][1] == {"id": "c2", "chunk_id": "k2", "text": text}
    claim = {"id": "1", "text": "The fee is 15 euros.", "span": [0, 20]}
    assert line["input"]["claims"][0] == claim
    assert json.loads(line["raw"])["verdicts"][0]["quote"] == "fee is 15 euros"
    assert line["messages"][0]["role"] == "system"
    assert line["prompt"]["name"] == "groundedness"


RAIN = "It rains in Lyon all day."


def test_faithfulness_reads_results_of_tools_and_context_metrics_do_not(
    settings: Make, subject: Any, verdicts: Any
) -> None:
    """Two passages and one result of a tool: the claims are asked about with three contexts, each
    passage alone with one, and the facts with two."""
    read: dict[str, list[list[str]]] = {}

    def script(task: JudgeTask) -> Any:
        contexts = [context["text"] for context in task.inputs["contexts"]]
        read.setdefault(task.prompt.name, []).append(contexts)
        entry = {"context": "", "quote": "", "reason": "", "verdict": "unclear"}
        if task.prompt.name == "groundedness":
            entry |= {"verdict": "supported", "quote": RAIN, "context": "c3"}
        return {"verdicts": [entry | {"id": name} for name in task.inputs["ids"]]}

    asked = subject(RAIN, **FACTS)
    asked.result.seen_tools = [RAIN]
    (line,) = finish(CALLS["groundedness"](asked, settings(script), 0))
    assert line["status"] == "ok"
    assert [entry["verdict"] for entry in line["verdicts"]] == ["supported"]
    assert line["input"]["contexts"][2] == {"id": "c3", "chunk_id": "tool-1", "text": RAIN}
    finish(CALLS["context_precision"](asked, settings(script), 0))
    finish(CALLS["context_recall"](asked, settings(script), 0))
    assert [len(contexts) for contexts in read.pop("groundedness")] == [3]
    assert sorted(len(contexts) for tasks in read.values() for contexts in tasks) == [1, 1, 2]


def test_an_answer_of_tools_alone_is_judged(settings: Make, subject: Any, verdicts: Any) -> None:
    """No passages, one result of a tool: a judge decides, no rule; ``--k`` cuts passages only."""
    asked = subject(RAIN, chunks=())
    asked.result.seen_tools, asked.k = [RAIN], 1
    said = settings(lambda task: verdicts(n1=("supported", RAIN, "c1")))
    (line,) = finish(CALLS["groundedness"](asked, said, 0))
    assert [entry["verdict"] for entry in line["verdicts"]] == ["supported"]
    assert "by_code" not in line["extra"]
    asked.k = 0
    assert [context["chunk_id"] for context in asked.seen_contexts] == ["tool-1"]


def test_a_judgement_rests_on_the_results_of_tools(subject: Any) -> None:
    """Without any, the subject is what it was before tools were read."""
    plain, seeing, other = subject(), subject(), subject()
    assert plain.answer_sha256("groundedness") == "a02af1601806088e0c602850"
    seeing.result.seen_tools, other.result.seen_tools = [RAIN], ["It snows."]
    subjects = {asked.answer_sha256("groundedness") for asked in (plain, seeing, other)}
    assert len(subjects) == 3
