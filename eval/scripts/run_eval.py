"""Ask a RAG bot every question of the set; write results.jsonl and config.json of a new run.

In: eval_set.jsonl with its label files, a bot behind an HTTP API (or --from-jsonl: answers that
exist already), and a profile (eval/profiles/NAME.toml) that says how to ask the bot and where each
field is in its answer. Out: eval/results/<run_id>/ with config.json and results.jsonl, a line a
case in the set's order; the folder's path on stdout. During the run the lines are in
results.partial.jsonl.

A failed call is tried again if that can help (connection, timeout, 429, 5xx). Otherwise it is
recorded as an error of a known kind; it never becomes an answer.

    python eval/scripts/run_eval.py --api-url demo
    python eval/scripts/run_eval.py --api-url http://localhost:8080 --header Authorization=BOT_TOKEN
    python eval/scripts/run_eval.py --api-url demo --filter category=factual tag=strings --limit 10
    python eval/scripts/run_eval.py --api-url http://localhost:8080 --resume --run-id nightly
    python eval/scripts/run_eval.py --from-jsonl answers.jsonl
    python eval/scripts/run_eval.py --api-url http://localhost:8080 --labels

Exit codes: 0 done, 2 bad input or usage, 3 bot unreachable or too many errors, 130 interrupted.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

import options
from clients.run_options import AskOptions

if TYPE_CHECKING:
    from clients.safety_prompts import SafetyPrompt

PAIR = re.compile(r"[a-z_]+=.+")
ADVICE = (
    "Chunk texts were cut to 200 characters. Scorers that read whole passages (context, "
    "groundedness, judge) need a run with --store-full-text."
)


class RunCommand(options.Command):
    """Lets --filter take several pairs: ``--filter category=factual tag=strings``."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        words: list[str] = []
        in_filter = False
        for word in args:
            follows = in_filter and words[-1] != "--filter" and PAIR.fullmatch(word) is not None
            if follows:
                words.append("--filter")
            in_filter = word == "--filter" or (in_filter and PAIR.fullmatch(word) is not None)
            words.append(word)
        return super().parse_args(ctx, words)


def set_values(pairs: Sequence[str], api_url: str | None) -> tuple[dict[str, Any], tuple[str, ...]]:
    """The limits among the pairs of --set, and those that are settings of the embedded bot.

    Raises StorageError for a key or a value that is none.
    """
    from clients.limits import BOT_LIMITS
    from records.settings import from_pairs

    own = options.settings_of(AskOptions)
    if api_url != "demo":
        return from_pairs(pairs, BOT_LIMITS | own), ()
    from demo.settings import SETTINGS

    values = from_pairs(pairs, BOT_LIMITS | SETTINGS | own)
    demo_args = tuple(
        pair for pair in pairs if pair.partition("=")[0].strip() in SETTINGS.keys() - BOT_LIMITS
    )
    return {key: value for key, value in values.items() if key in BOT_LIMITS}, demo_args


def prompts_of(labels_dir: Path, eval_set: Path) -> list[SafetyPrompt]:
    """The prompts of the label file that a bot can be asked."""
    from clients.safety_prompts import SafetyPrompt
    from records.labels import SAFETY_LABELS, labelled_texts
    from scorers.safety import read_safety_labels

    path = labelled_texts(labels_dir, eval_set)
    labels = read_safety_labels(path or labels_dir / SAFETY_LABELS)
    return [
        SafetyPrompt(label.case_id, label.text)
        for label in labels
        if label.kind in ("attack", "benign")
    ]


# the session knows the run id, and says it
@options.script(AskOptions, cls=RunCommand, how_to_go_on="")
def main(asked: AskOptions) -> int:
    """Ask a RAG bot every question of the set, and record its answers.

    The run folder's path is printed on stdout. A run that was stopped goes on with
    --resume --run-id ID.
    """
    from clients.run import run
    from clients.run_counts import table
    from clients.run_plan import RunOptions
    from formats.shared.answers import read_answers

    if asked.labels and asked.from_jsonl:
        raise click.UsageError("--labels asks the bot; --from-jsonl asks no bot.")
    outcome = options.run_extras(asked)
    if isinstance(outcome, int):
        return outcome
    limits, demo_args = set_values(asked.pairs, asked.api_url)
    run_options = RunOptions(**vars(outcome), set_limits=limits, demo_arg=demo_args)
    pace = run_options.pace
    console = options.stderr_console(quiet=run_options.quiet)
    prompts = prompts_of(run_options.labels_dir, run_options.eval_set) if asked.labels else ()
    folder, tally = run(run_options, console, prompts, pace, read_answers)
    summary = tally.to_dict()
    console.print(table(summary, f"Run {folder.name}"))
    if pace is not None:
        console.print(pace.summary())
    if tally.absent:
        console.print(tally.absent_words())
    if tally.cut_texts:
        console.print(ADVICE)
    if run_options.as_json:
        import orjson

        sys.stdout.write(orjson.dumps({"run": str(folder), **summary}).decode() + "\n")
    else:
        click.echo(folder)
    return options.Exit.DONE


if __name__ == "__main__":
    main()
