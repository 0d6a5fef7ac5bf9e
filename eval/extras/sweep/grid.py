"""grid.toml: the settings of a sweep, what is good, and which limits must be kept."""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from pathlib import Path
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from clients.profile import Profile
from clients.run_plan import RunOptions, check_uses, header_templates
from extras.sweep.race import Limit, limit_of
from extras.sweep.scoring import full_name
from records.errors import StorageError
from records.targets import read_decide
from records.toml_files import KeyPath, Parsed, read_file

_OWN = ("k", "folder_mode", "headers", "demo_args")
"""Keys of a setting that are options of run_eval.py; every other one is a setting of the bot."""

_PLACE = re.compile(r"\{(\w+)\}")

_MOST_SETTINGS = 500
_SLUG = 40


@dataclass(frozen=True)
class Setting:
    """One setting: its name, and what it sets."""

    name: str
    values: Mapping[str, Any] = field(default_factory=dict)

    @property
    def own(self) -> dict[str, Any]:
        """Values of the bot's own settings: request fields, or words of the command."""
        return {key: value for key, value in self.values.items() if key not in _OWN}

    def options(self, options: RunOptions, fields: Sequence[str]) -> RunOptions:
        """The options of its run. ``fields``: settings that the profile's request names."""
        values = self.values
        named = frozenset(name for name in ("k", "folder_mode") if name in values)
        return replace(
            options,
            k=values.get("k", options.k),
            folder_mode=values.get("folder_mode", options.folder_mode),
            header=(*options.header, *_words(values.get("headers"))),
            demo_arg=(*options.demo_arg, *_words(values.get("demo_args"))),
            settings={name: value for name, value in self.own.items() if name in fields},
            set_by_user=options.set_by_user | named,
        )


@dataclass(frozen=True)
class Grid:
    """The content of a grid file. ``quality``: weights of metrics, which add up to 1."""

    settings: tuple[Setting, ...]
    baseline: str
    quality: Mapping[str, float]
    limits: tuple[Limit, ...] = ()
    warm_up: int = 1
    command: str = ""
    wait_s: float = 60.0

    def command_of(self, setting: Setting) -> list[str]:
        """The words of the command that starts the bot with a setting; a value is one word, or part
        of one, whatever is in it."""
        filled = {name: _written(value) for name, value in setting.own.items()}
        words = shlex.split(self.command)
        return [_PLACE.sub(lambda match: filled[match[1]], word) for word in words]


def read_grid(path: Path) -> Grid:
    """Read a grid file. Raises StorageError with every fault and the right form."""
    table = read_file(path, _GridFile, "eval/extras/sweep/README.md shows how to write a grid")
    settings = table.settings()
    return Grid(
        tuple(settings),
        table.baseline_of(settings),
        table.quality or _quality(read_decide().lead.partition(".")[2] or "evidence_recall@5"),
        tuple(table.constraints),
        table.warm_up,
        table.command,
        table.wait_s,
    )


def _quality(raw: Any) -> dict[str, float]:
    weights = {raw: 1.0} if isinstance(raw, str) else raw
    if not isinstance(weights, dict) or not weights:
        raise ValueError("name a metric, or metrics with their weights")
    for name, weight in weights.items():
        if isinstance(weight, bool) or not isinstance(weight, int | float) or weight <= 0:
            raise ValueError(f"{name}: the weight must be a number above 0")
    total = float(sum(weights.values()))
    return {full_name(name): float(weight) / total for name, weight in weights.items()}


def _limit(text: object) -> Limit:
    if not isinstance(text, str):
        raise ValueError("write texts, such as 'p95_latency_ms <= 3000'")
    limit = limit_of(text)
    return replace(limit, name=full_name(limit.name))


_AT_LEAST_ONE = Meta(min_length=1, description="write at least one")


class _GridFile(msgspec.Struct):
    """A grid as its file has it."""

    baseline: str = ""
    quality: Annotated[Mapping[str, float], Parsed(_quality)] | None = None
    constraints: list[Annotated[Limit, Parsed(_limit)]] = []
    warm_up: Annotated[int, Meta(ge=0)] = 1
    command: str = ""
    wait_s: Annotated[float, Meta(ge=0)] = 60.0
    grid: dict[str, Annotated[list[Any], _AT_LEAST_ONE]] = {}
    setting: list[dict[str, Any]] = []

    def settings(self) -> list[Setting]:
        """Each combination of the axes, then each [[setting]]."""
        axes = [[(name, value) for value in values] for name, values in self.grid.items()]
        rows = [dict(row) for row in product(*axes)] if axes else []
        pairs = [
            (row.get("name"), {key: value for key, value in row.items() if key != "name"})
            for row in (*rows, *self.setting)
        ]
        return [Setting(str(name or _name_of(own, self.grid)), own) for name, own in pairs]

    def baseline_of(self, settings: Sequence[Setting]) -> str:
        """The setting of that name, or the only one whose name has all of its words."""
        names, text = [setting.name for setting in settings], self.baseline
        fitting = [name for name in names if {*text.split()} <= {*name.split()}]
        if text in names or not text:
            return text or names[0]
        if len(fitting) > 1:
            raise ValueError(
                f"{text!r} fits {len(fitting)} settings ({', '.join(fitting)}); write a longer "
                "part of the name"
            )
        if not fitting:
            raise ValueError(f"no setting is named {text!r}: {', '.join(names)}")
        return fitting[0]

    def faults(self) -> Iterator[tuple[KeyPath, str]]:
        """What is wrong with values, then with names and command."""
        if None in self.grid.values():
            return
        rows: list[tuple[KeyPath, Mapping[str, Any]]] = [
            (("grid",), {axis: value}) for axis, values in self.grid.items() for value in values
        ]
        rows += [((f"setting[{n}]",), row) for n, row in enumerate(self.setting, 1)]
        if bad := [((*at, key), clause) for at, row in rows for key, clause in _faults(row)]:
            yield from bad
            return
        settings = self.settings()
        if not 2 <= len(settings) <= _MOST_SETTINGS:
            needs = f"a sweep needs 2 to {_MOST_SETTINGS}: lists under [grid], or several"
            yield (), f"there are {len(settings)} settings; {needs} [[setting]]"
            return
        for name, count in Counter(setting.name for setting in settings).items():
            if count > 1:
                yield (), f"two settings are named {name!r}; rename one"
        try:
            self.baseline_of(settings)
        except ValueError as error:
            yield ("baseline",), str(error)
        try:
            shlex.split(self.command)
        except ValueError as error:
            yield ("command",), str(error)
        for name in dict.fromkeys(_PLACE.findall(self.command)):
            if lacking := [setting.name for setting in settings if name not in setting.own]:
                clause = f"setting {lacking[0]} has no value for {{{name}}}; give it one"
                yield ("command",), clause


def _faults(values: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Key and clause of each value that no setting can have."""
    for name, value in values.items():
        if name == "k":
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                yield name, f"must be a whole number above 0, not {value!r}"
        elif name in ("headers", "demo_args"):
            words = [value] if isinstance(value, str) else value
            if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
                yield name, "must be a text or a list of texts"
            elif name == "demo_args":
                for pair in words:
                    if pair.startswith("-") or "=" not in pair:
                        yield name, f"{pair!r}: write KEY=VALUE, such as lexical_only=true"
        elif isinstance(value, dict):
            yield name, "must be a text, a number, true, false, or a list"


def check_fields(grid: Grid, profile: Profile, options: RunOptions) -> None:
    """Raises StorageError for a setting that would change nothing, before anybody is asked."""
    in_command = set(_PLACE.findall(grid.command))
    for setting in grid.settings:
        for name in setting.own:
            if name not in profile.settings and name not in in_command:
                if name == "command":
                    remedy = "it belongs at the top of the grid, with {NAME} where a setting's is"
                else:
                    remedy = "name it there, or take it away"
                raise StorageError(
                    f"setting {setting.name}: {name!r} is neither in [settings] of profile "
                    f"{profile.name} nor in the command, so it would change nothing; {remedy}."
                )
        own = setting.options(options, list(profile.settings))
        if own.demo_arg and not own.demo:
            raise StorageError(f"setting {setting.name}: demo_args are for --api-url demo.")
        header_templates(own.header)
        check_uses(own, profile)


def _name_of(values: Mapping[str, Any], grid: Mapping[str, Any]) -> str:
    """What tells a setting from the others of the grid, such as ``k=5 rerank=true``."""
    parts = []
    for name, value in values.items():
        if name in grid and len(grid[name]) < 2:
            continue
        if name in ("demo_args", "headers"):
            parts.append(" ".join(_words(value)).replace("--", "") or f"no {name}")
        else:
            parts.append(f"{name}={_written(value)}")
    return " ".join(parts) or "only"


def _written(value: Any) -> str:
    """A value as the grid file has it: true, not Python's True."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def slug(name: str) -> str:
    """A setting's name as a part of a run id."""
    text = "".join(c if c.isascii() and (c.isalnum() or c in ".-") else "-" for c in name)
    return re.sub("-+", "-", text).strip("-.")[:_SLUG].strip("-.") or "setting"


def _words(value: Any) -> tuple[str, ...]:
    if value in (None, "", []):
        return ()
    return (value,) if isinstance(value, str) else tuple(value)
