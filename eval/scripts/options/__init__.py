"""Click options that several scripts share, the types of their values, and the consoles.

The command itself is ``options.commands``, what score scripts offer ``options.scoring``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from options.added import run_extras as run_extras
from options.commands import Command as Command
from options.commands import Exit as Exit
from options.commands import command as command
from options.commands import config_file
from options.commands import say as say
from records.runs import CACHE_DIR, EVAL_SET, RESULTS_DIR
from records.settings import KeyRule, check_keys, from_pairs
from records.toml_files import TomlReader
from records.tool_passages import tool_forms
from terminal.tables import folded, printable

if TYPE_CHECKING:
    from rich.console import Console


MOST_K = 100_000

DAY_S = 86_400.0

F = TypeVar("F", bound=Callable[..., Any])

PATH = click.Path(path_type=Path)
FILE = click.Path(path_type=Path, dir_okay=False)
FOLDER = click.Path(path_type=Path, file_okay=False)


def decorated(function: F, options: Sequence[Callable[[F], F]]) -> F:
    """The function with the options, in their order."""
    for option in reversed(options):
        function = option(function)
    return function


eval_set_option = click.option(
    "--eval-set",
    type=PATH,
    default=EVAL_SET,
    show_default="eval_set.jsonl",
    help="The cases, one JSON object a line.",
)


run_set_option = click.option(
    "--eval-set",
    type=PATH,
    default=None,
    show_default="the set that the run was asked with",
    help="The cases, one JSON object a line.",
)


def set_of_run(
    folder: Path, eval_set: Path | None, labels_dir: Path | None = None
) -> tuple[Path, Path]:
    """The set and the folder of labels: those that the user named, else those that belong to the
    run; for ``run_set_option`` and ``labels_option``."""
    from records.asked import asked_set, set_elsewhere

    chosen = eval_set or asked_set(folder)
    quiet = click.get_current_context().params.get("quiet")
    if eval_set is None and not quiet and (remark := set_elsewhere(folder)):
        say(f"Note: {remark}")
    return chosen, labels_dir or _own_labels(chosen)


def _own_labels(eval_set: Path) -> Path:
    """The folder of labels that belongs to a set; says which label files beside the set do not
    count."""
    from records.labels import own_labels, passed_over

    context = click.get_current_context(silent=True)
    if context is not None and not context.params.get("quiet"):
        for sentence in passed_over(eval_set):
            click.echo(f"Note: {printable(sentence)}", err=True)
    return own_labels(eval_set)


def _labels_of_the_set(
    ctx: click.Context, param: click.Parameter, value: Path | None
) -> Path | None:
    """The folder asked for, else the one that belongs to the eval set; None until the run says
    which set that is."""
    from records.labels import own_labels

    chosen = ctx.params.get("eval_set", EVAL_SET)
    if chosen and (value is None or value.resolve() == own_labels(chosen).resolve()):
        return _own_labels(chosen)  # which need not be there: labels are optional
    if value is None:
        return None
    if not value.is_dir():
        raise click.BadParameter(f"{value}: no such folder.", ctx, param)
    return value


labels_option = click.option(
    "--labels-dir",
    type=FOLDER,
    default=None,
    callback=_labels_of_the_set,
    show_default="beside the set",
    help="Folder of the label files.",
)

results_dir_option = click.option(
    "--results-dir",
    type=FOLDER,
    default=RESULTS_DIR,
    show_default="eval/results",
    help="Folder of the runs.",
)

_run_option = partial(
    click.option,
    default="latest",
    help="Run id, path of a run folder, or 'latest'.",
)
run_option = _run_option("--run", "--run-id", "run")
run_beside_run_id_option = _run_option("--run")
"""For a script whose ``--run-id`` names a new run, too."""

api_url_option = click.option(
    "--api-url", help="The bot's address, or 'demo' for the embedded API."
)

profile_option = click.option(
    "--profile",
    default="default",
    show_default=True,
    help="How to ask the bot: a name in eval/profiles, or a path.",
)

header_option = click.option(
    "--header",
    multiple=True,
    metavar="NAME=VARIABLE",
    help="Send a header whose value is in this environment variable, never written anywhere. "
    "A value that is no secret: 'NAME: VALUE'.",
)

full_text_option = click.option(
    "--store-full-text", is_flag=True, help="Store whole chunk texts, not 200 characters."
)

retry_errors_option = click.option(
    "--retry-errors", is_flag=True, help="With --resume: ask failed cases again."
)

json_option = click.option(
    "--json", "as_json", is_flag=True, help="Print JSON on stdout instead of tables."
)

history_option = click.option(
    "--history",
    type=click.Choice(["live", "replay", "alone", "none"]),
    default="live",
    help="History that later turns send. live: the bot's own answers; replay: the reference "
    "answers; alone: question_alone, no history; none: the question, no history. With "
    "--retrieval-only: replay.",
)

seed_option = click.option(
    "--seed",
    type=click.IntRange(0, 2**63 - 1),
    default=0,
    help="Seed of every random draw.",
)


def verbosity_options(function: F) -> F:
    """-v: more messages on stderr; -q: none."""
    function = click.option(
        "-v", "--verbose", is_flag=True, help="More messages on stderr; show every metric."
    )(function)
    return click.option("-q", "--quiet", is_flag=True, help="No messages on stderr.")(function)


class CutOffs(click.ParamType[tuple[int, ...]]):
    """Cut-offs such as ``1,3,5,10``: whole numbers from 1 up, sorted, without repeats."""

    name = "k,k,…"
    takes_list = True

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if isinstance(value, tuple | list):
            value = ",".join(map(str, value))
        parts = [part.strip() for part in str(value).split(",")]
        sound = all(part.isascii() and part.isdigit() for part in parts)
        ks = sorted({int(part) for part in parts}) if sound else [0]
        if ks[0] < 1 or ks[-1] > MOST_K:
            message = f"{value!r}: write whole numbers from 1 to {MOST_K}, such as 1,3,5,10."
            self.fail(message, param, ctx)
        return tuple(ks)


class Names(click.ParamType[tuple[str, ...]]):
    """Names such as ``recall@5,mrr``, in that order, each once."""

    name = "name,…"
    takes_list = True

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if isinstance(value, tuple | list):
            value = ",".join(map(str, value))
        parts = (part.strip() for part in str(value).split(","))
        return tuple(dict.fromkeys(part for part in parts if part))


class FiniteRange(click.FloatRange):
    """A number within bounds; not a number and infinity, which bounds let pass, are refused."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        number = super().convert(value, param, ctx)
        if not math.isfinite(number):
            self.fail(f"{value!r} is not a finite number.", param, ctx)
        return number


runs_option = partial(
    click.option,
    "--run",
    "--run-id",
    "run",
    type=Names(),
    default=("latest",),
    show_default="latest",
    metavar="RUN,…",
)

targets_option = click.option(
    "--targets",
    "targets_file",
    type=click.Path(path_type=Path, dir_okay=False, exists=True),
    help="Pass marks.  [default: eval/targets.toml]",
)

plugin_option = partial(click.option, "--plugin", "plugins", type=FILE, multiple=True)

allow_missing_option = partial(
    click.option, "--allow-missing", type=click.IntRange(min=0), default=0, metavar="N"
)

error_rate_option = partial(click.option, "--max-error-rate", type=FiniteRange(0, 1), default=0.2)

cache_dir_option = partial(
    click.option, "--cache-dir", default=CACHE_DIR, show_default="eval/cache"
)

limits_option = click.option(
    "--set",
    multiple=True,
    metavar="KEY=VALUE",
    help="Change a limit of the profile, such as timeout=90 (repeatable). Limits: "
    "concurrency, rpm, tpm, timeout, retries, backoff, max_mb; with --api-url demo also a setting "
    "of demo_api.py.",
)


def judge_options(function: F, usual: str = "local") -> F:
    """Options for the judge, its settings in this call, and its highest cost.

    ``usual``: who judges where none is named; "none" where the own rules cannot judge.
    """
    rules = ", or 'local' (own rules)" if usual == "local" else ""
    return decorated(
        function,
        (
            click.option(
                "--judge",
                default="",
                metavar="NAME|FILE|URL",
                show_default=usual,
                help=f"A judge of eval/judges, a file or an address{rules}.",
            ),
            click.option(
                "--model", help="The model's name on that server; with --offline, in the cache."
            ),
            click.option(
                "--set",
                multiple=True,
                metavar="KEY=VALUE",
                help="Change a key of the judge, such as temperature=0.2 (repeatable).",
            ),
            click.option(
                "--max-cost",
                type=FiniteRange(0),
                help="Stop at this many dollars (needs the judge's prices).",
            ),
            click.option(
                "--offline", is_flag=True, help="Ask no judge: a verdict not in the cache fails."
            ),
            cache_dir_option(type=FOLDER, help="Folder of verdicts, facts and vectors."),
        ),
    )


SCREEN = {
    "ascii": KeyRule("yes", "Draw rules and marks in ASCII."),
    "mouse": KeyRule("yes", "false leaves the mouse to the terminal."),
    "theme": KeyRule("text", "dark, light, or a theme of Textual."),
    "keymap": KeyRule("text", "A TOML file of action = key lines."),
}
"""Settings of full screens: keys of ``[screen]`` in config.toml, and of ``--set``."""

screen_option = click.option(
    "--set",
    multiple=True,
    metavar="KEY=VALUE",
    help="Change the screen (repeatable): ascii=true, mouse=false, theme=light, keymap=FILE. To "
    "keep it, write [screen] into eval/config.toml.",
)


TRACES = {
    "keep_ids": KeyRule("yes", "false: ids of users and sessions become keyed hashes."),
    "documents": KeyRule("text", "Folder of the documents, to know their names in tools' results."),
    "tools": KeyRule("table", "How the passages in a tool's results are read, by its name."),
}
"""How traces are read: keys of ``[traces]`` in config.toml."""


def _own_table(name: str, rules: Mapping[str, KeyRule]) -> tuple[dict[str, Any], TomlReader]:
    """The good values of a table of config.toml, and the reader that notes what is wrong."""
    path, raw = config_file()
    reader = TomlReader(str(path), path)
    table = reader.read(raw.get(name, {}), dict[str, Any], (name,))
    return check_keys(reader, table or {}, rules, (name,)), reader


def trace_settings(compiled: Callable[[str], Any]) -> dict[str, Any]:
    """The values of ``TRACES`` that config.toml gives: ``tools`` as forms, ``documents`` as names.

    ``compiled`` makes a function of an expression. Raises StorageError with every problem.
    """
    own, reader = _own_table("traces", TRACES)

    def wrong(where: str, clause: str) -> None:
        reader.wrong(("traces", *where.split(".")), clause)

    folder, tools = own.get("documents"), own.get("tools", {})
    if folder and not Path(folder).is_dir():
        wrong("documents", "is no folder; write the one with the documents")
    forms = tool_forms(tools, compiled, lambda where, clause: wrong(f"tools.{where}", clause))
    reader.end()
    files = Path(folder).rglob("*") if folder else ()
    names = frozenset(file.name for file in files if file.is_file())
    return {"keep_ids": False} | own | {"tools": forms, "documents": names}


def screen_settings(pairs: Iterable[str]) -> dict[str, Any]:
    """The values of ``SCREEN`` that config.toml or ``pairs``, which count more, give.

    Raises StorageError with every problem.
    """
    own, reader = _own_table("screen", SCREEN)
    reader.end()
    chosen = own | from_pairs(pairs, SCREEN)
    return chosen | ({"keymap": Path(chosen["keymap"])} if "keymap" in chosen else {})


def is_of_screen(pair: str) -> bool:
    """Is a pair of ``--set`` a setting of the screen?"""
    return pair.partition("=")[0].strip() in SCREEN


def judge_words(values: Mapping[str, Any]) -> dict[str, Any]:
    """The judge's options in the form of ``judging.judge_files.judge_settings``."""
    source = click.get_current_context().get_parameter_source("model")
    return {
        "judge": values["judge"],
        "model": values["model"],
        "pairs": [pair for pair in values["set"] if not is_of_screen(pair)],
        "model_is_default": source is not click.core.ParameterSource.COMMANDLINE,
    }


def stdout_console() -> Console:
    """The console for data. Markup in texts is never interpreted; rich honours NO_COLOR."""
    return _console()


def stderr_console(*, quiet: bool = False) -> Console:
    """The console for messages and progress; ``quiet`` silences it."""
    return _console(stderr=True, quiet=quiet)


def _console(*, stderr: bool = False, quiet: bool = False) -> Console:
    """A console that breaks lines of text at blanks, and only on a terminal."""
    from rich.console import Console

    class TextConsole(Console):
        def print(self, *objects: Any, sep: str = " ", style: Any = None, **how: Any) -> None:
            if objects and all(isinstance(item, str) for item in objects) and "end" not in how:
                text = sep.join(objects)
                shown = folded(text, self.width) if self.is_terminal else text
                super().print(shown, style=style, soft_wrap=True)
            else:
                super().print(*objects, sep=sep, style=style, **how)

    return TextConsole(markup=False, highlight=False, emoji=False, stderr=stderr, quiet=quiet)


embedding_model_option = partial(
    click.option,
    "--embedding-model",
    help="Embedding model: a hub's name or a folder.  [default: bundled all-MiniLM-L6-v2]",
)

vectors_option = cache_dir_option(type=FOLDER, help="Where vectors are kept.")


class Streams:
    """Outputs of a script that prints a section: tables or JSON on stdout, messages on stderr."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        self.quiet: bool = values["quiet"]
        self.as_json: bool = values["as_json"]

    def console(self) -> Console:
        """The console of stdout."""
        return stdout_console()

    def talk(self) -> Console:
        """The console of stderr, silent with --quiet."""
        return stderr_console(quiet=self.quiet)

    def json(self, value: dict[str, Any]) -> None:
        """Write rounded JSON to stdout."""
        from records.files import json_bytes
        from records.metrics import rounded

        click.echo(json_bytes(rounded(value)), nl=False)

    def note(self, text: str) -> None:
        """Print a note on stderr; nothing for "" and with --quiet."""
        if text and not self.quiet:
            say(f"Note: {text}")

    def nothing(self, reason: str) -> None:
        """Report that there is nothing to print: null as JSON, and the reason on stderr."""
        if self.as_json:
            click.echo("null")
        if not self.quiet:
            say(f"Not applicable: {reason}")
