"""verdicts.jsonl, config.json and the salt on disk; what is said beside the numbers."""

from __future__ import annotations

import stat
from pathlib import Path
from typing import Any

import orjson
import pytest
from tests.rows import each_row
from tests.verdict_files import write_verdicts

import storage
from judging.connect import read_salt
from judging.run import JudgingPlan, _write_config
from records import verdicts
from records.judgements import _join_parts
from records.verdicts import KINDS
from scorers.judged import section_notes

IDENTITY = {"provider": "ollama", "model": "llama3.1:8b", "digest": "d1", "strength": "digest"}
PROMPT = {"name": "groundedness", "sha256": "p1"}
LINE = {
    **{"case_id": "a", "metric": "groundedness", "messages": [1], "raw": "x"},
    "input": {"claims": [{"id": "1", "text": "So it is."}]},
    "verdicts": [{"id": "1", "verdict": "supported"}],
    **{"judge": IDENTITY, "prompt": PROMPT, "parameters": {"temperature": 0.0, "seed": 0}},
}


def test_a_torn_last_line_is_passed_over_and_a_bad_one_named(tmp_path: Path) -> None:
    path = tmp_path / storage.VERDICTS
    good = write_verdicts(path, [LINE])
    path.write_bytes(good + good.splitlines()[1][:40])
    (found,) = verdicts.read_lines(path)
    assert "messages" not in found
    assert verdicts.key_of(found) == ("a", 0, "groundedness", 0, 0)
    path.write_bytes(good + b'{"schema": 2}\n' + good)
    with pytest.raises(storage.StorageError, match=r"verdicts\.jsonl:3: is not a verdict line"):
        list(verdicts.read_lines(path))
    path.write_bytes(good.replace(b'"schema":2', b'"schema":7'))
    with pytest.raises(storage.StorageError, match="schema"):
        list(verdicts.read_lines(path))
    assert list(verdicts.read_lines(tmp_path / "none")) == []


ENTRY = {"id": "1", "verdict": "supported"}
FAR = {"id": "1", "text": "a", "span": [0, 2**60]}


@each_row(
    ("change", "told"),
    [
        ({"input": {"contexts": 3}}, r"is not a verdict line \(.*input\.contexts"),
        ({"verdicts": None}, r"is not a verdict line \(.*verdicts"),
        ({"parts": "1"}, r"is not a verdict line \(.*parts"),
        ({"judge_repeat": 2**31}, r"is not a verdict line \(.*judge_repeat"),
        ({"input": {"claims": [FAR]}}, r"is not a verdict line \(.*span"),
        ({"parts": 0}, r"is not a verdict line \(.*parts"),
        ({"prompt": {"sha256": "p1"}}, r"is not a verdict line \(.*name"),
        ({"status": "fine"}, r"is not a verdict line \(.*status"),
        ({"extra": {"mark": []}}, r"is not a verdict line \(.*extra\.mark"),
        ({"verdicts": [ENTRY | {"verdict": "present"}]}, r"verdicts\[0\]\.verdict: must be one"),
        ({"verdicts": []}, "verdicts: must have one entry for each of 1;"),
        ({"verdicts": [ENTRY, ENTRY]}, "verdicts: must have one entry for each of 1;"),
        ({"metric": "abstained_judged", "verdicts": []}, "verdicts: must have one entry"),
        ({"metric": "correctness"}, r"extra\.addresses_question: is not there"),
    ],
)
def test_a_damaged_line_is_named_with_field_and_remedy(
    tmp_path: Path, change: Any, told: str
) -> None:
    path = tmp_path / storage.VERDICTS
    good = write_verdicts(path, [LINE])
    damaged = orjson.loads(good.splitlines()[1]) | change
    path.write_bytes(good + orjson.dumps(damaged) + b"\n")
    with pytest.raises(storage.StorageError, match=rf"verdicts\.jsonl:3: {told}") as caught:
        list(verdicts.read_lines(path))
    assert "delete the line and judge again" in str(caught.value)


SETTING = {"setting": "s1", "judge": IDENTITY, "parameters": {}, "prompt": LINE["prompt"]}


@each_row(
    ("change", "told"),
    [
        ({"prompt": {"sha256": "p1"}}, r"prompt: .*missing required field `name`"),
        ({"prompt": {"name": "groundedness"}}, r"prompt: .*missing required field `sha256`"),
        ({"prompt": {"name": 3, "sha256": "p1"}}, r"prompt\.name: .*Expected `str`"),
        ({"judge": "ollama"}, r"judge: .*Expected `object`"),
        ({"parameters": [1]}, r"parameters: .*Expected `object`"),
        ({"setting": 3}, r"setting: .*Expected `str`"),
    ],
)
def test_a_damaged_line_on_who_judged_is_named_with_field_and_remedy(
    tmp_path: Path, change: Any, told: str
) -> None:
    path = tmp_path / storage.VERDICTS
    line = {name: LINE[name] for name in ("case_id", "metric", "input", "verdicts")}
    lines = [SETTING | change, {"schema": 2, "setting": "s1"} | line]
    path.write_bytes(b"".join(orjson.dumps(one) + b"\n" for one in lines))
    with pytest.raises(storage.StorageError, match=rf"verdicts\.jsonl:1: {told}") as caught:
        list(verdicts.read_lines(path))
    assert "is not a line on who judged" in str(caught.value)
    assert "delete it and the lines that name it" in str(caught.value)


def test_more_parts_than_there_are_lines_cost_nothing() -> None:
    assert _join_parts({0: {**LINE, "status": "ok", "extra": {}, "parts": 2**31 - 1}}) is None


BAD_JUDGES: list[Any] = [{"identity": "local"}, {"identity": {"provider": "local"}}, {"k": "3"}]
BAD_JUDGES += [{"prompts": {"groundedness": "p1"}}, {"parameters": [1]}]


@each_row("judge", BAD_JUDGES)
def test_a_damaged_judge_of_the_run_is_named(tmp_path: Path, judge: Any) -> None:
    config = {"schema": 1, "run_id": "r", "judge": judge}
    storage.replace_json(tmp_path / "config.json", config)
    with pytest.raises(storage.StorageError, match=r"config\.json: judge: .*from a backup"):
        verdicts.judge_of(tmp_path)


@each_row(
    ("change", "belongs"),
    [
        ({}, True),
        ({"judge": IDENTITY | {"digest": "d2"}}, False),
        ({"prompt": {"name": "groundedness", "sha256": "p2"}}, False),
        ({"prompt": {"name": "correctness", "sha256": "p2"}}, True),  # not judged this time
        ({"parameters": {"temperature": 0.5, "seed": 0}}, False),
    ],
)
def test_whose_verdicts_count(change: Any, belongs: bool) -> None:
    judge = {
        "identity": IDENTITY,
        "prompts": {"groundedness": {"version": 1, "sha256": "p1"}},
        "parameters": {"temperature": 0.0},  # the server refused a seed
    }
    assert verdicts.of_judge(judge)(LINE | change) is belongs


def plan(folder: Path, *calls: str) -> JudgingPlan:
    return JudgingPlan(folder, folder / "set.jsonl", None, calls)


def test_config_keeps_what_it_does_not_know_and_what_was_judged_before(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    storage.replace_json(path, {"schema": 1, "run_id": "r", "ours": 1, "seed": 3})
    told = {"identity": IDENTITY, "parameters": {}, "mode": "json_schema", "answered_as": ["x"]}
    _write_config(plan(tmp_path, "groundedness"), told)
    _write_config(plan(tmp_path, "correctness"), told | {"answered_as": []})
    raw = storage.read_json(path)
    assert raw["ours"] == 1
    assert set(raw["judge"]["prompts"]) == {"groundedness", "correctness", "facts"}
    assert raw["judge"]["answered_as"] == ["x"]
    assert raw["config_hash"] == storage.config_hash(storage.read_config(tmp_path))
    other = told | {"identity": IDENTITY | {"digest": "d2"}, "answered_as": []}
    judge = _write_config(plan(tmp_path, "correctness"), other)
    assert set(judge["prompts"]) == {"correctness", "facts"}
    assert judge["answered_as"] == []


def test_every_call_has_a_kind() -> None:
    from judging.calls import CALLS
    from ragmetrics.catalogue.judged import CALLS_BY_METRIC

    assert CALLS.keys() == KINDS.keys()
    assert {call for calls in CALLS_BY_METRIC.values() for call in calls} == CALLS.keys()


def test_the_salt_is_made_once_and_for_its_owner_only(tmp_path: Path) -> None:
    salt = read_salt(tmp_path / "cache")
    assert len(salt) == 32
    assert read_salt(tmp_path / "cache") == salt
    path = tmp_path / "cache" / "judge_salt"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    path.write_bytes(b"short")
    assert len(read_salt(tmp_path / "cache")) == 32


def section(identity: dict[str, Any], agreement: float | None = None) -> dict[str, Any]:
    return {
        "options": {"judge": {"identity": identity}},
        "mean": {"judge_self_agreement": agreement},
    }


@each_row(
    ("identity", "answerer", "agreement", "others", "words"),
    [
        (IDENTITY, {"model": "Meta-Llama-3-70B"}, None, 0, ["both belong to the family llama"]),
        (IDENTITY, {"model": {"name": "gpt-4o"}}, None, 0, []),
        (IDENTITY, {}, 0.94, 0, ["agrees with itself on 94.0%"]),
        (IDENTITY, {}, 0.95, 0, []),
        (IDENTITY | {"strength": "name only"}, {}, None, 0, ["--set revision="]),
        ({"provider": "local", "model": "support", "strength": "code"}, {}, None, 0, ["sees more"]),
        (IDENTITY, {}, None, 3, ["another judge, prompt or temperature, which are ignored: 3."]),
    ],
)
def test_notes(
    identity: Any, answerer: Any, agreement: float | None, others: int, words: list[str]
) -> None:
    found = section_notes(section(identity, agreement), answerer, others)
    assert len(found) == len(words)
    assert all(word in note for word, note in zip(words, found, strict=True))
