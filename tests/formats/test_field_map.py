"""--map: any shape, read by expressions; what no expression reads is kept."""

from __future__ import annotations

import json
from typing import Any

import pytest

DOCUMENT = {
    "about": "x",
    "items": [
        {
            "trace": {"id": "t-1", "ms": 120},
            "io": {"in": {"q": "What is A?"}, "out": {"text": "An A.", "why": "known"}},
            "hits": [
                {"meta": {"path": "a/b.md", "crumbs": "/A/B/"}, "body": "first", "n": 1, "s": 0.5},
                {"meta": {"path": "c.md", "crumbs": "/C/"}, "body": "second", "n": 2},
            ],
            "bot": "one",
        },
        {"trace": {"id": "t-1", "ms": 90}, "io": {"in": {"q": "What is A?"}}, "fault": "late"},
    ],
}
MAPS = [
    "rows=items",
    "question=io.in.q",
    "answer=io.out.text",
    "id=trace.id",
    "latency_ms=trace.ms",
    "retrieved=hits",
    "retrieved.rel_path=meta.path",
    "retrieved.heading_path=join(' > ', split(meta.crumbs, '/'))",
    "retrieved.text=body",
    "retrieved.score_final=s",
    "run=bot",
    "error=fault",
]


def words(maps: list[str]) -> list[str]:
    return [word for text in maps for word in ("--map", text)]


def test_nested_json_becomes_cases_and_runs(desk: Any) -> None:
    path = desk.file("log.json", json.dumps(DOCUMENT))
    report = desk.take("json", path, more=words(MAPS))
    (case,) = desk.cases()
    assert (case["id"], case["question"]) == ("t-1", "What is A?")
    (done,) = desk.results("one")
    places = [(c["rel_path"], c["heading_path"], c["text"]) for c in done["retrieved"]]
    assert places == [("a/b.md", "A > B", "first"), ("c.md", "C", "second")]
    assert [chunk["score_final"] for chunk in done["retrieved"]] == [0.5, None]
    assert (done["answer"], done["latency_ms"]) == ("An A.", {"total": 120})
    (failed,) = desk.results("log")
    assert failed["error"]["message"] == "late"
    # io.out.why and hits[].n are read by no expression
    assert case["metadata"] == {"io": {"out": {"why": "known"}}, "hits": [{"n": 1}, {"n": 2}]}
    assert report["kept"] == {"hits": 1, "io": 1}


def test_csv_with_json_in_its_cells_and_dots_in_its_head(desk: Any) -> None:
    text = 'inputs.q,out,left\nWhy?,"{""a"": ""Since."", ""docs"": [""x"", ""y""]}",7\n'
    maps = ['question="inputs.q"', "answer=out.a", "retrieved=out.docs"]
    desk.take("json", desk.file("t.csv", text), more=words(maps))
    (result,) = desk.results("t")
    assert (result["question"], result["answer"]) == ("Why?", "Since.")
    assert [chunk["text"] for chunk in result["retrieved"]] == ["x", "y"]
    assert desk.cases()[0]["metadata"] == {"left": "7"}


def test_filters_and_functions_know_what_they_read(desk: Any) -> None:
    turns = [{"by": "user", "t": "Q?"}, {"by": "bot", "t": "A."}]
    row = {"turns": turns, "tokens": {"in": 5, "out": 6}}
    maps = [
        "question=turns[?by=='user'] | [0].t",
        "answer=turns[?by=='bot'].t | [0]",
        "usage={input_tokens: tokens.in, output_tokens: tokens.out}",
    ]
    desk.take("json", desk.rows("c.jsonl", [row]), more=words(maps))
    (result,) = desk.results("c")
    assert (result["answer"], result["usage"]) == ("A.", {"input_tokens": 5, "output_tokens": 6})
    assert "metadata" not in desk.cases()[0]


@pytest.mark.parametrize(
    ("maps", "said"),
    [
        (["question"], "write FIELD=JMESPATH"),
        (["nothing=a"], "no such field; fields: abstained,"),
        (["question=a["], "is no JMESPath"),
        (["answer=a"], "--map question=JMESPATH"),
        (["question=a", "answer=upper(b)"], "there is no function upper()"),
        (["question=abs(a)"], "--map question: "),
        (["question=a", "rows=b"], "has a row a line already"),
        (["question=missing"], "c.jsonl:1: question: is missing"),
        (["question=a", "answer=a", "usage={n: a}"], "usage: is neither a number nor an object"),
    ],
)
def test_maps_that_cannot_be_followed(desk: Any, maps: list[str], said: str) -> None:
    path = desk.rows("c.jsonl", [{"a": "Q?"}])
    assert said in desk.refused("json", path, more=words(maps))


def test_the_map_is_for_rows_of_any_shape(desk: Any) -> None:
    path = desk.rows("c.jsonl", [{"user_input": "Q?"}])
    for maps in (["answer=response"], ["question=user_input", "answer=response"], ["question="]):
        said = desk.refused("ragas", path, more=words(maps))
        assert "give question=NAME alone, or use the format json" in said
