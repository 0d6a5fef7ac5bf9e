"""Checks the options that belong to the formats of this folder."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

_MEANT_FOR = {
    "split": ("import", ("beir",)),
    "decode_names": ("import", ("beir", "trec")),
    "match": ("export", ("trec",)),
}
"""The direction and the formats in which an option means something."""


def options_of(
    own: Mapping[str, Any], values: Mapping[str, Any], *, direction: str | None, name: str | None
) -> dict[str, Any]:
    """The values for the format. Raises click.UsageError for an option that means nothing there."""
    ctx = click.get_current_context()
    for option, (meant, formats) in _MEANT_FOR.items():
        given = ctx.get_parameter_source(option) is click.core.ParameterSource.COMMANDLINE
        if given and (direction != meant or name not in formats):
            flag = "--" + option.replace("_", "-")
            raise click.UsageError(f"{flag} is for {meant} {' and '.join(formats)} alone.")
    return {"of_format": own}
