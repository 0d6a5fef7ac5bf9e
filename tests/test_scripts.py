"""What a script looks like: its docstring and guard, a quick --help, the shared options, and what
it says of a file that is not there."""

from __future__ import annotations

import ast
import inspect
import os
import re
import subprocess
import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path

import click
from tests.processes import call_script
from tests.rows import each_row
from tests.sources import (
    GUARD,
    SCRIPTS,
    SCRIPTS_DIR,
    SLOW,
    SOURCES,
    command_of,
    each_script,
    tree_of,
)

import options
from options import commands, tables
from options.declared import params_of
from records import opt


@each_script
def test_a_script_begins_with_a_sentence_and_ends_with_its_guard(script: Path) -> None:
    doc = ast.get_docstring(tree_of(script)) or ""
    assert f"python eval/scripts/{script.name}" in doc
    assert doc.partition("\n")[0].endswith((".", "?"))
    assert script.read_text("utf-8").endswith(f"\n\n\n{GUARD}\n    main()\n")


@each_script
def test_a_script_has_the_usual_exit_codes_and_every_option_help(script: Path) -> None:
    command = command_of(script)
    assert isinstance(command, options.Command), "decorate main with @options.script(…)"
    assert command.help
    bare = [one.name for one in command.params if isinstance(one, click.Option) and not one.help]
    assert bare == []


@dataclass(frozen=True, kw_only=True)
class SharedOptions(opt.Output):
    eval_set: Path = opt.eval_set()
    labels_dir: Path = opt.labels_dir()
    results_dir: Path = opt.results_dir()
    run: str = opt.run()
    seed: int = opt.seed()


OF_THEIR_OWN = {"eval_set": ("default",), "run": ("opts",)}
"""What reads finished runs takes their own set by default; where --run-id names a new run, it is an
option by itself."""

ANOTHER_RUN = {
    "convert_data": "Run id, path of a run folder, or 'latest'; 'none' for the cases alone.",
    "calibrate_judge": "Run id, path of a run folder, or 'latest'. Separate several runs by the "
    "same judge with commas.",
}
"""What --run says where more than one run can be named, or none."""


@each_script
def test_shared_options_are_the_same_everywhere(script: Path) -> None:
    shared = {str(param.name): param.to_info_dict() for param in params_of(SharedOptions)}
    mine = {str(param.name): param.to_info_dict() for param in command_of(script).params}
    for name in mine.keys() & shared:
        own = OF_THEIR_OWN.get(name, ())
        if name == "run" and script.stem in ANOTHER_RUN:
            assert mine[name]["help"] == ANOTHER_RUN[script.stem]
            continue
        assert {key: value for key, value in mine[name].items() if key not in own} == {
            key: value for key, value in shared[name].items() if key not in own
        }, name
    names = {name for param in mine.values() for name in param["opts"]}
    assert "--run" not in names or "--run-id" in names, "another name of --run everywhere"


OF_OTHERS = {"clients/curl.py", "decisions/history.py", "init_repo.py", "records/files.py"}
"""What also speaks of options of curl, git and pip."""


def test_texts_and_help_name_options_that_exist() -> None:
    """A remedy that names an option which is gone sends its reader nowhere."""
    every = {"--help"}
    for script in SCRIPTS:
        command = command_of(script)
        for one in (command, *getattr(command, "commands", {}).values()):
            for param in one.params:
                every |= {*param.opts, *param.secondary_opts}
    unknown = [
        f"{path.relative_to(SCRIPTS_DIR)}:{node.lineno}: {name}"
        for path in SOURCES
        if str(path.relative_to(SCRIPTS_DIR)) not in OF_OTHERS
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value
        for name in re.findall(r"(?<![\w-])--[a-z][a-z-]*[a-z]", node.value)
        if name not in every
    ]
    assert unknown == []


ABSENT = "/no/such/place"

MISSING_FILE = {
    "convert_data": ["import", "json", ABSENT, "--output", "made"],
    "compare_runs": [ABSENT, ABSENT],
    "browse_runs": [ABSENT],
    "demo_api": ["--vault", ABSENT],
    "connect_bot": ["--curl", f"@{ABSENT}"],
    "init_repo": [ABSENT],
    "label_eval": ["--validate", "--eval-set", ABSENT],
    "run_eval": ["--api-url", "demo", "--eval-set", ABSENT],
    "track_metrics": ["--set", "source=runs", "--results-dir", ABSENT],
}
"""Arguments that name a file or folder which is not there; --run of the other scripts does."""


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


def first_line(script: Path) -> str:
    """The line that --help begins with: the module's docstring (help=__doc__), else main's."""
    tree = tree_of(script)
    (own,) = (
        node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == "main"
    )
    whole = any("help=__doc__" in ast.unparse(one) for one in own.decorator_list)
    text = ast.get_docstring(tree if whole else own) or ""
    return inspect.cleandoc(text).partition("\n")[0]


def words(text: str) -> str:
    return " ".join(text.split())


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
def test_help_says_what_the_script_does_and_loads_nothing_slow(
    script: Path, tmp_path: Path
) -> None:
    done = run(tmp_path, "-c", HELP, str(SCRIPTS_DIR), str(script))
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(f"Usage: {script.name} [OPTIONS]")
    assert first_line(script)
    assert first_line(script) in words(done.stdout)
    loaded = set(done.stdout.splitlines()[-1].split())
    assert "click" in loaded
    assert loaded & SLOW == set()
    assert list(tmp_path.iterdir()) == []


@each_script
def test_an_unknown_option_is_bad_usage(script: Path) -> None:
    done = call_script(script.stem, "--no-such-option")
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
def test_a_missing_file_is_one_sentence(script: Path, tmp_path: Path) -> None:
    arguments = MISSING_FILE.get(script.stem, ["--run", ABSENT])
    check_refusal(call_script(script.stem, *arguments, cwd=tmp_path), tmp_path)


@each_row("name", ["compare_runs", "label_eval"])
def test_a_missing_file_ends_a_process_in_order(name: str, tmp_path: Path) -> None:
    done = run(tmp_path, str(SCRIPTS_DIR / f"{name}.py"), *MISSING_FILE[name])
    check_refusal(done, tmp_path)


def test_the_example_of_a_settings_file_names_real_options() -> None:
    example = commands.CONFIG.with_name("config.example.toml")
    known = {
        script.stem: {param.name for param in command_of(script).params} for script in SCRIPTS
    } | {"screen": set(tables.SCREEN), "traces": set(tables.TRACES)}
    for key, value in tomllib.loads(example.read_text("utf-8")).items():
        if isinstance(value, dict):
            assert value.keys() <= known[key]
        else:
            assert any(key in names for names in known.values()), key
