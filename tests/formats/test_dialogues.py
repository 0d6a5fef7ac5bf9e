"""Logs of conversations as turns: chat messages, ragas samples, rows that --map reads."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import score_conversations
import score_retrieval

DATA = os.environ.get("RAG_EVAL_DATA")
needs_data = pytest.mark.skipif(not DATA, reason="RAG_EVAL_DATA names no folder of open data")


def said(role: str, content: Any, **more: Any) -> dict[str, Any]:
    return {"role": role, "content": content} | more


NOTES = {"name": "notes", "arguments": '{"query": "price of plans"}'}
CALL = {"id": "k1", "type": "function", "function": NOTES}
CHAT = [
    said("system", "Be short."),
    said("user", [{"type": "text", "text": "What is free?"}]),
    said("assistant", None, tool_calls=[CALL]),
    said("tool", json.dumps([{"id": "p7", "text": "The small plan."}]), tool_call_id="k1"),
    said("assistant", "The small plan."),
    said("user", "And the other one?"),
    said("assistant", "It costs 5 EUR."),
]


def test_a_chat_becomes_the_turns_of_a_conversation(desk: Any) -> None:
    rows = [{"conversation_id": "c1", "messages": CHAT, "customer": "x"}]
    report = desk.take("openai", desk.rows("chats.jsonl", rows))
    first = {"id": "c1-1", "question": "What is free?", "conversation": "c1", "turn": 1}
    assert desk.cases() == [
        first | {"metadata": {"customer": "x"}},
        {"id": "c1-2", "question": "And the other one?", "conversation": "c1", "turn": 2},
    ]
    first, second = desk.results("chats")
    assert (first["answer"], first["asked_with"]) == ("The small plan.", "live")
    (search,) = first["searches"]
    assert (search["query"], search["tool"]) == ("price of plans", "notes")
    assert [chunk["chunk_id"] for chunk in first["retrieved"]] == ["p7"]
    assert first["retrieved_from_search"] == 1
    assert second["answer"] == "It costs 5 EUR."
    assert "retrieved" not in second  # the log does not say what this answer saw
    assert report["left_out"] == {"messages of the system": 1}


def test_passages_logged_with_the_answer_stand_before_those_of_its_searches(desk: Any) -> None:
    log = [*CHAT[1:4], CHAT[4] | {"retrieval_context": ["What the prompt held."]}]
    desk.take("openai", desk.rows("chats.jsonl", [{"messages": log}]))
    (result,) = desk.results("chats")
    assert [chunk["text"] for chunk in result["retrieved"]] == ["What the prompt held."]
    assert [chunk["chunk_id"] for chunk in result["searches"][0]["retrieved"]] == ["p7"]
    assert not {"retrieved_from_search", "seen"} & result.keys()


def test_requests_of_one_conversation_are_told_by_the_last_of_them(desk: Any) -> None:
    """Logs of single calls hold the whole history each time: two lines here are one conversation of
    two turns, and a question by itself is a case without a conversation."""
    calls = [
        {"request": {"messages": CHAT[:4]}, "response": {"choices": [{"message": CHAT[4]}]}},
        {"request": {"messages": CHAT[:6]}, "response": {"choices": [{"message": CHAT[6]}]}},
        {"messages": [said("user", "Alone?"), said("assistant", "Yes.")]},
    ]
    report = desk.take("openai", desk.rows("calls.jsonl", calls))
    questions = [case["question"] for case in desk.cases()]
    assert questions == ["What is free?", "And the other one?", "Alone?"]
    assert [case.get("turn") for case in desk.cases()] == [1, 2, None]
    assert "asked_with" not in desk.results("calls")[2]
    assert report["rows"]["lines that another line continues or repeats"] == 1


def test_ragas_samples_of_several_turns(desk: Any) -> None:
    sample = {
        "user_input": [
            {"type": "human", "content": "Weather?"},
            {"type": "ai", "content": "", "tool_calls": [{"name": "web", "args": {"query": "w"}}]},
            {"type": "tool", "content": "It rains."},
            {"type": "ai", "content": "It rains."},
            {"type": "human", "content": "Tomorrow?"},
            {"type": "ai", "content": "No."},
        ],
        "reference": "Both days are told.",
    }
    desk.take("ragas", desk.rows("s.jsonl", [sample]))
    first, second = desk.cases()
    assert first["metadata"] == {"reference": "Both days are told."}
    assert (first["conversation"], first["turn"]) == (second["conversation"], 1)
    assert [one["answer"] for one in desk.results("s")] == ["It rains.", "No."]
    assert desk.results("s")[0]["retrieved"][0]["text"] == "It rains."


def test_a_message_of_no_known_role_is_told(desk: Any) -> None:
    rows = [{"messages": [said("user", "Hi?"), said("oracle", "Ho.")]}, {"text": "no messages"}]
    told = desk.refused("openai", desk.rows("c.jsonl", rows))
    assert "c.jsonl:1: messages[1]: has no known role, or no text" in told
    assert "c.jsonl:2: messages: is missing or no list" in told


MAPPED = ["--map", "id=i", "--map", "question=q", "--map", "answer=a"]


def test_mapped_rows_are_put_in_the_order_of_their_turns(desk: Any) -> None:
    rows = [
        {"i": "b2", "q": "Q4", "a": "A", "c": "b", "n": 2},
        {"i": "a1", "q": "Q1", "a": "A", "c": "a", "n": 1},
        {"i": "b1", "q": "Q3", "a": "A", "c": "b", "n": 1},
        {"i": "s", "q": "Q5", "a": "A"},
    ]
    turns = [*MAPPED, "--map", "conversation=c", "--map", "turn=n"]
    desk.take("json", desk.rows("l.jsonl", rows), more=turns)
    assert [case["id"] for case in desk.cases()] == ["b1", "b2", "a1", "s"]
    desk.take("json", desk.rows("l.jsonl", rows), out="two", more=turns[:-2])
    turns_of = {case["id"]: case.get("turn") for case in desk.cases("two")}
    assert [*turns_of.items()] == [("b2", 1), ("b1", 2), ("a1", 1), ("s", None)]


def test_turns_that_no_set_may_hold_are_told_and_nothing_is_written(desk: Any) -> None:
    rows = [
        {"i": "a1", "q": "Q1", "c": "a", "n": 1},
        {"i": "a3", "q": "Q2", "c": "a", "n": 3},
        {"i": "b1", "q": "Q3", "c": "b", "n": 2},
        {"i": "c1", "q": "Q4", "c": "c", "n": 1},
        {"i": "c2", "q": "Q5", "c": "c", "n": 1},
    ]
    turns = [*MAPPED[:4], "--map", "conversation=c", "--map", "turn=n"]
    told = desk.refused("json", desk.rows("l.jsonl", rows), more=turns)
    assert "l.jsonl:2: turn: conversation 'a' lacks turn 2" in told
    assert "l.jsonl:3: turn: conversation 'b' begins with turn 2, not 1" in told
    assert "l.jsonl:5: turn: conversation 'c' has turn 1 twice" in told


def test_a_mapped_history_is_read_in_usual_forms(desk: Any) -> None:
    before = [{"speaker": "human", "text": "Hi"}, {"speaker": "agent", "text": "Ho"}]
    rows = [{"i": "h", "q": "And?", "a": "A", "h": before, "p": ["x", "y"], "k": ["1", "2"]}]
    more = [*MAPPED, "--map", "history=h", "--map", "retrieved=p", "--map", "retrieved_ids=k"]
    desk.take("json", desk.rows("l.jsonl", rows), more=more)
    assert desk.cases()[0]["history"] == [said("user", "Hi"), said("assistant", "Ho")]
    assert [chunk["chunk_id"] for chunk in desk.results("l")[0]["retrieved"]] == ["1", "2"]
    rows[0]["k"] = ["1"]
    told = desk.refused("json", desk.rows("l.jsonl", rows), more=more)
    assert "retrieved_ids: has 1 ids for 2 passages" in told


MTRAG = """id=task question=question conversation=group run=system answer=answer
    reference_answer=reference retrieved=contexts retrieved_ids=context_ids
    relevant_chunks=context_ids answerable=answerability!='UNANSWERABLE'"""


@needs_data
def test_nine_conversations_of_mtrag_score_by_turn(desk: Any) -> None:
    """72 turns of 9 conversations; the system "reference" retrieved the gold itself. Recall at 10
    is 1 then (no turn has more than ten passages), in every slice, and nine are an interval."""
    words = [word for pair in MTRAG.split() for word in ("--map", pair)]
    source = str(Path(DATA or "") / "mtrag_human" / "data.jsonl.gz")
    desk.take("json", source, more=words)
    cases = desk.cases()
    assert len(cases) == 72
    assert len({case["conversation"] for case in cases}) == 9
    ids = {chunk["chunk_id"] for one in desk.results("reference") for chunk in one["retrieved"]}
    assert len(ids) == 158
    where = ["--eval-set", str(desk.folder / "out/eval_set.jsonl"), "--run", "reference"]
    where += ["--results-dir", str(desk.folder / "out/results"), "--json"]
    section = json.loads(CliRunner().invoke(score_retrieval.main, where).stdout)
    by_turn = section["by"]["turn"]
    assert {turn: part["mean"]["evidence_recall@10"] for turn, part in by_turn.items()} == {
        "1": 1.0,
        "2": 1.0,
        "3+": 1.0,
    }
    assert section["clusters"]["evidence_recall@10"] == 9
    assert section["turn_loss"]["evidence_recall@10"]["mean"] == 0.0


@needs_data
def test_mtrag_un_is_read_as_cases_with_a_fixed_history(desk: Any) -> None:
    """Its reference answers ask back for each of the 39 underspecified questions; 2 of the others
    end with a question, one of them at a first turn, which has no history."""
    maps = {
        "id": "id",
        "question": "question",
        "history": "history",
        "group": "group",
        "answer": "answer",
        "answerable": "answerability!='UNANSWERABLE'",
        "expected_outcome": "(answerability=='UNDERSPECIFIED' && 'clarify') || null",
    }
    words = [word for name, path in maps.items() for word in ("--map", f"{name}={path}")]
    desk.take("json", str(Path(DATA or "") / "mtrag_un" / "data.jsonl.gz"), more=words)
    assert sum("history" in case for case in desk.cases()) == 224
    where = ["--eval-set", str(desk.folder / "out/eval_set.jsonl"), "--json"]
    where += ["--results-dir", str(desk.folder / "out/results")]
    section = json.loads(CliRunner().invoke(score_conversations.main, where).stdout)
    assert (section["mean"]["asked_back"], section["n"]["asked_back"]) == (1.0, 39)
    assert section["mean"]["over_asking"] * section["n"]["over_asking"] == pytest.approx(
        1, abs=1e-3
    )
