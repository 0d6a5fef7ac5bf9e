"""Draft questions from the headings of a vault, each with its passage, to be accepted by a person.

In: a folder of Markdown notes, or demo. Out: cases in the form of eval_set.jsonl, every one with
the tag draft, gold supports (path, heading, a sentence that stands there), a category and an id of
its own. Without a judge the questions come from rules over definitions and first sentences: plain,
and the same for the same seed. A judge writes better ones; its quotes are checked.

Drafts are no gold labels. Look at each in label_eval.py, where they are open questions: Enter
accepts one, which takes its tag away, and e mends it. Shift+Tab goes to the questions; / and
tag:draft there shows the drafts alone.

\b
Examples:
  python eval/scripts/generate_cases.py --vault demo --count 20 --output drafts.jsonl
  python eval/scripts/generate_cases.py --vault ~/notes --count 50 --append-to eval_set.jsonl
  python eval/scripts/generate_cases.py --vault ~/notes --count 50 --output drafts.jsonl \\
      --judge http://localhost:11434/v1 --model llama3.1:8b

Exit codes: 0 done, 2 bad input or usage, 3 judge unreachable, 130 interrupted.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

import options


@options.command(help=__doc__)
@click.option(
    "--vault",
    required=True,
    metavar="DIR",
    help="Folder of Markdown notes, or 'demo' for the embedded bot's own.",
)
@click.option("--vault-name", help="What the cases call it.  [default: the folder's name]")
@click.option(
    "--count",
    type=click.IntRange(1, 100_000),
    default=20,
    show_default=True,
    help="Questions to draft.",
)
@click.option(
    "--output", type=click.Path(path_type=Path, dir_okay=False), help="A new file for them."
)
@click.option(
    "--append-to",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Or a set that they are added to; its questions are not asked again.",
)
@options.judge_options
@options.seed_option
@options.json_option
@options.verbosity_options
def main(**given: Any) -> int:
    """Read the vault, draft, write: the work is in drafting/jobs.py."""
    from demo import drafts

    return drafts.run(drafts.Plan.of(given))


if __name__ == "__main__":
    main()
