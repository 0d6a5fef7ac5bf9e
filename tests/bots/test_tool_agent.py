"""An agent with tools, the whole way: connect, run, score, compare, gate."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.bots.serving import BotServer
from tests.bots.tool_agent import FIRST, TOKEN, make
from tests.processes import call_script

from ragmetrics.catalogue.metric import BY_DOCUMENT

CASES = 24
"""Numbers 0 to 23: 12 are even, and 4 of them are 0, 6, 12 and 18."""


STREAM = """stream = "sse"
stream_delta = "choices[0].delta.content"
stream_last = "[DONE]"
[request]
path = "/v1/chat/completions"
headers = { Authorization = "Bearer ${SHOP_TOKEN}" }
[request.body]
messages = [{ role = "user", content = "{question}" }]
[response]
answer = "text"
"""


def case(number: int) -> dict[str, Any]:
    expected = [
        {"name": "search", "arguments": {"query": f"hat {number}"}},
        {"name": "price", "arguments": {"id": {"number": number}}},
    ]
    labels = {"forbidden_tools": ["delete_basket"], "max_tool_calls": 2, "tool_order": "strict"}
    asked = {"id": f"q{number}", "question": f"What does hat {number} cost?", "answerable": True}
    return {**asked, "expected_tools": expected, **labels}


@pytest.fixture
def server() -> Iterator[BotServer]:
    with make() as started:
        yield started


class Desk:
    """A folder with the set, and the scripts in it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        lines = [json.dumps(case(number)) + "\n" for number in range(CASES)]
        (folder / "set.jsonl").write_text("".join(lines), encoding="utf-8")

    def call(self, script: str, *words: str, ends: int = 0) -> str:
        shared = ("--eval-set", "set.jsonl") if script != "gate_run" else ()
        folders = () if script == "connect_bot" else ("--results-dir", "results")
        arguments = (*words, *shared, *folders)
        done = call_script(script, *arguments, cwd=self.folder, SHOP_TOKEN=TOKEN, COLUMNS="120")
        assert done.returncode == ends, done.stdout + done.stderr
        self.said = done.stderr
        return done.stdout

    def profile(self, name: str, more: str) -> None:
        """A profile of the streaming endpoint; ``more``: further lines of its response."""
        (self.folder / name).write_text(f"{STREAM}{more}\n", encoding="utf-8")

    def results(self, run: str) -> list[dict[str, Any]]:
        text = (self.folder / "results" / run / "results.jsonl").read_text("utf-8")
        return [json.loads(line) for line in text.splitlines()]


def test_the_whole_way_of_an_agent(server: BotServer, tmp_path: Path) -> None:
    """The careless agent forgets the price of 12 of 24 hats, and deletes a basket for 4 of these.

    tool_recall: (12 x 1 + 12 x 1/2) / 24 = .75. Precision: 20 answers without another call, 4 with
    one of two: (20 + 4/2) / 24 = 22/24. F1: 12 of 1, 8 of 2/(2+1), 4 of 2/(2+2): .805556.
    """
    desk = Desk(tmp_path)
    url = server.url + "/runs/wait"
    desk.call("connect_bot", url, "--model", "careful", "--name", "careful.toml", "--yes")
    profile = (tmp_path / "careful.toml").read_text("utf-8")
    assert 'tools = "tool_calls(messages)"' in profile
    (tmp_path / "careless.toml").write_text(profile.replace("careful", "careless"), "utf-8")
    for run in ("careful", "careless"):
        desk.call("run_eval", "--api-url", server.url, "--profile", f"{run}.toml", "--run-id", run)
    means = {
        run: json.loads(desk.call("score_tools", "--run", run, "--json"))["mean"]
        for run in ("careful", "careless")
    }
    perfect = {"tool_f1": 1, "tool_precision": 1, "tool_recall": 1, "argument_match": 1}
    perfect |= {"order_match": 1, "within_calls": 1, "forbidden_called": 0, "tool_calls": 2}
    assert {name: means["careful"][name] for name in perfect} == perfect
    assert means["careless"]["tool_f1"] == round((12 + 8 * 2 / 3 + 4 / 2) / 24, 6)
    assert means["careless"]["tool_precision"] == round(22 / 24, 6)
    assert means["careless"]["tool_recall"] == means["careless"]["argument_match"] == 0.75
    assert means["careless"]["forbidden_called"] == round(4 / 24, 6)
    assert means["careless"]["no_call_ok"] is None
    worst = desk.call("score_tools", "--run", "careless", "--worst", "1")
    assert "2. delete_basket()\n    forbidden" in worst
    assert 'not made price(id={"number": 0})' in worst

    suite = desk.call("eval_suite", "--run", "careless", "--sections", "tools")
    assert "tool_recall" in suite
    compared = desk.call("compare_runs", "careful", "careless")
    assert "tool_recall     1.000  0.750" in compared
    assert "Broke: q0  called a forbidden tool\n" in compared
    rules = '[tools]\ntool_recall = ">= 0.9"\nforbidden_called = "<= 0"\n'
    (tmp_path / "gates.toml").write_text(rules, encoding="utf-8")
    desk.call("gate_run", "--run", "careful", "--gates", "gates.toml")
    refused = desk.call("gate_run", "--run", "careless", "--gates", "gates.toml", ends=1)
    assert re.search(r"✗ +tools\.tool_recall +>= 0\.9 +0\.750", refused)


@pytest.mark.parametrize(("assistant", "support"), [("quoting", 1.0), ("inventing", 0.0)])
def test_claims_from_the_first_of_two_searches_are_supported(
    server: BotServer, tmp_path: Path, assistant: str, support: float
) -> None:
    """The agent reports its two searches as tool calls and no list of passages. An answer that is
    a sentence of the first result is supported, one that is in neither is not; for the claims, for
    the local judge, and where the results were cut when they were stored nothing is claimed."""
    desk = Desk(tmp_path)
    url = server.url + "/runs/wait"
    desk.call("connect_bot", url, "--model", assistant, "--name", "agent.toml", "--yes")
    asked = ("--api-url", server.url, "--profile", "agent.toml", "--limit", "3")
    desk.call("run_eval", *asked, "--run-id", "full", "--store-full-text")
    desk.call("run_eval", *asked, "--run-id", "cut")
    first = desk.results("full")[0]
    assert (first["answer"] == FIRST) is (support == 1.0)
    assert "retrieved" not in first or first["retrieved"] is None
    assert [call["name"] for call in first["tools"]] == ["search", "search"]
    scored = json.loads(desk.call("score_groundedness", "--run", "full", "--json"))["mean"]
    assert scored["claim_support_rate"] == support
    assert scored["numeric_fabrications"] == 1 - support
    desk.call("judge_answers", "--run", "full", "--judge", "local", "--metrics", "groundedness")
    judged = json.loads((tmp_path / "results/full/metrics.json").read_text("utf-8"))
    assert judged["sections"]["judged"]["metrics"]["faithfulness"]["mean"] == support
    cut = json.loads(desk.call("score_groundedness", "--run", "cut", "--json"))["mean"]
    assert cut["claim_support_rate"] is None


def test_searches_are_proposed_where_tools_give_passages(server: BotServer, tmp_path: Path) -> None:
    """Found without help: the calls, those of them that searched, and the fields of a passage. Of
    hat n the first search brings n.md in the first place, so every recall is 1."""
    desk = Desk(tmp_path)
    cases = [case(n) | {"gold_supports": [{"rel_path": f"{n}.md"}]} for n in range(CASES)]
    (tmp_path / "set.jsonl").write_text("".join(json.dumps(c) + "\n" for c in cases), "utf-8")
    words = (server.url + "/runs/wait", "--model", "finding", "--name", "agent.toml", "--yes")
    desk.call("connect_bot", *words)
    profile = (tmp_path / "agent.toml").read_text("utf-8")
    assert 'tools = "tool_calls(messages)"' in profile
    assert "searches = \"search_calls(messages, 'search')\"" in profile
    assert 'rel_path = "path"' in profile
    assert 'text = "text"' in profile
    assert "✓ Are these the passages?  search_calls(messages, 'search')" in desk.said
    assert "✓ Did it call these tools?  tool_calls(messages)" in desk.said
    asked = ("--api-url", server.url, "--profile", "agent.toml", "--limit", "4")
    desk.call("run_eval", *asked, "--run-id", "run", "--store-full-text")
    result = desk.results("run")[3]
    queries = [(search["tool"], search["query"]) for search in result["searches"]]
    assert queries == [("search", "hat"), ("search", "shipping")]
    assert [chunk["rel_path"] for chunk in result["retrieved"]] == ["3.md", "shipping.md"]
    assert result["seen"] == "union"
    scored = json.loads(desk.call("score_retrieval", "--run", "run", "--json"))
    assert scored["mean"]["evidence_recall@1" + BY_DOCUMENT] == 1.0
    assert scored["per_search"] == 4


def test_pages_of_the_web_are_seen_and_not_retrieved(server: BotServer, tmp_path: Path) -> None:
    """Each question brings three pages of three sites, one of them named as its gold file."""
    desk = Desk(tmp_path)
    cases = [case(n) | {"gold_supports": [{"rel_path": f"{n}.md"}]} for n in range(CASES)]
    (tmp_path / "set.jsonl").write_text("".join(json.dumps(c) + "\n" for c in cases), "utf-8")
    words = (server.url + "/runs/wait", "--model", "surfing", "--name", "agent.toml", "--yes")
    desk.call("connect_bot", *words)
    assert "searches =" not in (tmp_path / "agent.toml").read_text("utf-8")
    assert "perhaps of the web; seen, not retrieved" in " ".join(desk.said.split())
    asked = ("--api-url", server.url, "--profile", "agent.toml", "--limit", "4")
    desk.call("run_eval", *asked, "--run-id", "run", "--store-full-text")
    for result in desk.results("run"):
        assert (result.get("searches"), result.get("retrieved")) == (None, None)
        assert [call["name"] for call in result["tools"]] == ["web"]
    scored = json.loads(desk.call("score_retrieval", "--run", "run", "--json"))
    assert scored["mean"]["evidence_recall@1" + BY_DOCUMENT] is None


def test_a_secret_given_to_tools_is_written_nowhere(server: BotServer, tmp_path: Path) -> None:
    """It has quotes, stands as JSON in the arguments, and these come in pieces of 7 characters."""
    desk = Desk(tmp_path)
    desk.profile("stream.toml", 'tools = "tool_calls(events)"')
    words = ("--profile", "stream.toml", "--run-id", "run", "--limit", "2", "--set", "proof=false")
    desk.call("run_eval", "--api-url", server.url, *words)
    tools = [result["tools"] for result in desk.results("run")]
    assert tools[1] == [
        {"name": "search", "arguments": {"query": "hat 1", "token": "[secret]"}},
        {"name": "price", "arguments": {"id": 1}},
    ]
    for file in (tmp_path / "results" / "run").rglob("*"):
        assert file.is_dir() or b"LIVE" not in file.read_bytes()


def test_a_run_of_a_bot_without_tools_is_no_fault(server: BotServer, tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    desk.profile("plain.toml", "")
    desk.call("run_eval", "--api-url", server.url, *PLAIN, "--run-id", "plain")
    assert "tools" not in desk.results("plain")[0]
    assert desk.call("score_tools", "--run", "plain", "--json").strip() == "null"
    assert "tool_f1" not in desk.call(
        "eval_suite", "--run", "plain", "--sections", "pipeline,tools", "-v"
    )


PLAIN = ("--profile", "plain.toml", "--set", "proof=false", "--limit", "3")
