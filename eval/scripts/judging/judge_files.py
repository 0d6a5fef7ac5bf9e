"""Judges as files: ``eval/judges/NAME.toml`` says which model judges, where, and how it is asked.

    server = "http://localhost:11434/v1"
    model = "llama3.1:8b-instruct-q8_0"
    temperature = 0.2
    [extra_body]
    chat_template_kwargs = { enable_thinking = false }

``--judge`` takes a name, a path, or a server's address; ``--set KEY=VALUE`` changes a key for one
call. A file never holds a key: ``api_key`` names the environment variable that does. Paths in a
file count from its folder.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from clients.limits import LIMITS
from clients.secrets import url_in_message
from judging.cost import Prices
from judging.identity import JudgeError
from judging.protocols import OURS, endpoint
from records import extras
from records.errors import StorageError
from records.files import replace_bytes
from records.runs import JUDGES
from records.settings import KeyRule, check_keys, from_pairs
from records.syncing import make_folder
from records.toml_files import TomlReader, open_file, toml_table, toml_value
from records.verdicts import MODES

LOCAL = "local"
"""The name of the embedded rules."""

SCHEMA = 1

WHO = {
    "server": KeyRule("text", "Address of a judge's server (docs/judging.md), or local."),
    "model": KeyRule("text", "The model's name on that server."),
}

HOW = {
    "api_key": KeyRule("variable", "Environment variable with the server's key."),
    "revision": KeyRule("text", "The server's weights, if it does not report them."),
    "file": KeyRule("text", "The weights as a local file: its sha256 pins the judge."),
    "unpinned": KeyRule("yes", "Accept a name that may refer to another model later."),
    "alias": KeyRule("texts", "ASKED=ANSWERED: another name under which the model may answer."),
    "temperature": KeyRule("number", "Sampling temperature.", 0, 2),
    "mode": KeyRule("choice", "How to ask for JSON; else the best way that works.", choices=MODES),
    "thinking_tokens": KeyRule("whole", "More tokens a reply, for models that think.", 0, 10**6),
    "reasoning_effort": KeyRule("text", "How long a model thinks, as the server names it."),
    "extra_body": KeyRule("table", "Further fields of each request, as the server names them."),
    **LIMITS,
    "prices": KeyRule("text", "Dollars per million tokens: prompt, completion, cached."),
    "claims": KeyRule(
        "choice",
        "Claims of an answer: by sentence rules, or atomic ones by the judge.",
        choices=("sentence", "atomic"),
    ),
    "correctness_weight": KeyRule(
        "number", "Weight of facts in answer_correctness_judged; the rest: cosine.", 0, 1
    ),
    "embedding_model": KeyRule(
        "text", "Embedding model of the cosine in answer_correctness_judged."
    ),
    "min_kappa": KeyRule("number", "Smallest Cohen's kappa for calibrate_judge.py --gate.", -1, 1),
    "min_balanced_accuracy": KeyRule("number", "Smallest balanced accuracy for it.", 0, 1),
}
"""The keys that ``--set`` takes; a file has those of ``WHO``, too."""

DOLLARS = KeyRule("number", "US dollars per million tokens.", 0, 1e9)
PRICES = dict.fromkeys(("prompt", "completion", "cached"), DOLLARS)

HEAD = {
    "schema": KeyRule("whole", "Version of the file's form.", SCHEMA, SCHEMA),
    "description": KeyRule("text", "For people."),
}

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")

OWN_KEYS = {
    "temperature": "temperature",
    "seed": "--seed",
    "max_tokens": "thinking_tokens",
    "max_completion_tokens": "thinking_tokens",
    "reasoning_effort": "reasoning_effort",
}
"""Fields of a request that have a key or an option of their own, by its name."""


def compound_keys() -> set[str]:
    """The keys by which extras make a judge of several, also of extras that this copy lacks."""
    return extras.keys(extras.JUDGES)


def compound_of(key: str) -> Any:
    """The module that makes a judge of several. Raises JudgeError where its extra is missing."""
    if (module := extras.find(extras.JUDGES, key)) is None:
        raise JudgeError(f"{key}: {extras.missing(extras.JUDGES, key)}.")
    return module


def names(folder: Path = JUDGES) -> list[str]:
    """The names of the judges that have a file, sorted."""
    return sorted(path.stem for path in folder.glob("*.toml"))


def judge_settings(
    judge: str,
    model: str | None = None,
    pairs: Iterable[str] = (),
    *,
    model_is_default: bool = False,
    folder: Path = JUDGES,
) -> dict[str, Any]:
    """The settings of the judge that ``--judge``, ``--model`` and ``--set`` name, by key.

    A key without a given value is left out. ``model_is_default``: the model was not named on the
    command line, so that a file's model counts more. Raises StorageError with every problem.
    """
    settings: dict[str, Any] = {}
    if (path := _file_of(judge, folder)) is not None:
        settings = read_judge(path)
    elif judge:
        settings["server"] = judge
    own = settings.get("model")
    if model and own and model != own and not model_is_default:
        raise JudgeError(
            f"--model {model}: {path} names the model {own}; leave --model out, or save another "
            "judge with --save-judge."
        )
    compounds = compound_keys() & settings.keys()
    if model and not own and not (model_is_default and compounds):
        settings["model"] = model
    given = [pair for pair in pairs if not pair.startswith("prices.")]
    prices = [pair.removeprefix("prices.") for pair in pairs if pair.startswith("prices.")]
    changes = from_pairs(given, HOW)
    if prices:
        changes["prices"] = from_pairs(prices, PRICES, "--set prices")
    reader = TomlReader("--set")
    _check_within(reader, changes)
    reader.end()
    for name in ("file", "prices"):
        if isinstance(changes.get(name), str):
            changes[name] = Path(changes[name])
    settings |= changes
    for key in compounds if path is not None else ():
        settings |= compound_of(key).read(path, settings)
    return settings


def _file_of(judge: str, folder: Path) -> Path | None:
    """The file that ``--judge`` names; None for an address, ``local`` and nothing."""
    if not judge or judge == LOCAL or "://" in judge:
        return None
    if (named := folder / f"{judge}.toml").is_file() and NAME.fullmatch(judge):
        return named
    if judge.endswith(".toml") or Path(judge).is_file():
        return Path(judge)
    shown = url_in_message(judge)
    known = ", ".join([LOCAL, *names(folder)])
    raise JudgeError(
        f"--judge {shown}: no such name in {folder}; known: {known}. A server is an address such "
        "as http://localhost:11434/v1."
    )


def read_judge(path: Path) -> dict[str, Any]:
    """The keys of a judge's file, paths from the working folder.

    Raises StorageError with every problem, as ``file:line: field: …``.
    """
    table, reader = open_file(path, "judge_answers.py --save-judge writes one")
    compounds = {key: KeyRule("texts", "Names of judges.") for key in compound_keys()}
    prices = table.get("prices")
    lone = {**table, "prices": "-"} if isinstance(prices, dict) else table
    good = check_keys(reader, lone, HEAD | WHO | HOW | compounds)
    _check_within(reader, {key: table[key] for key in good})
    if not table.keys() & (WHO.keys() | compounds) and not reader.problems:
        reader.wrong(("server",), "is missing; write the server's address")
    reader.end()
    for name in ("file", "prices"):
        if isinstance(table.get(name), str):
            table[name] = path.parent / table[name]
    return {key: value for key, value in table.items() if key not in HEAD}


def _check_within(reader: TomlReader, values: Mapping[str, Any]) -> None:
    """Note what is wrong within values whose form is right."""
    for key in compound_keys() & values.keys():
        compound_of(key).check(reader, values)
    server = values.get("server", LOCAL)
    if server != LOCAL:
        if "@" in server or not re.fullmatch(r"[^?]*(\?api-version=[A-Za-z0-9.-]+)?", server):
            clause = "contains a login or a query; name the variable of the key with api_key"
            reader.wrong(("server",), clause)
        else:
            try:
                endpoint(server)
            except JudgeError as error:
                clause = "must be local, or an address such as http://localhost:11434/v1"
                clause = error.message.rstrip(".") if "api-version" in error.message else clause
                reader.wrong(("server",), clause)
    for pair in values.get("alias", ()):
        asked, _, answered = pair.partition("=")
        if not asked.strip() or not answered.strip():
            reader.wrong(("alias",), "must be ASKED=ANSWERED, two names of models")
    for name in values.get("extra_body", ()):
        if name in OURS:
            clause = "is set by the toolkit, which could not read the reply otherwise"
            reader.wrong(("extra_body", name), clause)
        elif name in OWN_KEYS:
            reader.wrong(("extra_body", name), f"has a key of its own: {OWN_KEYS[name]}")
    if isinstance(prices := values.get("prices"), dict):
        reader.read(prices, Prices, ("prices",))


def save_judge(name: str, settings: Mapping[str, Any], folder: Path = JUDGES) -> Path:
    """Write a judge's file; returns its path. One with the same content stays unchanged.

    Raises StorageError for a name that is none, nothing to save, a key's variable that is not set
    (it may be the key), and another file there.
    """
    if not NAME.fullmatch(name) or name in (LOCAL, "latest"):
        raise StorageError(
            f"--save-judge {name!r}: a name has letters, digits, '.', '_' and '-', and is not "
            f"{LOCAL}."
        )
    path = folder / f"{name}.toml"
    if not settings.keys() & (WHO.keys() | compound_keys()):
        raise StorageError(f"--save-judge {name}: name the judge with --judge and --model.")
    reader = TomlReader("--judge")
    _check_within(reader, settings)
    if (settings.get("api_key") or "PATH") not in os.environ:  # what is set is no pasted key
        fault = "no environment variable has that name; export it first, or leave api_key out"
        reader.wrong(("api_key",), fault)
    reader.end()
    written = {
        key: _from_folder(value, folder) if isinstance(value, Path) else value
        for key in (*WHO, *sorted(compound_keys()), *HOW)
        if (value := settings.get(key)) is not None
    }
    tables = {key: value for key, value in written.items() if isinstance(value, dict)}
    lines = [f"schema = {SCHEMA}"]
    lines += [f"{key} = {toml_value(v)}" for key, v in written.items() if key not in tables]
    for key, table in tables.items():
        lines += toml_table(key, table)
    data = ("\n".join(lines) + "\n").encode()
    if path.exists() and path.read_bytes() != data:
        raise StorageError(f"{path}: exists already; edit it, or choose another name.")
    try:
        make_folder(folder)
    except OSError as error:
        raise StorageError(f"{folder}: cannot be made ({error.strerror}).") from None
    replace_bytes(path, data)
    return path


def _from_folder(path: Path, folder: Path) -> str:
    """A path as a file of ``folder`` names it: relative in the same home, else absolute."""
    path = path.absolute()
    home = folder.absolute().parent.parent
    return os.path.relpath(path, folder) if path.is_relative_to(home) else str(path)
