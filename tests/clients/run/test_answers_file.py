"""--from-jsonl: answers that were produced elsewhere."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from msgspec import UNSET
from msgspec.structs import replace

import run_eval
import storage

QUESTIONS = {"a": "first?", "b": "second?", "c": "third?"}
CASES = [{"id": name, "question": text} for name, text in QUESTIONS.items()]
Import = Callable[..., Result]


@pytest.fixture
def take(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Import:
    """Run --from-jsonl on these lines (objects, or text as it is)."""
    monkeypatch.setenv("RAG_EVAL_CONFIG", os.devnull)
    (tmp_path / "set.jsonl").write_text("".join(json.dumps(case) + "\n" for case in CASES))

    def call(lines: list[Any], *words: str, ends: int = 0) -> Result:
        texts = [line if isinstance(line, str) else json.dumps(line) for line in lines]
        path = tmp_path / "answers.jsonl"
        path.write_text("".join(text + "\n" for text in texts))
        flags = ["--eval-set", tmp_path / "set.jsonl", "--results-dir", tmp_path / "results"]
        flags += ["--run-id", "r", "--from-jsonl", path, *words]
        done = CliRunner().invoke(run_eval.main, [str(flag) for flag in flags])
        assert done.exit_code == ends, done.output
        return done

    return call


def results(tmp_path: Path) -> list[storage.TestResult]:
    return list(storage.iter_results(tmp_path / "results" / "r" / "results.jsonl"))


def test_answers_in_their_different_shapes(tmp_path: Path, take: Import) -> None:
    take(
        [
            {"user_input": "third?", "response": "C", "retrieved_contexts": ["one", "two"]},
            {"id": "b", "answer": "B", "retrieved": ["c7", {"chunk_id": "c8", "rel_path": "x.md"}]},
            {"test_case_id": "a", "error": {"kind": "timeout", "message": "slow"}},
        ],
        "--max-error-rate",
        "0.5",
    )
    a, b, c = results(tmp_path)  # in the order of the set
    assert (a.test_case_id, a.status) == ("a", "error")
    assert a.error is not None
    assert (a.error.kind, a.error.message) == ("timeout", "slow")
    assert [(chunk.chunk_id, chunk.rank) for chunk in b.chunks()] == [("c7", 1), ("c8", 2)]
    assert (c.question, c.answer) == ("third?", "C")
    assert [(chunk.text, chunk.rank) for chunk in c.chunks()] == [("one", 1), ("two", 2)]
    config = storage.read_config(tmp_path / "results" / "r")
    assert config.api["source"] == "jsonl"
    assert len(config.answerer["imported_sha256"]) == 64


def test_our_own_result_lines_come_back_alike(tmp_path: Path, take: Import, fake_bot: Any) -> None:
    """Full texts in, full texts out; only the fingerprint of the question is new."""
    first = [
        storage.TestResult(
            case["id"],
            case["question"],
            answer=f"answer {repeat}",
            references=[storage.Reference(1, "c1")],
            retrieved=[storage.RetrievedChunk("c1", text="t" * 300, text_length=300, rank=1)],
            folder_selection=storage.FolderSelection(["x"], "why"),
            abstained=False,
            confidence=0.5,
            latency_ms={"total": 3.0},
            repeat=repeat,
        )
        for case in CASES
        for repeat in range(2)
    ]
    lines = [result.to_dict(store_full_text=True) for result in reversed(first)]
    take(lines, "--repeat", "2", "--store-full-text")
    read = results(tmp_path)
    assert len({result.asked for result in read}) == len(CASES)
    assert [replace(result, asked=UNSET) for result in read] == first


def test_every_problem_of_an_answers_file_is_told_at_once(tmp_path: Path, take: Import) -> None:
    done = take(
        [
            {"id": "a", "answer": "A"},
            {"id": "a", "answer": "again"},
            {"id": "zzz", "answer": "?"},
            {"question": "unknown?", "answer": "?"},
            '{"id": "b", "answer": ',
            "[]",
            {"id": "b", "answer": 5},
            {"answer": "of nobody"},
            {"id": "b", "answer": "B", "repeat": 1},
            {"id": "b"},
            {"id": "b", "answer": "B", "contexts": "text"},
            {"id": "b", "answer": "B", "retrieved": [{"score_final": 1}]},
            {"id": "a", "answer": "A", "latency_ms": {"x\x1b[31m": -1}},
            '{"id": "c", "answer": "C", "guardrail": ' + '{"a":' * 300 + "1" + "}" * 301,
        ],
        ends=2,
    )
    for place, words in (
        (":2:", "already has an answer on line 1"),
        (":3:", "'zzz' is in no line of the set"),
        (":4:", "no case of the set has the question 'unknown?'"),
        (":5:", "not JSON"),
        (":6:", "not a JSON object"),
        (":7: answer:", "Expected"),
        (":8:", "neither an id nor a question"),
        (":9:", "--repeat"),
        (":10:", "has no answer"),
        (":11:", "not a list of texts"),
        (":12: retrieved[0]:", "has no id, path or text"),
        (":13: latency_ms.x\ufffd[31m:", "-1 is not a time"),
        (":14:", "100 nested levels"),
        ("answers.jsonl:", "no answer for case 'c'"),
    ):
        assert any(place in line and words in line for line in done.stderr.splitlines()), words
    assert not (tmp_path / "results").exists()


def test_lines_of_cases_that_are_filtered_out_are_passed_over(tmp_path: Path, take: Import) -> None:
    take([{"id": case["id"], "answer": "x"} for case in CASES], "--filter", "id=b")
    assert [result.test_case_id for result in results(tmp_path)] == ["b"]


def test_imported_errors_count(tmp_path: Path, take: Import) -> None:
    lines = [{"id": case["id"], "error": "broke"} for case in CASES]
    done = take(lines, ends=3)
    assert "--resume" not in done.stderr
