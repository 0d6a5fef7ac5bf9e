"""Answers of different servers, through the shipped profiles."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from clients.bot import ChatApi, Question
from clients.http import finish
from clients.secrets import Headers
from records.results import RetrievedChunk, TestResult

MakeApi = Callable[..., ChatApi]


def ask(client: ChatApi, text: str = "q", **more: Any) -> TestResult:
    return finish(client.ask(Question("case", text, **more))).result


def test_request_and_answer_of_the_default_profile(fake_bot: Any, api: MakeApi) -> None:
    asked = finish(
        api().ask(Question("case", "who?", k=7, folders=("a", "b"), folder_mode="on", repeat=2))
    )
    (exchange,) = fake_bot.seen
    assert exchange.path == "/api/v1/ask?debug=true"
    # vaults has no value, so the key is left out; k keeps its type
    sent = {"question": "who?", "k": 7, "folders": ["a", "b"], "folder_mode": "on"}
    assert exchange.json() == sent
    result = asked.result
    assert (result.test_case_id, result.question, result.repeat) == ("case", "who?", 2)
    assert result.answer == "answer to who? [1]"
    assert result.latency_ms == {"retrieve": 2.0, "generate": 3.0, "total": 5.0}
    assert result.folder_selection is not None
    assert result.folder_selection.chosen == ["notes"]
    chunk = result.chunks()[0]
    assert (chunk.chunk_id, chunk.heading_path, chunk.score_lexical) == ("c-who?", "A > B", 2.0)
    assert chunk.text_length == len("about who? ") + 300
    assert "retrieved[].chunk_id" in asked.fields_seen


def test_an_abstention_needs_neither_answer_nor_passages(fake_bot: Any, api: MakeApi) -> None:
    fake_bot.default = lambda exchange: exchange.reply(
        {"abstained": True, "abstain_reason": "no_context", "references": None}
    )
    result = ask(api())
    assert (result.status, result.abstained, result.answer) == ("ok", True, None)


def test_plain_ids_missing_ids_and_missing_ranks(fake_bot: Any, api: MakeApi) -> None:
    passage = {"rel_path": "a.md", "text": "words"}
    fake_bot.default = lambda exchange: exchange.reply(
        {
            "answer": "a",
            "retrieved": ["c9", passage, passage | {"text": "others"}],
            "references": [{"chunk_id": "c9"}, {"chunk_id": "c8"}],
        }
    )
    result = ask(api())
    chunks = result.chunks()
    assert all(isinstance(chunk, RetrievedChunk) for chunk in chunks)
    ids = [chunk.chunk_id for chunk in result.chunks()]
    assert ids[0] == "c9"
    assert len(set(ids)) == 3  # made of path and text, so equal passages get equal ids
    assert [chunk.rank for chunk in result.chunks()] == [1, 2, 3]
    assert [reference.index for reference in result.references or ()] == [1, 2]


def test_retrieval_only_records_nothing_else(fake_bot: Any, api: MakeApi) -> None:
    result = ask(api(retrieval_only=True))
    assert len(result.chunks()) == 1
    assert result.answer is None
    assert result.references is None  # nobody asked for any
    assert result.abstained is None
    assert result.guardrail == {}


def test_a_server_of_the_openai_protocol(fake_bot: Any, api: MakeApi) -> None:
    fake_bot.question = lambda exchange: exchange.json()["messages"][-1]["content"]
    fake_bot.default = lambda exchange: exchange.reply(
        {
            "model": "rag-2",
            "system_fingerprint": "fp_1",
            "choices": [{"message": {"content": "yes [1]"}, "finish_reason": "stop"}],
            "usage": {"prompt_tokens": 812, "completion_tokens": 96, "details": {"x": 1}},
            "sources": [
                {"id": "s1", "file": "a.md", "section": "Intro", "content": "abc", "score": 0.83}
            ],
        }
    )
    client = api("openai_chat", headers=Headers({"Authorization": "Bearer x"}))
    asked = finish(client.ask(Question("case", "why {not}?", k=3, seed=11)))
    sent = fake_bot.seen[0]
    assert sent.path == "/v1/chat/completions"
    assert (sent.json()["top_k"], sent.json()["seed"]) == (3, 11)
    assert sent.json()["messages"][-1] == {"role": "user", "content": "why {not}?"}
    result = asked.result
    assert (result.answer, result.abstained) == ("yes [1]", False)
    assert result.usage["prompt_tokens"] == 812
    assert result.chunks()[0] == RetrievedChunk(
        "s1", None, "a.md", "Intro", score_final=0.83, text="abc", text_length=3, rank=1
    )
    assert result.references is not None
    assert (result.references[0].index, result.references[0].rel_path) == (1, "a.md")
    assert asked.facts == {"answerer": {"model": "rag-2", "system_fingerprint": "fp_1"}}
    assert set(result.latency_ms) == {"total"}  # this server sends none: the client's own


def test_retrieval_only_asks_the_openai_server_for_one_token(fake_bot: Any, api: MakeApi) -> None:
    fake_bot.question = lambda exchange: "q"
    fake_bot.default = lambda exchange: exchange.reply({"sources": [{"id": "s1"}]})
    result = ask(api("openai_chat", retrieval_only=True))
    assert fake_bot.seen[0].json()["max_tokens"] == 1
    assert [chunk.chunk_id for chunk in result.chunks()] == ["s1"]


def test_a_pipeline_that_returns_documents(fake_bot: Any, api: MakeApi) -> None:
    fake_bot.question = lambda exchange: exchange.json()["input"]["input"]
    document = {
        "id": 7,
        "page_content": "abc",
        "metadata": {"source": "notes/a.md", "Header 1": "A", "Header 2": "B", "score": 0.5},
    }
    bare = {"page_content": "def", "metadata": {"source": "notes/b.md"}}
    fake_bot.default = lambda exchange: exchange.reply(
        {"output": {"answer": "yes", "context": [document, bare]}, "metadata": {"run_id": "r"}}
    )
    result = ask(api("documents"), "why?", k=4)
    assert fake_bot.seen[0].path == "/rag/invoke"
    config = {"configurable": {"k": 4}}
    assert fake_bot.seen[0].json() == {"input": {"input": "why?"}, "config": config}
    first, second = result.chunks()
    assert (first.chunk_id, first.rel_path, first.heading_path) == ("7", "notes/a.md", "A > B")
    assert (first.text, first.score_final, first.rank) == ("abc", 0.5, 1)
    assert (second.rel_path, second.heading_path, second.rank) == ("notes/b.md", "", 2)
    assert len(second.chunk_id) == 16  # no id in the answer: made of path and text
