"""Label gold supports from the keyboard: which passages answer each question of the set.

In: eval_set.jsonl, and passages to judge: from the bot's API (--api-url URL, or demo) or from a
run's results (--from-run RUN). Out: the same set with gold_supports, groups, grades and snippets;
all else that was judged (rows read and not marked, notes, flags, times) in
eval/labels/judgements/<annotator>.jsonl. Every key that changes something is in the journal beside
the set before it is shown as done; a killed session goes on where it was.

    python eval/scripts/label_eval.py --api-url demo
    python eval/scripts/label_eval.py --from-run latest --order failing
    python eval/scripts/label_eval.py --api-url http://localhost:8080 --annotator maria
    python eval/scripts/label_eval.py --from-run latest --case q-0037
    python eval/scripts/label_eval.py --agreement
    python eval/scripts/label_eval.py --plain --from-run latest < marks.txt
    python eval/scripts/label_eval.py --validate && python eval/scripts/label_eval.py --stats --json

Exit codes: 0 done, 2 bad input or usage, or labels that could not be saved, 130 interrupted.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

import options
from labeller.worklist import ORDERS

if TYPE_CHECKING:
    from rich.console import Console


@options.command(how_to_go_on="Every label is kept: the same command goes on there.")
@options.eval_set_option
@options.labels_option
@options.results_dir_option
@options.api_url_option
@options.profile_option
@click.option(
    "--k", type=click.IntRange(1, 200), default=20, help="Passages to show for a question."
)
@click.option("--from-run", metavar="RUN", help="Show the passages stored in this run instead.")
@click.option(
    "--annotator",
    metavar="NAME",
    help="Label a second time, not seeing the set's labels, into NAME's own file.",
)
@click.option(
    "--recheck",
    type=click.IntRange(1, 100),
    metavar="PERCENT",
    help="Label this share of the decided cases again, not seeing what was said; --agreement then "
    "tells how steady the labels are.",
)
@click.option(
    "--order",
    type=click.Choice(ORDERS),
    default="file",
    help="Order of the questions. disagreement: where annotators differ most; failing: what "
    "fails in --run, the most harmful first; uncertain: by the results of --run.",
)
@click.option("--case", metavar="ID", help="Open this case first.")
@options.run_option
@options.seed_option
@click.option("--no-blind", is_flag=True, help="Show rank and scores; noted with each judgement.")
@click.option("--inspect", is_flag=True, help="Show rank and scores, and write nothing.")
@click.option("--plain", is_flag=True, help="Lines in, lines out: no full screen.")
@click.option("--serve", is_flag=True, help="Serve the same screens to a browser on this machine.")
@click.option(
    "--host",
    default="127.0.0.1",
    help="With --serve: the address to listen on. There is no password.",
)
@click.option("--port", type=click.IntRange(1, 65535), default=8090, help="With --serve: the port.")
@options.screen_option
@click.option(
    "--validate", is_flag=True, help="Check the set and all label files; exit 2 on faults."
)
@click.option("--stats", is_flag=True, help="Print what the set holds.")
@click.option("--agreement", is_flag=True, help="Print how far the annotators agree.")
@click.option(
    "--export-qrels",
    type=click.Choice(["doc", "anchor"]),
    help="Print the labels as TREC qrels, by file or by file#heading.",
)
@options.json_option
@options.verbosity_options
def main(**values: Any) -> int:
    """Label which passages answer each question of the set, from the keyboard.

    ? shows the keys. Every label is on disk at once; Ctrl+S writes the set.
    """
    from labeller import jobs
    from labeller.jobs import LabelOptions

    context, typed = click.get_current_context(), click.core.ParameterSource.COMMANDLINE
    named = frozenset(name for name in values if context.get_parameter_source(name) is typed)
    screen = options.screen_settings(values.pop("set"))
    asked = LabelOptions(**values, screen=screen, typed=named)
    asked.check()
    talk = _silence if asked.quiet else _talk
    if asked.validate:
        talk(jobs.validate(asked))
    elif asked.stats:
        from labeller.annotators import print_statistics

        _print(jobs.statistics(asked), print_statistics, as_json=asked.as_json)
    elif asked.agreement:
        from labeller.annotators import print_agreement

        _print(jobs.agreement(asked), print_agreement, as_json=asked.as_json)
    elif asked.export_qrels:
        for line in jobs.qrels(asked):
            click.echo(line)
    elif asked.serve:
        from labeller.serving import serve

        words = [word for word in sys.argv[1:] if word != "--serve"]
        serve(Path(__file__).resolve(), words, asked.host, asked.port, talk)
        return options.Exit.INTERRUPTED  # it ends by a signal alone, and keeps that to itself
    else:
        outcome = jobs.label(asked, talk)
        if outcome.refused:
            _talk(outcome.refused)
        return outcome.code if outcome.saved else options.Exit.BAD_INPUT
    return options.Exit.DONE


def _print(
    figures: dict[str, Any],
    print_table: Callable[[Console, dict[str, Any]], None],
    *,
    as_json: bool,
) -> None:
    if as_json:
        from records.files import json_bytes

        click.echo(json_bytes(figures), nl=False)
    else:
        print_table(options.stdout_console(), figures)


def _talk(text: str) -> None:
    with contextlib.suppress(OSError):  # the terminal may be what is gone
        options.say(text)


def _silence(text: str) -> None:
    """With --quiet."""


if __name__ == "__main__":
    main()
