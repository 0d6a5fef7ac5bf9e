"""Files that a stranger hands over: nested without end, as long as a device, with unknown keys.
Every script that reads one ends with a sentence and 2, or passes the keys over."""

from __future__ import annotations

import importlib
import json
import os
import sys
from pathlib import Path
from typing import Any

import orjson
import pytest
from click.testing import CliRunner, Result
from jmespath.exceptions import JMESPathError
from tests.hostile_runs import Job, end_all
from tests.processes import refused
from tests.rows import each_row

from clients.expressions import compile_path
from records.errors import StorageError
from records.file_access import read_whole
from records.labels import read_cases
from records.lines import parse_json
from storage import Reference, ResultsWriter, RetrievedChunk, RunConfig, TestResult

CASE = '{"id": "q1", "question": "Why?", "answerable": true, "own": %s}\n'
TOML = "own = %s\n"
ANSWER = ["http://h/", "--dry-run", "--from-response", "{}"]
NO_BOT = ["--api-url", "http://127.0.0.1:9", "--set", "retries=0"]
ROW = '{"question": "q", "own": %s}'
OUT = ["--output", "out", "{}"]
YAML = "tests:\n  - vars: {query: %s}\n"


def run(script: str, *arguments: object) -> Result:
    main = importlib.import_module(script).main
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


def nested(levels: int) -> str:
    return "[" * levels + "]" * levels


@pytest.mark.parametrize("levels", [99, 101, 300, 1_500, 5_000])
@pytest.mark.parametrize(
    ("name", "text", "command"),
    [
        ("set.jsonl", CASE, ["label_eval", "--validate", "--eval-set", "{}"]),
        ("set.jsonl", CASE, ["run_eval", *NO_BOT, "--eval-set", "{}"]),
        ("answer.json", '{"answer": "a", "own": %s}', ["connect_bot", *ANSWER]),
        ("rows.json", f"[{ROW}]", ["convert_data", "import", "deepeval", *OUT]),
        ("rows.jsonl", ROW, ["convert_data", "import", "deepeval", *OUT]),
        ("pf.yaml", YAML, ["convert_data", "import", "promptfoo", *OUT]),
        ("gates.toml", TOML, ["gate_run", "--run", "none", "--gates", "{}"]),
        ("profile.toml", TOML, ["run_eval", *NO_BOT, "--profile", "{}"]),
    ],
)
def test_deep_nesting_is_one_sentence(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    levels: int,
    name: str,
    text: str,
    command: list[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / name
    path.write_text(text % nested(levels))
    result = run(command[0], *(word.replace("{}", str(path)) for word in command[1:]))
    assert result.exception is None or isinstance(result.exception, SystemExit)
    if levels > (1_000 if text == CASE else 100):  # up to there unknown keys of a set are left out
        assert result.exit_code == 2
        assert "nested" in result.output


def test_json_has_a_hundred_levels() -> None:
    assert len(orjson.dumps(parse_json(nested(100)))) == 200
    assert len(parse_json("[" + "[]," * 500 + "1]")) == 501
    for text in (nested(101), nested(101).encode(), '{"a":' * 101 + "1" + "}" * 101):
        with pytest.raises(orjson.JSONDecodeError, match="more than 100 nested levels"):
            parse_json(text)


def test_a_file_that_is_read_whole_has_a_limit(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"x" * (2**20 + 1))
    assert len(read_whole(path)) == 2**20 + 1
    with pytest.raises(StorageError, match="a: has more than 1 MB; name the right file"):
        read_whole(path, 2**20)


@each_row("option", ["--from-response", "--body", "--curl"])
def test_a_device_is_no_file(option: str) -> None:
    path = "/dev/zero" if option == "--from-response" else "@/dev/zero"
    assert "is not a plain file; name one" in refused(run("connect_bot", "http://h/", option, path))


@pytest.mark.skipif(sys.platform == "win32", reason="needs fork, pipes and /dev")
def test_sets_and_answers_are_plain_files(tmp_path: Path) -> None:
    """A device once took all memory, a pipe waited for ever; with little memory and time for each
    script, one that falls back ends here."""
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to("/dev/zero")
    (tmp_path / "set.jsonl").write_text(CASE % "1")
    with open(tmp_path / "endless", "wb") as file:
        file.truncate(8 * 2**30)
    writer = ResultsWriter(tmp_path / "results", "base")
    writer.write_config(RunConfig("base"))
    writer.write_result(TestResult("q1", "Why?"))
    writer.finish(["q1"])
    of_run = ["--run", "base", "--results-dir", "results"]
    of_set = ["--eval-set", "set.jsonl", "--results-dir", "made"]
    jobs: list[Job] = []
    for path in ("/dev/zero", "pipe", "link", "endless"):
        jobs += [
            (name, words, str(tmp_path))
            for name, words in (
                ("run_eval", [*of_set, "--from-jsonl", path]),
                ("run_eval", [*NO_BOT, "--eval-set", path]),
                ("score_retrieval", [*of_run, "--eval-set", path]),
                ("label_eval", ["--validate", "--eval-set", path]),
                ("convert_data", ["import", "json", path, "--output", "made"]),
            )
        ]
    for (name, words, _), ended in zip(jobs, end_all(jobs), strict=True):
        assert ended.code == 2, (name, words, ended)
        assert "Traceback" not in ended.err
        fault = "MB" if "endless" in words else "is not a plain file"
        assert fault in ended.err, (name, words, ended)


@each_row(
    ("line", "key"),
    [
        ('{"id": "zz", "id": "q1", "question": "Why?"}', "id"),
        ('{"id":"q1","question":"Why?","tags":["a"],"tags":[]}', "tags"),
        ('{"id": "q1", "question": "Wie \\u00e4?", "question": "Warum?"}', "question"),
        ('{"id": "q1", "question": "Why?", "own": {"a": [{"b": 1, "b": 1}]}}', "b"),
        (
            '{"id": "q1", "question": "Why?", "gold_supports": [{"rel_path": "a", '
            '"heading_path": "b", "rel_path": "c"}]}',
            "rel_path",
        ),
    ],
)
def test_a_key_that_is_there_twice_is_told_with_its_line(
    tmp_path: Path, line: str, key: str
) -> None:
    """Readers took the last one in silence."""
    path = tmp_path / "set.jsonl"
    path.write_text('{"id": "q0", "question": "Which, \\"id\\": or id:?"}\n' + line + "\n")
    assert f"{path}:2: {key}: is there twice in one object; keep one of them" in refused(
        run("run_eval", *NO_BOT, "--eval-set", path, "--results-dir", tmp_path / "results")
    )
    assert not (tmp_path / "results").exists()


def test_the_same_key_in_two_objects_is_sound(tmp_path: Path) -> None:
    path = tmp_path / "set.jsonl"
    gold = [{"rel_path": name, "heading_path": "a, b: c"} for name in "ab"]
    case = {"id": "q", "question": 'Tab\t, {"id": 1, "id": 2}: ü?', "gold_supports": gold}
    for layout in ({}, {"separators": (",", ":")}, {"ensure_ascii": False}):
        path.write_text(json.dumps(case, **layout) + "\n", encoding="utf-8")
        assert len(read_cases(path)) == 1


@each_row("expression", ["[" * 3_000 + "a" + "]" * 3_000, "!" * 5_000 + "a"])
def test_expressions_have_a_hundred_levels(expression: str) -> None:
    with pytest.raises(ValueError, match="nested deeper than 100 levels"):
        compile_path(expression)
    assert compile_path("!" * 98 + "a")({"a": True}) is True


def test_an_expression_that_grows_is_stopped() -> None:
    """Ten letters, eight times each letter ten: 10^9 characters, where 64 MB are allowed."""
    text = "a"
    for _ in range(8):
        text = f"replace({text}, 'a', 'aaaaaaaaaa')"
    with pytest.raises(JMESPathError, match="more than 67,108,864"):
        compile_path(text)({"a": "a" * 10})
    # 2 items are doubled 20 times: 2^21
    doubled = "l" + " | [@, @][]" * 20
    with pytest.raises(JMESPathError, match="more than 1,000,000"):
        compile_path(doubled)({"l": [1, 2]})
    glued = "join(a, l)"
    with pytest.raises(JMESPathError, match="more than 67,108,864"):
        compile_path(glued)({"a": "x" * 2**20, "l": ["y"] * 100})


SCORERS = ("retrieval", "context", "groundedness", "abstention", "pipeline")
KEYS = ("C:\\notes", 'say "x"', "\x1b]0;T\x07", "a\tb\n", "\0", "\x9b31m\u202e")
CHUNK = RetrievedChunk("c", rel_path="a.md", text="Logs are kept for 30 days.", rank=1)
KNOWN: dict[str, Any] = {
    "id": "q",
    "answerable": True,
    "expected_key_facts": ["30 days"],
    "gold_supports": [{"rel_path": "a.md"}],
    "expected_outcome": "success",
}


def test_every_scorer_passes_them_over(finished: Any) -> None:
    result = TestResult(
        "q",
        answer="Logs are kept for 30 days [1].",
        retrieved=[CHUNK],
        references=[Reference(index=1, rel_path="a.md")],
        latency_ms={"total": 5.0},
    )
    mine = dict.fromkeys(KEYS, "\x1b[31mmine")
    finished.write([KNOWN | mine], [result])
    path = finished.run / "results.jsonl"
    path.write_text(json.dumps(json.loads(path.read_text("utf-8")) | mine) + "\n", "utf-8")
    for name in SCORERS:
        done = finished.score(importlib.import_module(f"score_{name}").main)
        assert done.exit_code == 0, done.output
        assert all(char.isprintable() or char == "\n" for char in done.output), name
        assert "q" in finished.rows(name)
