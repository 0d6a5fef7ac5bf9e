"""generate_cases.py as a user calls it, by rules and with a judge on a real HTTP server."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from tests.processes import call_script
from tests.scripts import on_terminals

import options

SCRIPT = "extras.drafts.generate_cases"


def call(*words: str, script: str = SCRIPT) -> subprocess.CompletedProcess[str]:
    return call_script(script, *words)


def cases(path: Path) -> list[Any]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


@pytest.fixture
def vault(tmp_path: Path) -> Path:
    """Four notes about machines."""
    folder = tmp_path / "vault"
    folder.mkdir()
    for word in ("crane", "mixer", "digger", "drill"):
        text = f"# The {word}\n\nA {word} is a kind of machine that people rent.\n"
        (folder / f"{word}.md").write_text(text)
    return folder


def test_drafts_pass_the_validation_of_the_labeller(vault: Path, tmp_path: Path) -> None:
    target = tmp_path / "drafts.jsonl"
    done = call("--vault", str(vault), "--limit", "3", "--output", str(target))
    assert done.returncode == 0, done.stderr
    made = cases(target)
    assert [case["question"] for case in made] == [
        line.split("\t")[2] for line in done.stdout.splitlines()
    ]
    assert {case["vaults"][0] for case in made} == {"vault"}
    assert all(case["tags"] == ["draft"] for case in made)
    for case in made:
        (support,) = case["gold_supports"]
        text = (vault / support["rel_path"]).read_text()
        assert support["snippets"][0] in text
    checked = call("--validate", "--eval-set", str(target), script="label_eval")
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_the_same_seed_gives_the_same_file(vault: Path, tmp_path: Path) -> None:
    files = [tmp_path / f"{name}.jsonl" for name in "abc"]
    for path, seed in zip(files, ("1", "1", "2"), strict=True):
        call("--vault", str(vault), "--limit", "4", "--seed", seed, "--output", str(path))
    one, same, other = (path.read_bytes() for path in files)
    assert one == same
    assert one != other  # the order, at least


def test_a_set_is_added_to_and_never_asks_twice(vault: Path, tmp_path: Path) -> None:
    target = tmp_path / "set.jsonl"
    old = b'{"id": "draft-crane", "own": 1, "question": "The mixer?"}\n'
    target.write_bytes(old)
    add = ["--vault", str(vault), "--append-to", str(target)]
    done = call(*add, "--limit", "10")
    assert done.returncode == 0, done.stderr
    assert target.read_bytes().startswith(old)
    questions = [case["question"] for case in cases(target)]
    assert len(questions) == len(set(questions)) == 4
    assert questions.count("The mixer?") == 1
    assert "draft-crane-2" in {case["id"] for case in cases(target)}
    assert "These are fewer than the 10" in done.stderr
    before = target.read_bytes()
    again = call(*add)
    assert again.returncode == 2
    assert "no question could be drafted" in again.stderr
    assert target.read_bytes() == before


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "name one place"),
        (["--output", "{here}", "--append-to", "{here}"], "name one place"),
        (["--output", "{here}"], "is not overwritten"),
        (["--append-to", "/no/such.jsonl"], "cannot be read"),
        (["--append-to", "{faulty}"], "question"),
        (["--output", "new.jsonl", "--vault", "/no/such"], "/no/such: not a folder"),
    ],
)
def test_a_mistake_is_one_sentence(
    words: list[str], said: str, vault: Path, tmp_path: Path
) -> None:
    here, faulty = tmp_path / "here.jsonl", tmp_path / "faulty.jsonl"
    here.write_text("mine\n")
    faulty.write_text('{"id": "a"}\n')
    filled = [word.format(here=here, faulty=faulty) for word in words]
    cache = ["--cache-dir", str(tmp_path / "cache")]
    done = call("--vault", str(vault), *cache, *filled)
    assert done.returncode == 2
    assert said in done.stderr
    assert "Traceback" not in done.stderr
    assert (here.read_text(), faulty.read_text()) == ("mine\n", '{"id": "a"}\n')


def reply(body: dict[str, Any]) -> dict[str, Any]:
    """A good draft for the passage in the request."""
    found = re.search(r"A (\w+) is a kind of machine", body["messages"][1]["content"])
    assert found is not None
    quote = found[0] + " that people rent."
    return {
        "notes": "",
        "question": f"May I rent the {found[1]}?",
        "answer": f"The {found[1]} is rented.",
        "verdicts": [{"id": "1", "quote": quote, "reason": "", "verdict": "needed"}],
        "manipulation": False,
    }


def with_judge(vault: Path, tmp_path: Path, judge: Any, *words: str) -> Any:
    words = ("--vault", str(vault), "--judge", judge.url, "--model", judge.model, *words)
    return call(*words, "--cache-dir", str(tmp_path / "cache"), "--set", "retries=0")


def test_an_invented_quote_is_no_gold(vault: Path, tmp_path: Path, fake_judge: Any) -> None:
    def invents(body: dict[str, Any]) -> dict[str, Any]:
        text = body["messages"][1]["content"]
        good = reply(body)
        if "crane" in text:
            good["verdicts"][0]["quote"] = "Cranes fly at night."
        return good

    fake_judge.answer = invents
    target = tmp_path / "drafts.jsonl"
    done = with_judge(vault, tmp_path, fake_judge, "--output", str(target), "--limit", "4")
    assert done.returncode == 0, done.stderr
    assert len(cases(target)) == 3
    assert "crane" not in target.read_text()
    assert "The judge failed on some sections: 1 incomplete." in done.stderr


def test_nothing_to_ask_is_no_failure(vault: Path, tmp_path: Path, fake_judge: Any) -> None:
    fake_judge.answer = lambda body: reply(body) | {"question": "", "answer": ""}
    done = with_judge(vault, tmp_path, fake_judge, "--output", str(tmp_path / "drafts.jsonl"))
    assert done.returncode == 2
    assert "no question could be drafted (4 sections without one" in done.stderr
    assert not (tmp_path / "drafts.jsonl").exists()


def test_a_judge_that_fails_or_is_gone_ends_with_3(
    vault: Path, tmp_path: Path, fake_judge: Any
) -> None:
    fake_judge.answer = lambda body: reply(body)
    fake_judge.script("machine", fake_judge.fails(500))
    target = tmp_path / "drafts.jsonl"
    done = with_judge(vault, tmp_path, fake_judge, "--output", str(target))
    assert done.returncode == 3
    assert "The judge failed on every section: 4 transport" in done.stderr
    assert not target.exists()
    fake_judge.close()
    done = with_judge(vault, tmp_path, fake_judge, "--output", str(target))
    assert done.returncode == 3
    assert "cannot be reached" in done.stderr
    assert not target.exists()


def test_no_line_is_wider_than_the_terminal(tmp_path: Path) -> None:
    widths = (60, 120)
    words = ["--vault", "demo", "--limit", "3", "--output"]
    calls = [(columns, 24, SCRIPT, [*words, f"{tmp_path}/{columns}"]) for columns in widths]
    scripts = Path(options.__file__).parents[1]
    printed = on_terminals.outputs(calls, scripts, scripts.parent)
    for columns, (text, code) in zip(widths, printed, strict=True):
        assert (code, "3 drafts in" in text) == (0, True), text
        assert on_terminals.too_wide(text, columns) == [], f"at {columns} columns"


@pytest.mark.skipif(shutil.which("make") is None, reason="no make")
def test_make_passes_what_it_is_given_untouched(tmp_path: Path) -> None:
    stub = tmp_path / "python"
    stub.write_text('#!/bin/sh\nprintf "<%s>" "$@"\n')
    stub.chmod(0o755)
    makefile = Path(options.__file__).parents[3] / "Makefile"
    line = ["make", "-s", "-f", str(makefile), "-o", "setup", f"PY={stub}", "drafts"]
    root = makefile.parent
    done = subprocess.run(
        [*line, "VAULT=a b; touch F $(shell touch F)", "ARGS=--limit 3"],
        cwd=root,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == (
        "<eval/extras/drafts/generate_cases.py><--vault><a b; touch F $(shell touch F)>"
        "<--output><drafts.jsonl><--limit><3>"
    )
    assert not (root / "F").exists()
    done = subprocess.run(line, cwd=root, capture_output=True, text=True, check=True)
    assert "<--vault><demo><--output><drafts.jsonl>" in done.stdout
    listed = subprocess.run(["make", "-f", str(makefile)], cwd=root, capture_output=True, text=True)
    assert re.search(r"^  drafts +draft questions from notes", listed.stdout, re.MULTILINE)
