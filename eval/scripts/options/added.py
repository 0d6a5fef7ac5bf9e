"""Options that extras add to a script of the core, and the functions that take their values."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import click

from records.errors import StorageError
from records.extras import EXTRAS, OPTIONS, Extra, added

_ADDED = "options of extras"
"""Where a context holds the values of the options that extras added."""


@dataclass(frozen=True)
class ScriptOptions:
    """The options that an extra adds to a script, and the function that takes their values.

    ``run``: ``module:function`` of the extra's folder, imported when an option was given. It gets
    the values of these options, those of the script, and by name what the script hands over. It
    returns an exit code where it did all there was to do, values that replace those of the script,
    or None.
    """

    options: Sequence[Callable[[Any], Any]]
    run: str


class AddedOptions:
    """The options that extras add to a script. ``extra_of``: by parameter, the extra's name."""

    def __init__(self, script: str, own: Sequence[click.Parameter]) -> None:
        self.params: list[click.Option] = []
        self.extra_of: dict[str, str] = {}
        self._sources: dict[str, tuple[Extra, ScriptOptions]] = {}
        names = {name for param in own for name in (param.name, *param.opts)}
        for extra, _, reference in added(OPTIONS, script):
            source: ScriptOptions = extra.load(reference)
            self._sources[extra.name] = extra, source
            for option in option_list(source.options):
                if taken := names & {option.name, *option.opts}:
                    raise StorageError(
                        f"{EXTRAS / extra.name}: {script}.py has {min(map(str, taken))} already; "
                        "rename the option of the extra."
                    )
                names |= {option.name, *option.opts}
                self.params.append(option)
                self.extra_of[option.name or ""] = extra.name

    def set_apart(self, ctx: click.Context) -> None:
        """Take the values of these options out of the context's, for ``run_extras``."""
        values = {name: ctx.params.pop(name) for name in self.extra_of if name in ctx.params}
        ctx.meta[_ADDED] = self, values

    def chosen(
        self, ctx: click.Context, values: Mapping[str, Any]
    ) -> Iterator[tuple[Callable[..., Any], dict[str, Any]]]:
        """The functions of the extras whose options were given.

        Each comes with the values of all options of its extra.
        """
        for name, (extra, source) in self._sources.items():
            own = {key: values.get(key) for key, owner in self.extra_of.items() if owner == name}
            if any(_asks(ctx, key, value) for key, value in own.items()):
                yield extra.load(source.run), own


def _asks(ctx: click.Context, key: str, value: object) -> bool:
    """Whether an option was given; a flag that a file of settings turns off was not."""
    origin = ctx.get_parameter_source(key)
    return (
        origin is not click.core.ParameterSource.DEFAULT
        and value is not None
        and value is not False
    )


def option_list(decorators: Sequence[Callable[[Any], Any]]) -> list[click.Option]:
    """The options that click's decorators make, in their order."""

    def function() -> None: ...

    for decorator in decorators:
        decorator(function)
    return list(getattr(function, "__click_params__", []))


def run_extras(asked: Any, /, **handed: Any) -> Any:
    """Let the extras whose options were given do their work; a script calls it once.

    ``asked``: the script's options, which extras see as a mapping; ``handed``: what the script has
    made ready for them. Returns the exit code of an extra that did all there was to do, else the
    options with those that extras replaced.
    """
    ctx = click.get_current_context()
    options, own_values = ctx.meta.get(_ADDED, (None, {}))
    for function, own in options.chosen(ctx, own_values) if options else ():
        outcome = function(own, vars(asked), **handed)
        if isinstance(outcome, int):
            return outcome
        asked = replace(asked, **(outcome or {}))
    return asked
