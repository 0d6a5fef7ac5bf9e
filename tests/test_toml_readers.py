"""Whatever a TOML file holds, its reader gives a value or says what is wrong, with no traceback."""

from __future__ import annotations

import copy
import random
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.decisions.gate.test_rules import WHOLE as GATES
from tests.judging.test_judge_files import WHOLE as JUDGE

from clients.profile import load_profile
from decisions.case_rules import read_case_rules
from decisions.gate_rules import read_rules
from judging.cost import read_prices
from judging.judge_files import read_judge
from records.errors import StorageError
from records.rubrics import read_rubric
from records.targets import read_advisory, read_bands, read_decide, read_targets
from records.toml_files import toml_key, toml_value

EVAL = Path(__file__).parents[1] / "eval"
TARGETS = """\
[retrieval]
mrr = "> 0.5"
[diversity]
faq = "advisory <= 0.5"
[decide]
primary = ["a.b", "c.d"]
lead = "a.b"
matters = 0.1
pinned = "x"
[cases]
depth = 5
number = "warn"
"pipeline.pass" = "> 0"
"""
PROFILE = """\
required = ["answer"]
stream = "sse"
stream_delta = "a"
stream_last = "[DONE]"
path_cut = "case"
path_files = ["a"]
settings = { s = 3 }
prices = { input_tokens = 1 }
limits = { rpm = 3 }
response = { answer = "a", tools = "t", error = "e" }
chunk = { text = "t" }
constant = { abstained = false }
request = { path = "/a/{session}", headers = { X = "y" }, body = { q = "{question} {s}" } }
begin = { path = "/b", session = "id" }
tools = { find = { split = "x", text = "t", place = "(?P<path>a)" } }
"""
READERS: dict[str, tuple[Callable[[Path], Any], str]] = {
    "gates": (read_rules, GATES),
    "targets": (read_targets, TARGETS),
    "advisory": (read_advisory, TARGETS),
    "bands": (lambda path: read_bands("diversity", path), TARGETS),
    "decide": (read_decide, TARGETS),
    "cases": (read_case_rules, TARGETS),
    "rubric": (read_rubric, (EVAL / "rubrics" / "helpful.toml").read_text("utf-8")),
    "judge": (read_judge, JUDGE),
    "prices": (lambda path: read_prices(path, "m"), "m = { prompt = 1, completion = 2 }\n"),
    "profile": (lambda path: load_profile(str(path), EVAL), PROFILE),
    "default": (
        lambda path: load_profile(str(path), EVAL),
        (EVAL / "profiles" / "default.toml").read_text("utf-8"),
    ),
}
VALUES: tuple[Any, ...] = (0, -1, 2.5, True, float("nan"), "", "x", "> 0.5", "{x}", "a\nb")
VALUES += ([], [1], ["x"], [[]], [{}], {}, {"a": 1}, {"": {"b": []}})


def keys_of(value: Any, key: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for name, item in items:
        yield (*key, name)
        if isinstance(item, (dict, list)):
            yield from keys_of(item, (*key, name))


def damaged(table: dict[str, Any], rng: random.Random) -> dict[str, Any]:
    """A copy in which up to three values are of another kind, are gone or have another key."""
    table = copy.deepcopy(table)
    for _ in range(rng.randint(1, 3)):
        *holders, name = rng.choice([*keys_of(table)] or [("x",)])
        node: Any = table
        for holder in holders:
            node = node[holder]
        kind = rng.random() if isinstance(node, dict) and name in node else 1.0
        if kind < 0.2:
            del node[name]
        elif kind < 0.35:
            node[rng.choice(["x", "a.b", 'q"x', "schema"])] = node.pop(name)
        else:
            node[name] = copy.deepcopy(rng.choice(VALUES))
    return table


@pytest.mark.parametrize("name", READERS)
def test_a_damaged_file_is_read_or_refused_in_words(tmp_path: Path, name: str) -> None:
    reader, text = READERS[name]
    path, rng, messages = tmp_path / "own.toml", random.Random(name), []
    table = tomllib.loads(text)
    for _ in range(80):
        pairs = damaged(table, rng).items()
        lines = (f"{toml_key(key)} = {toml_value(value)}" for key, value in pairs)
        path.write_text("\n".join(lines).replace("NaN", "nan"), "utf-8")
        try:
            reader(path)
        except StorageError as error:
            messages.append(error.message)
    assert len(messages) > 5
    assert all(str(path) in message for message in messages)
