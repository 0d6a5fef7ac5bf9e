"""The option that names a scheduler of Dask."""

import click

from options.added import ScriptOptions

SCORING = ScriptOptions(
    (
        click.option(
            "--scheduler",
            metavar="ADDRESS",
            help="Let the workers of this Dask scheduler score, such as tcp://10.0.0.1:8786.",
        ),
    ),
    "starter:on_cluster",
)
