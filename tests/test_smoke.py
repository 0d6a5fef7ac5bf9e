"""Each script from another folder: its help, and what it says of a file that is not there."""

from __future__ import annotations

import ast
import importlib
import inspect
import os
import subprocess
import sys
import tomllib
from pathlib import Path

from tests.processes import call_script
from tests.rows import each_row
from tests.sources import SLOW

import options
from options import commands, tables

SCRIPTS_DIR = Path(options.__file__).resolve().parents[1]
GUARD = 'if __name__ == "__main__":'
ABSENT = "/no/such/place"

MISSING_FILE = {
    "calibrate_judge": ["--run", ABSENT],
    "convert_data": ["import", "json", ABSENT, "--output", "made"],
    "compare_runs": [ABSENT, ABSENT],
    "browse_runs": [ABSENT],
    "demo_api": ["--vault", ABSENT],
    "connect_bot": ["--curl", f"@{ABSENT}"],
    "eval_suite": ["--run", ABSENT],
    "gate_run": ["--run", ABSENT],
    "judge_answers": ["--run", ABSENT],
    "init_repo": [ABSENT],
    "label_eval": ["--validate", "--eval-set", ABSENT],
    "report_run": ["--run", ABSENT],
    "run_eval": ["--api-url", "demo", "--eval-set", ABSENT],
    "score_abstention": ["--run", ABSENT],
    "score_context": ["--run", ABSENT],
    "score_embedding": ["--run", ABSENT],
    "score_groundedness": ["--run", ABSENT],
    "score_pipeline": ["--run", ABSENT],
    "score_retrieval": ["--run", ABSENT],
    "score_conversations": ["--run", ABSENT],
    "score_safety": ["--run", ABSENT],
    "score_searches": ["--run", ABSENT],
    "score_tools": ["--run", ABSENT],
    "track_metrics": ["--set", "source=runs", "--results-dir", ABSENT],
}
"""A row a script: arguments that name a file or folder which is not there."""

SCRIPTS = {path.stem: path for path in SCRIPTS_DIR.glob("*.py") if GUARD in path.read_text("utf-8")}
each_script = each_row("name", sorted(SCRIPTS))


def run(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Start Python in another folder, without the settings of whoever runs the tests."""
    kept = {key: text for key, text in os.environ.items() if not key.startswith("RAG_EVAL_")}
    return subprocess.run(
        [sys.executable, *words],
        cwd=folder,
        env=kept | {"RAG_EVAL_CONFIG": os.devnull, "COLUMNS": "80"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
    )


def first_line(name: str) -> str:
    """The line that --help begins with: the module's docstring (help=__doc__), else main's."""
    tree = ast.parse(SCRIPTS[name].read_text("utf-8"))
    (own,) = (
        node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == "main"
    )
    whole = any("help=__doc__" in ast.unparse(one) for one in own.decorator_list)
    text = ast.get_docstring(tree if whole else own) or ""
    return inspect.cleandoc(text).partition("\n")[0]


def words(text: str) -> str:
    return " ".join(text.split())


def test_every_script_has_a_row() -> None:
    assert set(SCRIPTS) <= set(MISSING_FILE)


HELP = """
import runpy, sys
sys.path.insert(0, sys.argv.pop(1))
sys.argv = [sys.argv[1], "--help"]
try:
    runpy.run_path(sys.argv[0], run_name="__main__")
finally:
    print("\\n" + " ".join({name.partition(".")[0] for name in sys.modules}))
"""
"""Starts a script as Python does, and names what it has loaded at its end."""


@each_script
def test_help_says_what_the_script_does_and_loads_nothing_slow(name: str, tmp_path: Path) -> None:
    done = run(tmp_path, "-c", HELP, str(SCRIPTS_DIR), str(SCRIPTS[name]))
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(f"Usage: {name}.py [OPTIONS]")
    assert first_line(name)
    assert first_line(name) in words(done.stdout)
    loaded = set(done.stdout.splitlines()[-1].split())
    assert "click" in loaded
    assert loaded & SLOW == set()
    assert list(tmp_path.iterdir()) == []


@each_script
def test_an_unknown_option_is_bad_usage(name: str) -> None:
    done = call_script(name, "--no-such-option")
    assert (done.returncode, done.stdout) == (2, "")
    assert "--no-such-option" in done.stderr


def check_refusal(done: subprocess.CompletedProcess[str], folder: Path) -> None:
    """Exit code 2, one sentence that names the file, and nothing written."""
    assert (done.returncode, done.stdout) == (2, "")
    message = words(done.stderr).partition("Error: ")[2]
    assert ABSENT in message
    assert "Traceback" not in done.stderr
    assert len([line for line in done.stderr.splitlines() if line.startswith("Error: ")]) == 1
    assert list(folder.iterdir()) == []


@each_script
def test_a_missing_file_is_one_sentence(name: str, tmp_path: Path) -> None:
    check_refusal(call_script(name, *MISSING_FILE[name], cwd=tmp_path), tmp_path)


@each_row("name", ["compare_runs", "label_eval", "score_retrieval"])
def test_a_missing_file_ends_a_process_in_order(name: str, tmp_path: Path) -> None:
    check_refusal(run(tmp_path, str(SCRIPTS[name]), *MISSING_FILE[name]), tmp_path)


def test_the_example_of_a_settings_file_names_real_options() -> None:
    example = commands.CONFIG.with_name("config.example.toml")
    known = {
        name: {param.name for param in importlib.import_module(name).main.params}
        for name in SCRIPTS
    } | {"screen": set(tables.SCREEN), "traces": set(tables.TRACES)}
    for key, value in tomllib.loads(example.read_text("utf-8")).items():
        if isinstance(value, dict):
            assert value.keys() <= known[key]
        else:
            assert any(key in names for names in known.values()), key
