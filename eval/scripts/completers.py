"""What the shell offers for values that only this machine knows: run ids, metrics, profiles.

Click asks for them while the user types, so nothing slow is loaded: of the runs only the names of
their folders are read.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from pathlib import Path

import click

import storage

PROFILES = storage.ROOT / "eval" / "profiles"
Completer = Callable[[click.Context, click.Parameter, str], list[str]]


def runs(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Names of run folders in the folder of results, ``latest`` first."""
    folder = Path(ctx.params.get("results_dir") or storage.RESULTS_DIR)
    try:
        with os.scandir(folder) as entries:
            names = sorted(
                one.name for one in entries if one.is_dir() and storage.RUN_ID.fullmatch(one.name)
            )
    except OSError:
        names = []
    return _fitting(["latest", *names], incomplete)


def metrics(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Names of metrics as they stand in metrics.json, at the usual cut-offs; of several separated
    by commas the last one."""
    from ragmetrics import catalogue

    names = [metric.name for metric in catalogue.at_cutoffs(catalogue.METRICS, catalogue.KS)]
    head, comma, last = incomplete.rpartition(",")
    return [f"{head}{comma}{name}" for name in _fitting(dict.fromkeys(names), last)]


def profiles(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Names of the profiles that are there."""
    return _fitting(sorted(path.stem for path in PROFILES.glob("*.toml")), incomplete)


BY_NAME: dict[str, Completer] = {
    **dict.fromkeys(("run", "base", "new", "baseline", "from_run"), runs),
    **dict.fromkeys(("worst_by", "flips_by", "confidence_by", "metrics"), metrics),
    "profile": profiles,
}
"""Which parameters get which values; one of a type that completes itself, such as a path, does."""


def attach(command: click.Command) -> None:
    """Give the command's parameters their completers, those whose type completes nothing itself."""
    for param in command.params:
        mute = type(param.type).shell_complete is click.ParamType.shell_complete
        if mute and param.name in BY_NAME:
            # Click takes a completer at the making of a parameter only, and these are made in
            # many places; the attribute is where it then looks.
            param._custom_shell_complete = param._custom_shell_complete or BY_NAME[param.name]


def _fitting(names: Iterable[str], incomplete: str) -> list[str]:
    return [name for name in names if name.startswith(incomplete)]
