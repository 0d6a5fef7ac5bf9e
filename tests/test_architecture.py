"""The rules of the house as tests: who imports whom, what is pure, how long a file may be."""

from __future__ import annotations

import ast
import importlib
import importlib.metadata
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.sources import (
    SCRIPTS,
    SCRIPTS_DIR,
    SLOW,
    SOURCES,
    TREES,
    each_source,
    imports,
    name_of,
    part_of,
)

MOST_LINES = 350
LONG: dict[str, str] = {}
"""Files that break the rule today, with what would mend it."""

FILES = frozenset({"io", "os", "pathlib", "shutil", "sqlite3", "tempfile", "subprocess", "glob"})
NETWORK = frozenset({"asyncio", "http", "socket", "ssl", "urllib.request", "ftplib", "smtplib"})
CLOCKS = frozenset({"time", "sched"})
CHANCE = frozenset({"random", "secrets", "uuid"})
IMPURE = FILES | NETWORK | CLOCKS | CHANCE
IMPURE_CALLS = {"open", "print", "input", "now", "today", "utcnow"}
FILE_CALLS = {"read_text", "read_bytes", "write_text", "write_bytes", "unlink", "mkdir"}


@dataclass(frozen=True)
class Rule:
    """What a part may import, besides itself and the standard library."""

    ours: frozenset[str]
    at_top: frozenset[str] = frozenset()
    inside_functions: frozenset[str] = frozenset()
    never: frozenset[str] = frozenset()


def rule(ours: str, top: str = "", late: str = "", never: frozenset[str] = frozenset()) -> Rule:
    return Rule(frozenset(ours.split()), frozenset(top.split()), frozenset(late.split()), never)


RULES = {
    "ragmetrics": rule("", late="numpy sklearn rapidfuzz sentencex", never=IMPURE),
    "guardrails": rule("ragmetrics", late="numpy scipy sklearn phonenumbers stdnum", never=IMPURE),
    "records": rule("", "click msgspec orjson", "filelock"),
    "storage": rule("records", "msgspec orjson"),
    "completers": rule("storage ragmetrics", "click"),
    "manual": rule(""),
    "options": rule("storage completers manual", "click", "rich"),
    "targets": rule("storage"),
    "joiners": rule(""),
    "tables": rule("storage targets ragmetrics joiners", late="rich"),
    "typed_lines": rule("storage", "msgspec"),
    "worst": rule("storage ragmetrics", "orjson"),
    "scorebook": rule("storage ragmetrics", "orjson"),
    "scorepart": rule("storage ragmetrics scorebook scoring"),
    "workers": rule(""),
    "scoring": rule("storage options ragmetrics scorebook scorepart workers", "orjson numpy"),
    "scorecli": rule("storage options ragmetrics scoring tables targets worst", "click", "rich"),
    "scorers": rule("storage scoring ragmetrics guardrails", "orjson"),
    "suite": rule(
        "storage options ragmetrics scoring scorers clients runner opensets tables targets gating "
        "judging comparing",  # counts the verdicts that a run has; the reader of metrics.json
        "click msgspec orjson",
        "rich",
    ),
    "clients": rule(
        "records",
        "msgspec orjson",
        "requests urllib3 jmespath jsonschema numpy sentence_transformers tokenizers torch "
        "transformers",
    ),
    "runner": rule("storage records clients", "click orjson", "rich"),
    "demo": rule(
        "records clients guardrails", "msgspec orjson", "bm25s markdown_it numpy sentencex"
    ),
    "labeller": rule("joiners", "rich textual"),
    "label_store": rule(
        "storage options records ragmetrics clients runner labeller",
        "click msgspec orjson aiohttp textual_serve",  # the last two in serving.py, loaded late
        "rich",
    ),
    "humanlabels": rule("records ragmetrics", "orjson", "numpy"),
    "opensets": rule("storage humanlabels guardrails ragmetrics", "orjson", "detect_secrets"),
    "judging": rule(
        "storage options ragmetrics clients scoring scorebook scorers guardrails tables targets "
        "worst typed_lines",  # a bad case with its claims and quotes
        "click msgspec orjson",
        "numpy rapidfuzz rich",
    ),
    "calibration": rule(
        "storage options ragmetrics judging humanlabels tables label_store verdictlabels clients",
        "click msgspec orjson",
        "rich",
    ),  # label_store: journal and lock of the label files; verdictlabels: the screen it opens
    "verdictlabels": rule("labeller", "rich textual"),
    "comparing": rule(
        "storage options ragmetrics tables targets typed_lines",
        "click msgspec orjson",
        "numpy rich",
    ),
    "gating": rule(
        "storage options ragmetrics comparing tables targets suite typed_lines "
        "judging calibration",  # the judge behind a judged metric, and how it holds against people
        "click msgspec orjson",
        "rich",
    ),
    "tracking": rule(
        "storage options ragmetrics tables targets gating", "click msgspec orjson", "rich plotext"
    ),
    "reporting": rule(
        "storage options ragmetrics tables targets worst suite comparing judging calibration "
        "typed_lines joiners",
        "click msgspec orjson",
        "numpy rich jinja2",
    ),
    "browser": rule("labeller ragmetrics", "rich textual"),
    "browse_store": rule(
        "storage options ragmetrics comparing runner judging browser tables targets",
        "click msgspec orjson",
        "rich",
    ),
    "converting": rule("storage ragmetrics records runner typed_lines", "msgspec orjson", "yaml"),
    "drafting": rule(
        "storage options ragmetrics clients judging demo label_store records tables",
        "click msgspec orjson",
    ),
}
"""A row for each folder and shared module. A new one needs a row: who may it know?"""

SCRIPT = rule(" ".join(RULES), "click msgspec orjson", " ".join(SLOW))
"""A script: every part, never another script; slow libraries inside functions only."""


TOP = {path.relative_to(SCRIPTS_DIR).parts[0].removesuffix(".py") for path in SOURCES}
SCRIPT_NAMES = {path.stem for path in SCRIPTS}


def broken(part: str, allowed: Rule, tree: ast.Module) -> Iterator[str]:
    """What a file imports against its rule, as ``line: why``."""
    for found in imports(tree):
        if found.top in TOP:
            if found.top != part and found.top not in allowed.ours:
                yield f"{found.line}: {part} must not know {found.module}"
        elif found.top in sys.stdlib_module_names:
            if _under(found.module, allowed.never):
                yield f"{found.line}: {found.module} (files, network, clock or chance)"
        elif found.top not in allowed.at_top | allowed.inside_functions:
            yield f"{found.line}: {part} must not use {found.top}"
        elif not found.late and found.top not in allowed.at_top:
            yield f"{found.line}: {found.top} belongs inside the function that needs it"


def _under(module: str, names: frozenset[str]) -> bool:
    return any(module == name or module.startswith(f"{name}.") for name in names)


def test_every_part_has_a_rule() -> None:
    assert set(RULES) >= TOP - SCRIPT_NAMES, "add a row to RULES for what is new"


@each_source
def test_imports_keep_the_rules(path: Path) -> None:
    part = part_of(path)
    allowed = SCRIPT if part in SCRIPT_NAMES else RULES[part]
    assert list(broken(part, allowed, TREES[path])) == []


@pytest.mark.parametrize(
    ("part", "text", "count"),
    [
        ("ragmetrics", "import storage", 1),
        ("ragmetrics", "from records import files", 1),
        ("ragmetrics", "import numpy as np", 1),
        ("ragmetrics", "def f():\n    import numpy as np", 0),
        ("ragmetrics", "if TYPE_CHECKING:\n    import numpy as np", 0),
        ("ragmetrics", "def f():\n    import requests", 1),
        ("ragmetrics", "from pathlib import Path", 1),
        ("ragmetrics", "import time, random", 2),
        ("ragmetrics", "from urllib import request", 1),
        ("ragmetrics", "from urllib.parse import quote", 0),
        ("ragmetrics", "from ragmetrics import stats\nimport math", 0),
        ("storage", "import run_eval", 1),
        ("labeller", "import storage", 1),
    ],
)
def test_the_rule_finds_what_breaks_it(part: str, text: str, count: int) -> None:
    assert len(list(broken(part, RULES[part], ast.parse(text)))) == count


def test_nobody_imports_a_script() -> None:
    found = [
        f"{name_of(path)}:{one.line}: {one.module}"
        for path, tree in TREES.items()
        for one in imports(tree)
        if one.top in SCRIPT_NAMES
    ]
    assert found == []


def calls(tree: ast.Module) -> Iterator[tuple[str, int]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            if isinstance(node.func, ast.Name):
                yield node.func.id, node.lineno
            elif isinstance(node.func, ast.Attribute):
                yield node.func.attr, node.lineno


def impure_calls(path: Path, names: set[str]) -> list[str]:
    return [f"{name_of(path)}:{line}: {name}" for name, line in calls(TREES[path]) if name in names]


def test_metrics_touch_no_file_and_no_clock() -> None:
    parts = [path for path in SOURCES if part_of(path) == "ragmetrics"]
    assert [one for path in parts for one in impure_calls(path, IMPURE_CALLS | FILE_CALLS)] == []


def test_guardrails_read_nothing_but_their_own_rules() -> None:
    """The rules and weights that ship in the folder are read by importlib.resources."""
    parts = [path for path in SOURCES if part_of(path) == "guardrails"]
    names = IMPURE_CALLS | FILE_CALLS - {"read_text", "read_bytes"}
    assert [one for path in parts for one in impure_calls(path, names)] == []


def test_the_labelling_model_knows_no_screen_and_no_file() -> None:
    """labeller/model.py, and all that it imports, is standard library without files."""
    waiting, seen = ["model"], set[str]()
    problems: list[str] = []
    while waiting:
        stem = waiting.pop()
        path = SCRIPTS_DIR / "labeller" / f"{stem}.py"
        if stem in seen or not path.exists():
            continue
        seen.add(stem)
        for found in imports(TREES[path]):
            if found.top == "labeller":
                waiting.append(found.module.split(".")[1])
            elif found.top not in sys.stdlib_module_names or _under(found.module, FILES | NETWORK):
                problems.append(f"{name_of(path)}:{found.line}: {found.module}")
        problems += impure_calls(path, {"open", "print", "input"} | FILE_CALLS)
    assert "model" in seen
    assert problems == []


def test_no_name_hides_a_library() -> None:
    installed = set(importlib.metadata.packages_distributions())
    assert TOP & (set(sys.stdlib_module_names) | installed) == set()
    assert not (SCRIPTS_DIR.parent / "__init__.py").exists()


@each_source
def test_files_stay_short(path: Path, request: pytest.FixtureRequest) -> None:
    if reason := LONG.get(name_of(path)):
        request.applymarker(pytest.mark.xfail(reason=reason))
    assert len(path.read_text("utf-8").splitlines()) <= MOST_LINES, path
