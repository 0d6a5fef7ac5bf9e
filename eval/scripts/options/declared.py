"""The command line of a script from its options class: an option or an argument a field."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import Field, fields
from functools import partial, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click
from click.core import ParameterSource

from options.commands import Command, command
from options.sets import labels_of
from options.values import CutOffs, FiniteRange, Names
from records import opt

if TYPE_CHECKING:
    from records.settings import KeyRule

T = TypeVar("T")

_SET = "set"
"""The parameter of the option that changes settings."""

_LAST = ("seed", "as_json", "quiet", "verbose")
"""Fields that a page of help shows last, wherever their class declares them."""


def script(
    options_class: type[T], types: Mapping[str, click.ParamType[Any]] | None = None, **settings: Any
) -> Callable[[Callable[[T], int | None]], Command]:
    """Make a function the command that reads these options; ``settings``: of the command.

    ``types``: by field, what a text is read with where the field's own type does not say it.
    """

    def make(function: Callable[[T], int | None]) -> Command:
        @wraps(function)
        def main(**values: Any) -> int | None:
            return function(read_options(options_class, values))

        params = params_of(options_class, types or {})
        made: Command = command(params=params, **settings)(main)
        return made

    return make


def params_of(
    options_class: type[Any], types: Mapping[str, click.ParamType[Any]] | None = None
) -> list[click.Parameter]:
    """The options and arguments of a class, in the order of help."""
    own = sorted(
        _declared(options_class),
        key=lambda each: _LAST.index(each.name) if each.name in _LAST else -1,
    )
    params = [_param(each, (types or {}).get(each.name)) for each in own]
    if keys := [each.name for each in own if _rule(each).setting]:
        about = "; ".join(_setting_help(each) for each in own if each.name in keys)
        change = next((param for param in params if param.name == _SET), None)
        if change is None:
            help_text = f"Change a setting (repeatable): {', '.join(keys)}."
            change = click.Option(["--set"], multiple=True, metavar="KEY=VALUE", help=help_text)
            at = next((at for at, each in enumerate(own) if each.name in _LAST), len(params))
            params.insert(at, change)
        assert isinstance(change, click.Option)
        change.help = f"{change.help} {about}."
    return params


def _setting_help(declared: Field[Any]) -> str:
    """A setting's name and help, with a default that is a number or a word."""
    about, default = f"{declared.name}: {_rule(declared).about}", declared.default
    if isinstance(default, bool) or not isinstance(default, (int, float, str)) or default == "":
        return about
    return f"{about} (default {default if isinstance(default, str) else f'{default:g}'})"


def read_options(options_class: type[T], values: Mapping[str, Any]) -> T:
    """The options of the running script. ``values``: by parameter.

    ``typed`` gets the names of the fields that are on the command line, ``set_by_user`` also those
    that the environment or config.toml sets, where the class has such a field. Raises StorageError
    for pairs of ``--set`` that cannot be used.
    """
    ctx = click.get_current_context()
    declared = _declared(options_class)
    sources = {each.name: ctx.get_parameter_source(_name(each)) for each in declared}
    changed = _changed(declared, values.get(_SET, ()))
    own = {each.name: values[_name(each)] for each in declared} | changed
    if "labels_dir" in own:
        own["labels_dir"] = labels_of(own.get("eval_set"), own["labels_dir"])
    typed = {name for name, source in sources.items() if source is ParameterSource.COMMANDLINE}
    by_user = {name for name, source in sources.items() if source is not ParameterSource.DEFAULT}
    for name, names in (("typed", typed), ("set_by_user", by_user)):
        if name in options_class.__dataclass_fields__:  # type: ignore[attr-defined]
            own[name] = frozenset(names | changed.keys())
    return options_class(**own)


def settings_of(options_class: type[Any]) -> dict[str, KeyRule]:
    """The keys of ``--set`` that a class declares, for a message about one that is unknown."""
    return {each.name: _key_rule(each) for each in _declared(options_class) if _rule(each).setting}


def _changed(declared: Sequence[Field[Any]], pairs: Sequence[str]) -> dict[str, Any]:
    """The settings that pairs of ``--set`` change, by field; the pairs of other keys, where a field
    takes them, are left in it."""
    settings = {each.name: each for each in declared if _rule(each).setting}
    if not settings or not pairs:
        return {}
    from records.settings import from_pairs  # slow to load

    mine = [pair for pair in pairs if pair.partition("=")[0].strip() in settings]
    others = {each.name for each in declared if _name(each) == _SET}
    rules = {name: _key_rule(each) for name, each in settings.items()}
    values = from_pairs(mine if others else pairs, rules)
    changed = {name: _as_declared(settings[name], value) for name, value in values.items()}
    return changed | {name: tuple(pair for pair in pairs if pair not in mine) for name in others}


def _declared(options_class: type[Any]) -> list[Field[Any]]:
    return [each for each in fields(options_class) if opt.RULE in each.metadata]


def _rule(declared: Field[Any]) -> opt.OptionRule:
    rule: opt.OptionRule = declared.metadata[opt.RULE]
    return rule


def _name(declared: Field[Any]) -> str:
    """The parameter of a field, as the environment and config.toml name it.

    A bare word of its names, else its first long name.
    """
    words = _rule(declared).names.split()
    bare = [word for word in words if not word.startswith("-")]
    return [*bare, *_long(words), declared.name][0].replace("-", "_")


def _long(words: Sequence[str]) -> list[str]:
    return [word[2:] for word in words if word.startswith("--")]


def _item(declared: Field[Any]) -> str:
    """The type of a field, or of an item of its tuple, in the words of the source."""
    words = str(declared.type).removesuffix(" | None")
    return words.removeprefix("tuple[").partition(",")[0]


def _is_several(declared: Field[Any]) -> bool:
    return str(declared.type).startswith("tuple[")


def _as_declared(declared: Field[Any], value: Any) -> Any:
    """A value of ``--set`` in the field's type."""
    if _is_several(declared):
        return tuple(value)
    return Path(value) if _item(declared) == "Path" else value


_KINDS = {"str": "text", "Path": "text", "int": "whole", "float": "number", "bool": "yes"}


def _key_rule(declared: Field[Any]) -> KeyRule:
    from records.settings import KeyRule

    rule, kind = _rule(declared), _KINDS.get(_item(declared), "text")
    kind = "choice" if rule.choices else "texts" if _is_several(declared) else kind
    low = -math.inf if rule.low is None else rule.low
    high = math.inf if rule.high is None else rule.high
    return KeyRule(kind, rule.about, low, high, rule.above, tuple(rule.choices))


class _Setting(click.Option):
    """An option that the environment and config.toml have, and the command line has not."""

    def add_to_parser(self, parser: Any, ctx: click.Context) -> None: ...


def _param(declared: Field[Any], own_type: click.ParamType[Any] | None) -> click.Parameter:
    rule, item, several = _rule(declared), _item(declared), _is_several(declared)
    commas = several and not (rule.repeat or rule.positional)
    kind = own_type or _type(item, rule, with_commas=commas)
    if rule.positional:
        return click.Argument(
            [declared.name],
            type=kind,
            nargs=-1 if several else 1,
            required=rule.required,
            metavar=rule.metavar,
        )
    extra: dict[str, Any] = {
        "multiple": rule.repeat,
        "metavar": rule.metavar,
        "required": rule.required,
    }
    if item == "bool" and not rule.setting:
        extra |= {"is_flag": True, "flag_value": not declared.default}
    elif declared.default is not None:
        extra["default"] = declared.default
    names = rule.names.split() or [f"--{declared.name.replace('_', '-')}"]
    shown = False if item == "bool" else rule.shown
    make = partial(_Setting, hidden=True) if rule.setting else click.Option
    own = [name for name in names if name.startswith("-")]
    return make([*own, _name(declared)], type=kind, help=rule.about, show_default=shown, **extra)


def _type(
    item: str, rule: opt.OptionRule, *, with_commas: bool
) -> click.ParamType[Any] | type[Any] | None:
    """What reads the text of a field, or of a piece of it, by the words of the type."""
    if with_commas:
        return CutOffs() if item == "int" else Names()
    if rule.choices:
        return click.Choice(rule.choices)
    if item == "int" and (rule.low, rule.high) != (None, None):
        return click.IntRange(rule.low, rule.high)  # type: ignore[arg-type]
    if item == "float":
        return FiniteRange(rule.low, rule.high, min_open=rule.above)
    if item == "Path":
        return click.Path(
            path_type=Path,
            exists=rule.exists,
            file_okay=rule.path != "folder",
            dir_okay=not rule.path.startswith("file"),
            allow_dash=rule.path == "file or -",
        )
    return {"int": int, "bool": bool}.get(item, str)
