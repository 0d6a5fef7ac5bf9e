"""Documents and docstrings name rooms, files and functions that are there."""

from __future__ import annotations

import ast
import importlib
import itertools
import re
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.doc_commands import DETOURS, Step, difference, steps, without_comment
from tests.prose import FIXED_PHRASES, words_per_sentence
from tests.rows import each_row
from tests.sources import SCRIPTS_DIR, SOURCES, name_of, tree_of
from tests.test_architecture import MAY

from ragmetrics import catalogue
from records.extras import EXTRAS, known_extras

ROOT = SCRIPTS_DIR.parents[1]
MAP = ROOT / "docs" / "architecture.md"
GUIDE = ROOT / "CONTRIBUTING.md"
DOCUMENTS = [ROOT / "README.md", ROOT / "EVAL.md", GUIDE, *sorted((ROOT / "docs").glob("*.md"))]
ROOMS = sorted(set(MAY) - {"storage", "options"})

STEP = re.compile(r"`([\w/]+\.py):([\w.]+)`")
"""A step of a way: a file below eval/scripts and a function, class or method in it."""

MENTION = re.compile(rf"(?<![\w/.])(?:{'|'.join(ROOMS)})/[\w/]*\w(?:\.py)?(?![\w/*<]|\.\w)")
"""A path below eval/scripts, such as ``records/cases.py`` or ``ragmetrics/catalogue``."""

TEST_FOLDER = re.compile(rf"tests/(?:{'|'.join(ROOMS)})[\w/]*")


SCRIPT = re.compile(r"eval/(?:scripts|extras/(\w+))/[a-z]\w*\.py")
"""A script as a command of a document names it; group 1: its extra."""


def test_scripts_stand_where_documents_say() -> None:
    makes = [ROOT / "Makefile", *EXTRAS.glob("*/Makefile.mk"), *EXTRAS.glob("*/README.md")]
    for document in (*DOCUMENTS, *makes):
        for script in SCRIPT.finditer(document.read_text("utf-8")):
            is_there = script[1] is None or (EXTRAS / script[1]).is_dir()
            assert not is_there or (ROOT / script[0]).is_file(), f"{document.name}: {script[0]}"


def defined(tree: ast.Module) -> set[str]:
    """What a file defines: functions, classes, and methods as ``Class.method``."""
    names: set[str] = set()
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.add(node.name)
        if isinstance(node, ast.ClassDef):
            methods = (ast.FunctionDef, ast.AsyncFunctionDef)
            names |= {f"{node.name}.{part.name}" for part in node.body if isinstance(part, methods)}
        if isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names |= {target.id for target in targets if isinstance(target, ast.Name)}
    return names


def missing_steps(text: str) -> Iterator[str]:
    """The steps of a text whose file or function is not there."""
    for path, name in STEP.findall(text):
        source = SCRIPTS_DIR / path
        if source not in SOURCES or name not in defined(tree_of(source)):
            yield f"{path}:{name}"


def missing_paths(text: str) -> Iterator[str]:
    """The paths below eval/scripts that a text names and that are not there."""
    for path in MENTION.findall(TEST_FOLDER.sub("", text)):
        target = SCRIPTS_DIR / path
        if not (target.exists() or target.with_suffix(".py").exists()):
            yield path


@each_row("path", [MAP, GUIDE])
def test_every_step_is_a_file_and_a_function(path: Path) -> None:
    text = path.read_text("utf-8")
    assert STEP.search(text)
    assert list(missing_steps(text)) == []


@each_row("path", DOCUMENTS)
def test_documents_name_files_that_are_there(path: Path) -> None:
    assert list(missing_paths(path.read_text("utf-8"))) == []


def test_sources_name_files_that_are_there() -> None:
    faults = {
        name_of(path): faulty
        for path in SOURCES
        if (faulty := list(missing_paths(path.read_text("utf-8"))))
    }
    assert faults == {}


def rooms_of_table(text: str) -> list[str]:
    return re.findall(r"^\| `(\w+)/` \|", text, re.MULTILINE)


def test_the_table_of_rooms_is_whole() -> None:
    assert sorted(rooms_of_table(MAP.read_text("utf-8"))) == ROOMS


def test_a_wrong_step_or_path_is_found() -> None:
    text = "`records/cases.py:iter_cases`, `records/cases.py:gone`, `records/gone.py:iter_cases`"
    assert list(missing_steps(text)) == ["records/cases.py:gone", "records/gone.py:iter_cases"]
    paths = "records/cases.py, ragmetrics/catalogue, tests/records/gone.py and records/gone.py"
    assert list(missing_paths(paths)) == ["records/gone.py"]


# ------------------------------------------- commands in README.md and the tutorial

MAKEFILES = {
    "README.md": ROOT / "Makefile",
    "docs/tutorial.md": ROOT / "docs" / "examples" / "repository" / "rag-eval" / "Makefile",
}
TARGET = re.compile(r"^([a-z-]+):", re.MULTILINE)


def faults_of(command: str, own: Path) -> Iterator[str]:
    """Scripts, options and make targets of a command that are not there. ``own``: the Makefile of a
    make without -C."""
    words = shlex.split(without_comment(command).rstrip("&"), comments=True)
    for number, word in enumerate(words):
        if match := re.search(r"eval/scripts/(\w+)\.py$", word):
            script = SCRIPTS_DIR / f"{match[1]}.py"
            if not script.exists():
                yield word
                continue
            main = importlib.import_module(script.stem).main
            known = {name for option in main.params for name in option.opts}
            own_words = itertools.takewhile(
                lambda text: text not in ("|", ";", "&&"), words[number:]
            )
            yield from (text for text in own_words if text.startswith("--") and text not in known)
        if word == "make":
            file, targets = own, []
            rest = list(
                itertools.takewhile(lambda text: text not in ("|", ";"), words[number + 1 :])
            )
            while rest:
                text = rest.pop(0)
                if text == "-C":
                    inner = rest.pop(0).endswith("rag-eval")
                    file = MAKEFILES["docs/tutorial.md" if inner else "README.md"]
                elif not text.startswith("-") and "=" not in text:
                    targets.append(text)
            there = TARGET.findall(file.read_text("utf-8"))
            there += [f"score-{section}" for section in catalogue.SECTIONS]
            yield from (f"make {text}" for text in targets if text not in there)


@each_row("name", sorted(DETOURS))
def test_commands_of_documents_are_there(name: str) -> None:
    """`make docs-check` runs them; this takes no time."""
    commands = [step.command for step in steps((ROOT / name).read_text("utf-8")) if step.command]
    assert len(commands) > 10
    faults = [fault for command in commands for fault in faults_of(command, MAKEFILES[name])]
    assert faults == []
    script = "\n".join(f"f{number}() {{\n{text}\n}}" for number, text in enumerate(commands))
    parsed = subprocess.run(["bash", "-n"], input=script, capture_output=True, text=True)
    assert parsed.stderr == ""
    assert set(DETOURS[name]) <= set(map(without_comment, commands)), "a detour that nobody takes"


def test_the_table_of_commands_can_be_typed() -> None:
    text = (ROOT / "README.md").read_text("utf-8")
    rows = [line for line in text.splitlines() if line.startswith("| ")]
    commands = [command for row in rows for command in re.findall(r"`(make [^`]+)`", row)]
    assert len(commands) > 15
    assert [fault for text in commands for fault in faults_of(text, MAKEFILES["README.md"])] == []


def test_a_command_that_is_not_there_is_found() -> None:
    command = (
        "A=1 make -C ../mybot/rag-eval judge | .venv/bin/python eval/scripts/run_eval.py --kk 3"
    )
    assert list(faults_of(command, MAKEFILES["README.md"])) == ["make judge", "--kk"]
    assert list(faults_of("make gone ARGS='--x'", MAKEFILES["README.md"])) == ["make gone"]
    assert list(faults_of("python eval/scripts/gone.py", MAKEFILES["README.md"])) == [
        "eval/scripts/gone.py"
    ]


def test_lines_for_windows_name_files_that_are_there() -> None:
    text = (ROOT / "README.md").read_text("utf-8")
    (block,) = re.findall(r"```powershell\n(.*?)```", text, re.DOTALL)
    files = re.findall(r"\S+\.(?:txt|py)\b", block)
    assert len(files) >= 3
    assert [name for name in files if not (ROOT / name.replace("\\", "/")).exists()] == []


def test_blocks_are_taken_apart() -> None:
    text = "```console\n$ a \\\n>   -b  # why\nout\n$ c\n```\n"
    text += "```python x.py\nprint()\n```\n```sh\nd\n```\n"
    assert list(steps(text)) == [
        Step(2, "a \\\n  -b  # why", ("out",)),
        Step(5, "c", ()),
        Step(8, file="x.py", text="print()\n"),
        Step(11, "d"),
    ]
    assert without_comment("a \\\n  -b  # why") == "a -b"
    with pytest.raises(ValueError, match="line 2: a block of no language"):
        list(steps("\n```\nmake\n```\n"))


@each_row(
    ("shown", "printed", "fault"),
    [
        (["a", "b"], ["a", "b", ""], ""),
        (["a"], ["a", "b"], "not shown: 'b'"),
        (["a", "b"], ["a"], "not printed: 'b'"),
        (["b", "a"], ["a", "b"], "printed elsewhere: 'b'"),
        (["a", "⋮", "c"], ["a", "b", "c"], ""),
        (["⋮", "b"], ["a", "b", "c"], "printed elsewhere: 'b'"),
        (["⋮", "b", "⋮"], ["a", "b", "c"], ""),
        (["⋮", "b", "c", "d"], ["a", "b", "c", "x", "d"], "not shown: 'x'"),
        (["a", "⋮"], ["b", "a"], "printed elsewhere: 'a'"),
        (["⋮", "c", "⋮", "a", "⋮"], ["a", "b", "c"], "not printed: 'a'"),
        (["⋮", "b"], ["b", "c", "b"], ""),
        (["took 1.5 s"], ["took 22 s"], ""),
        (["mean 0.5"], ["mean 0.6"], "not printed: 'mean 0.5'"),
    ],
)
def test_outputs_are_compared(shown: list[str], printed: list[str], fault: str) -> None:
    assert difference(shown, printed) == fault


# ------------------------------------------------------------- links, size and sentences

BY_HAND = [path for path in DOCUMENTS if not path.read_text("utf-8").startswith("<!-- Made by")]
LINK = re.compile(r"\]\(([^)\s]+)\)")
FENCED = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
GENERATED = re.compile(r"^<!-- generated.*?^<!-- end -->$", re.MULTILINE | re.DOTALL)


def headings(text: str, marks: str = r"#+") -> list[str]:
    """The anchors of a document's headings, as GitHub makes them."""
    titles = re.findall(rf"^{marks} (.+)$", FENCED.sub("", text), re.MULTILINE)
    plain = (re.sub(r"[^\w\- ]", "", title.lower()) for title in titles)
    return [title.strip().replace(" ", "-") for title in plain]


def broken_links(path: Path) -> Iterator[str]:
    """The links of a document to a file or a heading that is not there. An extra may be deleted:
    what is known of it stays in the documents."""
    deleted = [EXTRAS / name for name in known_extras() if not (EXTRAS / name).exists()]
    for link in LINK.findall(FENCED.sub("", path.read_text("utf-8"))):
        file, _, anchor = link.partition("#")
        target = (path.parent / file).resolve() if file else path
        if "://" in link or any(target.is_relative_to(folder) for folder in deleted):
            continue
        if not target.exists() or (anchor and anchor not in headings(target.read_text("utf-8"))):
            yield link


@each_row("path", DOCUMENTS)
def test_links_lead_to_a_file_and_a_heading(path: Path) -> None:
    assert list(broken_links(path)) == []


def test_a_broken_link_is_found(tmp_path: Path) -> None:
    page = tmp_path / "a.md"
    page.write_text("# One `k@5`\n[a](#one-k5) [b](#two) [c](a.md#one-k5) [d](b.md)\n", "utf-8")
    assert list(broken_links(page)) == ["#two", "b.md"]


@each_row("path", BY_HAND)
def test_a_long_page_has_a_list_of_its_headings(path: Path) -> None:
    text = path.read_text("utf-8")
    if len(text.splitlines()) > 120:
        assert [name for name in headings(text, "##") if f"(#{name})" not in text] == []


def test_the_documents_stay_short() -> None:
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
    assert sum(len(path.read_text("utf-8").splitlines()) for path in pages) <= 5000
    for name in ("metrics", "decisions"):
        guide, _, _ = (ROOT / "docs" / f"{name}.md").read_text("utf-8").partition("\n---\n")
        before_tables, _, _ = guide.partition("\n## The tables\n")
        assert len(before_tables.split()) <= 3200, f"{name}.md: a guide is read in ten minutes"


@each_row("name", ["README.md", "EVAL.md"])
def test_sentences_are_short(name: str) -> None:
    assert words_per_sentence((ROOT / name).read_text("utf-8")) <= 17


def test_words_of_a_sentence_are_counted() -> None:
    # 4 words, 3 words, and 5 with `a b` as one; headings, tables and code are no sentences.
    text = "# A title of words\n\nOne two three four. [Five](x.md) six seven.\n\n| a | b c d |\n"
    text += "```sh\nmake it run\n```\n- eight nine `a b` ten eleven\n"
    assert words_per_sentence(text) == 4


@each_row("path", DOCUMENTS)
def test_documents_are_in_plain_english(path: Path) -> None:
    text = GENERATED.sub("", FENCED.sub("", path.read_text("utf-8")))
    assert FIXED_PHRASES.findall(text) == []
