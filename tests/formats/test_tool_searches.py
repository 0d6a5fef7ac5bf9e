"""Agents search by tools: the passages in tools' results are read as searches, or it is said.

The captures in tool_searches are of real frameworks with a scripted model (`schema_…`: by published
schemas alone). `expected.json` is what the tool itself logged at each call.
"""

from __future__ import annotations

import gzip
import json
import tomllib
from pathlib import Path
from typing import Any

import pytest
from tests.commands import call
from tests.formats.spans import otlp, span

import connect_bot
from clients.expressions import compile_path
from records.toml_files import TomlReader
from records.tool_passages import passages_in, tool_forms

FOLDER = Path(__file__).resolve().parents[1] / "tool_searches"
EXPECTED: dict[str, Any] = json.loads((FOLDER / "expected.json").read_text("utf-8"))["captures"]
WITHOUT_PLACES = ("lc_text", "schema_dspy_prompt")


def results_of(desk: Any, name: str) -> tuple[list[dict[str, Any]], Any]:
    """The lines of results that an import makes of a capture, and its report."""
    source = desk.file(f"{name}.json", gzip.decompress((FOLDER / f"{name}.json.gz").read_bytes()))
    report = desk.take("otel", source, "--run-id", "r")
    lines = (desk.folder / "out/results/r/results.jsonl").read_text("utf-8").splitlines()
    return [json.loads(line) for line in lines], report


def place(chunk: dict[str, Any], name: str) -> list[str]:
    """A passage's path and heading; of a URL with an anchor what these two are made of."""
    if EXPECTED[name].get("places") != "url":
        return [chunk["rel_path"], chunk["heading_path"]]
    path, _, anchor = chunk["rel_path"].removeprefix("https://lib.example/").partition("#")
    return [f"{path}.md", anchor.replace("-", " ").capitalize()]


@pytest.mark.parametrize("name", EXPECTED)
def test_what_a_tool_returned_is_searched(desk: Any, name: str) -> None:
    results, _ = results_of(desk, name)
    assert len(results) == 3
    for result in results:
        searches = [
            [search["query"], [place(chunk, name) for chunk in search["retrieved"]]]
            for search in result.get("searches", [])
        ]
        wanted = EXPECTED[name]["searches"][result["question"]]
        assert searches == ([] if name in WITHOUT_PLACES else wanted)
        assert result["answer"] == EXPECTED[name]["answers"][result["question"]]
        calls = [call["arguments"] for call in result.get("tools", [])]
        asked = [[*arguments.values()] for arguments in calls]
        assert asked == ([] if "dspy" in name else [[query] for query, _ in wanted])


def test_an_agent_that_takes_over_is_no_tool(desk: Any) -> None:
    results, _ = results_of(desk, "agents_handoff_blocks")
    assert [result["handoffs"] for result in results] == [["Librarian"]] * 3


def test_a_result_without_places_is_seen_and_said(
    desk: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    results, _ = results_of(desk, "lc_text")
    assert all(result["retrieved"] is None and result["seen_tools"] for result in results)
    config = tmp_path / "c.toml"
    config.write_text("[traces.tools.lookup_notes]\nsplit = '\\n\\n'\n", encoding="utf-8")
    monkeypatch.setenv("RAG_EVAL_CONFIG", str(config))
    source = desk.file("t.json", gzip.decompress((FOLDER / "lc_text.json.gz").read_bytes()))
    desk.take("otel", source, "--run-id", "formed", out="formed")
    lines = (desk.folder / "formed/results/formed/results.jsonl").read_text("utf-8").splitlines()
    counts = [[len(s["retrieved"]) for s in json.loads(line)["searches"]] for line in lines]
    assert sorted(counts) == [[3], [3], [3, 3]]


def test_passages_in_a_prompt_are_unknown_and_said(desk: Any) -> None:
    results, report = results_of(desk, "schema_dspy_prompt")
    assert all(result["retrieved"] is None for result in results)
    assert [n for name, n in report["left_out"].items() if "passages in a prompt" in name] == [3]


def test_faults_of_a_form_are_named_with_their_place(
    desk: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    config = tmp_path / "c.toml"
    config.write_text(
        '[traces]\ndocuments = "nowhere"\n[traces.tools.find]\nsplit = "("\ntxet = "a"\n',
        encoding="utf-8",
    )
    monkeypatch.setenv("RAG_EVAL_CONFIG", str(config))
    asked = span("t", "r", {"openinference.span.kind": "AGENT", "input.value": "Why?"}, ms=1)
    said = desk.refused("otel", desk.file("s.json", json.dumps(otlp(asked))))
    for words in ("traces.documents", "tools.find.split", "tools.find.txet"):
        assert words in said


def test_hashes_that_name_parts_of_a_crew_are_no_secrets(desk: Any) -> None:
    names = {"openinference.span.kind": "CHAIN", "input.value": "Why?", "output.value": "So."}
    md5 = "7b42df3c3c74c21a89cd48a2a8e3f1c9"
    parts = json.dumps([{"key": md5, "role": "reader"}])
    names |= {"crew_key": md5, "crew_agents": parts, "api_key": md5}
    report = desk.take("otel", desk.file("s.json", json.dumps(otlp(span("t", "r", names, ms=9)))))
    assert [name for name in report["changed"] if "masked" in name] == ["secret in api_key: masked"]
    metadata = desk.cases()[0]["metadata"]
    assert metadata["crew_key"] == metadata["crew_agents"][0]["key"] == md5
    assert md5 not in metadata["api_key"]


def proved(desk: Any, data: str | bytes, *, ends: int = 0) -> Any:
    """What connect_bot says of the tools of traces."""
    return call(connect_bot, "--from-traces", desk.file("traces.json", data), ends=ends)


def test_connect_bot_proves_the_tools_of_traces(desk: Any) -> None:
    """By shape; by keys that it proposes, whose places are right; and by none."""
    packed = {name: gzip.decompress((FOLDER / f"{name}.json.gz").read_bytes()) for name in EXPECTED}
    by_shape = proved(desk, packed["pydantic_list"])
    assert "✓ lookup_notes" in by_shape.stderr
    assert by_shape.stdout == ""
    assert "– lookup_notes" in proved(desk, packed["lc_text"]).stderr
    document = json.loads(packed["schema_semconv"])
    for each in document["resourceSpans"][0]["scopeSpans"][0]["spans"]:
        for attribute in each["attributes"]:
            if attribute["key"] == "gen_ai.tool.call.result":
                rows = json.loads(attribute["value"]["stringValue"])["results"]
                texts = [f"{row['snippet']} (source: {row['file']})" for row in rows]
                attribute["value"]["stringValue"] = "\n\n".join(texts)
    done = proved(desk, json.dumps(document))
    assert "✓ search_handbook" in done.stderr
    (table,) = tomllib.loads(done.stdout)["traces"]["tools"].values()
    reader = TomlReader("t")
    forms = tool_forms({"t": table}, compile_path, reader, ())
    reader.end()
    read = passages_in("Water. (source: a.md)\n\nFire. (source: b.md)", forms["t"])
    assert read == [{"rel_path": "a.md", "text": "Water."}, {"rel_path": "b.md", "text": "Fire."}]


@pytest.mark.parametrize(
    "result",
    [
        [{"id": 4, "title": "Order 4", "text": "Leave it at the door.", "score": 5}],
        [{"id": "m-1", "content": "Lives in Bern.", "source": "conversation", "score": 0.8}],
        [{"title": "Bern", "url": "https://a.example/b", "content": "A capital.", "score": 0.9}],
    ],
    ids=["SQL rows", "memory", "web"],
)
def test_a_row_with_an_id_a_score_or_a_web_page_is_not_retrieved(desk: Any, result: Any) -> None:
    tool = {"openinference.span.kind": "TOOL", "tool.name": "t", "output.value": json.dumps(result)}
    asked = {"openinference.span.kind": "AGENT", "input.value": "Why?", "output.value": "So."}
    spans = [span("t", "r", asked, ms=9), span("t", "c", tool, parent="r", at=1, ms=2)]
    report = desk.take("otel", desk.file("s.json", json.dumps(otlp(*spans))), "--run-id", "r")
    (read,) = desk.results("r")
    assert (read["retrieved"], len(read["seen_tools"])) == (None, 1), report


def test_connect_bot_proves_no_search_of_the_web_and_no_passages_in_one(desk: Any) -> None:
    def shown(results: list[str]) -> str:
        spans = []
        for number, result in enumerate(results):
            tool = {"openinference.span.kind": "TOOL", "tool.name": "t", "output.value": result}
            tool["input.value"] = json.dumps({"query": "Bern"})
            asked = {"openinference.span.kind": "AGENT", "input.value": "Why?"}
            name = f"t{number}"
            inner = span(name, f"c{name}", tool, parent=name, at=1)
            spans += [span(name, name, asked, ms=9), inner]
        said: str = proved(desk, json.dumps(otlp(*spans))).output
        return said

    web = [{"title": "B", "url": "https://a.example/b", "snippet": "Bern is a capital city."}]
    said = shown([json.dumps(web), json.dumps([web[0] | {"url": "https://b.example/c"}])])
    assert "? t" in said
    assert "perhaps of the web" in said
    lines = ["- Water is allowed. (source: a.md)\n- Fire is not. (source: b.md)"]
    assert "– t" in shown([*lines, lines[0].replace("a.md", "c.md")])


def test_traces_without_tools_are_refused(desk: Any) -> None:
    data = gzip.decompress((FOLDER / "schema_dspy_prompt.json.gz").read_bytes())
    assert "no trace calls a tool" in proved(desk, data, ends=2).output
    absent = call(connect_bot, "--from-traces", str(desk.folder / "none"), ends=2)
    assert "no such file" in absent.output
