"""The option that names a model of claim support."""

import click

import options
from options.added import ScriptOptions

DECIDES = ScriptOptions(
    (
        click.option(
            "--support-model",
            type=options.PATH,
            metavar="FOLDER",
            help="Folder of a model that decides whether passages support a claim.",
        ),
    ),
    "models:hand_in",
)
