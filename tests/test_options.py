"""Where the defaults of shared options come from, and which labels belong to which set."""

from __future__ import annotations

import dataclasses
import importlib
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner
from tests.rows import each_row
from tests.sources import OF_EXTRAS, SCRIPTS, command_of, each_script

import options
import storage
from options.values import CutOffs
from records import opt
from scorers import SECTIONS


@dataclass(frozen=True, kw_only=True)
class MadeUpOptions(opt.Output):
    eval_set: Path = opt.eval_set()
    labels_dir: Path = opt.labels_dir()
    seed: int = opt.seed()


@options.script(MadeUpOptions)
def main(asked: MadeUpOptions) -> None:
    click.echo(f"{asked.labels_dir}\t{asked.seed}")


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
    # the folder beside the set is taken where it is named, though it is not there yet
    words = ("--labels-dir", str(tmp_path / "labels"), "--eval-set", other)
    assert run(*words)[0] == run(*words[2:], *words[:2])[0] == str(tmp_path / "labels")
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


@dataclass(frozen=True)
class ShapedOptions:
    header: tuple[str, ...] = opt.repeated("Headers.")
    limit: int | None = opt.value("Most cases.")
    k: tuple[int, ...] = opt.value("Cut-offs.", default=(5,))


@options.script(ShapedOptions)
def shaped(asked: ShapedOptions) -> None:
    click.echo(f"{asked.header} {asked.limit} {asked.k}")


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


@dataclass(frozen=True)
class NamedOptions:
    metrics: tuple[str, ...] = opt.value("Names.", default=())


@options.script(NamedOptions)
def named(asked: NamedOptions) -> None:
    click.echo(asked.metrics)


@each_row("content", ["metrics = 'b, a,,b'", "metrics = ['b', 'a,b']"])
def test_names_are_a_text_with_commas_or_a_list(tmp_path: Path, content: str) -> None:
    config = tmp_path / "config.toml"
    config.write_text(content)
    found = CliRunner().invoke(named, [], env={"RAG_EVAL_CONFIG": str(config)}).output
    assert found.strip() == "('b', 'a')"
    assert CliRunner().invoke(named, ["--metrics", "b,a , b"]).output == found
    assert CliRunner().invoke(named, ["--metrics", ""]).output.strip() == "()"


@dataclass(frozen=True)
class RareOptions:
    loud: bool = opt.flag("Shout.")
    low: float | None = opt.setting("share", low=0, high=1)
    mode: str = opt.setting("how", default="a", choices=("a", "b"))
    names: tuple[str, ...] = opt.setting("which", default=(), repeat=True)
    folder: Path | None = opt.setting("where")
    tidy: bool = opt.setting("false leaves the rest", default=True)
    typed: frozenset[str] = frozenset()
    set_by_user: frozenset[str] = frozenset()


@options.script(RareOptions)
def rare(asked: RareOptions) -> None:
    values = (asked.low, asked.mode, asked.names, asked.folder, asked.tidy)
    click.echo(f"{values} {sorted(asked.typed)} {sorted(asked.set_by_user)}")


def test_settings_come_from_set_then_environment_then_config(tmp_path: Path) -> None:
    def shown(*words: str, **environment: str) -> str:
        return CliRunner().invoke(rare, list(words), env=environment).output.strip()

    assert shown() == "(None, 'a', (), None, True) [] []"
    words = ("--set", "low=.5", "--set", "names=x,y", "--set", "names=z", "--set", "tidy=false")
    assert shown(*words) == "(0.5, 'a', ('x', 'y', 'z'), None, False) {0} {0}".format(
        ["low", "names", "tidy"]
    )
    config = tmp_path / "config.toml"
    config.write_text('mode = "b"\nnames = ["n"]\ntidy = false\n')
    where = {"RAG_EVAL_CONFIG": str(config), "RAG_EVAL_LOW": "0.25"}
    changed = ["low", "mode", "names", "tidy"]
    assert shown(**where) == f"(0.25, 'b', ('n',), None, False) [] {changed}"
    assert shown("--set", "mode=a", **where).startswith("(0.25, 'a', ('n',), None, False) ['mode']")
    assert "PosixPath('there')" in shown("--set", "folder=there")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--set", "low=2"], "--set: low: must be a number from 0 up to 1"),
        (["--set", "mode=c"], "--set: mode: must be one of a, b"),
        (["--set", "lo=1"], "--set: lo: is unknown; write low"),
        (["--low", "1"], "--low: write --set low=VALUE, or low in eval/config.toml."),
    ],
)
def test_a_setting_that_cannot_be_used_is_one_sentence(words: list[str], message: str) -> None:
    done = CliRunner().invoke(rare, words)
    assert done.exit_code == 2
    assert message in done.stderr


def test_an_unknown_key_beside_other_keys_names_the_settings_too() -> None:
    run_eval = importlib.import_module("run_eval").main
    done = CliRunner().invoke(run_eval, ["--api-url", "demo", "--set", "histor=replay"])
    assert done.exit_code == 2
    assert "--set: histor: is unknown; write history" in done.stderr


def test_help_names_the_settings() -> None:
    page = " ".join(CliRunner().invoke(rare, ["--help"]).output.split())
    assert "--set KEY=VALUE Change a setting (repeatable): low, mode, names, folder, tidy." in page
    assert "--low" not in page


def test_help_has_the_default_of_a_setting() -> None:
    (change,) = (each for each in rare.params if each.name == "set")
    assert isinstance(change, click.Option)
    # A number or a word is a default; None, an empty tuple and True are not.
    assert change.help is not None
    assert change.help.partition("tidy. ")[2] == (
        "low: share; mode: how (default a); names: which; folder: where; "
        "tidy: false leaves the rest."
    )


@each_row("name", [path.stem for path in SCRIPTS if path.stem.startswith("score_")])
def test_help_of_a_scorer_states_the_defaults_of_its_section(name: str) -> None:
    """Its settings are None where the section's own default counts."""
    section = SECTIONS[name.removeprefix("score_")].options
    own = {each.name: each.default for each in dataclasses.fields(section)}
    page = " ".join(each.help or "" for each in names_of_set(name))
    stated = re.findall(r"(\w+): [^:;]*\(default ([\d.]+)\)", page)
    numbers = {key for key in re.findall(r"(\w+): ", page) if type(own.get(key)) in (int, float)}
    assert {key: float(value) for key, value in stated} == {key: own[key] for key in numbers}


def names_of_set(name: str) -> list[click.Option]:
    params = importlib.import_module(name).main.params
    return [each for each in params if isinstance(each, click.Option) and each.name == "set"]


def test_help_of_the_suite_names_every_section() -> None:
    params = importlib.import_module("eval_suite").main.params
    (sections,) = (each for each in params if each.name == "sections")
    assert sections.help == f"Only these: {', '.join(SECTIONS)}."


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


@each_script
def test_no_option_takes_a_number_that_is_none(script: Path) -> None:
    """click's own types let "nan" pass every bound; it would end in a score or in no JSON."""
    command = command_of(script)
    loose = [one.name for one in numbers(command) if not isinstance(one.type, options.FiniteRange)]
    assert loose == []


@each_row(("written", "meant"), [("5", (5,)), ("10,1,5,5", (1, 5, 10)), ("1, 3", (1, 3))])
def test_cut_offs(written: str, meant: tuple[int, ...]) -> None:
    assert CutOffs().convert(written, None, None) == meant


@each_row("written", ["", "0", "-1", "1,x", "1.5", "1,,2"])
def test_cut_offs_refuse_what_is_none(written: str) -> None:
    with pytest.raises(click.BadParameter):
        CutOffs().convert(written, None, None)


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


JUDGING = {"judge_answers": 25}
MOST_OPTIONS = 20
MOST_OF_AN_EXTRA = 35
MOST_IN_ALL = 95
EVERYWHERE = {"-h", "-q", "-v", "--json"}
"""Options of nearly every script, which no reader counts."""


def commands_of(path: Path) -> Iterator[click.Command]:
    command = command_of(path)
    yield command
    yield from getattr(command, "commands", {}).values()


def names_of(command: click.Command) -> list[set[str]]:
    """The names of each option; settings, which ``--set`` takes, have none on the command line."""
    added = getattr(command, "added", None)  # by extras, where a test has run the script
    foreign = added.params if added else []
    found = [
        {*it.opts, *it.secondary_opts}
        for it in command.params
        if isinstance(it, click.Option) and not it.hidden and it not in foreign
    ]
    return [*found, {"-h", "--help"}]


@each_row("path", [*SCRIPTS, *OF_EXTRAS])
def test_a_script_has_as_many_options_as_a_person_can_hold(path: Path) -> None:
    """What describes a judge or a bot belongs into its file."""
    usual = MOST_OPTIONS if path in SCRIPTS else MOST_OF_AN_EXTRA
    most = JUDGING.get(path.stem, usual)
    for command in commands_of(path):
        own = [names for names in names_of(command) if names.isdisjoint(EVERYWHERE)]
        assert len(own) <= most, f"{len(own)} options; write settings into a file, or merge some"


MOST_SETTINGS = 8
"""Settings of a script, which ``--set`` changes; those of a bot and a judge are in their files."""
MOST_SETTINGS_IN_ALL = 40


def test_a_script_has_few_settings_and_all_have_few_together() -> None:
    settings = {path.stem: settings_of(path) for path in SCRIPTS}
    assert [name for name, own in settings.items() if len(own) > MOST_SETTINGS] == []
    every = set[str]().union(*settings.values())
    assert len(every) <= MOST_SETTINGS_IN_ALL, len(every)


def settings_of(path: Path) -> set[str]:
    return {
        each.name or ""
        for command in commands_of(path)
        for each in command.params
        if isinstance(each, click.Option) and each.hidden
    }


def test_all_scripts_have_few_options_together() -> None:
    every = {
        max(names, key=len)
        for path in SCRIPTS
        for command in commands_of(path)
        for names in names_of(command)
    }
    assert len(every - {"--help"}) <= MOST_IN_ALL, len(every)
