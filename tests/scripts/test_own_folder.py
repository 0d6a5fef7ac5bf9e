"""In a folder made by init a bot is connected and run by the commands as they are printed."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner
from tests.bots.serving import BotServer
from tests.bots.strange import CASES, view

import init_repo

SCRIPTS = Path(init_repo.__file__).parent


def run(words: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    env = {name: text for name, text in os.environ.items() if not name.startswith("RAG_EVAL_")}
    return subprocess.run(words, env=env, cwd=folder, capture_output=True, text=True, timeout=300)


@pytest.mark.thorough
@pytest.mark.parametrize("inside", [False, True])
def test_connect_and_run_in_a_folder_made_by_init(tmp_path: Path, inside: bool) -> None:
    """From the repository and from its folder rag-eval; the folder of profiles is made anew."""
    assert CliRunner().invoke(init_repo.main, [str(tmp_path)]).exit_code == 0
    own = tmp_path / "rag-eval"
    lines = "".join(json.dumps(case) + "\n" for case in CASES)
    (own / "eval_set.jsonl").write_text(lines, "utf-8")
    here = own if inside else tmp_path
    with BotServer({("POST", "/ask"): view("honest")}) as server:
        words = [sys.executable, str(SCRIPTS / "connect_bot.py"), f"{server.url}/ask"]
        done = run([*words, "--name", "shop", "--yes"], here)
        assert done.returncode == 0, done.stderr
        assert "3 of 3 gold files were retrieved" in done.stderr
        assert (own / "eval/profiles/shop.toml").is_file()
        command = done.stderr.strip().splitlines()[-1].removeprefix("Next: ")
        assert (
            command == f"make {'' if inside else '-C rag-eval '}run API={server.url} PROFILE=shop"
        )
        more = [f"PY={sys.executable}", "-o", "setup", "ARGS=--run-id first"]
        finished = run([*shlex.split(command), *more], here)
    assert finished.returncode == 0, finished.stderr
    results = (own / "eval/results/first/results.jsonl").read_text("utf-8").splitlines()
    assert len(results) == len(CASES)


def test_the_makefile_connects(tmp_path: Path) -> None:
    assert CliRunner().invoke(init_repo.main, [str(tmp_path)]).exit_code == 0
    with BotServer({("POST", "/ask"): view("honest")}) as server:
        words = ["make", "-C", "rag-eval", "connect", f"API={server.url}/ask", "PROFILE=bot"]
        done = run([*words, f"PY={sys.executable}", "-o", "setup", "ARGS=--yes"], tmp_path)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "rag-eval/eval/profiles/bot.toml").is_file()


def test_a_missing_folder_is_made_before_anything_is_asked(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    words = [sys.executable, str(SCRIPTS / "connect_bot.py"), "http://127.0.0.1:9/ask", "--yes"]
    done = run([*words, "--name", str(tmp_path / "file" / "bot.toml")], tmp_path)
    assert done.returncode == 2
    assert "cannot be made" in done.stderr
    assert "Nothing was asked" in done.stderr
    done = run([*words, "--name", str(tmp_path / "new" / "bot.toml")], tmp_path)
    assert done.returncode == 3  # nobody is there
    assert (tmp_path / "new").is_dir()


def test_elsewhere_the_toolkit_s_own_folder_is_meant(tmp_path: Path) -> None:
    code = "import sys; sys.path.insert(0, sys.argv[1]); from records.runs import HOME, ROOT; "
    done = run([sys.executable, "-c", f"{code}print(HOME == ROOT)", str(SCRIPTS)], tmp_path)
    assert done.stdout.strip() == "True", done.stderr
