"""A script called as a user does, but in this process; and whether a process is still there."""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from click.testing import CliRunner


def call_script(
    name: str, *words: str, typed: str = "", cwd: Path | None = None, **environment: str
) -> subprocess.CompletedProcess[str]:
    """How a script ends, and what it prints. That each starts as a process is shown elsewhere;
    here the imports of many calls are paid once. An exception that no user may see is raised."""
    command = importlib.import_module(name).main
    with contextlib.chdir(cwd or Path.cwd()):
        done = CliRunner().invoke(
            command,
            list(words),
            input=typed,
            env={"COLUMNS": "80", "RAG_EVAL_DATA": ""} | environment,  # a test names its data
            prog_name=f"{name.rpartition('.')[2]}.py",
        )
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    return subprocess.CompletedProcess([name, *words], done.exit_code, done.stdout, done.stderr)


PROGRAM = """
import json, sys
from tests.processes import call_script
ended = [call_script(name, *words) for name, *words in json.load(sys.stdin)]
json.dump([(done.returncode, done.stdout, done.stderr) for done in ended], sys.stdout)
"""


def call_in_one_process(
    scripts: Path, calls: Sequence[Sequence[str]], cwd: Path, **environment: str
) -> list[tuple[int, str, str]]:
    """How the scripts of a folder end that one new process calls in turn: code, output, errors."""
    paths = map(str, (scripts, Path(__file__).parents[1]))
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)} | environment,
        input=json.dumps(calls),
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert done.returncode == 0, done.stderr
    return [(code, out, err) for code, out, err in json.loads(done.stdout)]


def refused(done: Any) -> str:
    """What a script says on stderr, on one line, that ends with 2 and no traceback."""
    code = done.returncode if hasattr(done, "returncode") else done.exit_code
    assert code == 2, done
    assert "Traceback" not in done.stderr
    return " ".join(done.stderr.split())


def gone(pid: int) -> bool:
    """True when no process has this id, or only its remains. Needs /proc."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return True
    return state == "Z"
