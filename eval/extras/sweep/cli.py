"""The options of a run that is asked in portions, until it is decided."""

import click

import options
from options.added import ScriptOptions

MOST = 1_000_000_000_000

RUN_EVAL = ScriptOptions(
    (
        click.option(
            "--against",
            metavar="RUN",
            help="Stop when --metric is better or worse than in this scored run. Cases are asked "
            "in random order.",
        ),
        click.option(
            "--until-sure",
            type=options.FiniteRange(0, 1, min_open=True),
            metavar="WIDTH",
            help="Ask all cases again until the 95 % interval of --metric is this narrow. This is "
            "only the part of the interval that comes from other answers to the same cases.",
        ),
        click.option(
            "--max-calls", type=click.IntRange(1, MOST), help="With --until-sure: limit of calls."
        ),
        click.option(
            "--max-cost",
            type=options.FiniteRange(0, min_open=True),
            help="With --until-sure: limit in dollars, as the bot reports its cost.",
        ),
        click.option(
            "--metric", default="evidence_recall@5", help="Metric of --against and --until-sure."
        ),
    ),
    "pacing:pace_of",
)
