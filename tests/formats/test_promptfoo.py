"""promptfoo tests from YAML, JSON and CSV, and what ``promptfoo eval -o`` writes (0.121)."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.rows import each_row

from formats.promptfoo import _assertion

CONFIG = """
prompts: ['{{question}}']
defaultTest:
  vars: {lang: en}
  options: {provider: x}
  assert:
    - {type: latency, threshold: 2000}
tests:
  - description: first
    vars: {question: 'Capital of France?', answer: Paris}
    assert:
      - {type: icontains, value: '{{answer}}'}
      - {type: contains-all, value: [Seine, yes]}
      - {type: not-contains, value: London}
      - {type: equals, value: Paris.}
      - {type: llm-rubric, value: is polite}
      - {type: contains-any, value: [a, b]}
      - {type: javascript, value: output.length > 3}
  - vars: {question: ['Which?', 'What?'], context: some text}
    assert:
      - {type: is-refusal}
      - type: assert-set
        assert: [{type: contains, value: sorry}]
"""


def test_a_config(desk: Any) -> None:
    report = desk.take("promptfoo", desk.file("promptfooconfig.yaml", CONFIG))
    france, which, what = desk.cases()
    labels = desk.labels("groundedness_labels")
    assert france["reference_answer"] == "Paris."
    claims = {"expected_claims": ["Paris", "Seine", "yes"], "forbidden_claims": ["London"]}
    assert labels[france["id"]] == claims
    kinds = [one["type"] for one in france["metadata"]["assert"]]
    assert kinds == ["llm-rubric", "contains-any", "javascript"]
    assert france["metadata"]["vars"] == {"answer": "Paris", "lang": "en"}
    assert france["metadata"]["description"] == "first"
    assert [which["question"], what["question"]] == ["Which?", "What?"]
    assert which["answerable"] is False
    assert labels[which["id"]] == {"expected_claims": ["sorry"]}
    budget = {"latency_budget_ms": {"total": 2000}}
    assert list(desk.labels("pipeline_labels").values()) == [budget] * 3
    gold = desk.labels("retrieval_labels")
    assert gold == {one["id"]: {"gold_contexts": ["some text"]} for one in (which, what)}
    assert report["left_out"] == {"prompts of the whole file": 1, "defaultTest.options": 1} | {
        f"assertions of the type {kind}, kept under metadata": 1
        for kind in ("llm-rubric", "contains-any", "javascript")
    }


def test_csv(desk: Any) -> None:
    text = (
        "question,__expected,__expected2,__description,__metadata:area,__providerOutput\n"
        'Q?,"contains-all:a, b",not-icontains: no,d,x,An answer.\n'
        "R?,plain text,,,,\n"
    )
    desk.take("promptfoo", desk.file("tests.csv", text))
    first, second = desk.cases()
    assert first["metadata"] == {"area": "x", "description": "d"}
    assert second["reference_answer"] == "plain text"
    assert desk.labels("groundedness_labels")[first["id"]] == {
        "expected_claims": ["a", "b"],
        "forbidden_claims": ["no"],
    }
    assert desk.results("tests")[0]["answer"] == "An answer."


@each_row(
    ("text", "found"),
    [
        ("contains:a", {"type": "contains", "value": "a"}),
        ("similar(0.9):a: b", {"type": "similar", "value": "a: b", "threshold": 0.9}),
        ("latency(1500)", {"type": "latency", "threshold": 1500.0}),
        ("not-is-refusal", {"type": "not-is-refusal"}),
        ("https://x", {"type": "equals", "value": "https://x"}),
        ("just words", {"type": "equals", "value": "just words"}),
    ],
)
def test_short_assertions(text: str, found: dict[str, Any]) -> None:
    assert _assertion(text) == found


def test_json_lines_and_the_question_field(desk: Any) -> None:
    rows = [{"vars": {"q": "Q?", "z": 1}, "assert": [{"type": "contains", "value": "file://x"}]}]
    said = desk.refused("promptfoo", desk.rows("t.jsonl", rows))
    assert "t.jsonl:1: vars.question: is not a question" in said
    report = desk.take("promptfoo", desk.rows("t.jsonl", rows), more=["--map", "question=q"])
    assert desk.cases()[0]["question"] == "Q?"
    assert report["left_out"] == {"assertions of the type contains, kept under metadata": 1}


def test_yaml_is_read_as_plain_values(desk: Any) -> None:
    """YAML 1.1 would read yes as true, 12:30 as 750 and a day as a date."""
    text = "- vars: {question: yes, at: 12:30, day: 2024-01-02, n: 3, b: true, none: ~}\n"
    desk.take("promptfoo", desk.file("t.yaml", text))
    (case,) = desk.cases()
    assert case["question"] == "yes"
    read = {"at": "12:30", "day": "2024-01-02", "n": 3, "b": True, "none": None}
    assert case["metadata"]["vars"] == read


BILLION = "a: &a [x,x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"{n}: &{n} [{','.join([f'*{p}'] * 10)}]\n" for p, n in zip("abcdef", "bcdefg", strict=True)
)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("- !!python/object/apply:os.system ['touch x']\n", "could not determine a constructor"),
        ("a: [1\nb: 2\n", ":2: "),
        ("- vars: {question: q, n: !!binary aGk=}\n", "holds a bytes"),
        ("- vars: {question: q, n: 99999999999999999999}\n", "which JSON does not carry"),
        ("- vars: {question: q, n: 1e999}\n", "which JSON does not carry"),
        ("[" * 5000, "nested too deeply"),
        (BILLION, "aliases expand to more than"),
    ],
)
def test_hostile_yaml_is_refused(desk: Any, text: str, said: str) -> None:
    assert said in desk.refused("promptfoo", desk.file("t.yaml", text))


def test_a_config_in_json(desk: Any) -> None:
    config = {
        "defaultTest": {"assert": [{"type": "not-contains", "value": "x"}]},
        "tests": [{"vars": {"query": "Q?"}, "assert": [{"type": "similar", "value": "T."}]}],
    }
    desk.take("promptfoo", desk.file("c.json", json.dumps(config)))
    (case,) = desk.cases()
    assert case["reference_answer"] == "T."
    assert desk.labels("groundedness_labels")[case["id"]] == {"forbidden_claims": ["x"]}


LINKED = """
prompts: [p]
defaultTest: {metadata: {suite: nightly, owner: all}}
tests:
  - file://rows.csv
  - vars: {question: 'Own?'}
    metadata: {owner: me}
    assert:
      - {type: contains, value: x, weight: 2, metric: accuracy}
      - {type: similar, value: y, threshold: 0.9}
"""


def test_tests_in_other_files_and_default_metadata(desk: Any) -> None:
    desk.file("rows.csv", 'question,__expected,__metadata:tags[],__threshold\nQ?,a,"b, c",0.5\n')
    report = desk.take("promptfoo", desk.file("config.yaml", LINKED))
    linked, own = desk.cases()
    metadata = {"suite": "nightly", "owner": "all", "tags": ["b", "c"], "threshold": 0.5}
    assert linked["metadata"] == metadata
    assert (linked["question"], linked["reference_answer"]) == ("Q?", "a")
    assert own["metadata"] == {"suite": "nightly", "owner": "me"}
    assert report["left_out"] == {
        "prompts of the whole file": 1,
        "assert.weight of assertions that became fields": 1,
        "assert.metric of assertions that became fields": 1,
        "assert.threshold of assertions that became fields": 1,
    }
    desk.file("one.yaml", "tests: rows.csv\n")
    desk.take("promptfoo", str(desk.folder / "one.yaml"), out="second")
    assert [case["question"] for case in desk.cases("second")] == ["Q?"]


@pytest.mark.parametrize(
    ("config", "said"),
    [
        ("tests: file://gone.csv", "tests[0]: 'file://gone.csv' cannot be read"),
        (
            "tests: [huggingface://datasets/x]",
            "tests[0]: 'huggingface://datasets/x' cannot be read",
        ),
        ("tests: []\ndefaultTest: file://d.yaml", "defaultTest: 'file://d.yaml' is not read"),
    ],
)
def test_links_that_lead_nowhere(desk: Any, config: str, said: str) -> None:
    assert said in desk.refused("promptfoo", desk.file("c.yaml", config))


TEST = {
    "description": "first",
    "vars": {"question": "What is A?", "context": "of the test"},
    "assert": [{"type": "icontains", "value": "an a"}],
}


def result(provider: str, response: dict[str, Any], **more: Any) -> dict[str, Any]:
    facts = {"id": "x", "latencyMs": 9, "cost": 0.25, "score": 1, "success": True}
    prompt = {"raw": "What is A?", "label": "{{question}}"}
    asked = {"provider": {"id": "p", "label": provider}, "prompt": prompt, "promptIdx": 0}
    test = {"testCase": TEST, "testIdx": 0, "vars": TEST["vars"], "failureReason": 0}
    return {**facts, **asked, **test, "response": response} | more


DONE = result(
    "bot",
    {
        "output": "An A.",
        "tokenUsage": {"prompt": 8, "completion": 4, "total": 12},
        "metadata": {"retrieved": [{"id": "c1", "rel_path": "a.md", "text": "of the bot"}]},
        "cached": True,
    },
)
MISSED = result("echo", {"output": "What is A?"}, error="Expected more", failureReason=1)
FAILED = result("bot", {"error": "boom"}, error="boom", failureReason=2, success=False)
FILE = {
    "evalId": "e",
    "results": {"version": 3, "stats": {"n": 1}, "results": [DONE, MISSED, FAILED]},
    "config": {"a": 1},
}


def test_results_in_json(desk: Any) -> None:
    report = desk.take("promptfoo", desk.file("out.json", json.dumps(FILE)))
    (case,) = desk.cases()
    assert desk.labels("groundedness_labels")[case["id"]] == {"expected_claims": ["an a"]}
    done, failed = desk.results("bot")
    assert (done["answer"], done["latency_ms"], done["cost_usd"]) == ("An A.", {"total": 9}, 0.25)
    assert done["usage"] == {"input_tokens": 8, "output_tokens": 4}
    places = [(c["chunk_id"], c["rel_path"], c["text"]) for c in done["retrieved"]]
    assert places == [("c1", "a.md", "of the bot")]
    assert (failed["status"], failed["error"]["message"], failed["repeat"]) == ("error", "boom", 1)
    (missed,) = desk.results("echo")
    assert (missed["status"], missed["answer"]) == ("ok", "What is A?")
    assert [chunk["text"] for chunk in missed["retrieved"]] == ["of the test"]
    assert case["metadata"]["promptfoo"]["bot"][1] == {"score": 1, "success": False}
    assert report["left_out"]["response.cached"] == 1
    assert report["left_out"]["config of the whole file"] == 1


def test_lines_of_results_give_the_same(desk: Any) -> None:
    desk.take("promptfoo", desk.file("out.json", json.dumps(FILE)))
    desk.take("promptfoo", desk.rows("out.jsonl", [DONE, MISSED, FAILED]), out="lines")
    assert desk.cases() == desk.cases("lines")
    assert desk.results("bot") == desk.results("bot", "lines")


def test_a_table_of_results(desk: Any) -> None:
    judged = "Status,Score,Named Scores,Grader Reason,Comment"
    text = (
        f"Description,question,context,[bot] {{{{question}}}},{judged},[bot] Say {{{{question}}}},"
        f"{judged}\nfirst,What is A?,text,An A.,PASS,1.00,,fine,,An A!,FAIL,0.00,,not so,\n"
        ",What is B?,,,ERROR,0.00,,,,A B.,PASS,1.00,,,\n"
    )
    desk.take("promptfoo", desk.file("out.csv", text))
    assert [case["question"] for case in desk.cases()] == ["What is A?", "What is B?"]
    one, failed = desk.results("bot-prompt-1")
    assert (one["answer"], one["retrieved"][0]["text"]) == ("An A.", "text")
    assert failed["status"] == "error"
    assert [row["answer"] for row in desk.results("bot-prompt-2")] == ["An A!", "A B."]
