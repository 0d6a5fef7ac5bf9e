"""The options for further labels of a set, for comparing them, and for a browser."""

import click

from options.added import ScriptOptions

LABEL_EVAL = ScriptOptions(
    (
        click.option(
            "--annotator",
            metavar="NAME",
            help="Label again as NAME without seeing the set's labels, into NAME's own file.",
        ),
        click.option(
            "--recheck",
            type=click.IntRange(1, 100),
            metavar="PERCENT",
            help="Label this share of the decided cases again without seeing the first labels; "
            "--agreement then shows how stable they are.",
        ),
        click.option("--agreement", is_flag=True, help="Print how well the annotators agree."),
        click.option(
            "--disagreements-first",
            is_flag=True,
            help="Begin with the questions on which annotators differ most.",
        ),
        click.option(
            "--serve", is_flag=True, help="Serve the same screens to a browser on this machine."
        ),
        click.option(
            "--host",
            default="127.0.0.1",
            help="With --serve: the address to listen on. There is no password.",
        ),
        click.option(
            "--port",
            type=click.IntRange(1, 65535),
            default=8090,
            help="With --serve: the port.",
        ),
    ),
    "commands:run",
)
