"""The options that write, send and fetch batch files."""

from pathlib import Path

import click

from options.added import ScriptOptions
from options.values import FOLDER

FORMATS = ("openai", "vllm", "anthropic")
_THERE = click.Path(path_type=Path, file_okay=False, exists=True)

_OUT = click.option(
    "--batch-out",
    type=FOLDER,
    metavar="FOLDER",
    help="Write the missing requests as batch files into this folder; ask nothing.",
)
_FORMAT = click.option(
    "--batch-format",
    type=click.Choice(FORMATS),
    show_default="by the judge's address",
    help="Whose batch files --batch-out writes.",
)

JUDGE_PAIRS = ScriptOptions((_OUT, _FORMAT), "commands:write_out")

JUDGE_ANSWERS = ScriptOptions(
    (
        _OUT,
        _FORMAT,
        click.option(
            "--batch-submit",
            type=_THERE,
            metavar="FOLDER",
            help="Upload the folder's batch files to --judge and begin them.",
        ),
        click.option(
            "--batch-fetch",
            type=_THERE,
            metavar="FOLDER",
            help="Fetch the results of batches that have ended.",
        ),
    ),
    "commands:run",
)
