"""The option that lets people label pairs of answers, and compares the judge with them."""

import click

from options.added import ScriptOptions

CALIBRATE_JUDGE = ScriptOptions(
    (
        click.option(
            "--pairs-with",
            metavar="BASE",
            help="Take the pairs of answers that judge_pairs.py judged of --run and this base.",
        ),
        click.option("--rubric", metavar="NAME", help="With --pairs-with: those by this rubric."),
    ),
    "calibrating:calibrate",
)
