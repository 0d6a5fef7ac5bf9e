"""grid.toml: the settings of a sweep, what is good, and which limits must be kept."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from pathlib import Path
from typing import Any

from clients.profile import Profile
from clients.run_plan import RunOptions, check_uses, header_templates
from extras.sweep.race import Limit, limit_of
from extras.sweep.scoring import full_name
from records.errors import StorageError
from records.files import read_toml
from records.targets import read_decide

_KEYS = {
    "baseline": str,
    "quality": (str, dict),
    "constraints": list,
    "warm_up": int,
    "command": str,
    "wait_s": (int, float),
    "grid": dict,
    "setting": list,
}
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
    """Read a grid file. Raises StorageError with the fault and the right form."""
    try:
        raw = read_toml(path)
    except FileNotFoundError:
        raise StorageError(
            f"{path}: no such file; eval/extras/sweep/README.md shows how to write a grid."
        ) from None
    for key, value in raw.items():
        if key not in _KEYS:
            raise StorageError(f"{path}: {key}: unknown; known keys are {', '.join(_KEYS)}.")
        if not isinstance(value, _KEYS[key]) or isinstance(value, bool):  # type: ignore[arg-type]
            raise StorageError(f"{path}: {key}: has the wrong type.")
    try:
        settings = tuple(_settings(raw))
        names = [setting.name for setting in settings]
        grid = Grid(
            settings,
            _baseline(raw.get("baseline", names[0]), names),
            _quality(
                raw.get("quality", read_decide().lead.partition(".")[2] or "evidence_recall@5")
            ),
            tuple(_limit(text) for text in raw.get("constraints", [])),
            max(0, raw.get("warm_up", 1)),
            raw.get("command", ""),
            float(raw.get("wait_s", 60.0)),
        )
        _check_command(grid)
    except StorageError as error:
        raise StorageError(f"{path}: {error.message}") from None
    return grid


def _baseline(text: str, names: Sequence[str]) -> str:
    """The setting of that name, or the only one whose name has all of its words."""
    fitting = [name for name in names if {*text.split()} <= {*name.split()}]
    if text in names:
        return text
    if len(fitting) > 1:
        raise StorageError(
            f"baseline: {text!r} fits {len(fitting)} settings ({', '.join(fitting)}); write a "
            "longer part of the name."
        )
    if not fitting:
        raise StorageError(f"baseline: no setting is named {text!r}: {', '.join(names)}.")
    return fitting[0]


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


def _check_command(grid: Grid) -> None:
    try:
        shlex.split(grid.command)
    except ValueError as error:
        raise StorageError(f"command: {error}") from None
    for setting in grid.settings:
        for name in _PLACE.findall(grid.command):
            if name not in setting.own:
                raise StorageError(
                    f"command: setting {setting.name} has no value for {{{name}}}; give it one."
                )


def _settings(raw: Mapping[str, Any]) -> Iterator[Setting]:
    grid: Mapping[str, Any] = raw.get("grid", {})
    axes = []
    for name, values in grid.items():
        if not isinstance(values, list) or not values:
            raise StorageError(f"grid.{name}: must be a list of values, at least one.")
        axes.append([(name, value) for value in values])
    rows = [dict(row) for row in product(*axes)] if axes else []
    for item in raw.get("setting", []):
        if not isinstance(item, dict):
            raise StorageError("setting: write [[setting]] and its values below.")
        rows.append(item)
    if not 2 <= len(rows) <= _MOST_SETTINGS:
        raise StorageError(
            f"there are {len(rows)} settings; a sweep needs 2 to {_MOST_SETTINGS}: lists under "
            "[grid], or several [[setting]]."
        )
    names: set[str] = set()
    for row in rows:
        values = {key: value for key, value in row.items() if key != "name"}
        _check_values(values)
        name = str(row.get("name") or _name_of(values, grid))
        if name in names:
            raise StorageError(f"two settings are named {name!r}; rename one.")
        names.add(name)
        yield Setting(name, values)


def _check_values(values: Mapping[str, Any]) -> None:
    k = values.get("k", 1)
    if isinstance(k, bool) or not isinstance(k, int) or k < 1:
        raise StorageError(f"k: must be a whole number above 0, not {k!r}.")
    for name in ("headers", "demo_args"):
        words = values.get(name, [])
        if not isinstance(words, str) and not (
            isinstance(words, list) and all(isinstance(word, str) for word in words)
        ):
            raise StorageError(f"{name}: must be a text or a list of texts.")
    for pair in _words(values.get("demo_args")):
        if pair.startswith("-") or "=" not in pair:
            raise StorageError(f"demo_args: {pair!r}: write KEY=VALUE, such as lexical_only=true.")
    for name, value in values.items():
        if isinstance(value, dict):
            raise StorageError(f"{name}: must be a text, a number, true, false, or a list.")


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


def _quality(raw: str | Mapping[str, Any]) -> dict[str, float]:
    weights = {raw: 1.0} if isinstance(raw, str) else raw
    if not weights:
        raise StorageError("quality: name a metric, or metrics with their weights.")
    for name, weight in weights.items():
        if isinstance(weight, bool) or not isinstance(weight, int | float) or weight <= 0:
            raise StorageError(f"quality.{name}: the weight must be a number above 0.")
    total = float(sum(weights.values()))
    return {full_name(name): float(weight) / total for name, weight in weights.items()}


def _limit(text: object) -> Limit:
    if not isinstance(text, str):
        raise StorageError("constraints: write texts, such as 'p95_latency_ms <= 3000'.")
    limit = limit_of(text)
    return replace(limit, name=full_name(limit.name))
