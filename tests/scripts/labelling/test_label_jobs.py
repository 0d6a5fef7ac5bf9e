"""label_eval.py: validate, stats, qrels, and what is refused at the start."""

from __future__ import annotations

import dataclasses
import json
import os
import pty
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.processes import refused

from labeller.label_options import LabelOptions
from records import errors

if TYPE_CHECKING:
    from tests.scripts.labelling.conftest import Tool


def label_options(**fields: Any) -> LabelOptions:
    needed = (f.name for f in dataclasses.fields(LabelOptions) if f.default is dataclasses.MISSING)
    values: dict[str, Any] = dict.fromkeys(needed)
    return LabelOptions(**(values | {"screen": {}} | fields))


def test_validate(tool: Tool) -> None:
    done = tool.run("--validate")
    assert (done.returncode, done.stdout) == (0, "")
    assert "3 cases, nothing wrong" in done.stderr
    folder = tool.folder / "labels" / "judgements"
    folder.mkdir(parents=True)
    (folder / "maria.jsonl").write_text('{"case_id": "zzz"}\nnot json\n')
    said = refused(tool.run("--validate"))
    assert "one judgement is about no case of the set ('zzz')" in said
    assert "--labels-dir" in said
    assert "maria.jsonl:2" in said
    tool.write([*tool.CASES, {"id": "a", "question": ""}])
    assert "eval_set.jsonl:4" in refused(tool.run("--validate"))


def test_stats(tool: Tool) -> None:
    tool.write([*tool.CASES, {"id": "d", "question": "?", "gold_supports": [{"rel_path": "x.md"}]}])
    found = json.loads(tool.run("--stats", "--json").stdout)
    assert found["cases"] == 4
    assert found["status"]["labelled"] == 1
    assert found["by_category"]["factual"]["open"] == 1
    shown = tool.run("--stats").stdout
    assert "supports per labelled case" in shown
    assert "1.00" in shown


def test_a_full_screen_needs_a_terminal(tool: Tool) -> None:
    done = refused(tool.run(typed=""))
    assert "stdin is not a terminal" in done
    assert "--plain" in done
    main, side = pty.openpty()
    child = subprocess.run(
        tool.words(), stdin=side, stdout=side, stderr=subprocess.PIPE, env=tool.env, timeout=60
    )
    os.close(main)
    os.close(side)
    assert child.returncode == 2
    assert b"stderr is not a terminal" in child.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--stats", "--validate"), "choose one of"),
        (("--plain", "--json"), "--json goes with"),
        (("--plain", "--from-run", "none"), "no such folder"),
        (("--plain", "--from-run", "r1", "--api-url", "demo"), "choose --from-run or"),
        (("--plain", "--api-url", "http://127.0.0.1:9", "--profile", "none"), "profile"),
        (("--plain", "--order", "failing"), "no complete run"),
        (("--plain", "--order", "nonsense"), "nonsense"),
    ],
)
def test_bad_usage_is_one_sentence(tool: Tool, words: tuple[str, ...], said: str) -> None:
    before = tool.set.read_bytes()
    assert said in refused(tool.run(*words))
    assert tool.set.read_bytes() == before


def test_a_missing_set(tool: Tool) -> None:
    tool.set.unlink()
    assert "no such file" in refused(tool.run("--plain"))


def test_the_keymap_is_checked(tmp_path: Path) -> None:
    path = tmp_path / "keys.toml"
    path.write_text('mark = "m"\n')
    assert label_options(screen={"keymap": path}).keys() == {"mark": "m"}
    path.write_text("mark = 5\n")
    with pytest.raises(errors.StorageError, match="write the key as text"):
        label_options(screen={"keymap": path}).keys()
    path.write_text("mark = \n")
    with pytest.raises(errors.StorageError, match="cannot be used"):
        label_options(screen={"keymap": path}).keys()
    with pytest.raises(errors.StorageError, match="no such file"):
        label_options(screen={"keymap": tmp_path / "none.toml"}).keys()


def test_keymap_and_theme_faults_are_said_once(tool: Tool) -> None:
    (tool.folder / "keys.toml").write_text('nope = "x"\n')
    env = tool.env | {"TEXTUAL_DRIVER": "textual.drivers.headless_driver:HeadlessDriver"}
    for setting, said in (
        ("keymap=keys.toml", "Error: keymap: `nope` is not an action; the actions are: "),
        ("theme=plaid", "Error: theme 'plaid' is unknown"),
    ):
        words = tool.words("--set", setting)
        done = subprocess.run(words, capture_output=True, text=True, env=env, cwd=tool.folder)
        assert (done.returncode, done.stderr.startswith(said)) == (2, True), done.stderr


def test_a_dumb_terminal_gets_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "dumb")
    monkeypatch.delenv("TEXTUAL_DRIVER", raising=False)
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    assert label_options(plain=False).lines
    monkeypatch.setenv("TERM", "xterm")
    assert not label_options(plain=False).lines


def test_two_sets_in_one_folder_keep_their_judgements_apart(tool: Tool) -> None:
    assert tool.run("--plain", typed="f\nq\n").returncode == 0
    second = tool.folder / "second.jsonl"
    second.write_text(json.dumps({"id": "a", "question": "Another?"}) + "\n")
    tool.set = second
    done = tool.run("--plain", typed="note mine\nq\n")
    assert "flagged" not in done.stdout
    folder = tool.folder / "labels" / "judgements"
    assert '"flag":true' in (folder / "gold.jsonl").read_text().replace(" ", "")
    (line,) = (folder / "second" / "gold.jsonl").read_text().splitlines()
    assert json.loads(line)["note"] == "mine"
    assert tool.run("--validate").returncode == 0
    tool.set = tool.folder / "eval_set.jsonl"
    assert tool.run("--validate").returncode == 0


def test_a_case_is_opened_by_its_id(tool: Tool) -> None:
    done = tool.run("--plain", "--case", "c", typed="q\n")
    assert "c (3/3, open) Where is C?" in done.stdout
    missing = refused(tool.run("--plain", "--case", "cc", typed="q\n"))
    assert "--case cc:" in missing
    assert "Did you mean 'c'?" in missing
    assert tool.run("--case", "a", "--validate").returncode == 2
