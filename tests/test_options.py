"""Where the defaults of shared options come from, and which labels belong to which set."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner
from tests.rows import each_row

import options
import storage
from records import extras

SCRIPTS = sorted(
    path
    for path in Path(options.__file__).parents[1].glob("*.py")
    if "\ndef main(" in path.read_text("utf-8")
)
OF_EXTRAS = sorted(
    path for path in extras.EXTRAS.glob("*/*.py") if "\ndef main(" in path.read_text("utf-8")
)


@options.command()
@options.eval_set_option
@options.labels_option
@options.seed_option
def main(eval_set: Path, labels_dir: Path, seed: int) -> None:
    click.echo(f"{labels_dir}\t{seed}")


def run(*words: str, **environment: str) -> Any:
    done = CliRunner().invoke(main, list(words), env=environment, prog_name="made_up.py")
    assert done.exit_code == 0, done.output
    return done.output.strip().split("\t")


def test_labels_belong_to_the_set(tmp_path: Path) -> None:
    other = str(tmp_path / "mine.jsonl")
    assert run()[0] == str(storage.LABELS_DIR)
    assert run("--eval-set", other)[0] == str(tmp_path / "labels")
    assert run(RAG_EVAL_EVAL_SET=other)[0] == str(tmp_path / "labels")
    here = str(tmp_path)
    assert run("--labels-dir", here, "--eval-set", other)[0] == here
    assert run("--eval-set", other, RAG_EVAL_LABELS_DIR=here)[0] == here
    done = CliRunner().invoke(main, ["--labels-dir", "no/such"])
    assert done.exit_code == 2
    assert "no such folder" in done.stderr


def test_flag_then_environment_then_settings_then_built_in(tmp_path: Path) -> None:
    config = tmp_path / "config.toml"
    config.write_text("seed = 3\n[made_up]\nseed = 4\n[other_script]\nseed = 5\n")
    settings = {"RAG_EVAL_CONFIG": str(config)}
    assert run()[1] == "0"
    assert run(**settings)[1] == "4"
    assert run(**settings, RAG_EVAL_SEED="6")[1] == "6"
    assert run("--seed", "7", **settings, RAG_EVAL_SEED="6")[1] == "7"


@each_row("content", ["seed = ", "seed = [[", "\xff"])
def test_damaged_settings_are_one_sentence(tmp_path: Path, content: str) -> None:
    config = tmp_path / "config.toml"
    config.write_bytes(content.encode("latin-1"))
    done = CliRunner().invoke(main, [], env={"RAG_EVAL_CONFIG": str(config)})
    assert done.exit_code == 2
    assert "cannot be used" in done.stderr


@options.command()
@click.option("--header", multiple=True)
@click.option("--limit", type=int)
@click.option("--k", type=options.CutOffs(), default="5")
def shaped(header: tuple[str, ...], limit: int | None, k: tuple[int, ...]) -> None:
    click.echo(f"{header} {limit} {k}")


@each_row(
    ("content", "words"),
    [
        ('header = "A=B"', "header: takes several values; write a list: ['A=B']"),
        ("limit = [1]", "limit: takes one value, not a list"),
        ("limit = []", "limit: takes one value, not a list"),
    ],
)
def test_settings_of_another_shape_are_one_sentence(
    tmp_path: Path, content: str, words: str
) -> None:
    config = tmp_path / "config.toml"
    config.write_text(content)
    done = CliRunner().invoke(shaped, [], env={"RAG_EVAL_CONFIG": str(config)})
    assert done.exit_code == 2
    assert f"{config}: {words}" in done.stderr


def test_settings_may_hold_lists_where_an_option_takes_several(tmp_path: Path) -> None:
    config = tmp_path / "config.toml"
    config.write_text('header = ["A=B", "C=D"]\nlimit = 2\nk = [3, 1]\n')
    done = CliRunner().invoke(shaped, [], env={"RAG_EVAL_CONFIG": str(config)})
    assert done.output.strip() == "('A=B', 'C=D') 2 (1, 3)"


@options.command()
@click.option("--metrics", type=options.Names(), default=())
def named(metrics: tuple[str, ...]) -> None:
    click.echo(metrics)


@each_row("content", ["metrics = 'b, a,,b'", "metrics = ['b', 'a,b']"])
def test_names_are_a_text_with_commas_or_a_list(tmp_path: Path, content: str) -> None:
    config = tmp_path / "config.toml"
    config.write_text(content)
    found = CliRunner().invoke(named, [], env={"RAG_EVAL_CONFIG": str(config)}).output
    assert found.strip() == "('b', 'a')"
    assert CliRunner().invoke(named, ["--metrics", "b,a , b"]).output == found
    assert CliRunner().invoke(named, ["--metrics", ""]).output.strip() == "()"


def test_settings_that_are_named_must_be_there(tmp_path: Path) -> None:
    """A job whose file is gone would otherwise go on with other settings."""
    done = CliRunner().invoke(shaped, [], env={"RAG_EVAL_CONFIG": str(tmp_path / "gone.toml")})
    assert done.exit_code == 2
    assert "gone.toml: no such file" in done.stderr


def numbers(command: click.Command) -> Iterator[click.Option]:
    """The options of a script, and of its subcommands, that take a number with a point."""
    for child in getattr(command, "commands", {}).values():
        yield from numbers(child)
    for param in command.params:
        if isinstance(param, click.Option) and param.type.name.startswith("float"):
            yield param


@each_row("path", SCRIPTS)
def test_no_option_takes_a_number_that_is_none(path: Path) -> None:
    """click's own types let "nan" pass every bound; it would end in a score or in no JSON."""
    command = importlib.import_module(path.stem).main
    loose = [one.name for one in numbers(command) if not isinstance(one.type, options.FiniteRange)]
    assert loose == []


@each_row(("written", "meant"), [("5", (5,)), ("10,1,5,5", (1, 5, 10)), ("1, 3", (1, 3))])
def test_cut_offs(written: str, meant: tuple[int, ...]) -> None:
    assert options.CutOffs().convert(written, None, None) == meant


@each_row("written", ["", "0", "-1", "1,x", "1.5", "1,,2"])
def test_cut_offs_refuse_what_is_none(written: str) -> None:
    with pytest.raises(click.BadParameter):
        options.CutOffs().convert(written, None, None)


@each_row("encoding", ["ascii", "latin-1", "cp1252"])
def test_what_the_output_cannot_show_is_a_question_mark(encoding: str, tmp_path: Path) -> None:
    """A real process: the encoding of its stdout is fixed before any of our code runs."""
    script = tmp_path / "shown.py"
    script.write_text(
        "import options\n"
        "@options.command()\n"
        "def main():\n"
        "    print('a \u2717 b')\n"
        "    options.stdout_console().print('c \u25b2 d')\n"
        "main()\n"
    )
    here = str(Path(options.__file__).parents[1])
    environment = os.environ | {"PYTHONIOENCODING": encoding, "PYTHONPATH": here}
    done = subprocess.run([sys.executable, script], capture_output=True, env=environment)
    assert done.returncode == 0, done.stderr
    assert done.stdout.decode(encoding).split() == ["a", "?", "b", "c", "?", "d"]


JUDGING = {"judge_answers": 35, "calibrate_judge": 35}
RUNNING = {"run_eval": 30}
MOST_OPTIONS = 25
MOST_OF_AN_EXTRA = 35
MOST_IN_ALL = 135
EVERYWHERE = {"-h", "-q", "-v", "--json"}
"""Options of nearly every script, which no reader counts."""


def command_of(path: Path) -> click.Command:
    module = path.stem if path in SCRIPTS else f"extras.{path.parent.name}.{path.stem}"
    command = importlib.import_module(module).main
    assert isinstance(command, click.Command)
    return command


def commands_of(path: Path) -> Iterator[click.Command]:
    command = command_of(path)
    yield command
    yield from getattr(command, "commands", {}).values()


def names_of(command: click.Command) -> list[set[str]]:
    """The names of each option."""
    found = [
        {*it.opts, *it.secondary_opts} for it in command.params if it.param_type_name == "option"
    ]
    return [*found, {"-h", "--help"}]


@each_row("path", [*SCRIPTS, *OF_EXTRAS])
def test_a_script_has_as_many_options_as_a_person_can_hold(path: Path) -> None:
    """What describes a judge or a bot belongs into its file."""
    usual = MOST_OPTIONS if path in SCRIPTS else MOST_OF_AN_EXTRA
    most = (JUDGING | RUNNING).get(path.stem, usual)
    for command in commands_of(path):
        own = [names for names in names_of(command) if names.isdisjoint(EVERYWHERE)]
        assert len(own) <= most, f"{len(own)} options; write settings into a file, or merge some"


def test_all_scripts_have_few_options_together() -> None:
    every = {
        name
        for path in SCRIPTS
        for command in commands_of(path)
        for names in names_of(command)
        for name in names
        if name.startswith("--") and name != "--help"
    }
    assert len(every) <= MOST_IN_ALL, len(every)
