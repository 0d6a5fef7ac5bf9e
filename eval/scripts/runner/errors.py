"""How a run can end other than well."""

from __future__ import annotations

import click


class Unreachable(click.ClickException):
    """The bot cannot be reached, or fails too often: exit code 3."""

    exit_code = 3
