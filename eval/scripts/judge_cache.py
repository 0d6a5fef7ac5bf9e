"""Inspect, prune and share the cache of verdicts.

In: eval/cache/judge_cache.jsonl, a line a verdict. Out: a table, a smaller cache, or the chosen
lines on stdout. ACTION is ``stats`` (entries and bytes by judge, metric and prompt), ``prune``
(remove the chosen entries, and always replaced, withdrawn and damaged lines), ``export`` (print the
chosen entries as JSON lines) or ``import`` (read results of batch files that judge_answers.py
--batch-out wrote). import checks each reply like a server's; a reply that fails becomes no verdict.
Several options together narrow the choice.

\b
Examples:
  python eval/scripts/judge_cache.py stats
  python eval/scripts/judge_cache.py prune --older 90d --dry-run
  python eval/scripts/judge_cache.py prune --stale-prompts
  python eval/scripts/judge_cache.py prune --judge 'ollama/llama3.1:8b*' --metric groundedness
  python eval/scripts/judge_cache.py export --output verdicts.jsonl
  python eval/scripts/judge_cache.py import batches/*.results.jsonl batches/*.errors.jsonl

A pruned verdict is asked and paid for again when it is needed. You can prune while judges run: they
wait a moment while the file is replaced."""

from __future__ import annotations

import re
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import orjson

import options
import storage
from storage import StorageError

if TYPE_CHECKING:
    from judging.cache_upkeep import EntryChoice, PruneCounts

ACTIONS = ("stats", "prune", "export", "import")
UNITS = {"h": "hours", "d": "days", "w": "weeks"}
COLUMNS = ("judge", "metric", "prompt", "entries", "bytes", "oldest", "newest")


class Moment(click.ParamType[str]):
    """An age such as ``90d``, ``12h``, ``6w``, or a day such as ``2026-01-31``; as UTC text."""

    name = "age|date"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        age = re.fullmatch(r"(\d{1,5})([hdw])", str(value).strip())
        try:
            if age:
                moment = datetime.now(UTC) - timedelta(**{UNITS[age[2]]: int(age[1])})
            else:
                moment = datetime.fromisoformat(str(value).strip())
        except (ValueError, OverflowError):
            self.fail(f"{value!r}: write an age (90d, 12h, 6w) or a day (2026-01-31).", param, ctx)
        moment = moment.replace(tzinfo=moment.tzinfo or UTC).astimezone(UTC)
        return moment.replace(microsecond=0, tzinfo=None).isoformat() + "Z"


@options.command(help=__doc__)
@click.argument("action", type=click.Choice(ACTIONS))
@click.argument("results", nargs=-1, type=options.FILE, metavar="[FILE]...")
@click.option(
    "--requests",
    type=click.Path(path_type=Path, file_okay=False, exists=True),
    metavar="FOLDER",
    help="import: folder of the batch files. [default: beside the results]",
)
@options.cache_dir_option(type=options.PATH, help="Folder of the cache, or a file of verdicts.")
@click.option("--older", type=Moment(), help="Only verdicts older than this age or day.")
@click.option("--judge", metavar="GLOB", help="Only this judge: a model or provider/model@….")
@click.option("--metric", metavar="GLOB", help="Only this metric.")
@click.option("--prompt", metavar="GLOB", help="Only this prompt: a name or name@version.")
@click.option("--stale-prompts", is_flag=True, help="Only prompts that are no longer in use.")
@click.option("--output", type=options.FILE, help="export: write this new file instead of stdout.")
@click.option("--dry-run", is_flag=True, help="prune: only print what it would remove.")
@options.json_option
@click.option("-q", "--quiet", is_flag=True, help="No messages on stderr.")
def main(
    action: str,
    results: tuple[Path, ...],
    requests: Path | None,
    cache_dir: Path,
    output: Path | None,
    dry_run: bool,
    as_json: bool,
    quiet: bool,
    **chosen: Any,
) -> None:
    choice = choice_of(**chosen)
    is_file = cache_dir.suffix and not cache_dir.is_dir()
    cache = cache_dir if is_file else cache_dir / storage.JUDGE_CACHE
    if action == "import":
        take_in(results, cache, requests, as_json)
        return
    if results:
        raise click.UsageError(f"{action} takes no files.")
    if not cache.is_file():
        raise StorageError(f"{cache}: no such file; nothing has been judged yet.")
    if action == "stats":
        show_statistics(cache, choice, as_json)
    elif action == "prune":
        show_pruned(cache, choice, dry_run, as_json, quiet)
    else:
        export(cache, choice, output, quiet)


def choice_of(
    older: str | None,
    judge: str | None,
    metric: str | None,
    prompt: str | None,
    stale_prompts: bool,
) -> EntryChoice:
    from judging.cache_upkeep import EntryChoice
    from judging.prompt_files import load, names

    current = {load(name).id.sha256 for name in names()} if stale_prompts else None
    return EntryChoice(older, judge, metric, prompt, current)


def show_statistics(path: Path, choice: EntryChoice, as_json: bool) -> None:
    from judging.cache_upkeep import statistics
    from terminal.tables import print_rows

    figures = statistics(path, choice)
    if as_json:
        click.echo(orjson.dumps(figures, option=orjson.OPT_INDENT_2))
        return
    console = options.stdout_console()
    rows = [
        [f"{row[name]:,}" if isinstance(row[name], int) else str(row[name]) for name in COLUMNS]
        for row in figures["groups"]
    ]
    print_rows(console, COLUMNS, rows)
    withdrawn = f"; {figures['withdrawn']:,} withdrawn" if figures["withdrawn"] else ""
    console.print(
        f"{figures['entries']:,} entries, {figures['bytes']:,} bytes; the file has "
        f"{figures['file_bytes']:,} bytes, {figures['superseded']:,} replaced and "
        f"{figures['unreadable']:,} damaged lines{withdrawn}."
    )


def show_pruned(path: Path, choice: EntryChoice, dry_run: bool, as_json: bool, quiet: bool) -> None:
    from judging.cache_upkeep import prune

    done = prune(path, choice, lambda plan: not dry_run)
    if as_json:
        report = {name: getattr(done, name) for name in done.__slots__} | {"dry_run": dry_run}
        click.echo(orjson.dumps(report, option=orjson.OPT_INDENT_2))
    elif not quiet:
        options.say(in_words(done, dry_run))


def in_words(done: PruneCounts, dry_run: bool) -> str:
    gone = done.chosen + done.superseded + done.withdrawn + done.unreadable
    freed = done.bytes_before - done.bytes_after
    verb = "Would take out" if dry_run else "Took out"
    return (
        f"{verb} {gone:,} lines ({done.chosen:,} chosen, {done.superseded:,} replaced, "
        f"{done.withdrawn:,} withdrawn, {done.unreadable:,} damaged), {freed:,} bytes; "
        f"{done.kept:,} entries stay."
    )


def export(path: Path, choice: EntryChoice, output: Path | None, quiet: bool) -> None:
    from judging.cache_upkeep import entries

    if output is not None and output.exists():
        raise StorageError(f"{output}: is there already; name a new file.")
    chosen = (line for line, _ in entries(path, choice))
    if output is None:
        stdout = sys.stdout.buffer
        for line in chosen:
            stdout.write(line)
    else:
        lines = list(chosen)
        storage.replace_bytes(output, b"".join(lines))
        if not quiet:
            options.say(f"{output}: {len(lines):,} entries.")


def take_in(results: tuple[Path, ...], cache: Path, folder: Path | None, as_json: bool) -> None:
    """Import results of batch files into the cache and report their content."""
    from judging.batch_results import failure_words, import_results
    from judging.cache import VerdictCache

    if not results:
        raise click.UsageError("import: name the files of results.")
    verdicts = VerdictCache(cache)
    try:
        counts = import_results(results, verdicts, folder)
    finally:
        verdicts.close()
    if as_json:
        report = {
            "verdicts": counts.verdicts,
            "there": counts.there,
            "failures": dict(sorted(counts.failures.items())),
            "notes": counts.notes,
        }
        click.echo(orjson.dumps(report, option=orjson.OPT_INDENT_2))
        return
    options.say(
        f"{counts.verdicts:,} verdicts imported; {counts.there:,} were there already.", err=False
    )
    for words in failure_words(counts):
        options.say(f"No verdict from {words}.", err=False)
    for note in counts.notes:
        options.say(f"Note: {note}")
    if counts.failures:
        options.say("To ask for them again, repeat judge_answers.py --batch-out.", err=False)


if __name__ == "__main__":
    main()
