"""The types of options: what their texts are, and how these are read."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import click

MOST_K = 100_000

PATH = click.Path(path_type=Path)
FOLDER = click.Path(path_type=Path, file_okay=False)


class CutOffs(click.ParamType[tuple[int, ...]]):
    """Cut-offs such as ``1,3,5,10``: whole numbers from 1 up, sorted, without repeats."""

    name = "k,k,…"
    takes_list = True

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if isinstance(value, tuple | list):
            value = ",".join(map(str, value))
        parts = [part.strip() for part in str(value).split(",")]
        sound = all(part.isascii() and part.isdigit() for part in parts)
        ks = sorted({int(part) for part in parts}) if sound else [0]
        if ks[0] < 1 or ks[-1] > MOST_K:
            message = f"{value!r}: write whole numbers from 1 to {MOST_K}, such as 1,3,5,10."
            self.fail(message, param, ctx)
        return tuple(ks)


class Names(click.ParamType[tuple[str, ...]]):
    """Names such as ``recall@5,mrr``, in that order, each once."""

    name = "name,…"
    takes_list = True

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if isinstance(value, tuple | list):
            value = ",".join(map(str, value))
        parts = (part.strip() for part in str(value).split(","))
        return tuple(dict.fromkeys(part for part in parts if part))


class FiniteRange(click.FloatRange):
    """A number within bounds; not a number and infinity, which bounds let pass, are refused."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        number = super().convert(value, param, ctx)
        if not math.isfinite(number):
            self.fail(f"{value!r} is not a finite number.", param, ctx)
        return number
