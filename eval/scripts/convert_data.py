"""Convert other tools' data into eval sets and runs, and ours into CSV or JSON.

In, import: files of another tool. Out: the folder --output with eval_set.jsonl and label files in
labels/. A source with answers or rankings also gives run folders in results/ for every score_*
script.

In, export: an eval set with its labels and a run. Out: the file or folder --output in the format
that you name. The paths of the new files go to stdout.

Data without a place in the other format is counted field by field, on stderr and by --json. Faults
of the input are reported together, with file and line, and then nothing is written. Nothing is
overwritten without --force. A killed conversion leaves a hidden folder .converting.… beside
--output; the next conversion to that place removes it.

FORMAT is a name from --list, which also prints what each format takes. Data of a server is read by
its documented shape, and the counts say so. Chats and samples of several turns become turns of
conversations. For any other JSON, JSONL or CSV with answers, give --map with a JMESPath for each
field. Fields that no expression reads are kept under metadata.

\b
Examples:
  python eval/scripts/convert_data.py --list
  python eval/scripts/convert_data.py import ragas samples.jsonl --output ours --json > loss.json
  python eval/scripts/convert_data.py import otel spans.jsonl --run-id monday --output traces
  python eval/scripts/convert_data.py import promptfoo out.json --output ours
  python eval/scripts/convert_data.py import openai chats.jsonl --output chats
  python eval/scripts/convert_data.py import json log.jsonl --map question=q --map answer=io.a -o x
  python eval/scripts/convert_data.py export csv --run latest --output scores.csv

To score an imported set, name its files; its labels are found beside it:

\b
  python eval/scripts/score_context.py --eval-set ours/eval_set.jsonl --results-dir ours/results

Exit codes: 0 done, 2 bad input or usage, or an output exists already, 130 interrupted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

import options
from formats import all_formats, core_names, directions
from records import extras, opt

if TYPE_CHECKING:
    from formats.shared.item import Notes

NO_RUN = "none"
IMPORT_ONLY = {"delimiter": "--set delimiter", "one_file": "--set one_file", "maps": "--map"}
EXPORT_ONLY = {
    "run": "--run",
    "eval_set": "--eval-set",
    "labels_dir": "--labels-dir",
    "results_dir": "--results-dir",
}
"""Fields that mean something in one direction alone, and how they are written."""


class FormatName(click.ParamType[str]):
    """A format of the core or of an extra."""

    name = "format"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        if (text := str(value)) in all_formats():
            return text
        if needs := extras.missing(extras.FORMATS, text):
            self.fail(f"{text}: {needs}.", param, ctx)
        self.fail(f"{text!r} is not one of {', '.join(all_formats())}.", param, ctx)


@dataclass(frozen=True, kw_only=True)
class ConvertOptions(opt.Output):
    """The options of convert_data.py. ``of_format``: what an extra has for its format.

    ``typed``: names of those on the command line; ``set_by_user``: also of those that the
    environment or config.toml sets.
    """

    direction: str | None = opt.argument(choices=("import", "export"))
    format: str | None = opt.argument(metavar="[FORMAT]")
    sources: tuple[Path, ...] = opt.argument()
    as_list: bool = opt.flag(
        f"List the formats and stop: {', '.join(core_names())}, and those of extras.",
        names="--list",
    )
    output: Path | None = opt.value("Folder (or file) to make; needed.", names="-o --output")
    force: bool = opt.flag("Replace what is there already.")
    run_id: str | None = opt.value(
        "Import: name of the run.  [default: the file's, system's or tag]  Else like --run."
    )
    one_file: bool = opt.setting(
        "true imports the labels into the eval set, without label files", default=False
    )
    delimiter: str | None = opt.setting(
        "import: separator between the passages of one CSV cell (by the format)"
    )
    maps: tuple[str, ...] = opt.repeated(
        "Import of JSON: path of a field in a row of any shape (repeatable). Import of any other "
        "format: question=NAME, the column or variable with the question.",
        names="--map",
        metavar="FIELD=JMESPATH",
    )
    run: str = opt.value(
        "Run id, path of a run folder, or 'latest'; 'none' for the cases alone.", default="latest"
    )
    eval_set: Path = opt.eval_set()
    labels_dir: Path = opt.labels_dir()
    results_dir: Path = opt.results_dir()
    of_format: Mapping[str, Any] = field(default_factory=dict)
    typed: frozenset[str] = frozenset()
    set_by_user: frozenset[str] = frozenset()


@options.script(ConvertOptions, {"format": FormatName()}, help=__doc__)
def main(asked: ConvertOptions) -> int:
    from formats.shared.item import Notes
    from terminal.tables import harmless

    if asked.as_list:
        list_formats()
        return options.Exit.DONE
    if asked.direction != "import" and asked.run_id:
        asked = replace(asked, run=asked.run_id)
    outcome = options.run_extras(asked, direction=asked.direction, name=asked.format)
    if isinstance(outcome, int):
        return outcome
    asked = outcome
    module = module_of(asked)
    notes = Notes()
    convert = run_import if asked.direction == "import" else run_export
    paths = convert(module, asked, notes)
    if asked.as_json:
        print_report(asked.direction, asked.format, notes, paths)
    for path in () if asked.as_json else paths:
        click.echo(path)
    for line in () if asked.quiet else notes.lines():
        options.say(harmless(line))  # it names fields of a foreign file
    return options.Exit.DONE


def list_formats() -> None:
    """A line for each format: its name, what can be done, what it is."""
    for name, module in all_formats().items():
        options.say(f"{name:<10} {' and '.join(directions(module)):<18} {module.ABOUT}", err=False)


def question_column(maps: Sequence[str], name: str) -> str | None:
    """The column that --map names for the question, of a format whose other fields are known."""
    if name == "json" or not maps:
        return None
    field, _, column = maps[-1].partition("=")
    if len(maps) > 1 or field.strip() != "question" or not column.strip():
        raise click.UsageError(
            f"--map: {name} fixes the shape of its rows; give question=NAME alone, or use the "
            "format json."
        )
    return column.strip()


def module_of(asked: ConvertOptions) -> Any:
    """The module of the format; refuses options that contradict each other, in one sentence."""
    direction, name = asked.direction, asked.format
    if direction is None or name is None:
        raise click.UsageError("say what to do: import or export, and a format (see --list).")
    if direction not in directions(all_formats()[name]):
        able = ", ".join(n for n, other in all_formats().items() if direction in directions(other))
        raise click.UsageError(f"{name} has no {direction}; formats with one: {able}.")
    if asked.output is None:
        raise click.UsageError("say where to: --output.")
    if direction == "import" and not asked.sources:
        raise click.UsageError("name the file or folder to import.")
    if direction == "export" and asked.sources:
        raise click.UsageError("an export takes no files; name --eval-set and --run.")
    others = EXPORT_ONLY if direction == "import" else IMPORT_ONLY
    for name, written in others.items():
        if name in asked.typed:
            raise click.UsageError(f"{written} means nothing for an {direction}.")
    return all_formats()[asked.format or ""]


def run_import(module: Any, asked: ConvertOptions, notes: Notes) -> list[Path]:
    """From other tools' files to an eval set and runs."""
    from clients.expressions import compile_path
    from formats.shared.convert import import_data
    from formats.shared.field_map import field_map
    from formats.traces.ids import key_of_ids
    from options.tables import trace_settings

    assert asked.output is not None
    traces = trace_settings(compile_path)
    column = question_column(asked.maps, str(asked.format))
    return import_data(
        module,
        asked.sources,
        asked.output,
        {
            "run_id": asked.run_id,
            "delimiter": asked.delimiter,
            "fields": field_map(() if column else asked.maps, compile_path),
            "question_field": column,
            "key_of_ids": None if traces["keep_ids"] else key_of_ids,
            "tools": traces["tools"],
            "documents": traces["documents"],
            "added": asked.of_format,
        },
        notes,
        one_file=asked.one_file,
        force=asked.force,
    )


def run_export(module: Any, asked: ConvertOptions, notes: Notes) -> list[Path]:
    """From an eval set and a run to another tool's files."""
    from formats.shared.convert import export_data, run_of
    from formats.shared.stored import Stored

    assert asked.output is not None
    named = not {"run", "run_id"}.isdisjoint(asked.set_by_user)
    run = None if asked.run == NO_RUN else run_of(asked.results_dir, asked.run, asked=named)
    stored = Stored(asked.eval_set, asked.labels_dir, run, notes, asked.of_format or None)
    return export_data(module, stored, asked.output, notes, force=asked.force)


def print_report(direction: str | None, name: str | None, notes: Notes, paths: list[Path]) -> None:
    """All counts as JSON on stdout."""
    import storage

    about = {"schema": 1, "direction": direction, "format": name, "lossless": notes.lossless}
    data = storage.json_bytes(about | notes.to_dict() | {"made": [str(path) for path in paths]})
    click.echo(data, nl=False)


if __name__ == "__main__":
    main()
