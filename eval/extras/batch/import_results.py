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
from dataclasses import dataclass
from pathlib import Path

import click

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "scripts"))  # the core

import options
from records import opt
from records.home import CACHE_DIR


@dataclass(frozen=True, kw_only=True)
class ImportScriptOptions:
    """The options of import_results.py."""

    results: tuple[Path, ...] = opt.argument(path="file", metavar="FILE…", required=True)
    requests: Path | None = opt.value(
        "Folder of the batch files.",
        path="folder",
        exists=True,
        metavar="FOLDER",
        shown="beside the results",
    )
    cache_dir: Path = opt.value(
        "Folder of the cache, or a file of verdicts.", default=CACHE_DIR, shown="eval/cache"
    )
    as_json: bool = opt.as_json()
    quiet: bool = opt.quiet()


@options.script(ImportScriptOptions, help=__doc__)
def main(asked: ImportScriptOptions) -> None:
    from extras.batch.results import failure_words, import_results
    from judging.cache import VerdictCache
    from records.runs import JUDGE_CACHE

    cache_dir = asked.cache_dir
    is_file = cache_dir.suffix and not cache_dir.is_dir()
    verdicts = VerdictCache(cache_dir if is_file else cache_dir / JUDGE_CACHE)
    try:
        counts = import_results(asked.results, verdicts, asked.requests)
    finally:
        verdicts.close()
    if asked.as_json:
        report = {
            "verdicts": counts.verdicts,
            "there": counts.there,
            "failures": dict(sorted(counts.failures.items())),
            "notes": counts.notes,
        }
        import orjson

        click.echo(orjson.dumps(report, option=orjson.OPT_INDENT_2))
        return
    options.say(
        f"{counts.verdicts:,} verdicts imported; {counts.there:,} were there already.", err=False
    )
    for words in failure_words(counts):
        options.say(f"No verdict from {words}.", err=False)
    for note in () if asked.quiet else counts.notes:
        options.say(f"Note: {note}")
    if counts.failures:
        options.say("To ask for them again, repeat judge_answers.py --batch-out.", err=False)


if __name__ == "__main__":
    main()
