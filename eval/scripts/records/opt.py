"""The fields of an options class: what each is on the command line, declared where it is read.

@dataclass(frozen=True, kw_only=True)
class ServeOptions(opt.Output):
    port: int = opt.value("0 takes a free one.", default=9000, low=0, high=65535)

``options.script`` makes the command line of it; a room takes the class as a plain value. The type
of the field decides how its text is read.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

from records.home import CACHE_DIR, EVAL_SET, RESULTS_DIR

RULE = "option"
"""The key of a field's metadata that has its ``OptionRule``."""


class OptionRule(NamedTuple):
    """How a field is written on the command line.

    ``names``: with dashes; "" for the field's own. ``low`` and ``high``: bounds of a number;
    ``above``: ``low`` itself is outside. ``repeat``: a tuple is given piece by piece, not with
    commas. ``path``: ``file``, ``folder`` or ``file or -`` alone. ``shown``: the default in words;
    False for none. ``positional``: an argument, which has no name. ``setting``: a key of ``--set``
    and of config.toml, because few people change it.
    """

    about: str = ""
    names: str = ""
    low: float | None = None
    high: float | None = None
    above: bool = False
    choices: Sequence[str] = ()
    repeat: bool = False
    path: str = ""
    exists: bool = False
    metavar: str | None = None
    shown: str | bool | None = None
    positional: bool = False
    required: bool = False
    setting: bool = False


def value(about: str, *, default: Any = None, **rule: Any) -> Any:
    """A field that is an option with this help; ``rule``: as in ``OptionRule``."""
    return field(default=default, metadata={RULE: OptionRule(about, **rule)})


def argument(*, default: Any = None, **rule: Any) -> Any:
    """A field that is an argument: a tuple takes all that are there."""
    return field(default=default, metadata={RULE: OptionRule(positional=True, **rule)})


flag = partial(value, default=False)
setting = partial(value, setting=True)
as_json = partial(flag, "Print JSON on stdout instead of tables.", names="--json")
quiet = partial(flag, "No messages on stderr.", names="-q --quiet")
repeated = partial(value, default=(), repeat=True)

pairs = partial(repeated, names="--set", metavar="KEY=VALUE")

eval_set = partial(
    value, "The cases, one JSON object a line.", default=EVAL_SET, shown="eval_set.jsonl"
)
run_set = partial(
    value, "The cases, one JSON object a line.", shown="the set that the run was asked with"
)
labels_dir = partial(value, "Folder of the label files.", path="folder", shown="beside the set")
results_dir = partial(
    value, "Folder of the runs.", default=RESULTS_DIR, path="folder", shown="eval/results"
)
run = partial(
    value, "Run id, path of a run folder, or 'latest'.", default="latest", names="--run --run-id"
)
screen = partial(
    pairs,
    "Change the screen (repeatable): ascii=true, mouse=false, theme=light, keymap=FILE. To keep "
    "it, write [screen] into eval/config.toml.",
)
api_url = partial(value, "The bot's address, or 'demo' for the embedded API.")
profile = partial(
    value, "How to ask the bot: a name in eval/profiles, or a path.", default="default"
)
header = partial(repeated, metavar="NAME=VARIABLE")
SENT_HEADER = (
    "Send a header whose value is in this environment variable, never written anywhere. A value "
    "that is no secret: 'NAME: VALUE'."
)
seed = partial(value, "Seed of every random draw.", default=0, low=0, high=2**63 - 1)
cache_dir = partial(value, default=CACHE_DIR, path="folder", shown="eval/cache")
error_rate = partial(value, default=0.2, low=0, high=1)
targets = partial(
    value, "Pass marks.  [default: eval/targets.toml]", names="--targets", path="file", exists=True
)
plugin = partial(repeated, names="--plugin", path="file")


@dataclass(frozen=True, kw_only=True)
class Output:
    """The output of a script: tables or JSON on stdout, messages on stderr."""

    as_json: bool = as_json()
    quiet: bool = quiet()
    verbose: bool = flag("More messages on stderr; show every metric.", names="-v --verbose")
