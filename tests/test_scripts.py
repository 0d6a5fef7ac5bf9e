"""What a script looks like: its docstring and guard, a quick --help, the shared options."""

from __future__ import annotations

import ast
import importlib
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
from tests.sources import GUARD, SCRIPTS, SCRIPTS_DIR, SOURCES, each_script, tree_of

import options
from options.declared import params_of
from records import opt


@each_script
def test_a_script_says_what_it_does_with_an_example(script: Path) -> None:
    doc = ast.get_docstring(tree_of(script))
    assert doc is not None
    assert f"python eval/scripts/{script.name}" in doc
    assert doc.partition("\n")[0].endswith((".", "?"))


@each_script
def test_a_script_ends_with_its_guard(script: Path) -> None:
    assert script.read_text("utf-8").endswith(f"\n\n\n{GUARD}\n    main()\n")


def command_of(script: Path) -> click.Command:
    command = importlib.import_module(script.stem).main
    assert isinstance(command, click.Command)
    return command


@each_script
def test_scripts_share_exit_codes_and_sources_of_defaults(script: Path) -> None:
    assert isinstance(command_of(script), options.Command), "decorate main with @options.script(…)"


@each_script
def test_every_option_has_help(script: Path) -> None:
    command = command_of(script)
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


def shared_options() -> dict[str, dict[str, Any]]:
    """The shared options by parameter name."""

    return {str(param.name): param.to_info_dict() for param in params_of(SharedOptions)}


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
    shared = shared_options()
    mine = {str(param.name): param.to_info_dict() for param in command_of(script).params}
    for name in mine.keys() & shared:
        own = OF_THEIR_OWN.get(name, ())
        if name == "run" and script.stem in ANOTHER_RUN:
            assert mine[name]["help"] == ANOTHER_RUN[script.stem]
            continue
        assert {key: value for key, value in mine[name].items() if key not in own} == {
            key: value for key, value in shared[name].items() if key not in own
        }, name


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
