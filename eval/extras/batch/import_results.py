"""Import results of batch files into the cache of verdicts.

In: the files of results that judge_answers.py --batch-fetch wrote, or that you downloaded, with the
request files and batch.json beside them or in the folder that --requests names. Out: verdicts in
the cache. Each reply is checked like a server's; a reply that fails becomes no verdict, and the
next --batch-out asks for it again.

\b
Examples:
  python eval/extras/batch/import_results.py batches/*.results.jsonl batches/*.errors.jsonl
  python eval/extras/batch/import_results.py downloads/msgbatch.jsonl --requests batches

Exit codes: 0 done, 2 bad input or usage, 130 interrupted.
"""

from __future__ import annotations

import sys
from pathlib import Path

import click
import orjson

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "scripts"))  # the core

import options
import storage


@options.command(help=__doc__)
@click.argument("results", nargs=-1, type=options.FILE, metavar="FILE…", required=True)
@click.option(
    "--requests",
    type=click.Path(path_type=Path, file_okay=False, exists=True),
    metavar="FOLDER",
    show_default="beside the results",
    help="Folder of the batch files.",
)
@options.cache_dir_option(type=options.PATH, help="Folder of the cache, or a file of verdicts.")
@options.json_option
@click.option("-q", "--quiet", is_flag=True, help="No messages on stderr.")
def main(
    results: tuple[Path, ...], requests: Path | None, cache_dir: Path, as_json: bool, quiet: bool
) -> None:
    from extras.batch.results import failure_words, import_results
    from judging.cache import VerdictCache

    is_file = cache_dir.suffix and not cache_dir.is_dir()
    verdicts = VerdictCache(cache_dir if is_file else cache_dir / storage.JUDGE_CACHE)
    try:
        counts = import_results(results, verdicts, requests)
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
    for note in () if quiet else counts.notes:
        options.say(f"Note: {note}")
    if counts.failures:
        options.say("To ask for them again, repeat judge_answers.py --batch-out.", err=False)


if __name__ == "__main__":
    main()
