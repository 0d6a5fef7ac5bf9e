"""Label gold supports from the keyboard: which passages answer each question of the set.

In: eval_set.jsonl, and passages to judge: from the bot's API (--api-url URL, or demo) or from a
run's results (--from-run RUN). Out: the same set with gold_supports, groups, grades and snippets.
Everything else that you judge (rows read and not marked, notes, flags, times) goes to
eval/labels/judgements/gold.jsonl. Every change is in the journal beside the set before you see it,
so a killed session continues where it was.

    python eval/scripts/label_eval.py --api-url demo
    python eval/scripts/label_eval.py --from-run latest --order failing
    python eval/scripts/label_eval.py --api-url http://localhost:8080 --k 30
    python eval/scripts/label_eval.py --from-run latest --case q-0037
    python eval/scripts/label_eval.py --plain --from-run latest < marks.txt
    python eval/scripts/label_eval.py --validate && python eval/scripts/label_eval.py --stats --json

Exit codes: 0 done, 2 bad input or usage, or labels that could not be saved, 130 interrupted.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

import options
from labeller.worklist import ORDERS

if TYPE_CHECKING:
    from rich.console import Console


@options.command(how_to_go_on="Every label is kept: the same command continues.")
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
    "--order",
    type=click.Choice(ORDERS),
    default="file",
    help="Order of the questions. failing: cases that fail in --run, the most harmful first; "
    "uncertain: by the results of --run.",
)
@click.option("--case", metavar="ID", help="Open this case first.")
@options.run_option
@options.seed_option
@click.option(
    "--no-blind", is_flag=True, help="Show rank and scores; each judgement notes that you saw them."
)
@click.option("--inspect", is_flag=True, help="Show rank and scores, and write nothing.")
@click.option("--plain", is_flag=True, help="Read lines and print lines, without a full screen.")
@options.screen_option
@click.option(
    "--validate", is_flag=True, help="Check the set and all label files; exit 2 on faults."
)
@click.option("--stats", is_flag=True, help="Print counts of the set.")
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
    talk = _silence if asked.quiet else _talk
    by_extras = options.run_extras(values, asked=asked, talk=talk, show=_print)
    if isinstance(by_extras, int):
        return by_extras
    changes = {name: value for name, value in by_extras.items() if value is not values.get(name)}
    asked = replace(asked, **changes, typed=named | changes.keys())
    asked.check()
    if asked.validate:
        talk(jobs.validate(asked))
    elif asked.stats:
        from labeller.statistics import print_statistics

        _print(jobs.statistics(asked), print_statistics, as_json=asked.as_json)
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
