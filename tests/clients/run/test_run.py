"""run_eval.py against a real HTTP server: what a good run asks and writes."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.clients.run.conftest import Desk

import run_eval

SCRIPT = Path(run_eval.__file__)


def test_a_run_from_end_to_end(desk: Desk) -> None:
    done = desk.run("--k", "3", "--set", "concurrency=4", "--run-id", "one", cases=40)
    folder = desk.folder / "results" / "one"
    assert done.stdout == f"{folder}\n"
    assert "--store-full-text" in done.stderr
    assert "answered" in done.stderr
    assert "\x1b" not in done.stderr

    assert sum(desk.bot.asked.values()) == 40
    assert desk.bot.most_at_once <= 4
    assert desk.bot.seen[0].json() == {"question": "question 0", "k": 3}
    results = desk.read(folder)
    assert [line["test_case_id"] for line in results] == [f"q{n}" for n in range(40)]
    assert results[7]["answer"] == "answer to question 7 [1]"
    assert len(results[7]["retrieved"][0]["text"]) == 200
    assert sorted(path.name for path in folder.iterdir()) == ["config.json", "results.jsonl"]

    config = json.loads((folder / "config.json").read_text())
    assert config["dataset"]["cases"] == 40
    assert len(config["dataset"]["sha256"]) == len(config["config_hash"]) == 64
    assert config["retriever"]["requested"]["k"] == 3
    assert config["api"]["url"] == desk.bot.url
    assert config["api"]["profile"] == "default"
    assert "retrieved[].chunk_id" in config["api"]["fields_seen"]
    assert config["started"] <= config["finished"]


def test_full_texts_and_the_summary_as_json(desk: Desk) -> None:
    done = desk.invoke("--store-full-text", "--json", "--run-id", "full")
    assert "--store-full-text" not in done.stderr
    summary = json.loads(done.stdout)
    # 5 answers of the fake bot: 10 tokens in and 5 out, 5 ms each
    assert (summary["answered"], summary["errors"]) == (5, {})
    assert summary["usage"] == {"input_tokens": 50, "output_tokens": 25}
    assert summary["latency_ms"]["total"] == {"p50": 5.0, "p95": 5.0}
    chunk = desk.results("full")[0]["retrieved"][0]
    assert len(chunk["text"]) == chunk["text_length"] == len("about question 0 ") + 300


def test_what_can_change_a_result_changes_the_hash(desk: Desk) -> None:
    def config_hash(*words: str) -> str:
        done = desk.invoke("-q", *words)
        found: str = json.loads((Path(done.stdout.strip()) / "config.json").read_text())[
            "config_hash"
        ]
        return found

    first = config_hash()
    speed = ("--set", "concurrency=2", "--set", "timeout=30", "--max-error-rate", "1")
    assert config_hash(*speed) == first
    assert config_hash("--k", "4") != first


def test_filter_limit_and_repeat(desk: Desk) -> None:
    done = desk.invoke(
        "--filter", "category=factual", "tag=t", "--limit", "2", "--repeat", "3", cases=30
    )
    # even and a multiple of three: 0, 6, 12, …; the first two of them
    results = desk.read(Path(done.stdout.strip()))
    order = [(line["test_case_id"], line["repeat"]) for line in results]
    assert order == [(case, n) for case in ("q0", "q6") for n in range(3)]
    assert dict(desk.bot.asked) == {"question 0": 3, "question 6": 3}


def test_facts_of_the_bot_enter_the_configuration(desk: Desk) -> None:
    facts = {
        "index": {"corpus_hash": "h1", "chunker": "headings"},
        "retriever": {"k": 10, "filters": {"folders": ["varies"]}, "reranker": None},
        "answerer": {"model": "m-1"},
    }
    desk.bot.default = lambda e: e.reply(desk.bot.answer("x", **facts))
    desk.invoke("--run-id", "a")
    config = desk.config("a")
    assert config["index"] == facts["index"]
    assert config["answerer"] == facts["answerer"]
    assert config["retriever"]["k"] == 10
    assert "filters" not in config["retriever"]
    facts["index"]["corpus_hash"] = "h2"  # type: ignore[index]
    desk.invoke("--run-id", "b")
    other = desk.config("b")
    assert other["config_hash"] != config["config_hash"]


def test_a_bot_that_changes_during_the_run_is_noticed(desk: Desk) -> None:
    def built(name: str) -> Callable[[Any], None]:
        return lambda e: e.reply(desk.bot.answer("x", index={"corpus_hash": name}))

    desk.bot.default = built("old")
    desk.bot.script("question 4", built("new"))
    done = desk.invoke("--run-id", "r")
    change = "index.corpus_hash: was old, is new"
    assert change in done.stderr
    config = desk.config("r")
    assert config["api"]["facts_changed"] == [change]
    assert config["index"] == {"corpus_hash": "old"}


def test_retrieval_only(desk: Desk) -> None:
    done = desk.invoke("--retrieval-only", "--run-id", "r")
    assert "does not say how to ask for retrieval only" in done.stderr
    first = desk.results("r")[0]
    assert first["answer"] is None
    assert len(first["retrieved"]) == 1
    config = desk.config("r")
    assert config["retriever"]["requested"]["retrieval_only"] is True


def test_a_bot_that_only_retrieves_is_run_by_its_profile(desk: Desk) -> None:
    """It gives no answer at all, which stops the run of any other bot."""
    profile = desk.folder / "retriever.toml"
    profile.write_text(
        'kind = "retrieval"\n[request]\npath = "/ask"\n[request.body]\nquestion = "{question}"\n'
        '[response]\nretrieved = "retrieved"\n'
    )
    desk.invoke("--profile", str(profile), "--run-id", "r")
    assert [len(result["retrieved"]) for result in desk.results("r")][:1] == [1]


def test_the_address_may_name_the_endpoint(desk: Desk) -> None:
    desk.invoke("-q", url=f"{desk.bot.url}/api/v1/ask")
    assert {exchange.path for exchange in desk.bot.seen} == {"/api/v1/ask?debug=true"}
