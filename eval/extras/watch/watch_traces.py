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
from pathlib import Path

import click

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "scripts"))  # the core
sys.path.append(str(Path(__file__).resolve().parents[2]))  # the extras

import options
from extras.watch.watch_options import WatchOptions


@options.script(
    WatchOptions,
    {"since": click.DateTime(["%Y-%m-%d"])},
    help=__doc__,
    how_to_go_on="The index keeps all that was read: start the same command again.",
)
def main(asked: WatchOptions) -> int:
    from extras.watch.look import to_dict, watch
    from records.files import json_bytes, replace_bytes

    wants_draw = asked.cases or asked.sample
    if wants_draw and asked.output is None:
        raise click.UsageError("--cases and --sample need --output FOLDER.")
    if asked.output is not None and not wants_draw:
        raise click.UsageError("--output takes draws: add --cases N or --sample N.")
    outcome = watch(asked, time.time_ns() // 1000)
    if asked.html is not None:
        if outcome.reference is None:
            raise click.UsageError(
                "--html shows figures against a reference: add --reference A..B."
            )
        from extras.watch.page import html_page

        replace_bytes(asked.html, html_page(outcome))
    if asked.as_json:
        click.echo(json_bytes(to_dict(outcome)), nl=False)
    elif not asked.silent or outcome.has_alarm:
        from extras.watch import show
        from terminal.print_page import print_page

        print_page(options.stdout_console(), show.watch_page(outcome))
    return options.Exit.GATE_FAILED if asked.fail_on and outcome.has_alarm else options.Exit.DONE


if __name__ == "__main__":
    main()
