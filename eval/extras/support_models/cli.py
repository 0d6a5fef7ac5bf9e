"""The option that names a model of claim support."""

import click

from options.added import ScriptOptions
from options.values import PATH

DECIDES = ScriptOptions(
    (
        click.option(
            "--support-model",
            type=PATH,
            metavar="FOLDER",
            help="Folder of a model that decides whether passages support a claim.",
        ),
    ),
    "models:hand_in",
)
