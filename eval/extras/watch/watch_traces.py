"""Watch a bot in production through its traces: did it get worse, since when, and in what?

In: a folder of traces in JSON or JSON lines (OTLP, Phoenix, MLflow, …; .gz too), which may grow
while they are read. Out: shares by day of refusals, empty retrievals, errors, slow answers, empty
or very long answers, unreadable ones, and, for a fixed share, of unsupported claims and leaks. With
--reference, eight whole weeks or more, an alarm for what rose since. Look as often as you like: at
most 7 % of quiet quarters give a false one. It lasts until two weeks are back at the reference, or
until you say --seen. A rise from 4 to 6 % is too small for it; --canaries finds that. Ratings by
people among the traces (Phoenix, Langfuse, LangSmith) are a share with its interval, and no alarm.
No server, and nothing is sent anywhere.

An index in eval/cache/watch keeps numbers, hashes, file and offset of each trace, no text. A second
look reads only new traces. Delete the index to begin again.

With --output FOLDER: --cases N draws drafts worth labelling into FOLDER/cases: some of each signal,
none too similar to a question of --eval-set. --sample N draws about N traces uniformly into
FOLDER/sample, as an eval set with a run that every script scores. Credentials and personal data are
masked before anything is written.

\b
Examples:
  python eval/extras/watch/watch_traces.py traces
  python eval/extras/watch/watch_traces.py traces --reference 2026-03-02..2026-04-26 --fail-on alarm
  python eval/extras/watch/watch_traces.py traces --canaries eval/canaries
  python eval/extras/watch/watch_traces.py traces --cases 12 --sample 200 --output drawn
  python eval/extras/watch/watch_traces.py traces --html watch.html

\b
Every morning by cron, which mails the output; with --silent only an alarm prints:
  0 7 * * * cd /srv && .venv/bin/python eval/extras/watch/watch_traces.py /var/traces --silent

Exit codes: 0 done, 1 an alarm with --fail-on alarm, 2 bad input, 130 interrupted.
"""

from __future__ import annotations

import sys
import time
from datetime import datetime
from pathlib import Path
from typing import Any

import click

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "scripts"))  # the core

import options


@options.command(
    help=__doc__, how_to_go_on="The index keeps all that was read: start the same command again."
)
@click.argument("folder", type=options.PATH)
@click.option(
    "--reference",
    metavar="A..B",
    help="Days that are normal, such as 2026-03-02..2026-04-26; frozen at first use.",
)
@click.option(
    "--replace-reference", is_flag=True, help="Freeze --reference in place of the old one."
)
@click.option(
    "--seen",
    is_flag=True,
    help="Mark the alarms of the last look as seen; a further rise is a new one.",
)
@click.option(
    "--canaries",
    type=options.FOLDER,
    metavar="FOLDER",
    help="Folder of daily runs of a fixed set, to gate beside the traffic.",
)
@click.option("--fail-on", type=click.Choice(["alarm"]), help="Exit 1 when a figure has an alarm.")
@click.option(
    "--quiet",
    "quiet_seconds",
    type=options.FiniteRange(0, options.DAY_S),
    default=60.0,
    metavar="SECONDS",
    help="Wait so long after the last span of a trace.",
)
@click.option(
    "--check-share",
    type=options.FiniteRange(0, 1),
    default=0.05,
    help="Share of traces, by hash, checked for unsupported claims and leaks.",
)
@click.option(
    "--sampling",
    type=click.Choice(["head", "tail"]),
    default="head",
    help="tail: the traces are those that a tail sampler kept; leave out the shares it distorts.",
)
@click.option("--cases", type=click.IntRange(1, 10_000), help="Draw N drafts worth labelling.")
@click.option("--sample", type=click.IntRange(1, 1_000_000), help="Draw about N traces uniformly.")
@click.option("-o", "--output", type=options.FOLDER, help="Folder of the draws.")
@click.option("--force", is_flag=True, help="Replace earlier draws in --output.")
@click.option(
    "--since", type=click.DateTime(["%Y-%m-%d"]), help="Draw from the traces of this day on."
)
@options.eval_set_option
@click.option(
    "--index",
    type=options.FILE,
    help="The index file.  [default: eval/cache/watch/…, one for each folder]",
)
@click.option("--html", type=options.FILE, help="Write the figures as one HTML page.")
@options.json_option
@click.option("-s", "--silent", is_flag=True, help="Print only when there is an alarm.")
def main(
    folder: Path,
    quiet_seconds: float,
    since: datetime | None,
    fail_on: str | None,
    html: Path | None,
    as_json: bool,
    silent: bool,
    **values: Any,
) -> int:
    import storage
    from extras.watch.look import WatchOptions, to_dict, watch

    wants_draw = values["cases"] or values["sample"]
    if wants_draw and values["output"] is None:
        raise click.UsageError("--cases and --sample need --output FOLDER.")
    if values["output"] is not None and not wants_draw:
        raise click.UsageError("--output takes draws: add --cases N or --sample N.")
    wishes = WatchOptions(
        folder,
        quiet=quiet_seconds,
        since=since.date() if since else None,
        **values,
    )
    outcome = watch(wishes, time.time_ns() // 1000)
    if html is not None:
        if outcome.reference is None:
            raise click.UsageError(
                "--html shows figures against a reference: add --reference A..B."
            )
        from extras.watch.page import html_page

        storage.replace_bytes(html, html_page(outcome))
    if as_json:
        click.echo(storage.json_bytes(to_dict(outcome)), nl=False)
    elif not silent or outcome.has_alarm:
        from extras.watch import show
        from terminal.print_page import print_page

        print_page(options.stdout_console(), show.watch_page(outcome))
    return options.Exit.GATE_FAILED if fail_on and outcome.has_alarm else options.Exit.DONE


if __name__ == "__main__":
    main()
