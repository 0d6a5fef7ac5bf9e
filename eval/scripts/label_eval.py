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
from labeller.label_options import LabelOptions

if TYPE_CHECKING:
    from rich.console import Console


@options.script(LabelOptions, how_to_go_on="Every label is kept: the same command continues.")
def main(asked: LabelOptions) -> int:
    """Label which passages answer each question of the set, from the keyboard.

    ? shows the keys. Every label is on disk at once; Ctrl+S writes the set.
    """
    from labeller import jobs
    from options.tables import screen_settings

    asked = replace(asked, screen=screen_settings(asked.pairs, options.settings_of(LabelOptions)))
    talk = _silence if asked.quiet else _talk
    outcome = options.run_extras(asked, asked=asked, talk=talk, show=_print)
    if isinstance(outcome, int):
        return outcome
    changed = {name for name, value in vars(outcome).items() if value is not getattr(asked, name)}
    asked = replace(outcome, typed=outcome.typed | changed)
    asked.check()
    if asked.validate:
        talk(jobs.validate(asked))
    elif asked.stats:
        counts = jobs.statistics_of(jobs.cases_of(asked), jobs.gold_judgements(asked))
        _print(counts, jobs.print_statistics, as_json=asked.as_json)
    else:
        labelled = jobs.label(asked, talk)
        if labelled.refused:
            _talk(labelled.refused)
        return labelled.code if labelled.saved else options.Exit.BAD_INPUT
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
