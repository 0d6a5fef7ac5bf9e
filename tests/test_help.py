"""--help as a manual: what goes in and out, examples that the script takes, exit codes."""

from __future__ import annotations

import importlib
import os
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import click
import pytest
import yaml  # type: ignore[import-untyped]
from click.testing import CliRunner
from tests.rows import each_row
from tests.sources import OF_EXTRAS, SCRIPTS, SCRIPTS_DIR, command_of

import options
from options import commands

ROOT = SCRIPTS_DIR.parents[1]
FILES = {path.stem: path for path in (*SCRIPTS, *OF_EXTRAS)}
"""The scripts of the core, and of the extras that are there."""
NAMES = sorted(FILES)
CALL = re.compile(
    r"python (eval/(?:scripts|extras/\w+)/\w+\.py)((?:'[^']*'|\"[^\"]*\"|[^|&;<>)'\"])*)"
)
PAIR = re.compile(r"[a-z_]+=.+")
each_script = each_row("name", NAMES)


def about(name: str) -> str:
    return commands.docstring(command_of(FILES[name]).callback)


def help_of(name: str, columns: int = 80) -> str:
    done = CliRunner().invoke(
        command_of(FILES[name]), ["--help"], prog_name=f"{name}.py", terminal_width=columns
    )
    assert done.exit_code == 0
    return done.output


def calls(text: str) -> list[tuple[str, list[str]]]:
    """Script and words of every call in the examples of a text."""
    found = []
    for line in commands.examples(text):
        for match in CALL.finditer(line):
            found.append((Path(match[1]).stem, shlex.split(match[2], comments=True)))
    return found


def check_call(name: str, words: list[str]) -> None:
    """Raise what the user would read: an unknown option, a choice that is none, a word too many."""
    command = command_of(FILES[name])
    ctx = click.Context(command, info_name=f"{name}.py")
    values, left, _ = command.make_parser(ctx).parse_args(args=list(words))
    unknown = [word for word in left if not PAIR.fullmatch(word)]  # --filter takes several pairs
    if unknown:
        raise click.UsageError(f"unexpected: {unknown}", ctx)
    for param in command.params:
        given = values.get(param.name or "")
        if isinstance(param.type, click.Choice | click.types.IntParamType) and given is not None:
            for one in given if isinstance(given, list | tuple) else [given]:
                if isinstance(one, str):
                    param.type(one, param, ctx)


@each_script
def test_the_docstring_says_what_goes_in_and_out(name: str) -> None:
    assert re.search(r"\bIn\b", about(name)), "say what goes in: `In: …`"
    assert re.search(r"\bOut\b", about(name)), "say what comes out: `Out: …`"


@each_script
def test_help_holds_examples_of_this_script(name: str) -> None:
    own = [words for script, words in calls(about(name)) if script == name]
    assert own, "add lines such as `  python eval/scripts/NAME.py …`"
    # Whoever copies an example gets all of it, folded or not.
    shown = " ".join(help_of(name).replace("\\\n", " ").split())
    found = [
        " ".join(line.partition(" # ")[0].split()) in shown
        for line in commands.examples(about(name))
    ]
    assert sum(found) == min(commands.MOST_EXAMPLES, len(found))
    starts = [line for line in help_of(name).splitlines() if commands.START.match(line)]
    assert all(line.count("python eval/") == 1 or "&&" in line for line in starts)
    assert "Examples:" in help_of(name)


@each_script
def test_help_is_short(name: str) -> None:
    lines = help_of(name, columns=100).splitlines()
    assert len(lines) - _lines_of_extras(lines) <= 60
    assert max(map(len, lines)) <= 100
    assert lines.index("Examples:") < next(i for i, line in enumerate(lines) if "ptions:" in line)
    extra = FILES[name].parent.relative_to(ROOT).as_posix()
    page = f"{extra}/README.md" if FILES[name] in OF_EXTRAS else f"docs/{name}.md"
    assert lines[-1] == f"More: {page}"


def _lines_of_extras(lines: list[str]) -> int:
    """Lines of the parts that extras add to a page, which can be deleted."""
    parts = "\n".join(lines).split("\n\n")
    return sum(part.count("\n") + 2 for part in parts if part.startswith("From eval/extras/"))


def test_help_shows_the_first_sentence_of_an_option_and_the_page_all() -> None:
    @options.command()
    @click.option("--n", type=click.IntRange(1, 9), default=3, help="How many. Of 9 at most.")
    def one(n: int) -> None:
        """Do it."""

    assert "\n  --n N       How many.  [default: 3]\n" in CliRunner().invoke(one, ["--help"]).output
    option = one.params[0]
    assert isinstance(option, click.Option)
    ctx = click.Context(one, **one.context_settings)
    assert commands.option_words(option, ctx) == (
        *("--n N", "How many. Of 9 at most.", "default: 3; 1<=x<=9"),
    )


@each_script
def test_a_narrow_terminal_breaks_no_line(name: str) -> None:
    assert [line for line in help_of(name).splitlines() if len(line) > 80] == []


def test_options_of_a_long_command_stand_under_headings_each_once() -> None:
    page = help_of("run_eval")
    headings = [line for line in page.splitlines() if re.fullmatch(r"[A-Z][a-z ]+:", line)]
    assert headings == [
        *("Examples:", "Common options:", "Data:", "Server and cost:"),
        *("Other options:", "Output:"),
    ]
    listed = re.findall(r"^  (?:-\w, )?(--[\w-]+)", page, re.MULTILINE)
    params = command_of(FILES["run_eval"]).params
    names = [it.opts[-1] for it in params if isinstance(it, click.Option) and not it.hidden]
    assert sorted(listed) == sorted([*names, "--help"])
    assert page.index("--api-url TEXT") < page.index("Data:") < page.index("--eval-set PATH")


@each_row(
    ("line", "lines"),
    [
        ("  python eval/scripts/a.py --b c", ["  python eval/scripts/a.py --b c"]),
        (
            "  python eval/scripts/a.py --bbbbbbbb ccccccccc 'dd d' && python eval/scripts/a.py",
            [
                "  python eval/scripts/a.py \\",
                "      --bbbbbbbb ccccccccc 'dd d' \\",
                "      && python eval/scripts/a.py",
            ],
        ),
        (
            "  python eval/scripts/a.py --long-option   # after another one",
            ["  # after another one", "  python eval/scripts/a.py \\", "      --long-option"],
        ),
        ("  no call of a script, however long it is; it stays", None),
    ],
)
def test_examples_are_folded_as_a_shell_takes_them(line: str, lines: list[str] | None) -> None:
    page = commands.folded(line, 36)
    assert page.splitlines() == (lines or [line])
    whole = " ".join(page.replace("\\\n", " ").split("\n"))
    assert sorted(shlex.split(whole)) == sorted(shlex.split(line))


@each_script
def test_examples_are_what_the_script_takes(name: str) -> None:
    for script, words in calls(about(name)):
        check_call(script, words)


@each_script
def test_help_names_the_exit_codes(name: str) -> None:
    sentence = " ".join(help_of(name).split()).partition("Exit codes: ")[2]
    assert sentence.startswith("0 ")
    assert re.search(r"\b2 [a-z]", sentence)


GATES = ("compare_runs", "eval_suite", "gate_run", "track_metrics")
SERVERS = ("eval_suite", "judge_answers", "run_eval")


@each_row(("name", "code"), [(one, 1) for one in GATES] + [(one, 3) for one in SERVERS])
def test_other_exit_codes_are_told_where_they_can_come(
    name: str, code: int, request: pytest.FixtureRequest
) -> None:
    if name not in NAMES:
        pytest.skip("no such script here")
    sentence = " ".join(help_of(name).split()).partition("Exit codes: ")[2]
    assert re.search(rf"\b{code} [a-z]", sentence)


@each_script
def test_every_script_has_its_page(name: str) -> None:
    """make_docs writes them; this only sees that the list is whole."""
    make_docs = importlib.import_module("make_docs")
    assert FILES[name] in make_docs.scripts(FILES[name].parent)


@each_row(
    ("words", "wrong"),
    [
        (["--no-such-option"], click.NoSuchOption),
        (["--match", "nonsense"], click.BadParameter),
        (["stray"], click.UsageError),
    ],
)
def test_a_wrong_example_is_found(words: list[str], wrong: type[Exception]) -> None:
    with pytest.raises(wrong):
        check_call("score_retrieval", words)


def test_examples_are_found_in_a_docstring() -> None:
    text = (
        "About python eval/scripts/no.py in a sentence.\n\nExamples:\n"
        "  python eval/scripts/a.py --x 1\n"
        "    --y 2\n"
        "  source <(python eval/scripts/b.py bash)\n"
        "\n"
        "    python eval/scripts/c.py > 'out' && python eval/scripts/d.py --q 'a | b'\n"
    )
    assert calls(text) == [
        ("a", ["--x", "1", "--y", "2"]),
        ("b", ["bash"]),
        ("c", []),
        ("d", ["--q", "a | b"]),
    ]


def test_the_usual_exit_codes_come_by_themselves() -> None:
    @options.command(help="Do it.")
    def one() -> None: ...

    @options.command(help="Do it.\n\nExit codes: 0 done, 9 odd.")
    def other() -> None: ...

    usual = CliRunner().invoke(one, ["--help"]).output
    assert usual.endswith(f"\n{commands.USUAL_EXITS}\n")
    own = CliRunner().invoke(other, ["--help"]).output
    assert own.count("Exit codes:") == 1
    assert "9 odd" in own


def test_make_lists_its_targets() -> None:
    """Every target that a user may want has a line for `make help`."""
    text = (ROOT / "Makefile").read_text("utf-8").replace("\\\n", " ")
    lines = text.splitlines()
    phony = " ".join(line.partition(":")[2] for line in lines if line.startswith(".PHONY:"))
    told = {match[1] for line in lines if (match := re.match(r"([a-z-]+):.*## ", line))}
    wanted = {name for name in phony.split() if name.isascii() and "$" not in name}
    assert wanted - told <= {"setup-dev"}  # a step of others


@pytest.mark.skipif(shutil.which("make") is None, reason="no make")
def test_make_run_stores_whole_passages_unless_told_otherwise() -> None:
    """The scorers of context, groundedness and embedding have no number without them."""

    def asked(*words: str) -> str:
        line = ["make", "-n", "-o", "setup", "run", *words]
        done = subprocess.run(line, cwd=ROOT, capture_output=True, text=True, check=True)
        return done.stdout

    assert "--store-full-text" in asked()
    assert "--store-full-text" not in asked("FULL=0")


@pytest.mark.skipif(shutil.which("make") is None, reason="no make")
def test_make_score_leaves_out_what_cannot_be_scored(tmp_path: Path) -> None:
    """A section that ends with an error would keep those after it from being scored."""

    def sections(*words: str) -> set[str]:
        line = ["make", "-n", "-o", "setup", "score", "PY=python", *words]
        done = subprocess.run(line, cwd=ROOT, capture_output=True, text=True, check=True)
        return set(re.findall(r"score_(\w+)\.py", done.stdout))

    whole = sections("LIGHT=0")
    assert {"retrieval", "embedding", "safety", "pipeline"} <= whole
    assert sections("LIGHT=1") == whole - {"embedding"}
    own = f"RAG_EVAL_EVAL_SET={tmp_path}/my_set.jsonl"
    assert sections("LIGHT=0", own) == whole - {"safety"}
    (tmp_path / "labels").mkdir()
    (tmp_path / "labels" / "safety_labels.jsonl").touch()
    assert sections("LIGHT=0", own) == whole


STUB = '#!/bin/sh\nprintf "<%s>" "$@"\n'
"""A Python that prints its arguments."""


@pytest.mark.skipif(shutil.which("make") is None, reason="no make")
@each_row(
    ("words", "printed"),
    [
        (["run", "API=http://h/ask?a=1&b=2", "K=5"], "--api-url><http://h/ask?a=1&b=2><--k><5>"),
        (["run", "API=x; touch F `touch F` $(shell touch F)"], "<x; touch F `touch F` $(shell"),
        (["judge", "RUN=a&b", 'MODEL=m"$HOME'], '<--run><a&b><--judge><local><--model><m"$HOME>'),
        (["gate", "BASE=a b"], "<--run><latest><--baseline><a b>"),
        (["compare", "RUN=new"], "compare_runs.py><new>"),
        (["suite", "ARGS=--filter 'a b' --json"], "<--filter><a b><--json>"),
        (["import", "FORMAT=otel", "FROM=one two"], "<otel><one><two>"),
    ],
)
def test_make_passes_what_it_is_given_untouched(
    tmp_path: Path, words: list[str], printed: str
) -> None:
    stub = tmp_path / "python"
    stub.write_text(STUB)
    stub.chmod(0o755)
    line = ["make", "-s", "-f", str(ROOT / "Makefile"), "-o", "setup", f"PY={stub}", *words]
    done = subprocess.run(line, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert printed in done.stdout
    assert not (tmp_path / "F").exists()


@pytest.mark.skipif(shutil.which("make") is None, reason="no make")
@each_row("light", ["2", "$(shell touch F)", "yes"])
def test_light_is_0_or_1(tmp_path: Path, light: str) -> None:
    line = ["make", "-f", str(ROOT / "Makefile"), "-n", "suite", f"LIGHT={light}"]
    done = subprocess.run(line, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert f"LIGHT is 0 or 1, not '{light}'" in done.stderr
    assert not (tmp_path / "F").exists()
    step = yaml.safe_load((ROOT / "action.yml").read_text("utf-8"))["runs"]["steps"][1]["run"]
    done = subprocess.run(
        ["bash", "-c", step],
        cwd=tmp_path,
        env=os.environ | {"LIGHT": light, "GITHUB_ACTION_PATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (2, f"::error::light is 0 or 1, not '{light}'\n")
