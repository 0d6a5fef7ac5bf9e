"""The command that every script is: defaults from three sources, options that extras add, a page of
help, and an end with the right exit code.

Defaults come from the flag, then the environment (``RAG_EVAL_<OPTION>``), then eval/config.toml
(a key an option, dashes as underscores; a table ``[script_name]`` wins for that script), then the
built-in value.
"""

from __future__ import annotations

import contextlib
import enum
import gc
import inspect
import io
import os
import re
import shutil
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import click

from options import streams
from options.added import AddedOptions
from records import extras
from records.errors import StorageError
from records.file_access import allow_addresses
from records.home import HOME
from terminal import tables

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
"""Before numpy starts: its threads would wait for longer than they compute on matrices this small,
and a sum that one of them makes has the same bits on every machine."""

CONFIG = HOME / "eval" / "config.toml"


class Exit(enum.IntEnum):
    """Meanings of the exit codes of every script."""

    DONE = 0
    GATE_FAILED = 1
    BAD_INPUT = 2
    UNREACHABLE = 3
    INTERRUPTED = 130


def say(text: str, *, err: bool = True) -> None:
    """A text for people, by default on stderr: broken at blanks on a terminal, whole elsewhere."""
    if (sys.stderr if err else sys.stdout).isatty():
        columns = shutil.get_terminal_size().columns
        is_call = re.match(r"(\w+: )?python eval/", text)
        text = tables.folded(folded(text, columns) if is_call else text, columns)
    click.echo(text, err=err)


def config_file() -> tuple[Path, dict[str, Any]]:
    """The path and content of eval/config.toml or the file that RAG_EVAL_CONFIG names; {} without
    one."""
    named = os.environ.get("RAG_EVAL_CONFIG")
    path = Path(named or CONFIG)
    if not path.exists() and not named:
        return path, {}
    from records.files import read_toml  # slow to load, and there is seldom such a file

    try:
        return path, read_toml(path)
    except FileNotFoundError:
        raise StorageError(f"{path}: no such file; correct RAG_EVAL_CONFIG.") from None


def settings(script: str, params: Sequence[click.Parameter] = ()) -> dict[str, Any]:
    """Option defaults for one script from eval/config.toml, flat; {} when there is no such file.

    Raises StorageError when it cannot be read, when the file that RAG_EVAL_CONFIG names is not
    there, and for a list where an option of ``params`` takes one value, or the other way round.
    """
    path, raw = config_file()
    common = {key: value for key, value in raw.items() if not isinstance(value, dict)}
    own = raw.get(script, {})
    values = common | (own if isinstance(own, dict) else {})
    for param in params:
        value = values.get(param.name or "")
        if isinstance(param, click.Option) and value is not None:
            _check_shape(f"{path}: {param.name}", param, value)
    return values


def _unused(
    script: str, values: Mapping[str, Any], params: Sequence[click.Parameter]
) -> Iterator[str]:
    """A sentence for each default of an option that an extra would add which this copy lacks."""
    own = {param.name for param in params}
    path = config_file()[0]
    named = {key: f"{path}: {key}" for key in values}
    prefix = "RAG_EVAL_"
    named |= {key.removeprefix(prefix).lower(): key for key in os.environ if key.startswith(prefix)}
    for key, where in named.items():
        if key not in own:
            option = f"{script} --{key.replace('_', '-')}"
            if needs := extras.missing(extras.OPTIONS, option):
                yield f"{where}: not used; {needs}."


def _check_shape(where: str, param: click.Option, value: Any) -> None:
    """A list for an option that may be given several times, one value for the others."""
    if param.multiple and not isinstance(value, list):
        raise StorageError(f"{where}: takes several values; write a list: [{value!r}].")
    lists = param.multiple or getattr(param.type, "takes_list", False)
    if isinstance(value, list) and not lists:
        raise StorageError(f"{where}: takes one value, not a list.")


MOST_UNGROUPED = 14
"""Most options of a command in one list; longer lists get headings."""

_NEW_OBJECTS = 50_000
"""New objects after which Python looks for garbage in circles. A script that reads a run makes
millions of objects that stay; with Python's own 700 they are looked at again and again."""

_OPTION_COLUMN = 27

WIDEST = 100
"""Columns of the widest help page; a narrower terminal gets its own width."""

MOST_EXAMPLES = 3
"""Examples on the help page; the script's page in docs/ shows all."""

_COMMON = "Common options"
_OTHER = "Other options"
_HEADINGS = {
    _COMMON: (
        "--run --api-url --profile --header --judge --model --metrics --sections"
        " --k --labels --run-id --resume --label --baseline --suite --by --worst --worst-by --gates"
        " --fail-on --name --case --from-run --plain"
    ),
    "Data": (
        "--eval-set --labels-dir --results-dir --filter --limit --targets --plugin --repeat"
        " --from-jsonl --vault --annotator"
    ),
    "Statistics": "--seed --ignore-invariants --allow-missing --match",
    "Server and cost": (
        "--set --save-judge --max-error-rate --retry-errors --max-cost --offline --cache-dir --jobs"
        " --embedding-model"
    ),
    _OTHER: "",
    "Output": (
        "--json --markdown --junit --html --format --output --save-trace --store-full-text"
        " -v --verbose -q --quiet -h --help"
    ),
}
"""Headings of a long command's help, with their options; the rest are "Other options"."""


def _heading_of(names: Sequence[str]) -> str:
    """The heading of an option with these names."""
    return next(
        (
            heading
            for heading, options in _HEADINGS.items()
            if not set(names).isdisjoint(options.split())
        ),
        _OTHER,
    )


_LETTERS = (
    (re.compile(r"\bINTEGER( RANGE)?\b"), "N"),
    (re.compile(r"\bFLOAT( RANGE)?\b"), "X"),
    (re.compile(r"\bDIRECTORY\b"), "FOLDER"),
)
_DEFAULT = re.compile(r"^(default: )\(([^;]*)\)")
_SENTENCE = re.compile(r"(?<=[a-z0-9)'])\. +(?=[A-Z0-9])")


def option_words(param: click.Option, ctx: click.Context) -> tuple[str, str, str]:
    """An option's names with its value, its help, and its default and range ("" for neither).

    A number is N or X, a folder FOLDER.
    """
    names, text = param.get_help_record(ctx) or ("", "")
    for pattern, letter in _LETTERS:
        names = pattern.sub(letter, names)
    text, _, extra = text.partition("  [")
    return names, text, _DEFAULT.sub(r"\1\2", extra.removesuffix("]").replace("]  [", "; "))


_RANGE = re.compile(r"(?:[\d.]+<=?)?x(?:[<>]=?[\d.]+)?")


def _short(param: click.Option, ctx: click.Context) -> tuple[str, str]:
    """An option's line of help: its first sentence, without the range of its values.

    The page in docs/ has the rest.
    """
    names, text, extra = option_words(param, ctx)
    notes = [note for note in extra.split("; ") if note and not _RANGE.fullmatch(note)]
    text = _SENTENCE.split(text)[0]
    text = text if text.endswith(".") else f"{text}."
    return names, f"{text}  [{'; '.join(notes)}]" if notes else text


SAME_AGAIN = "Nothing is half-written: start the same command again."


class Command(click.Command):
    """A command that knows the three sources of defaults, and ends an interrupted run with 130.

    Ctrl+C, SIGTERM and SIGHUP are one thing: KeyboardInterrupt in the main thread, so that whatever
    cleans up does; then ``how_to_go_on`` is said. --help ends with examples and exit codes.
    """

    def __init__(self, *args: Any, how_to_go_on: str = SAME_AGAIN, **extra: Any) -> None:
        super().__init__(*args, **extra)
        self.how_to_go_on = how_to_go_on
        self.added: AddedOptions | None = None
        """What extras add, looked for when the script starts; not there for its page in docs/."""

    def make_context(
        self,
        info_name: str | None,
        args: list[str],
        parent: click.Context | None = None,
        **extra: Any,
    ) -> click.Context:
        extra.setdefault("auto_envvar_prefix", "RAG_EVAL")
        script = Path(info_name or "").stem
        if self.added is None:
            self.added = AddedOptions(_script_of(self.callback).stem, self.params)
            self.params = [*self.params, *self.added.params]
        values = settings(script, self.params)
        for sentence in _unused(_script_of(self.callback).stem, values, self.params):
            say(sentence)
        extra.setdefault("default_map", values)
        return super().make_context(info_name, args, parent, **extra)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse; an option of an extra that is missing is refused with the extra's name."""
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            option = f"{_script_of(self.callback).stem} {error.option_name}"
            if needs := extras.missing(extras.OPTIONS, option):
                raise click.UsageError(f"{error.option_name}: {needs}.", ctx) from None
            key = (error.option_name or "").removeprefix("--").replace("-", "_")
            if any(param.name == key and getattr(param, "hidden", False) for param in self.params):
                raise click.UsageError(
                    f"{error.option_name}: write --set {key}=VALUE, or {key} in eval/config.toml.",
                    ctx,
                ) from None
            raise

    def get_help(self, ctx: click.Context) -> str:
        """The page of --help, with examples that fit into its width."""
        formatter = ctx.make_formatter()
        self.format_help(ctx, formatter)
        return folded(formatter.getvalue().rstrip("\n"), formatter.width)

    def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The purpose in a sentence, the usage, the options, the exit codes."""
        about = docstring(self.callback)
        own = self.help or ""
        self.format_usage(ctx, formatter)
        formatter.write_paragraph()
        with formatter.indentation():
            formatter.write_text(" ".join(own.strip().partition("\n\n")[0].split()))
        if lines := (examples(own) or examples(about))[:MOST_EXAMPLES]:
            with formatter.section("Examples"):
                for line in lines:
                    formatter.write(f"{'':{formatter.current_indent}}{line}\n")
        self.format_options(ctx, formatter)
        formatter.write_paragraph()
        formatter.write_text(exit_codes(own) or exit_codes(about) or USUAL_EXITS)
        if page := _page_of(self.callback):
            formatter.write_text(f"More: {page}")

    def grouped_options(self, ctx: click.Context) -> dict[str, list[click.Option]]:
        """The options that are shown, by heading, most used first; one heading where they are few.

        A heading with one option alone gives it to the other options.
        """
        shown = [
            param
            for param in self.get_params(ctx)
            if isinstance(param, click.Option) and not param.hidden
        ]
        extra_of = self.added.extra_of if self.added else {}
        own = [param for param in shown if param.name not in extra_of]
        groups: dict[str, list[click.Option]] = {"Options": own}
        if len(own) > MOST_UNGROUPED:
            groups = {heading: [] for heading in _HEADINGS}
            for param in own:
                groups[_heading_of(param.opts)].append(param)
            for heading, members in groups.items():
                if len(members) == 1 and heading != _COMMON:
                    groups[_OTHER].append(members.pop())
        for param in (param for param in shown if param.name in extra_of):
            heading = f"From eval/extras/{extra_of[param.name or '']}"
            groups.setdefault(heading, []).append(param)
        return {heading: members for heading, members in groups.items() if members}

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The options under their headings, in columns of one width."""
        groups = {
            heading: [_short(param, ctx) for param in members]
            for heading, members in self.grouped_options(ctx).items()
        }
        first = max(len(names) for rows in groups.values() for names, _ in rows)
        left = min(first, _OPTION_COLUMN)
        for heading, rows in groups.items():
            with formatter.section(heading):
                padded = [(f"{names:<{left}}", text) for names, text in rows]
                formatter.write_dl(padded, col_max=_OPTION_COLUMN)

    def main(self, *args: Any, standalone_mode: bool = True, **extra: Any) -> Any:
        run: Any = partial(super().main, *args, standalone_mode=False, **extra)
        if not standalone_mode:
            return run()
        streams.prepare()
        gc.set_threshold(_NEW_OBJECTS)
        with _signals_interrupt():
            try:
                result = run()
                sys.exit(result if isinstance(result, int) else Exit.DONE)
            except click.ClickException as error:
                shown = io.StringIO()
                error.show(shown)
                say(shown.getvalue().rstrip("\n"))
                sys.exit(error.exit_code)
            except (click.Abort, KeyboardInterrupt):
                with contextlib.suppress(OSError):  # the terminal may be what is gone
                    below = "\n" if sys.stderr.isatty() else ""  # the terminal's own ^C
                    say(f"{below}Interrupted. {self.how_to_go_on}".rstrip())
                import logging

                # a task that the signal broke off would be told of when it is collected
                logging.getLogger("asyncio").disabled = True
                sys.exit(Exit.INTERRUPTED)

    def invoke(self, ctx: click.Context) -> Any:
        """Run; an output that cannot be written ends the script in a sentence."""
        allow_addresses(_named_addresses(ctx))
        if self.added is not None:
            self.added.set_apart(ctx)
        try:
            result = super().invoke(ctx)
            if result == Exit.INTERRUPTED:
                streams.drop_unwritable()
            sys.stdout.flush()
            return result
        except KeyboardInterrupt:
            raise click.Abort from None  # click would print to a terminal that may be gone
        except RecursionError:
            raise StorageError(
                "a file or an expression in the input is nested too deeply; write it with fewer "
                "levels."
            ) from None
        except OSError as error:
            if error.filename is not None:
                raise
            streams.lead_nowhere(sys.stdout.fileno())
            raise StorageError(f"the output cannot be written ({error.strerror}).") from None


def _named_addresses(ctx: click.Context) -> list[str]:
    """Where links in runs may lead: RAG_EVAL_ADDRESSES (between blanks), else ``addresses`` of
    eval/config.toml."""
    named = os.environ.get("RAG_EVAL_ADDRESSES") or (ctx.default_map or {}).get("addresses") or []
    return named.split() if isinstance(named, str) else list(map(str, named))


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


START = re.compile(r".*\bpython eval/(scripts|extras/\w+)/\w+\.py\b")

WORD = re.compile(r"(?:'[^']*'|\"[^\"]*\"|[^\s'\"])+|['\"]")

USUAL_EXITS = "Exit codes: 0 done, 2 bad input or usage, 130 interrupted."
"""The exit codes of a script that documents no others."""


def docstring(callback: Callable[..., Any] | None) -> str:
    """The docstring of the module of a command's function."""
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


def _page_of(callback: Callable[..., Any] | None) -> str:
    """The page of docs/ about the script of a command's function; "" for none."""
    script = _script_of(callback)
    if script.parent.parent == extras.EXTRAS:
        return f"eval/extras/{script.parent.name}/README.md"
    return f"docs/{script.stem}.md" if script.parent == Path(__file__).parents[1] else ""


def _script_of(callback: Callable[..., Any] | None) -> Path:
    """The file of a command's function."""
    module = sys.modules.get(getattr(callback, "__module__", ""))
    return Path(getattr(module, "__file__", None) or "").absolute()


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


command = partial(
    click.command,
    cls=Command,
    context_settings={
        "help_option_names": ["-h", "--help"],
        "show_default": True,
        "max_content_width": WIDEST,
    },
)
