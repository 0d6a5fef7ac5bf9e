"""A bot's repository gets what it needs, and it works there by the commands as they are printed."""

from __future__ import annotations

import json
import os
import re
import runpy
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml  # type: ignore[import-untyped]
from click.testing import CliRunner
from tests.bots.serving import BotServer
from tests.bots.strange import CASES, view
from tests.processes import refused

import init_repo

ROOT = Path(__file__).resolve().parents[2]


def test_nothing_that_is_there_is_overwritten(tmp_path: Path) -> None:
    first = CliRunner().invoke(init_repo.main, [str(tmp_path)])
    assert first.exit_code == 0, first.output
    written = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    assert "rag-eval/Makefile" in refused(CliRunner().invoke(init_repo.main, [str(tmp_path)]))
    assert written == {path: path.read_bytes() for path in written}


@pytest.mark.skipif(sys.platform == "win32", reason="needs pipes")
def test_a_pipe_is_no_repository(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert "pipe: not a folder; name the folder of your bot's repository." in refused(
        CliRunner().invoke(init_repo.main, [str(tmp_path / "pipe")])
    )


def test_the_files_can_be_read(tmp_path: Path) -> None:
    CliRunner().invoke(init_repo.main, [str(tmp_path)])
    own = tmp_path / "rag-eval"
    for name in ("gates.toml", "targets.toml", "profiles/default.toml"):
        tomllib.loads((own / "eval" / name).read_text("utf-8"))
    workflow = yaml.safe_load((tmp_path / ".github/workflows/rag-eval.yml").read_text("utf-8"))
    assert workflow["jobs"]["gate"]["env"]["RAG_EVAL_HOME"].endswith("/rag-eval")
    assert "TOOLKIT ?= ../toolkit\n" in (own / "Makefile").read_text("utf-8")
    assert (own / ".gitignore").exists()


def test_the_set_of_another_folder_is_not_taken(tmp_path: Path) -> None:
    """The variables that choose a set in the toolkit's own folder do not reach a bot's Makefile."""
    CliRunner().invoke(init_repo.main, [str(tmp_path)])
    makefile = tmp_path / "rag-eval" / "Makefile"
    with makefile.open("a", encoding="utf-8") as file:
        file.write("\nshow:\n\t@env\n")
    others = {"RAG_EVAL_EVAL_SET": "my_set.jsonl", "RAG_EVAL_PROFILE": "mybot"}
    words = ["make", "-C", str(makefile.parent), "show"]
    done = subprocess.run(
        words, env=os.environ | others, capture_output=True, text=True, timeout=60
    )
    assert f"RAG_EVAL_HOME={makefile.parent}" in done.stdout.splitlines(), done.stderr
    assert "my_set.jsonl" not in done.stdout
    assert "RAG_EVAL_PROFILE" not in done.stdout


def test_an_address_with_parameters_reaches_the_scripts_whole(tmp_path: Path) -> None:
    CliRunner().invoke(init_repo.main, [str(tmp_path)])
    url = "http://localhost:9/ask?a=1&b=2"
    words = ["make", "-C", str(tmp_path / "rag-eval"), "-o", "setup", f"API={url}"]
    words += ["PY=echo", "SCRIPTS=toolkit/eval"]
    for target in ("connect", "label", "run"):
        done = subprocess.run([*words, target], capture_output=True, text=True, timeout=60)
        said = [line for line in done.stdout.splitlines() if line.startswith("toolkit/eval/")]
        assert url in said[0].split(), done.stdout


@pytest.mark.parametrize(
    ("target", "given", "committed", "baseline"),
    [
        ("gate", ["BASE=old"], False, ["--baseline", "old"]),
        ("gate", ["BASE=old"], True, ["--baseline", "old"]),
        ("gate", [], True, ["--baseline", "eval/results/main/metrics.json"]),
        ("gate", [], False, []),
        ("gate", ["BASE="], True, []),
        ("report", ["BASE=old"], False, ["--baseline", "old"]),
        ("report", [], True, []),
    ],
)
def test_a_baseline_that_is_named_is_never_left_out(
    tmp_path: Path, target: str, given: list[str], baseline: list[str], *, committed: bool
) -> None:
    CliRunner().invoke(init_repo.main, [str(tmp_path)])
    if committed:
        numbers = tmp_path / "rag-eval" / "eval/results/main/metrics.json"
        numbers.parent.mkdir(parents=True)
        numbers.write_text("{}")
    words = ["make", "-C", str(tmp_path / "rag-eval"), "-o", "setup", "PY=echo", "SCRIPTS=at"]
    words += ["RUN=new", target, *given]
    outer = ("BASE", "RUN", "ARGS", "MAKEFLAGS", "MFLAGS")  # of a make that runs these tests
    env = {name: text for name, text in os.environ.items() if name not in outer}
    done = subprocess.run(words, env=env, capture_output=True, text=True, timeout=60, check=True)
    (said,) = [line.split() for line in done.stdout.splitlines() if line.startswith("at/")]
    assert said[1:] == ["--run", "new", *baseline]


@pytest.mark.slow
@pytest.mark.thorough
def test_the_chain_runs_there_with_the_demo_bot(tmp_path: Path) -> None:
    """What check-init does, by the words of its own recipe; packages are those of this process."""
    CliRunner().invoke(init_repo.main, [str(tmp_path)])
    own = tmp_path / "rag-eval"
    env = {name: text for name, text in os.environ.items() if not name.startswith("RAG_EVAL_")}
    words = ["make", "-C", str(own), "check-init", f"PY={sys.executable}", "-o", "setup"]
    done = subprocess.run(words, env=env, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    assert list((own / "eval" / "results").iterdir()) == [], "the trial run is taken away again"


def test_the_image_follows_the_rules_that_matter() -> None:
    """What a linter of Dockerfiles would say: base with a version, absolute folders, files by COPY,
    several sources into a folder, commands as lists, no cache of pip left in a layer, no sudo."""
    text = (ROOT / "Dockerfile").read_text("utf-8").replace("\\\n", " ")
    pairs = [line.partition(" ")[::2] for line in text.splitlines() if re.match("[A-Z]+ ", line)]
    of = {name: [value for key, value in pairs if key == name] for name, _ in pairs}
    assert all(re.search(r":\d+\.\d+", base) for base in of["FROM"])
    assert all(folder.startswith("/") for folder in of["WORKDIR"])
    assert "ADD" not in of
    for sources in of["COPY"]:
        assert len(sources.split()) == 2 or sources.endswith("/"), sources
        assert all((ROOT / name).exists() for name in sources.split()[:-1]), sources
    assert of["USER"][-1] not in ("root", "0")
    assert "whl/cpu" in text, "no layer needs a GPU"
    assert len(of["ENTRYPOINT"]) == len(of["CMD"]) == 1
    entry, command = json.loads(of["ENTRYPOINT"][0]), json.loads(of["CMD"][0])
    assert "PIP_NO_CACHE_DIR=1" in of["ENV"][0]
    assert not any("sudo" in run or "apt-get" in run for run in of["RUN"])
    assert [key for key, _ in pairs].index("USER") < [key for key, _ in pairs].index("ENTRYPOINT")
    entry[2] = entry[2].replace("/opt/rag-eval", str(ROOT)).replace("python ", f"{sys.executable} ")
    done = subprocess.run([*entry, *command], capture_output=True, text=True)
    assert done.stdout.startswith("Usage: eval_suite.py"), done.stderr


def test_the_action_runs_scripts_that_exist() -> None:
    action = yaml.safe_load((ROOT / "action.yml").read_text("utf-8"))
    assert action["runs"]["using"] == "composite"
    text = (ROOT / "action.yml").read_text("utf-8")
    for name in set(re.findall(r"scripts/(\w+\.py)", text)):
        assert (ROOT / "eval" / "scripts" / name).exists(), name
    inputs = set(re.findall(r"inputs\.([\w-]+)", text))
    assert inputs == set(action["inputs"])


@pytest.mark.parametrize("code", [0, 1])
def test_the_gate_can_be_asked_from_pytest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    CliRunner().invoke(init_repo.main, [str(tmp_path)])
    make = tmp_path / "bin" / "make"
    make.parent.mkdir()
    make.write_text(f'#!/bin/sh\necho "$@"\necho verdict >&2\nexit {code}\n')
    make.chmod(0o755)
    monkeypatch.setenv("PATH", str(make.parent), prepend=os.pathsep)
    inner = runpy.run_path(str(tmp_path / "rag-eval" / "test_rag.py"))["test_the_bot_is_no_worse"]
    if code == 0:
        inner()
        return
    with pytest.raises(AssertionError) as failure:
        inner()
    assert str(failure.value).startswith(f"-C {tmp_path / 'rag-eval'} gate\nverdict")


SCRIPTS = Path(init_repo.__file__).parent


def run(words: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    env = {name: text for name, text in os.environ.items() if not name.startswith("RAG_EVAL_")}
    return subprocess.run(words, env=env, cwd=folder, capture_output=True, text=True, timeout=300)


@pytest.mark.thorough
@pytest.mark.parametrize("inside", [False, True])
def test_connect_and_run_in_a_folder_made_by_init(tmp_path: Path, inside: bool) -> None:
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
    said = refused(run([*words, "--name", str(tmp_path / "file" / "bot.toml")], tmp_path))
    assert "cannot be made" in said
    assert "Nothing was asked" in said
    done = run([*words, "--name", str(tmp_path / "new" / "bot.toml")], tmp_path)
    assert done.returncode == 3  # nobody is there
    assert (tmp_path / "new").is_dir()


def test_elsewhere_the_toolkit_s_own_folder_is_meant(tmp_path: Path) -> None:
    code = "import sys; sys.path.insert(0, sys.argv[1]); from records.runs import HOME, ROOT; "
    done = run([sys.executable, "-c", f"{code}print(HOME == ROOT)", str(SCRIPTS)], tmp_path)
    assert done.stdout.strip() == "True", done.stderr
