"""The workflows, the action and the GitLab job: each step's shell runs, in a runner's order."""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped]
from click.testing import CliRunner

import init_repo

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "docs" / "examples"
SETUP = re.compile(r'make -C "\$(?:TOOLKIT|GITHUB_ACTION_PATH)" setup(?: LIGHT=1)?$', re.MULTILINE)
"""Installs the toolkit; the tests use the packages of this process."""

BOT = """
import http.server, json, os, sys
class Bot(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        passage = {"chunk_id": "c", "rel_path": "statements/assert.md", "text": "no code",
            "heading_path": 'The "assert" statement'}
        answer = {"answer": "No code.", "references": [], "retrieved": [passage]}
        data = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)
    def do_GET(self):
        self.send_error(404)
print("bot with", os.environ["BOT_TOKEN"], flush=True)
http.server.HTTPServer(("127.0.0.1", int(sys.argv[1])), Bot).serve_forever()
"""


class Runner:
    """A workspace in which steps run one after the other. ``failed``: whether one has failed."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder = folder / "work"
        self.folder.mkdir()
        self.failed = False
        self.output: dict[str, str] = {}
        self.calls = folder / "calls"
        for name in ("gh", "pip"):
            self.program(folder / "bin" / name, f'echo {name} "$@" >>{self.calls}')
        monkeypatch.setenv("PATH", str(folder / "bin"), prepend=os.pathsep)
        for name in [name for name in os.environ if name.startswith("RAG_EVAL_")]:
            monkeypatch.delenv(name)
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self.start = f"exec {sys.executable} {self.folder / 'bot.py'} {self.port}"
        (self.folder / "bot.py").write_text(BOT)
        self.values = {
            "github.workspace": str(self.folder),
            "github.repository": "o/n",
            "github.event.number": "7",
            "github.token": "token of the job",
            "secrets.BOT_TOKEN": "secret of the bot",
        }

    @staticmethod
    def program(path: Path, line: str) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"#!/bin/sh\n{line}\n")
        path.chmod(0o755)

    def toolkit(self, place: Path) -> None:
        """The toolkit after its light set-up: what it holds, and a Python without embeddings."""
        packages = place / ".venv" / "packages"
        packages.mkdir(parents=True)
        (packages / "torch.py").write_text("raise ImportError")
        python = f'PYTHONPATH={packages} exec {sys.executable} "$@"'
        self.program(place / ".venv" / "bin" / "python", python)
        (place / "eval").mkdir()
        for name in ("scripts", "targets.toml", "profiles", "gates.toml"):
            (place / "eval" / name).symlink_to(ROOT / "eval" / name)

    def shell(self, text: str, env: Mapping[str, str], *flags: str) -> str:
        """Run a script as the runner does: bash that ends at the first failure."""
        names = ("PATH", "HOME", "TMPDIR", "COVERAGE_PROCESS_START")
        usual = {name: os.environ[name] for name in names if name in os.environ}
        done = subprocess.run(
            ["bash", "--noprofile", "--norc", *(flags or ("-e",)), "-c", SETUP.sub(":", text)],
            cwd=self.folder,
            env=usual | dict(env),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=300,
        )
        self.failed |= done.returncode != 0
        return done.stdout

    def steps(self, steps: list[dict[str, Any]], env: Mapping[str, str]) -> None:
        """Run all steps that have a shell, as far as their conditions hold."""
        for number, step in enumerate(steps):
            if "run" not in step or not self.holds(step.get("if", "success()"), env):
                continue
            before = self.failed
            own = {name: self.filled(str(text), env) for name, text in step.get("env", {}).items()}
            flags = ("-eo", "pipefail") if step.get("shell") == "bash" else ("-e",)
            name = step.get("name") or step.get("id") or str(number)
            self.output[name] = self.shell(step["run"], {**env, **own}, *flags)
            self.failed = before if step.get("continue-on-error") else self.failed

    def filled(self, text: str, env: Mapping[str, str]) -> str:
        """The text with its expressions; one that nobody defines is a KeyError."""
        known = {**self.values, **{f"env.{name}": value for name, value in env.items()}}
        return re.sub(r"\$\{\{ ([\w.-]+) \}\}", lambda match: known[match[1]], text)

    def holds(self, condition: str, env: Mapping[str, str]) -> bool:
        def part(text: str) -> bool:
            if match := re.fullmatch(r"(\w+)\(\)", text):
                return {"always": True, "failure": self.failed, "success": not self.failed}[
                    match[1]
                ]
            if match := re.fullmatch(r"hashFiles\('(.+)'\) != ''", text):
                return (self.folder / match[1]).exists()
            match = re.fullmatch(r"env\.(\w+) != ''", text)
            assert match, text
            return env[match[1]] != ""

        parts = condition.split(" && ")
        status = any(word in condition for word in ("always()", "failure()", "success()"))
        return all(map(part, parts)) and (status or not self.failed)


@pytest.fixture
def runner(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Runner]:
    started = Runner(tmp_path, monkeypatch)
    yield started
    end_bot(started)


def end_bot(runner: Runner) -> None:
    """End the bot that a step started in the background."""
    listed = subprocess.run(["ps", "-eww", "-o", "pid,args"], capture_output=True, text=True).stdout
    for line in listed.splitlines():
        if str(runner.folder / "bot.py") in line:
            os.kill(int(line.split()[0]), 15)


def workflow(runner: Runner, **env: str) -> dict[str, Any]:
    """The workflow that init writes into the workspace, run with these values under ``env``."""
    (runner.folder / "requirements.txt").write_text("flask\n")
    done = CliRunner().invoke(init_repo.main, [str(runner.folder)])
    assert done.exit_code == 0, done.output
    text = (runner.folder / init_repo.WORKFLOW).read_text("utf-8")
    found: dict[str, Any] = yaml.safe_load(text)
    job: dict[str, Any] = found["jobs"]["gate"]
    values = {**found["env"], "BOT_URL": runner.url, "START": runner.start} | env
    values |= {name: runner.filled(value, values) for name, value in job["env"].items()}
    values["INSTALL"] = values["INSTALL"].replace("python -m ", "")
    try:
        runner.steps(job["steps"], values | {"GITHUB_REPOSITORY": "o/n"})
    finally:
        end_bot(runner)
    return job


def test_the_workflow_asks_gates_reports_and_comments(runner: Runner) -> None:
    runner.toolkit(runner.folder / "toolkit")
    job = workflow(runner)
    # One of the two example questions gets its gold: evidence_recall@5 is 0.5, which is the floor.
    assert "Gate passed" in runner.output["Gate"], runner.output
    assert not runner.failed, runner.output
    calls = runner.calls.read_text().splitlines()
    assert calls[0] == "pip install --requirement requirements.txt"
    assert calls[1].startswith("gh api --paginate repos/o/n/issues/7/comments")
    assert calls[2] == "gh api --method POST repos/o/n/issues/7/comments -F body=@gate.md"
    assert (runner.folder / "bot.log").read_text().startswith("bot with secret of the bot\n")
    assert "Log of the bot" not in runner.output
    upload = next(step for step in job["steps"] if "upload-artifact" in step.get("uses", ""))
    paths = upload["with"]["path"].split()
    assert [path for path in paths if not (runner.folder / path).is_file()] == []


def test_a_bot_that_does_not_start_shows_its_log(runner: Runner) -> None:
    runner.toolkit(runner.folder / "toolkit")
    workflow(runner, START="echo no such model >&2; exit 3")
    assert runner.failed
    assert "The bot did not answer at http://127.0.0.1" in runner.output["Start the bot"]
    assert runner.output["Log of the bot"] == "no such model\n"
    assert "Ask and score" not in runner.output


def test_without_a_toolkit_the_place_to_name_it_is_said(runner: Runner) -> None:
    workflow(runner)
    assert list(runner.output) == ["Look for the toolkit"]
    said = "::error::No toolkit in toolkit: write TOOLKIT_REPOSITORY into .github/workflows/"
    assert said in runner.output["Look for the toolkit"]


@pytest.mark.thorough
def test_the_action_asks_scores_and_gates(runner: Runner, tmp_path: Path) -> None:
    action = yaml.safe_load((ROOT / "action.yml").read_text("utf-8"))
    place = tmp_path / "_actions" / "toolkit"
    runner.toolkit(place)
    assert CliRunner().invoke(init_repo.main, [str(runner.folder)]).exit_code == 0
    given = {"api-url": runner.url, "profile": "default"}
    inputs = {
        name: given.get(name, about.get("default")) for name, about in action["inputs"].items()
    }
    runner.values |= {f"inputs.{name}": value for name, value in inputs.items()}
    outputs = tmp_path / "outputs"
    env = {"GITHUB_ACTION_PATH": str(place), "GITHUB_OUTPUT": str(outputs), "BOT_TOKEN": "t"}
    runner.shell(f"nohup bash -c '{runner.start}' >bot.log 2>&1 &", env)
    runner.shell(f"until curl --silent --output /dev/null {runner.url}; do sleep 0.2; done", env)
    try:
        runner.steps(action["runs"]["steps"], env)
    finally:
        end_bot(runner)
    assert not runner.failed, runner.output
    name, _, path = outputs.read_text().strip().partition("=")
    assert name == "metrics"
    assert json.loads(Path(path).read_text())["sections"]["retrieval"]
    assert all("cache" not in step.get("with", {}) for step in action["runs"]["steps"])


def test_a_wrong_input_of_the_action_is_refused(runner: Runner) -> None:
    steps = yaml.safe_load((ROOT / "action.yml").read_text("utf-8"))["runs"]["steps"]
    runner.values["inputs.light"] = "yes"
    runner.steps(steps[:2], {"GITHUB_ACTION_PATH": "/nowhere"})
    assert "::error::light is 0 or 1, not 'yes'" in str(runner.output)


@pytest.mark.parametrize("starts", [pytest.param(True, marks=pytest.mark.thorough), False])
def test_the_gitlab_job(runner: Runner, starts: bool) -> None:
    job = yaml.safe_load((EXAMPLES / "gitlab-ci.yml").read_text("utf-8"))["rag-eval"]
    runner.toolkit(runner.folder / "toolkit")
    assert CliRunner().invoke(init_repo.main, [str(runner.folder)]).exit_code == 0
    given = {"CI_PROJECT_DIR": str(runner.folder), "BOT_URL": runner.url, "BOT_TOKEN": "t"}
    given |= {"START": runner.start if starts else "echo no such model >&2; exit 3"}
    env = {name: str(value) for name, value in job["variables"].items()} | given
    env["RAG_EVAL_HOME"] = env["RAG_EVAL_HOME"].replace("$CI_PROJECT_DIR", str(runner.folder))
    try:
        said = runner.shell("\n".join(job["script"]), env, "-eo", "pipefail")
    finally:
        end_bot(runner)
    assert runner.failed is not starts, said
    if not starts:
        assert "The bot did not answer" in said
        assert said.endswith("no such model\n")
        return
    assert "Gate passed" in said
    paths = [*job["artifacts"]["paths"], job["artifacts"]["reports"]["junit"]]
    assert [path for path in paths if not (runner.folder / path).is_file()] == []
    pr, main = (runner.folder / "rag-eval/eval/results" / name for name in ("pr", "main"))
    main.mkdir()
    for name in ("metrics.json", "config.json"):
        pr.joinpath(name).rename(main / name)
    shutil.rmtree(pr)
    try:  # the next merge request, with committed numbers
        said = runner.shell("\n".join(job["script"]), env, "-eo", "pipefail")
    finally:
        end_bot(runner)
    assert "TOO FEW: 2 cases to compare" in said, "two questions decide nothing"
    assert "Nothing in the settings changed." in said
    assert [path for path in paths if not (runner.folder / path).is_file()] == []
    runner.program(runner.calls.parent / "bin" / "curl", f'echo curl "$@" >>{runner.calls}')
    gitlab = {"GITLAB_TOKEN": "secret", "CI_API_V4_URL": "https://gitlab.example/api/v4"}
    gitlab |= {"CI_PROJECT_ID": "5", "CI_MERGE_REQUEST_IID": "7"}
    runner.shell("\n".join(job["after_script"]), env | gitlab)
    call = runner.calls.read_text()
    assert "--data-urlencode body@gate.md" in call
    assert call.endswith("https://gitlab.example/api/v4/projects/5/merge_requests/7/notes\n")


def test_committed_files_name_no_path_of_this_machine(tmp_path: Path) -> None:
    """What git would take of the files of init; and no mark of the template is left."""
    assert CliRunner().invoke(init_repo.main, [str(tmp_path)]).exit_code == 0
    subprocess.run(["git", "init", "--quiet", str(tmp_path)], check=True)
    words = ["git", "-C", str(tmp_path), "ls-files", "--others", "--exclude-standard"]
    listed = subprocess.run(words, capture_output=True, text=True, check=True).stdout.split()
    assert ".github/workflows/rag-eval.yml" in listed
    assert "rag-eval/toolkit.mk" not in listed
    for name in listed:
        text = (tmp_path / name).read_text("utf-8")
        assert str(ROOT) not in text, name
        assert str(tmp_path) not in text, name
        assert re.search(r"@[A-Z]+@|\$\{\{ *vars\.", text) is None, name
    assert (tmp_path / "rag-eval/toolkit.mk").read_text() == f"TOOLKIT ?= {ROOT}\n"


def test_the_repository_of_the_toolkit_is_read_from_its_clone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for url, name in (
        ("https://github.com/some-org/rag.eval.git", "some-org/rag.eval"),
        ("git@github.com:o/n.git", "o/n"),
        ("https://token@github.com/o/n/", "o/n"),
        *((url, "") for url in ("https://gitlab.com/o/n.git", "https://notgithub.com/o/n.git", "")),
    ):
        monkeypatch.setattr(init_repo, "git", lambda *words, url=url: url)
        assert init_repo.repository() == name


def test_a_toolkit_in_the_same_repository_is_named_by_its_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    toolkit = tmp_path / "tools" / "toolkit"
    shutil.copytree(EXAMPLES / "repository", toolkit / "docs/examples/repository")
    (toolkit / "eval").mkdir()
    for name in init_repo.COPIED:
        (toolkit / "eval" / name).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / "eval" / name, toolkit / "eval" / name)
    subprocess.run(["git", "init", "--quiet", str(tmp_path)], check=True)
    monkeypatch.setattr(init_repo, "ROOT", toolkit)
    assert CliRunner().invoke(init_repo.main, [str(tmp_path), "-q"]).exit_code == 0
    text = (tmp_path / init_repo.WORKFLOW).read_text()
    assert 'TOOLKIT: "tools/toolkit"' in text
    assert 'TOOLKIT_REPOSITORY: ""' in text
    assert "TOOLKIT ?= ../tools/toolkit\n" in (tmp_path / "rag-eval/Makefile").read_text()
    assert not (tmp_path / "rag-eval/toolkit.mk").exists()


@pytest.mark.skipif(shutil.which("shellcheck") is None, reason="no shellcheck on the PATH")
def test_shellcheck_finds_no_fault(tmp_path: Path) -> None:
    assert CliRunner().invoke(init_repo.main, [str(tmp_path)]).exit_code == 0
    paths = (tmp_path / init_repo.WORKFLOW, EXAMPLES / "github-actions.yml")
    jobs = [job for path in paths for job in yaml.safe_load(path.read_text())["jobs"].values()]
    jobs.append(yaml.safe_load((ROOT / "action.yml").read_text("utf-8"))["runs"])
    texts = [step["run"] for job in jobs for step in job["steps"] if "run" in step]
    job = yaml.safe_load((EXAMPLES / "gitlab-ci.yml").read_text("utf-8"))["rag-eval"]
    for text in [*texts, "\n".join(job["script"]), "\n".join(job["after_script"])]:
        done = subprocess.run(
            ["shellcheck", "--shell=bash", "-"], input=text, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stdout
