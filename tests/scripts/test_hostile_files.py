"""Files that a stranger hands over: nested without end, or as long as a device. Every script that
reads one ends with a sentence and 2."""

from __future__ import annotations

import importlib
from pathlib import Path

import orjson
import pytest
from click.testing import CliRunner, Result
from jmespath.exceptions import JMESPathError

from clients.expressions import compile_path
from records.errors import StorageError
from records.files import read_whole
from records.lines import parse_json

ROOT = Path(__file__).parents[2]
CASE = '{"id": "q1", "question": "Why?", "answerable": true, "own": %s}\n'
TOML = "own = %s\n"
ANSWER = ["http://h/", "--dry-run", "--from-response", "{}"]
NO_BOT = ["--api-url", "http://127.0.0.1:9"]
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
        ("grid.toml", TOML, ["sweep_runs", "{}", *NO_BOT]),
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


@pytest.mark.parametrize("option", ["--from-response", "--body", "--curl"])
def test_a_device_is_no_file(option: str) -> None:
    path = "/dev/zero" if option == "--from-response" else "@/dev/zero"
    result = run("connect_bot", "http://h/", option, path)
    assert result.exit_code == 2
    assert "MB" in result.output


@pytest.mark.parametrize("expression", ["[" * 3_000 + "a" + "]" * 3_000, "!" * 5_000 + "a"])
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
