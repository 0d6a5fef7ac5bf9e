"""The folders of eval/extras: what each adds to the core, and where its code is.

An extra imports the core, and the core no extra. Each folder has an ``extra.py`` with constants
alone (``KINDS``): a key that a user writes, and where in the folder its code is, as the text
``module`` or ``module:name``. The code is imported when the key is first asked for. A folder can be
deleted: ``known_extras.toml``, which `make docs` writes, still says what it added, so that a script
can name the folder that is missing.
"""

from __future__ import annotations

import importlib
import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

from records.errors import StorageError
from records.home import ROOT

EXTRAS = ROOT / "eval" / "extras"
"""The folder of the extras, a folder each: the modules of one are ``extras.NAME.MODULE``."""

KNOWN_EXTRAS = Path(__file__).with_name("known_extras.toml")
"""What the toolkit's own extras add, by extra and kind; generated."""

OPTIONS, FORMATS, FILES = "options", "formats", "files"
LABEL_ACTIONS, LABEL_ORDERS = "label_actions", "label_orders"
BLOCKS, COMPARED, JUDGES, RUN_KEYS = "blocks", "compared", "judges", "run_keys"

KINDS = {
    OPTIONS: "script of the core: module with its OPTIONS and the function `run`",
    FORMATS: "format of convert_data.py: module with NAME, ABOUT, read or write",
    FILES: "file beside a set or in a run: module that reads it",
    LABEL_ACTIONS: "action of the labelling screen: its labeller.actions.AddedAction",
    LABEL_ORDERS: "order of the questions to label: function of the cases and the folder of "
    "judgements, which gives each case a priority",
    BLOCKS: "section of a run's report: function of the runs (the reported one last, before it its "
    "baseline) that gives its blocks, a heading first; none where it has nothing to say",
    COMPARED: "what two runs have beside their scores: module with `of_runs`, which gives blocks "
    "on runs and their base, and `of_case`, which gives question, verdict and quote of one case",
    JUDGES: "key of a judge's file that names judges: module with `read` and `problems` of its "
    "keys, and `compound`, which makes one judge of them",
    RUN_KEYS: "key of `run` in config.json, with dots: module that reads it",
}
"""What an extra can add: the constant of its ``extra.py``, in capitals there, and what it maps."""


_NAME = re.compile("[A-Z]+")
"""What stands in the key of a file for any name, as in ``judgements/NAME.jsonl``."""


@dataclass(frozen=True, slots=True)
class Extra:
    """A folder of eval/extras. ``added``: by kind, keys with the place of their code."""

    name: str
    about: str
    added: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    def load(self, reference: str) -> Any:
        """A module of the folder, or with ``module:name`` something in it.

        Raises StorageError for code that cannot be imported."""
        module, _, name = reference.partition(":")
        loaded = _import(f"{EXTRAS.name}.{self.name}.{module}", self.name)
        return getattr(loaded, name) if name else loaded


@cache
def extras() -> tuple[Extra, ...]:
    """The extras of this copy, by name; the folder is looked into once.

    Raises StorageError for one that cannot be imported, that adds something of an unknown kind, and
    for two that add the same.
    """
    if not EXTRAS.is_dir():
        return ()
    names = sorted(path.parent.name for path in EXTRAS.glob("*/extra.py"))
    described = tuple(_described(name) for name in names)
    for kind in KINDS:
        _refuse_doubles(kind, described)
    return described


def _described(name: str) -> Extra:
    module = _import(f"{EXTRAS.name}.{name}.extra", name)
    constants = {key.lower(): value for key, value in vars(module).items() if key.isupper()}
    if unknown := sorted(constants.keys() - KINDS):
        raise StorageError(
            f"{EXTRAS / name / 'extra.py'}: {unknown[0].upper()}: an extra cannot add this; it can "
            f"have {', '.join(KINDS).upper()}."
        )
    return Extra(name, (module.__doc__ or "").strip(), constants)


def _import(module: str, name: str) -> ModuleType:
    if (parent := str(EXTRAS.parent)) not in sys.path:
        sys.path.append(parent)  # last: no folder beside the scripts hides a library
    try:
        return importlib.import_module(module)
    except Exception as error:
        if isinstance(error, StorageError):
            raise
        raise StorageError(
            f"{EXTRAS / name}: {module} cannot be imported ({type(error).__name__}: {error}); mend "
            "the folder or delete it."
        ) from error


def _refuse_doubles(kind: str, described: tuple[Extra, ...]) -> None:
    """Options of one script may come from several extras; of all else each key from one."""
    owners: dict[str, str] = {}
    for extra in described if kind != OPTIONS else ():
        for key in extra.added.get(kind, {}):
            if key in owners:
                raise StorageError(
                    f"{EXTRAS}: {owners[key]} and {extra.name} both add {key!r} ({kind}); delete "
                    "one of the folders."
                )
            owners[key] = extra.name


def added(kind: str, key: str | None = None) -> Iterator[tuple[Extra, str, str]]:
    """The keys that extras add of a kind, each with the extra and the place of its code."""
    for extra in extras():
        for name, reference in extra.added.get(kind, {}).items():
            if key in (None, name):
                yield extra, name, reference


def keys(kind: str) -> set[str]:
    """The keys of a kind: those that extras of this copy add, and those of the toolkit's own."""
    known = (key for table in known_extras().values() for key in table.get(kind, ()))
    return {*known, *(key for _, key, _ in added(kind))}


def code_of(kind: str) -> Iterator[Any]:
    """The code of each key that extras of this copy add of a kind."""
    for extra, _, reference in added(kind):
        yield extra.load(reference)


def find(kind: str, key: str) -> Any:
    """The code that an extra of this copy has for a key; None where no extra adds it."""
    for extra, _, reference in added(kind, key):
        return extra.load(reference)
    return None


@cache
def known_extras() -> Mapping[str, Mapping[str, Any]]:
    """The list of the toolkit's own extras by name.

    Of each: ``about``, and the keys that it adds, by kind.
    """
    from records.files import read_toml  # slow to load, and needed for what is missing alone

    return read_toml(KNOWN_EXTRAS) if KNOWN_EXTRAS.exists() else {}


def missing(kind: str, key: str) -> str:
    """The sentence that names the extra which this copy lacks for a key; "" where none is known.

    ``kind``: of ``known_extras.toml``; an option is known as a script and the option.
    """
    present = {extra.name for extra in extras()}
    for name, kinds in known_extras().items():
        if key in kinds.get(kind, ()) and name not in present:
            return f"this needs eval/extras/{name}, which this copy does not have"
    return ""


def missing_in(folder: Path, run: Mapping[str, Any]) -> Iterator[str]:
    """A sentence for each part of a run that an extra reads which this copy lacks.

    ``run``: of config.json.
    """
    for table in known_extras().values():
        for key in table.get(RUN_KEYS, ()):
            part: Any = run
            for name in key.split("."):
                part = part.get(name) if isinstance(part, Mapping) else None
            if part is not None and (needs := missing(RUN_KEYS, key)):
                yield f"config.json has run.{key}: {needs}."
        for key in table.get(FILES, ()):
            if any(folder.glob(_NAME.sub("*", key))) and (needs := missing(FILES, key)):
                yield f"{folder / key}: {needs}."
