"""What is private in imported traces is not written, and a text without anything private stays."""

from __future__ import annotations

import json
import random
import re
from pathlib import Path
from typing import Any

import pytest
from tests.formats.secrets_in_words import planted
from tests.formats.spans import attributes, otlp

from formats import langfuse, otel
from formats.shared.convert import import_data
from formats.shared.item import Notes


def everything(folder: Path) -> str:
    return "\n".join(path.read_text("utf-8") for path in folder.rglob("*") if path.is_file())


def otlp_trace(n: int, **texts: str) -> str:
    """A question that is answered after one search and one call of a tool; ``texts`` replace what
    is said."""
    said = {
        "question": f"How is part {n}x mended?",
        "answer": "With oil.",
        "passage": "Oil helps.",
        "argument": "oil",
        "result": "It is there.",
        "attribute": "quiet",
        "chunk": f"parts-{n}",
    } | texts
    spans = [
        {"spanId": "a", "name": "agent", "attributes": attributes(
            openinference__span__kind="AGENT", input__value=said["question"],
            output__value=said["answer"], comment=said["attribute"])},
        {"spanId": "b", "parentSpanId": "a", "name": "search", "attributes": attributes(
            openinference__span__kind="RETRIEVER", input__value="oil",
            retrieval__documents__0__document__content=said["passage"],
            retrieval__documents__0__document__id=said["chunk"])},
        {"spanId": "c", "parentSpanId": "a", "name": "look_up", "attributes": attributes(
            openinference__span__kind="TOOL", tool__name="look_up",
            input__value=json.dumps({"part": said["argument"]}), output__value=said["result"])},
    ]  # fmt: skip
    for at, span in enumerate(spans):
        span |= {
            "traceId": f"t{n}",
            "startTimeUnixNano": f"{10**18 + at * 1000}",
            "endTimeUnixNano": f"{10**18 + 9000 - at}",
        }
    return json.dumps(otlp(*spans)) + "\n"


def imported(folder: Path, *lines: str, out: str = "out") -> Notes:
    """What is noted at the import of these lines."""
    notes, source = Notes(), folder / "spans.jsonl"
    source.write_text("".join(lines))
    import_data(otel, [source], folder / out, {}, notes, one_file=False, force=False)
    return notes


def result_of(folder: Path, given: dict[str, Any], **texts: str) -> dict[str, Any]:
    """The result of a trace whose tool was given these arguments."""
    trace = json.loads(otlp_trace(1, **texts))
    tool = trace["resourceSpans"][0]["scopeSpans"][0]["spans"][2]
    pair = next(pair for pair in tool["attributes"] if pair["key"] == "input.value")
    pair["value"]["stringValue"] = json.dumps(given)
    imported(folder, json.dumps(trace) + "\n")
    (line,) = (folder / "out" / "results" / "spans" / "results.jsonl").read_text().splitlines()
    result: dict[str, Any] = json.loads(line)
    return result


SPOTS = ("question", "answer", "passage", "argument", "result", "attribute", "chunk")


def test_no_planted_secret_is_imported(tmp_path: Path) -> None:
    """200 private values in the question, the answer, a passage, its id, the arguments and the
    result of a tool, or a comment."""
    secrets = list(planted(random.Random(11)))
    assert len({value for value, _ in secrets}) == 200
    texts = [{SPOTS[n % len(SPOTS)]: words} for n, (_, words) in enumerate(secrets)]
    notes = imported(tmp_path, *(otlp_trace(n, **text) for n, text in enumerate(texts)))
    written = everything(tmp_path / "out")
    missed = [(SPOTS[n % 7], value) for n, (value, _) in enumerate(secrets) if value in written]
    assert missed == []
    assert len((tmp_path / "out" / "eval_set.jsonl").read_text().splitlines()) == 200
    assert sum(n for name, n in notes.changed.items() if name.endswith(": masked")) >= 200


PLAIN = {
    "question": "What is 2 × 3.5 on 2024-05-01?",
    "answer": "7 [1], as `guide/How to (2)?.md#part` says; see https://example.org/a?b=1.",
    "passage": "Pay 12 euros. Call the desk.\n\nOpen 10:00-19:00, v1.2.3.",
    "argument": "a/b c",
    "result": "rows 1, 2 and 3; total: 6",
    "attribute": "2024-05-01T10:00:00.123456+00:00",
    "chunk": "Docs/How to (2)?.md@3",
}


def test_a_text_without_secrets_is_unchanged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = (otlp_trace(1, **PLAIN), otlp_trace(2))
    notes = imported(tmp_path, *lines, out="masked")
    assert not [name for name in notes.changed if name.endswith(": masked")]
    monkeypatch.setattr("formats.traces.cases.mask_case", lambda item, notes: item)
    imported(tmp_path, *lines, out="plain")
    assert everything(tmp_path / "masked") == everything(tmp_path / "plain")
    for text in PLAIN.values():
        assert json.dumps(text, ensure_ascii=False)[1:-1] in everything(tmp_path / "masked")


def test_comments_of_ratings_are_masked_and_ids_stay(tmp_path: Path) -> None:
    trace: dict[str, Any] = {
        "trace": {"id": "9dd4e461268c8034f5c8564e155c67a6", "name": "ask", "input": "What is oil?",
                  "output": "A liquid.", "timestamp": "2024-05-01T10:00:00.000Z", "latency": 1},
        "observations": [],
    }  # fmt: skip
    score = {
        "id": "1bf8632d-ed90-4596-b1a7-57ec2d385f2c",
        "traceId": trace["trace"]["id"],
        "name": "tone",
        "source": "EVAL",
        "value": 0,
        "comment": "write to jane.roe@corp.test instead",
    }
    (tmp_path / "trace.json").write_text(json.dumps(trace))
    (tmp_path / "scores.jsonl").write_text(json.dumps(score) + "\n")
    sources = [tmp_path / "trace.json", tmp_path / "scores.jsonl"]
    import_data(langfuse, sources, tmp_path / "out", {}, Notes(), one_file=False, force=False)
    (line,) = (tmp_path / "out" / "eval_set.jsonl").read_text().splitlines()
    assert json.loads(line)["metadata"]["scores"] == [
        score | {"comment": "write to [email] instead"}
    ]
    assert json.loads(line)["id"] == trace["trace"]["id"]
    assert not re.search("jane", everything(tmp_path / "out"))


def test_what_a_tool_was_given_is_masked_under_any_name(tmp_path: Path) -> None:
    """No id of a tool's arguments was hashed, whatever it is called; words in small letters alone
    may have a password among them."""
    given = {"email": "jane.roe@corp.test", "user": "li.wei@corp.test", "user_id": "u-17"}
    result = result_of(tmp_path, given, question="my password is swordfish and it fails")
    assert result["question"] == "my password is [secret] and it fails"
    masked = {"email": "[email]", "user": "[email]", "user_id": "u-17"}
    assert result["tools"][0]["arguments"] == masked
    assert not re.search("jane|li.wei|swordfish", everything(tmp_path / "out"))


def test_names_that_are_masked_alike_stay_apart(tmp_path: Path) -> None:
    result = result_of(tmp_path, {"jane@corp.test": 1, "li@corp.test": 2, "kim@corp.test": 3})
    arguments = result["tools"][0]["arguments"]
    assert arguments == {"[email]": 1, "[email] 2": 2, "[email] 3": 3}
