"""The rules of the house as tests: floors, who may import whom, no circles, what is pure."""

from __future__ import annotations

import ast
import importlib.metadata
import pkgutil
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

from tests.rows import each_row
from tests.sources import (
    SCRIPTS,
    SCRIPTS_DIR,
    SLOW,
    SOURCES,
    Import,
    each_source,
    imports,
    imports_of,
    name_of,
    part_of,
    sources,
    tree_of,
)

FLOOR_1 = "records ragmetrics guardrails terminal"
MAY = {
    "records": "",
    "ragmetrics": "",
    "guardrails": "",
    "terminal": "",
    "clients": FLOOR_1,
    "decisions": FLOOR_1,
    "formats": FLOOR_1,
    "documents": FLOOR_1,
    "scorers": f"{FLOOR_1} clients decisions",
    "judging": f"{FLOOR_1} clients",
    "labeller": "records ragmetrics terminal clients decisions documents",
    "views": f"{FLOOR_1} decisions",
    "validation": f"{FLOOR_1} judging decisions clients",
    "demo": f"{FLOOR_1} clients documents",
    "storage": "records",
    "options": "records ragmetrics terminal storage",
}
"""Which rooms a room may import. A new room needs a row: who may it know?"""

AT_TOP = {
    "records": "click msgspec orjson",  # click: the class of errors that scripts end with
    "ragmetrics": "",
    "guardrails": "",
    "terminal": "rich textual",
    "clients": "msgspec orjson",
    "decisions": "msgspec orjson",
    "formats": "msgspec orjson",
    "documents": "",
    "scorers": "msgspec orjson",
    "judging": "msgspec orjson",
    "labeller": "msgspec orjson rich textual",
    "views": "msgspec orjson rich textual",
    "validation": "msgspec orjson rich textual",
    "demo": "msgspec orjson",
    "storage": "",
    "options": "click",
}
"""Libraries that the files of a room may load when they are imported; others load late."""

FILES = frozenset({"io", "os", "pathlib", "shutil", "sqlite3", "tempfile", "subprocess", "glob"})
NETWORK = frozenset({"asyncio", "http", "socket", "ssl", "urllib.request", "ftplib", "smtplib"})
CLOCKS = frozenset({"time", "sched"})
CHANCE = frozenset({"random", "secrets", "uuid"})
PURE = {"ragmetrics", "guardrails"}
IMPURE = FILES | NETWORK | CLOCKS | CHANCE
IMPURE_CALLS = {"open", "print", "input", "now", "today", "utcnow"}
FILE_CALLS = {"read_text", "read_bytes", "write_text", "write_bytes", "unlink", "mkdir"}
LONG_CLASS = 300
TOP = {path.relative_to(SCRIPTS_DIR).parts[0].removesuffix(".py") for path in SOURCES}
SCRIPT_NAMES = {path.stem for path in SCRIPTS}
MODULES = {
    ".".join(path.relative_to(SCRIPTS_DIR).with_suffix("").parts).removesuffix(".__init__"): path
    for path in SOURCES
}


def broken(room: str, imported: Iterable[Import]) -> Iterator[str]:
    """What a file imports against the rules of its room, as ``line: why``."""
    for item in imported:
        if item.top in TOP:
            if item.top != room and item.top not in MAY[room].split():
                yield f"{item.line}: {room} must not know {item.module}"
        elif item.top in sys.stdlib_module_names:
            if room in PURE and _under(item.module, IMPURE):
                yield f"{item.line}: {item.module} (files, network, clock or chance)"
        elif item.top == "click" and room not in {"records", "options"}:
            yield f"{item.line}: a room gets plain options; click belongs to the scripts"
        elif not item.late and item.top not in AT_TOP[room].split():
            yield f"{item.line}: {item.top} belongs inside the function that needs it"


def _under(module: str, names: frozenset[str]) -> bool:
    return any(module == name or module.startswith(f"{name}.") for name in names)


def test_every_room_has_a_row_and_knows_lower_floors_only() -> None:
    assert set(MAY) >= TOP - SCRIPT_NAMES, "add a row to MAY and AT_TOP for what is new"
    assert set(MAY) == set(AT_TOP)
    order = list(TopologicalSorter({room: may.split() for room, may in MAY.items()}).static_order())
    assert set(order) == set(MAY)  # static_order raises for a circle


@each_source
def test_imports_keep_the_rules(path: Path) -> None:
    if part_of(path) in SCRIPT_NAMES:
        assert [item for item in imports_of(path) if not item.late and item.top in SLOW] == []
    else:
        assert list(broken(part_of(path), imports_of(path))) == []


@each_row(
    ("room", "text", "count"),
    [
        ("ragmetrics", "from records import files", 1),
        ("ragmetrics", "import numpy as np", 1),
        ("ragmetrics", "def f():\n    import numpy as np", 0),
        ("ragmetrics", "if TYPE_CHECKING:\n    import numpy as np", 0),
        ("ragmetrics", "from pathlib import Path", 1),
        ("ragmetrics", "import time, random", 2),
        ("ragmetrics", "from urllib import request", 1),
        ("ragmetrics", "from urllib.parse import quote", 0),
        ("ragmetrics", "from ragmetrics import stats\nimport math", 0),
        ("decisions", "import run_eval", 1),
        ("decisions", "def f():\n    from scorers import loop", 1),
        ("decisions", "from records.errors import StorageError", 0),
        ("clients", "import storage", 1),
        ("judging", "import click", 1),
        ("scorers", "if TYPE_CHECKING:\n    from judging.types import Judge", 1),
    ],
)
def test_the_rule_finds_what_breaks_it(room: str, text: str, count: int) -> None:
    assert len(list(broken(room, imports(ast.parse(text))))) == count


def test_nobody_imports_a_script() -> None:
    importers = [
        f"{name_of(path)}:{item.line}: {item.module}"
        for path in SOURCES
        for item in imports_of(path)
        if item.top in SCRIPT_NAMES
    ]
    assert importers == []


ROOT = SCRIPTS_DIR.parents[1]
OUTSIDE = [path for folder in ("bench", "eval/extras") for path in sources(ROOT / folder)]


def missing_names(tree: ast.Module) -> list[str]:
    """What a file imports from the core, or takes from a module of it, and is not there when it
    runs."""
    body = [node for node in tree.body if not _is_for_types(node)]
    tree = ast.Module(body, [])
    names = {(item.module, item.line) for item in imports(tree) if item.top in TOP}
    modules = {
        alias.asname or alias.name: f"{node.module}.{alias.name}"
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
        if f"{node.module}.{alias.name}" in MODULES
    }
    names |= {
        (f"{modules[node.value.id]}.{node.attr}", node.lineno)
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and node.value.id in modules
    }
    return [f"{line}: {name}" for name, line in sorted(names) if not _is_there(name)]


def _is_for_types(node: ast.stmt) -> bool:
    return isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"


def _is_there(name: str) -> bool:
    try:
        pkgutil.resolve_name(name)
    except (ImportError, AttributeError):
        return False
    return True


@each_row("path", OUTSIDE)
def test_benchmarks_and_extras_take_what_the_core_has(path: Path) -> None:
    """No test runs most benchmarks, and the type checker does not read them."""
    assert missing_names(tree_of(path)) == []


def test_a_name_that_is_gone_is_found() -> None:
    text = (
        "from ragmetrics.stats import significance as s, gone\nfrom records.run import Run, Ran\n"
        "import storage\nimport labeller.lost\nimport numpy.lost\n"
        "def f():\n    from records import files\n    files.lost(Run)\n"
        "s.mcnemar(1, 2)\ns.holm([])\n"
    )
    assert missing_names(ast.parse(text)) == [
        "4: labeller.lost",
        "1: ragmetrics.stats.gone",
        "10: ragmetrics.stats.significance.holm",
        "8: records.files.lost",
        "2: records.run.Ran",
    ]


def module_of(item: Import) -> str:
    """The module of ours that an import names, or whose name it takes."""
    name = item.module
    while name and name not in MODULES:
        name = name.rpartition(".")[0]
    return name


def circle(graph: Mapping[str, set[str]]) -> list[str]:
    """The nodes of a circle, or [] where there is none."""
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


def test_no_files_import_each_other() -> None:
    graph = {
        name: {target for item in imports_of(path) if (target := module_of(item))} - {name}
        for name, path in MODULES.items()
    }
    assert circle(graph) == []


def test_a_circle_is_found() -> None:
    assert circle({"a": {"b"}, "b": {"c"}, "c": set()}) == []
    assert set(circle({"a": {"b"}, "b": {"c"}, "c": {"a"}})) == {"a", "b", "c"}


RUN_FILE = re.compile(
    r"(?:^|/)(?:(?:results|results\.partial|verdicts|judge_cache)\.jsonl"
    r"|(?:metrics|config|gate|suite|report)\.json|scores)(?:$|/)"
)


def run_files(tree: ast.Module) -> Iterator[str]:
    """String constants that are the name or the path of a file of a run, with their lines."""
    docs = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and id(node) not in docs
            and " " not in node.value
            and RUN_FILE.search(node.value)
        ):
            yield f"{node.lineno}: {node.value}"


NAMES_OF_OTHERS = {
    ("clients/embedder.py", "config.json"),
    ("formats/langfuse.py", "scores"),
    ("formats/traces/feedback.py", "scores"),
}
"""What other programs name: a model's own configuration, Langfuse's lists of scores."""


@each_source
def test_only_records_names_the_files_of_a_run(path: Path) -> None:
    if part_of(path) not in {"records", "storage"}:
        names = [
            entry
            for entry in run_files(tree_of(path))
            if (name_of(path), entry.partition(": ")[2]) not in NAMES_OF_OTHERS
        ]
        assert names == []


def readings(tree: ast.Module) -> list[str]:
    """By what a file could read results, score lines or verdicts by itself, with its lines."""
    reads = re.compile(
        r"records\.(jsonl\.read|scores\.read_|results\.(iter_result|read_results|results?_of)|"
        r"judgements\.read_verdicts|verdicts\.read_lines)"
    )
    names = [(item.line, item.module) for item in imports(tree)]
    names += [
        (node.lineno, f"records.{node.value.id}.{node.attr}")
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)
    ]
    names += [
        (node.lineno, "records.scores.read_ by a SectionTable")
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == "SectionTable"
    ]
    return [f"{line}: {name}" for line, name in names if reads.match(name)]


READ_OTHERS = {
    "clients/run.py": "the results that it has written itself so far",
    "clients/run_folder.py": "the results that it has written itself",
    "clients/safety_prompts.py": "the answers to prompts that it has written itself",
    "formats/shared/stored.py": "results by their bytes, with all faults",
    "scorers/suite.py": "evidence of any form, for its own JSON",
    "scorers/variation.py": "evidence of any form",
    "scorers/safety.py": "labelled texts",
    "validation/human.py": "labels of people",
    "storage.py": "gives readers to plugins",
}
"""What else is read by these functions, and where."""


@each_source
def test_results_scores_and_verdicts_are_read_through_the_run(path: Path) -> None:
    """A run is read once: from records others take constants, types of lines and writers."""
    if part_of(path) != "records":
        assert bool(readings(tree_of(path))) == (name_of(path) in READ_OTHERS)


def test_a_second_reader_is_found() -> None:
    text = (
        "from records.scores import ScoreLine, line_type, read_head\n"
        "from records.run import Run\n"
        "from records import jsonl\njsonl.project(ScoreLine)\njsonl.read_with(path)\n"
        "from records.results import TestResult, iter_results\n"
    )
    found = [
        "1: records.scores.read_head",
        "6: records.results.iter_results",
        "5: records.jsonl.read_with",
    ]
    assert readings(ast.parse(text)) == found


def test_a_file_name_is_found() -> None:
    tree = ast.parse(
        '"""metrics.json"""\npath / "metrics.json"\nprint("no metrics.json")\n"scores"'
    )
    assert list(run_files(tree)) == ["2: metrics.json"]


def calls(tree: ast.Module) -> Iterator[tuple[str, int]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            if isinstance(node.func, ast.Name):
                yield node.func.id, node.lineno
            elif isinstance(node.func, ast.Attribute):
                yield node.func.attr, node.lineno


def impure_calls(path: Path, names: set[str]) -> list[str]:
    return [
        f"{name_of(path)}:{line}: {name}" for name, line in calls(tree_of(path)) if name in names
    ]


def test_metrics_touch_no_clock_and_no_file_but_their_own_phrases() -> None:
    parts = [path for path in SOURCES if part_of(path) == "ragmetrics"]
    calls = [call for path in parts for call in impure_calls(path, IMPURE_CALLS | FILE_CALLS)]
    refusals, talk = sorted(calls)
    assert refusals.startswith("ragmetrics/text/refusal_phrases.py")
    assert talk.startswith("ragmetrics/text/talk.py")
    assert refusals.endswith("read_text")
    assert talk.endswith("read_text")


def test_guardrails_read_nothing_but_their_own_rules() -> None:
    """The rules and weights that ship in the folder are read by importlib.resources."""
    parts = [path for path in SOURCES if part_of(path) == "guardrails"]
    names = IMPURE_CALLS | FILE_CALLS - {"read_text", "read_bytes"}
    assert [call for path in parts for call in impure_calls(path, names)] == []


def test_no_name_hides_a_library() -> None:
    installed = set(importlib.metadata.packages_distributions())
    assert TOP & (set(sys.stdlib_module_names) | installed) == set()
    assert not (SCRIPTS_DIR.parent / "__init__.py").exists()


def test_no_class_is_longer_than_a_reader_holds() -> None:
    lengths = {
        f"{name_of(path)}: {node.name}": (node.end_lineno or 0) - node.lineno + 1
        for path in SOURCES
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.ClassDef)
    }
    assert {name: length for name, length in lengths.items() if length > LONG_CLASS} == {}


def test_a_class_has_a_name_of_its_own() -> None:
    """Whoever reads a name or looks for it means one thing."""
    places: dict[str, list[str]] = {}
    for path in SOURCES:
        for node in ast.walk(tree_of(path)):
            if isinstance(node, ast.ClassDef):
                places.setdefault(node.name, []).append(name_of(path))
    assert {name: files for name, files in places.items() if len(files) > 1} == {}


FOUR_TYPES = {"Run", "Runs", "Case", "TestCase", "Change", "Page"}
"""Those whose names end in one of the words that name them; a TestCase is a line of the set."""

NEARLY = {
    "ImportedCase": "a case in the form of another tool's file",
    "StoredCase": "a case beside its results, for other tools",
    "TracedCase": "a case that a trace becomes",
    "GoldCase": "the labels of a case, as pure numbers read them",
    "CannotRun": "a verb",
    "_ScoredRun": "a run while it is scored",
}


def test_only_the_four_types_are_named_run_case_change_or_page() -> None:
    """A CaseNote is a note; a class whose name ends in one of the words says that it is one."""
    ends = re.compile(r"(Run|Case|Change|Page)s?$")
    names = {
        node.name
        for path in SOURCES
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.ClassDef) and ends.search(node.name)
    }
    assert names == FOUR_TYPES | {*NEARLY}


VAGUE = {
    *("one", "found", "wanted", "said", "told", "kept", "given", "made", "known", "place", "what"),
    *("asked", "again", "left", "not_not", "put_away", "told_apart", "widened"),
}


def test_no_function_has_a_bare_participle_as_its_name() -> None:
    """A name says whose or which: nouns for values, verbs for functions."""
    bare = [
        f"{name_of(path)}:{node.lineno}: {node.name}"
        for path in SOURCES
        for node in ast.walk(tree_of(path))
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.name in VAGUE
    ]
    assert not bare, "\n".join(bare)
