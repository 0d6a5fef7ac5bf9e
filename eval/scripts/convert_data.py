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

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

import options
from formats import all_formats, core_formats, directions
from formats.shared.item import Notes
from records import extras
from terminal.tables import harmless

NO_RUN = "none"
IMPORT_ONLY = ("delimiter", "one_file", "maps")
EXPORT_ONLY = ("run", "eval_set", "labels_dir", "results_dir")


class FormatName(click.ParamType[str]):
    """A format of the core or of an extra."""

    name = "format"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        if (text := str(value)) in all_formats():
            return text
        if needs := extras.missing(extras.FORMATS, text):
            self.fail(f"{text}: {needs}.", param, ctx)
        self.fail(f"{text!r} is not one of {', '.join(all_formats())}.", param, ctx)


@options.command(help=__doc__)
@click.argument("direction", type=click.Choice(["import", "export"]), required=False)
@click.argument("format", type=FormatName(), required=False, metavar="[FORMAT]")
@click.argument("sources", nargs=-1, type=options.PATH)
@click.option(
    "--list",
    "as_list",
    is_flag=True,
    help=f"List the formats and stop: {', '.join(core_formats())}, and those of extras.",
)
@click.option("-o", "--output", type=options.PATH, help="Folder (or file) to make; needed.")
@click.option("--force", is_flag=True, help="Replace what is there already.")
@click.option(
    "--run-id",
    help="Import: name of the run.  [default: the file's, system's or tag]  Else like --run.",
)
@click.option("--one-file", is_flag=True, help="Import: labels into the eval set, no label files.")
@click.option(
    "--delimiter",
    help="Import: separator between the passages of one CSV cell. [default: by the format]",
)
@click.option(
    "--map",
    "maps",
    multiple=True,
    metavar="FIELD=JMESPATH",
    help="Import of JSON: path of a field in a row of any shape (repeatable). Import of any other "
    "format: question=NAME, the column or variable with the question.",
)
@click.option(
    "--run",
    default="latest",
    help="Run id, path of a run folder, or 'latest'; 'none' for the cases alone.",
)
@options.eval_set_option
@options.labels_option
@options.results_dir_option
@options.json_option
@options.verbosity_options
@click.pass_context
def main(
    ctx: click.Context,
    /,
    direction: str | None,
    format: str | None,  # noqa: A002 - the word of the command line
    as_list: bool,
    quiet: bool,
    as_json: bool,
    **values: Any,
) -> int:
    if as_list:
        list_formats()
        return options.Exit.DONE
    if direction != "import" and values["run_id"]:
        values["run"] = values["run_id"]
    outcome = options.run_extras(values, direction=direction, name=format)
    if isinstance(outcome, int):
        return outcome
    values = outcome
    check_usage(ctx, direction, format, values)
    notes = Notes()
    convert = run_import if direction == "import" else run_export
    paths = convert(all_formats()[str(format)], values, notes, ctx)
    if as_json:
        print_report(direction, format, notes, paths)
    for path in () if as_json else paths:
        click.echo(path)
    for line in () if quiet else notes.lines():
        options.say(harmless(line))  # it names fields of a foreign file
    return options.Exit.DONE


def list_formats() -> None:
    """A line for each format: its name, what can be done, what it is."""
    for name, module in all_formats().items():
        options.say(f"{name:<10} {' and '.join(directions(module)):<18} {module.ABOUT}", err=False)


def flag_of(name: str) -> str:
    """The option that gives a parameter its value."""
    return {"maps": "--map", "as_json": "--json"}.get(name) or "--" + name.replace("_", "-")


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


def check_usage(
    ctx: click.Context, direction: str | None, name: str | None, values: dict[str, Any]
) -> None:
    """Refuse options that contradict each other, in one sentence."""
    if direction is None or name is None:
        raise click.UsageError("say what to do: import or export, and a format (see --list).")
    if direction not in directions(all_formats()[name]):
        able = ", ".join(n for n, other in all_formats().items() if direction in directions(other))
        raise click.UsageError(f"{name} has no {direction}; formats with one: {able}.")
    if values["output"] is None:
        raise click.UsageError("say where to: --output.")
    if direction == "import" and not values["sources"]:
        raise click.UsageError("name the file or folder to import.")
    if direction == "export" and values["sources"]:
        raise click.UsageError("an export takes no files; name --eval-set and --run.")
    line = click.core.ParameterSource.COMMANDLINE
    for option in EXPORT_ONLY if direction == "import" else IMPORT_ONLY:
        if ctx.get_parameter_source(option) is line:
            raise click.UsageError(f"{flag_of(option)} means nothing for an {direction}.")


def run_import(module: Any, values: dict[str, Any], notes: Notes, ctx: click.Context) -> list[Path]:
    """From other tools' files to an eval set and runs."""
    from clients.expressions import compile_path
    from formats.shared.convert import import_data
    from formats.shared.field_map import field_map
    from formats.traces.ids import key_of_ids

    names = ("run_id", "delimiter")
    traces = options.trace_settings(compile_path)
    column = question_column(values["maps"], str(ctx.params["format"]))
    return import_data(
        module,
        values["sources"],
        values["output"],
        {name: values[name] for name in names}
        | {"fields": field_map(() if column else values["maps"], compile_path)}
        | {"question_field": column}
        | {"key_of_ids": None if traces["keep_ids"] else key_of_ids}
        | {name: traces[name] for name in ("tools", "documents")}
        | {"added": values.get("of_format", {})},
        notes,
        one_file=values["one_file"],
        force=values["force"],
    )


def run_export(module: Any, values: dict[str, Any], notes: Notes, ctx: click.Context) -> list[Path]:
    """From an eval set and a run to another tool's files."""
    from formats.shared.convert import export_data, run_of
    from formats.shared.stored import Stored

    asked = ctx.get_parameter_source("run") is not click.core.ParameterSource.DEFAULT
    run = (
        None
        if values["run"] == NO_RUN
        else run_of(values["results_dir"], values["run"], asked=asked)
    )
    added = values.get("of_format")
    stored = Stored(values["eval_set"], values["labels_dir"], run, notes, added)
    return export_data(module, stored, values["output"], notes, force=values["force"])


def print_report(direction: str | None, name: str | None, notes: Notes, paths: list[Path]) -> None:
    """All counts as JSON on stdout."""
    import storage

    about = {"schema": 1, "direction": direction, "format": name, "lossless": notes.lossless}
    data = storage.json_bytes(about | notes.to_dict() | {"made": [str(path) for path in paths]})
    click.echo(data, nl=False)


if __name__ == "__main__":
    main()
