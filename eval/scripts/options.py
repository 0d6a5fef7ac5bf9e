"""Click options that several scripts offer, exit codes, and the consoles.

Defaults come from the flag, then the environment (``RAG_EVAL_<OPTION>``), then eval/config.toml
(a key an option, dashes as underscores; a table ``[script_name]`` wins for that script), then the
built-in value.
"""

from __future__ import annotations

import contextlib
import enum
import inspect
import io
import math
import os
import re
import signal
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from records.errors import StorageError
from records.files import read_toml
from records.runs import (
    CACHE_DIR,
    EVAL_SET,
    HOME,
    JUDGES,
    LABELS_DIR,
    PROFILES,
    RESULTS_DIR,
    RUN_ID,
    SHIPPED_PROFILES,
)
from records.settings import KeyRule, check_table, from_pairs, text_of
from records.shards import allow_addresses

if TYPE_CHECKING:
    from rich.console import Console


os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
"""Before numpy starts: its threads would wait for longer than they compute on matrices this small,
and a sum that one of them makes has the same bits on every machine."""

SUPPORT_MODEL = "Folder with a cross-encoder (NLI or fact checking) that decides about claims."

EMBEDDING_MODEL = "Embedding model: a hub's name or a folder.  [default: bundled all-MiniLM-L6-v2]"

CONFIG = HOME / "eval" / "config.toml"

MOST_K = 100_000

DAY_S = 86_400.0

F = TypeVar("F", bound=Callable[..., Any])

PATH = click.Path(path_type=Path)
FILE = click.Path(path_type=Path, dir_okay=False)
FOLDER = click.Path(path_type=Path, file_okay=False)


class Exit(enum.IntEnum):
    """What the exit code of every script means."""

    DONE = 0
    GATE_FAILED = 1
    BAD_INPUT = 2
    UNREACHABLE = 3
    INTERRUPTED = 130


def _config() -> tuple[Path, dict[str, Any]]:
    """eval/config.toml or the file that RAG_EVAL_CONFIG names, and what it says; {} without one."""
    named = os.environ.get("RAG_EVAL_CONFIG")
    path = Path(named or CONFIG)
    if not path.exists() and not named:
        return path, {}
    try:
        return path, read_toml(path)
    except FileNotFoundError:
        raise StorageError(f"{path}: no such file; correct RAG_EVAL_CONFIG.") from None


def settings(script: str, params: Sequence[click.Parameter] = ()) -> dict[str, Any]:
    """Option defaults for one script from eval/config.toml, flat; {} when there is no such file.

    Raises StorageError when it cannot be read, when the file that RAG_EVAL_CONFIG names is not
    there, and for a list where an option of ``params`` takes one value, or the other way round.
    """
    path, raw = _config()
    common = {key: value for key, value in raw.items() if not isinstance(value, dict)}
    own = raw.get(script, {})
    values = common | (own if isinstance(own, dict) else {})
    for param in params:
        value = values.get(param.name or "")
        if isinstance(param, click.Option) and value is not None:
            _check_shape(f"{path}: {param.name}", param, value)
    return values


def _check_shape(where: str, param: click.Option, value: Any) -> None:
    """A list for an option that may be given several times, one value for the others."""
    if param.multiple and not isinstance(value, list):
        raise StorageError(f"{where}: takes several values; write a list: [{value!r}].")
    lists = param.multiple or isinstance(param.type, CutOffs | Names)
    if isinstance(value, list) and not lists:
        raise StorageError(f"{where}: takes one value, not a list.")


MOST_UNGROUPED = 14
"""Options of a command that stand in one list; more are put under headings."""

_OPTION_COLUMN = 30

_COMMON = "Common options"
_HEADINGS = {
    _COMMON: (
        "--run --api-url --profile --header --judge --model --metrics --sections"
        " --k --labels --run-id --resume --label --baseline --suite --by --worst --worst-by --gates"
        " --flips --fail-on --name --case --from-run --plain"
    ),
    "Data": (
        "--eval-set --labels-dir --results-dir --filter --limit --targets --plugin --repeat"
        " --from-jsonl --shards --vault --index --annotator"
    ),
    "Statistics": (
        "--cluster --power --margin --seed --max-drop"
        " --varied --ignore-invariants --flips-by --confidence-by --allow-missing"
        " --match --gain --min-similarity"
    ),
    "Server and cost": (
        "--set --save-judge --max-error-rate --retry-errors --max-cost --offline --cache-dir --jobs"
        " --embedding-model --scheduler"
    ),
    "Other options": "",
    "Output": (
        "--json --markdown --junit --html --format --output --save-trace --store-full-text"
        " -v --verbose -q --quiet -h --help"
    ),
}
"""Headings of a long command's help, and the options of each; what none names is another one."""


def _heading_of(names: Sequence[str]) -> str:
    """The heading under which an option of these names stands."""
    return next(
        (
            heading
            for heading, options in _HEADINGS.items()
            if not set(names).isdisjoint(options.split())
        ),
        "Other options",
    )


SAME_AGAIN = "Nothing is half-written: start the same command again."


class Command(click.Command):
    """A command that knows the three sources of defaults, and ends an interrupted run with 130.

    Ctrl+C, SIGTERM and SIGHUP are one thing: KeyboardInterrupt in the main thread, so that whatever
    cleans up does; then ``how_to_go_on`` is said. Run ids, metrics and profiles are offered by the
    shell (``completion.py``); --help ends with examples and exit codes.
    """

    def __init__(self, *args: Any, how_to_go_on: str = SAME_AGAIN, **extra: Any) -> None:
        super().__init__(*args, **extra)
        self.how_to_go_on = how_to_go_on
        attach(self)

    def make_context(
        self,
        info_name: str | None,
        args: list[str],
        parent: click.Context | None = None,
        **extra: Any,
    ) -> click.Context:
        extra.setdefault("auto_envvar_prefix", "RAG_EVAL")
        script = Path(info_name or "").stem
        extra.setdefault("default_map", settings(script, self.params))
        self._refuse_moved(extra["default_map"])
        return super().make_context(info_name, args, parent, **extra)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse; an option that moved is refused with its new place."""
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            name = error.option_name.lstrip("-")
            if (place := moved_options(self).get(name)) is not None:
                raise click.UsageError(f"--{name} is no longer an option: {place}.", ctx) from None
            raise

    def _refuse_moved(self, defaults: Mapping[str, Any]) -> None:
        """Raises UsageError for an option that moved and has a value in the environment or in
        ``defaults``, those of config.toml."""
        if not defaults and not any(name.startswith("RAG_EVAL_") for name in os.environ):
            return
        for name, place in moved_options(self).items():
            key = name.replace("-", "_")
            variable = f"RAG_EVAL_{key.upper()}"
            if key in defaults:
                source = os.environ.get("RAG_EVAL_CONFIG") or str(CONFIG)
                raise click.UsageError(f"{source}: {key} is no longer an option: {place}.")
            if os.environ.get(variable) and variable not in _OTHER_USES:
                raise click.UsageError(
                    f"{variable} is set, and --{name} is no longer an option: {place}."
                )

    def get_help(self, ctx: click.Context) -> str:
        """The page of --help, with examples that fit into its width."""
        formatter = ctx.make_formatter()
        self.format_help(ctx, formatter)
        return folded(formatter.getvalue().rstrip("\n"), formatter.width)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The options; those of a long command under headings, most used first."""
        records: dict[str, list[tuple[str, str]]] = {heading: [] for heading in _HEADINGS}
        shown = [
            (param, record)
            for param in self.get_params(ctx)
            if isinstance(param, click.Option) and (record := param.get_help_record(ctx))
        ]
        if len(shown) <= MOST_UNGROUPED:
            super().format_options(ctx, formatter)
            return
        for param, record in shown:
            records[_heading_of(param.opts)].append(record)
        # One width for all: each heading's own would make the columns jump.
        first = max(len(left) for _, (left, _) in shown)
        for heading, rows in records.items():
            if rows:
                with formatter.section(heading):
                    left = min(first, _OPTION_COLUMN)
                    padded = [(f"{names:<{left}}", text) for names, text in rows]
                    formatter.write_dl(padded, col_max=_OPTION_COLUMN)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Below the options: examples and exit codes, where the text above does not tell them."""
        super().format_epilog(ctx, formatter)
        about, help_text = docstring(self.callback), self.help or ""
        lines = examples(about)
        if lines and not examples(help_text):
            with formatter.section("Examples"):
                for line in lines:
                    formatter.write(f"{'':{formatter.current_indent}}{line}\n")
        if exit_codes(help_text) is None:
            formatter.write_paragraph()
            formatter.write_text(exit_codes(about) or USUAL_EXITS)

    def main(self, *args: Any, standalone_mode: bool = True, **extra: Any) -> Any:
        run: Any = partial(super().main, *args, standalone_mode=False, **extra)
        if not standalone_mode:
            return run()
        _open_closed_streams()
        _print_what_can_be_shown()
        with _signals_interrupt():
            try:
                result = run()
                sys.exit(result if isinstance(result, int) else Exit.DONE)
            except click.ClickException as error:
                error.show()
                sys.exit(error.exit_code)
            except (click.Abort, KeyboardInterrupt):
                with contextlib.suppress(OSError):  # the terminal may be what is gone
                    below = "\n" if sys.stderr.isatty() else ""  # the terminal's own ^C
                    click.echo(f"{below}Interrupted. {self.how_to_go_on}".rstrip(), err=True)
                sys.exit(Exit.INTERRUPTED)

    def invoke(self, ctx: click.Context) -> Any:
        """Run; an output that nobody can take ends the script in a sentence or in silence."""
        allow_addresses(_named_addresses(ctx))
        try:
            result = super().invoke(ctx)
            sys.stdout.flush()
            return result
        except KeyboardInterrupt:
            raise click.Abort from None  # click would print to a terminal that may be gone
        except RecursionError:
            raise StorageError(
                "a file or an expression that was read is nested too deeply; write it flatter."
            ) from None
        except BrokenPipeError:  # the reader, such as head, has seen enough
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return Exit.DONE
        except OSError as error:
            if error.filename is not None:
                raise
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise StorageError(f"the output cannot be written ({error.strerror}).") from None


MOVED_OPTIONS = Path(__file__).with_name("moved_options.toml")

_OTHER_USES = frozenset({"RAG_EVAL_DATA"})
"""Variables with the name of an option that moved, and a use of their own."""


def moved_options(command: click.Command) -> dict[str, str]:
    """Options that a script once had, without dashes, each with the clause that says where its
    value goes now."""
    module = getattr(command.callback, "__module__", "")
    if module == "__main__":
        module = Path(getattr(sys.modules[module], "__file__", None) or "").stem
    places: dict[str, str] = {}
    for row in read_toml(MOVED_OPTIONS)["moved"]:
        if module in row["scripts"].split():
            names = row["options"].items()
            places |= {name: row["to"].replace("{key}", key) for name, key in names}
    return places


def _named_addresses(ctx: click.Context) -> list[str]:
    """Where parts of runs and sets may be: RAG_EVAL_ADDRESSES (between blanks), else ``addresses``
    of eval/config.toml; and --address."""
    named = os.environ.get("RAG_EVAL_ADDRESSES") or (ctx.default_map or {}).get("addresses") or []
    return [
        *(named.split() if isinstance(named, str) else map(str, named)),
        str(ctx.params.get("address") or ""),
    ]


@contextlib.contextmanager
def _signals_interrupt() -> Iterator[None]:
    """SIGTERM and SIGHUP raise KeyboardInterrupt; a further one does not disturb the cleaning up.

    A signal that is ignored from the start (nohup) stays so.
    """
    if threading.current_thread() is not threading.main_thread():
        yield  # Python gives signals to the main thread alone
        return
    numbers = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
    numbers = [number for number in numbers if signal.getsignal(number) is signal.SIG_DFL]

    def interrupt(number: int, frame: object) -> None:
        for other in numbers:
            signal.signal(other, signal.SIG_IGN)
        raise KeyboardInterrupt

    for number in numbers:
        signal.signal(number, interrupt)
    try:
        yield
    finally:
        for number in numbers:
            signal.signal(number, signal.SIG_DFL)


def _open_closed_streams() -> None:
    """A standard stream that the caller closed (``>&-``) leads to nowhere, as /dev/null does.

    Python has None in its place, and the next file that is opened would take its number.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115


def _print_what_can_be_shown() -> None:
    """A character that stdout's encoding lacks becomes ``?``: no script ends for a ✗.

    What Python lets through by itself (any bytes of a path, in the C locale) stays so.
    """
    out = sys.stdout
    if isinstance(out, io.TextIOWrapper) and (out.errors == "strict" or out.encoding != "utf-8"):
        out.reconfigure(errors="replace")


command = partial(
    click.command,
    cls=Command,
    context_settings={"help_option_names": ["-h", "--help"], "show_default": True},
)

eval_set_option = click.option(
    "--eval-set",
    type=PATH,
    default=EVAL_SET,
    show_default="eval_set.jsonl of the repository",
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
    from records.asked import asked_set

    chosen = eval_set or asked_set(folder)
    return chosen, labels_dir or _own_labels(chosen)


def _own_labels(eval_set: Path) -> Path:
    """Labels name the cases of one set: eval/labels those of the usual set, ``labels`` beside any
    other set those of that one."""
    return LABELS_DIR if eval_set.resolve() == EVAL_SET.resolve() else eval_set.parent / "labels"


def _labels_of_the_set(
    ctx: click.Context, param: click.Parameter, value: Path | None
) -> Path | None:
    """The folder asked for, else the one that belongs to the eval set; None until the run says
    which set that is."""
    chosen = ctx.params.get("eval_set", EVAL_SET)
    own = _own_labels(chosen) if chosen else None
    if value is None or (own and value.resolve() == own.resolve()):
        return own  # which need not be there: labels are optional
    if not value.is_dir():
        raise click.BadParameter(f"{value}: no such folder.", ctx, param)
    return value


labels_option = click.option(
    "--labels-dir",
    type=FOLDER,
    default=None,
    callback=_labels_of_the_set,
    show_default="eval/labels; for another set: labels beside it",
    help="Folder of label files that are joined to the cases by case_id.",
)

results_dir_option = click.option(
    "--results-dir",
    type=FOLDER,
    default=RESULTS_DIR,
    show_default="eval/results",
    help="Folder that contains a folder for each run.",
)

_run_option = partial(
    click.option,
    default="latest",
    help="Run id, path of a run folder, or 'latest'.",
)
run_option = _run_option("--run", "--run-id", "run")
run_beside_run_id_option = _run_option("--run")
"""For a script whose ``--run-id`` names a new run, too."""

json_option = click.option(
    "--json", "as_json", is_flag=True, help="Print JSON on stdout instead of tables."
)

history_option = click.option(
    "--history",
    type=click.Choice(["live", "replay", "alone", "none"]),
    default="live",
    help="What turns of conversations are asked with: the bot's own answers, the set's reference "
    "answers, question_alone without a history, or nothing. With --retrieval-only: replay.",
)

scheduler_option = click.option(
    "--scheduler",
    metavar="tcp://…",
    help="Score on the workers of this Dask scheduler (docs/scale.md).",
)

seed_option = click.option(
    "--seed",
    type=click.IntRange(0, 2**63 - 1),
    default=0,
    help="Seed of every random draw.",
)


def verbosity_options(function: F) -> F:
    """-v: more messages on stderr; -q: none."""
    function = click.option("-v", "--verbose", is_flag=True, help="Say more, show every metric.")(
        function
    )
    return click.option("-q", "--quiet", is_flag=True, help="No messages on stderr.")(function)


class CutOffs(click.ParamType[tuple[int, ...]]):
    """Cut-offs such as ``1,3,5,10``: whole numbers from 1 up, sorted, without repeats."""

    name = "k,k,…"

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
            self.fail(f"{value!r} is no finite number.", param, ctx)
        return number


limits_option = click.option(
    "--set",
    multiple=True,
    metavar="KEY=VALUE",
    help="Another limit than the profile's [limits], such as concurrency=2 or timeout=90: "
    "concurrency, rpm, tpm, timeout, retries, backoff, max_mb (repeatable). With --api-url demo "
    "also a setting of demo_api.py.",
)


def judge_options(function: F) -> F:
    """Which judge, what changes for this call, what it may cost."""
    for option in reversed(
        (
            click.option(
                "--judge",
                default="",
                metavar="NAME|FILE|URL",
                show_default="local",
                help="A judge of eval/judges, its file, or the address of an OpenAI-compatible "
                "server; 'local' for the embedded rules.",
            ),
            click.option(
                "--model", help="The model's name on that server; with --offline, in the cache."
            ),
            click.option(
                "--set",
                multiple=True,
                metavar="KEY=VALUE",
                help="Another value for a key of the judge, such as temperature=0.2 (repeatable; "
                "keys: EVAL.md, Judges as files).",
            ),
            click.option(
                "--max-cost",
                type=FiniteRange(0),
                help="Stop asking at this many dollars (needs the judge's prices).",
            ),
            click.option(
                "--offline", is_flag=True, help="Ask no judge: a verdict not in the cache fails."
            ),
            click.option(
                "--cache-dir",
                type=FOLDER,
                default=CACHE_DIR,
                show_default="eval/cache",
                help="Where verdicts, facts and vectors are kept.",
            ),
        )
    ):
        function = option(function)
    return function


SCREEN = {
    "ascii": KeyRule("yes", "Draw rules and marks in ASCII."),
    "mouse": KeyRule("yes", "false leaves the mouse to the terminal."),
    "theme": KeyRule("text", "dark, light, or a theme of Textual."),
    "keymap": KeyRule("text", "A TOML file of action = key lines."),
}
"""How a person wants full screens: keys of ``[screen]`` in config.toml, and of ``--set``."""

screen_option = click.option(
    "--set",
    multiple=True,
    metavar="KEY=VALUE",
    help="Another look of the screen (repeatable): ascii=true, mouse=false, theme=light, "
    "keymap=FILE. To keep it, write [screen] into eval/config.toml.",
)


TRACES = {
    "keep_ids": KeyRule("yes", "false: ids of users and sessions become keyed hashes."),
    "sampling": KeyRule("text", "head, or tail: shares that a tail sampler distorts are left out."),
}
"""How traces are read: keys of ``[traces]`` in config.toml."""


def trace_settings() -> dict[str, Any]:
    """The values of ``TRACES`` that config.toml gives. Raises StorageError with every problem."""
    path, raw = _config()
    own: dict[str, Any] = raw.get("traces", {})
    if problems := check_table(own, TRACES, str(path), "traces.", text_of(path) if own else ""):
        raise StorageError.from_problems(problems)
    if own.get("sampling", "head") not in ("head", "tail"):
        raise StorageError(f'{path}: traces.sampling: write "head" or "tail".')
    return {"keep_ids": False, "sampling": "head"} | own


def screen_settings(pairs: Iterable[str]) -> dict[str, Any]:
    """The values of ``SCREEN`` that config.toml or ``pairs``, which count more, give.

    Raises StorageError with every problem.
    """
    path, raw = _config()
    own: dict[str, Any] = raw.get("screen", {})
    if problems := check_table(own, SCREEN, str(path), "screen.", text_of(path) if own else ""):
        raise StorageError.from_problems(problems)
    chosen: dict[str, Any] = own | from_pairs(pairs, SCREEN)
    return chosen | ({"keymap": Path(chosen["keymap"])} if "keymap" in chosen else {})


def is_of_screen(pair: str) -> bool:
    """Does a pair of ``--set`` say how the screen looks?"""
    return pair.partition("=")[0].strip() in SCREEN


def judge_words(values: Mapping[str, Any]) -> dict[str, Any]:
    """What the options say of the judge, as ``judging.judge_files.judge_settings`` takes it."""
    source = click.get_current_context().get_parameter_source("model")
    return {
        "judge": values["judge"],
        "model": values["model"],
        "pairs": [pair for pair in values["set"] if not is_of_screen(pair)],
        "model_is_default": source is not click.core.ParameterSource.COMMANDLINE,
    }


def stdout_console() -> Console:
    """Where data goes. Markup in texts is never interpreted; NO_COLOR is honoured by rich."""
    from rich.console import Console

    class Output(Console):
        def on_broken_pipe(self) -> None:
            raise BrokenPipeError  # rich would end the script with 1; see Command.main

    return Output(markup=False, highlight=False, emoji=False, soft_wrap=False)


def stderr_console(*, quiet: bool = False) -> Console:
    """Where talk and progress go; ``quiet`` silences it."""
    from rich.console import Console

    return Console(stderr=True, markup=False, highlight=False, emoji=False, quiet=quiet)


Completer = Callable[[click.Context, click.Parameter, str], list[str]]


def runs(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Names of run folders in the folder of results, ``latest`` first."""
    folder = Path(ctx.params.get("results_dir") or RESULTS_DIR)
    try:
        with os.scandir(folder) as entries:
            names = sorted(
                entry.name for entry in entries if entry.is_dir() and RUN_ID.fullmatch(entry.name)
            )
    except OSError:
        names = []
    return _fitting(["latest", *names], incomplete)


def metrics(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Names of metrics as they stand in metrics.json, at the usual cut-offs; of several separated
    by commas the last one."""
    from ragmetrics import catalogue
    from ragmetrics.catalogue import metric as catalogue_metric

    names = [metric.name for metric in catalogue_metric.at_cutoffs(catalogue.METRICS, catalogue.KS)]
    head, comma, last = incomplete.rpartition(",")
    return [f"{head}{comma}{name}" for name in _fitting(dict.fromkeys(names), last)]


def profiles(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Names of the profiles that are there."""
    folders = (PROFILES, SHIPPED_PROFILES)
    names = {path.stem for folder in folders for path in folder.glob("*.toml")}
    return _fitting(sorted(names), incomplete)


def judges(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """The embedded rules, and the names of the judges that have a file."""
    return _fitting(["local", *sorted(path.stem for path in JUDGES.glob("*.toml"))], incomplete)


BY_NAME: dict[str, Completer] = {
    **dict.fromkeys(("run", "base", "new", "baseline", "from_run"), runs),
    **dict.fromkeys(("worst_by", "flips_by", "confidence_by", "metrics"), metrics),
    "profile": profiles,
    "judge": judges,
}
"""Which parameters get which values; one of a type that completes itself, such as a path, does."""


def attach(command: click.Command) -> None:
    """Give the command's parameters their completers, those whose type completes nothing itself."""
    for param in command.params:
        mute = type(param.type).shell_complete is click.ParamType.shell_complete
        if mute and param.name in BY_NAME:
            # Click takes a completer at the making of a parameter only, and these are made in
            # many places; the attribute is where it then looks.
            param._custom_shell_complete = param._custom_shell_complete or BY_NAME[param.name]


def _fitting(names: Iterable[str], incomplete: str) -> list[str]:
    return [name for name in names if name.startswith(incomplete)]


START = re.compile(r".*\bpython eval/scripts/\w+\.py\b")

WORD = re.compile(r"(?:'[^']*'|\"[^\"]*\"|[^\s'\"])+|['\"]")

USUAL_EXITS = "Exit codes: 0 done, 2 bad input or usage, 130 interrupted."
"""What holds for every script; one that ends otherwise says so itself."""


def docstring(callback: Callable[..., Any] | None) -> str:
    """The docstring of the module that a command's function stands in."""
    module = sys.modules.get(getattr(callback, "__module__", ""))
    return inspect.cleandoc((getattr(module, "__doc__", None) or "").replace("\b\n", ""))


def examples(text: str) -> list[str]:
    """The command lines of a docstring; a line that goes on is joined to the next."""
    lines: list[str] = []
    depth = -1
    for line in text.splitlines():
        indent = len(line) - len(line.lstrip())
        if depth >= 0 and indent > depth and line.strip():
            lines[-1] = f"{lines[-1].removesuffix(chr(92)).rstrip()} {line.strip()}"
        elif START.match(line) and indent:
            lines.append(line.strip())
            depth = indent
        else:
            depth = -1
    return lines


def exit_codes(text: str) -> str | None:
    """The sentence of a docstring that begins with ``Exit codes:``, on one line."""
    match = re.search(r"^Exit codes:.*?(?=\n\s*\n|\Z)", text, re.DOTALL | re.MULTILINE)
    return " ".join(match[0].split()) if match else None


def folded(page: str, width: int) -> str:
    """The page with every longer call of a script on several lines, as a shell takes them.

    A comment behind the call goes onto a line of its own above it.
    """
    return "\n".join(
        part
        for line in page.splitlines()
        for part in (_folded(line, width) if len(line) > width and START.match(line) else [line])
    )


def _folded(line: str, width: int) -> list[str]:
    indent = " " * (len(line) - len(line.lstrip()))
    call, mark, comment = line.strip().partition(" # ")
    lines = [indent]
    for unit in _units(call):
        if len(lines[-1]) + len(unit) + len(" \\") > width and lines[-1].strip():
            lines[-1] = lines[-1].rstrip() + " \\"
            lines.append(f"{indent}    ")
        lines[-1] += f"{unit} "
    return ([f"{indent}# {comment}"] if mark else []) + [part.rstrip() for part in lines]


def _units(call: str) -> list[str]:
    """The words of a call; an option stays with its value, python with its script."""
    units: list[str] = []
    for word in WORD.findall(call):
        before = units[-1] if units else ""
        takes = before == "python" or (before.startswith("--") and " " not in before)
        if takes and not word.startswith(("-", "&", "|", "<", ">", "\\")):
            units[-1] = f"{before} {word}"
        else:
            units.append(word)
    return units


def score_options(function: F, *, texts: bool = False) -> F:
    """The options that all scorers share; ``texts``: of labelled texts instead of cases."""
    from ragmetrics.catalogue import DIMENSIONS

    # match: how retrieval found its gold
    slices = ("attack_category", "leak_category", "tag") if texts else (*DIMENSIONS, "match")
    worst = "Show N texts that were judged wrongly, the clearest mistakes first."
    of_cases = (
        click.option("--worst-by", default=None, help="Metric that --worst sorts by."),
        click.option("--jobs", type=click.IntRange(min=1), default=None, help="Processes to use."),
    )
    return _decorated(
        function,
        (
            run_option,
            eval_set_option,
            labels_option,
            results_dir_option,
            click.option(
                "--by", type=click.Choice(slices), multiple=True, help="Show means by slice."
            ),
            click.option(
                "--worst",
                type=click.IntRange(min=0),
                default=0,
                show_default=False,
                help=worst if texts else "Show the N worst cases.",
            ),
            *(() if texts else of_cases),
            seed_option,
            json_option,
            verbosity_options,
        ),
    )


def _decorated(function: F, options: Sequence[Callable[[F], F]]) -> F:
    """The function with the options, in their order."""
    for option in reversed(options):
        function = option(function)
    return function


def _number_option(
    name: str, default: float, text: str, low: float | None = None, high: float | None = None
) -> Callable[[F], F]:
    return click.option(name, type=FiniteRange(low, high), default=default, help=text)


def _choice_option(*names: str, choices: Sequence[str], text: str) -> Callable[[F], F]:
    """One of the choices, usually the first."""
    return click.option(
        *names,
        type=click.Choice(choices),
        default=choices[0],
        help=text,
    )


def _usual_cutoffs() -> tuple[int, ...]:
    from ragmetrics.catalogue import KS

    return KS


embedding_model_option = partial(click.option, "--embedding-model", help=EMBEDDING_MODEL)

support_model_option = click.option("--support-model", type=PATH, help=SUPPORT_MODEL)

vectors_option = click.option(
    "--cache-dir",
    type=FOLDER,
    default=CACHE_DIR,
    show_default="eval/cache",
    help="Where vectors are kept.",
)

_MATCHING = (
    _choice_option(
        "--match",
        choices=("auto", "chunk", "anchor", "doc", "page", "text"),
        text="What counts as a match; auto takes the first that a case has gold for.",
    ),
    _number_option("--min-similarity", 0.8, "Levenshtein similarity from which texts match.", 0, 1),
)

_OF_SECTION: Mapping[str, Sequence[Callable[[Any], Any]]] = {
    "retrieval": (
        click.option(
            "--k",
            "ks",
            type=CutOffs(),
            default=_usual_cutoffs,
            show_default="1,3,5,10",
            help="Cut-offs, separated by commas.",
        ),
        _MATCHING[0],
        _choice_option(
            "--gain",
            choices=("linear", "exp"),
            text="NDCG's gain: the grade, or 2^grade - 1.",
        ),
        _MATCHING[1],
    ),
    "searches": _MATCHING,
    "tools": (),
    "conversations": _MATCHING,
    "context": (
        click.option(
            "--top",
            type=click.IntRange(min=1),
            default=None,
            show_default="all",
            help="Look at the first N retrieved chunks only (what the answer was given).",
        ),
    ),
    "groundedness": (
        click.option(
            "--first-index",
            type=click.IntRange(min=0),
            default=1,
            help="Number of the first chunk in the bot's citation marks.",
        ),
        _number_option(
            "--min-score", 0.0, "What the best retrieval score must exceed (retrieval_scores_ok)."
        ),
        support_model_option,
    ),
    "embedding": (
        click.option(
            "--dataset",
            type=FILE,
            help="Score this JSON list of {question, reference_answer, answer, contexts}; "
            "no run needed.",
        ),
        embedding_model_option("--model"),
        click.option(
            "--allow-download",
            is_flag=True,
            help="Fetch an embedding model that is not on this machine from its hub.",
        ),
        vectors_option,
        _number_option(
            "--sufficiency-threshold",
            0.5,
            "Cosine with the question from which a context counts as sufficient.",
            -1,
            1,
        ),
        _number_option(
            "--hallucination-threshold",
            0.4,
            "Cosine with a whole context under which a sentence counts as unsupported (@1).",
            -1,
            1,
        ),
        _number_option(
            "--window-threshold", 0.65, "The same for 1-3 sentences of a context (@2).", -1, 1
        ),
    ),
    "abstention": (
        _choice_option(
            "--decide-by",
            choices=("auto", "api", "phrases", "judge"),
            text="What tells an abstention: the bot's own field, the answer's wording, or the "
            "first there; judge: as auto, but a judge's verdict before the wording.",
        ),
    ),
    "safety": (
        _choice_option(
            "--guardrail",
            "source",
            choices=("auto", "system", "reference"),
            text="Whose scores are judged; auto: the bot's own where it sends them.",
        ),
        _number_option("--warn", 0.4, "Score from which a prompt counts as detected.", 0, 1),
        _number_option(
            "--block",
            0.5,
            "Score from which a prompt counts as blocked, an output as a leak.",
            0,
            1,
        ),
    ),
    "pipeline": (
        _number_option(
            "--uncertain-below",
            0.5,
            "Confidence under which a response counts as uncertain.",
            0,
            1,
        ),
    ),
}
"""What the script of each section offers besides the options that all scorers share."""


def score_command(section: str, **settings: Any) -> Callable[[Callable[..., Any]], Command]:
    """Makes a function the command of a section's score script, with the section's options."""

    def make(function: Callable[..., Any]) -> Command:
        texts = section == "safety"
        function = _decorated(function, _OF_SECTION[section])
        if not texts:
            function = scheduler_option(function)
        made: Command = command(**settings)(score_options(function, texts=texts))
        return made

    return make


class Streams:
    """Where a script that prints a section writes: tables or JSON to stdout, talk to stderr."""

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
        """Say on stderr what a reader should know; nothing for "" and with --quiet."""
        if text and not self.quiet:
            click.echo(f"Note: {text}", err=True)

    def nothing(self, reason: str) -> None:
        """Say that there is nothing to print: null as JSON, and why on stderr."""
        if self.as_json:
            click.echo("null")
        if not self.quiet:
            click.echo(f"Not applicable: {reason}", err=True)
