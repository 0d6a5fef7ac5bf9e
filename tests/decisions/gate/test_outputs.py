"""JUnit, annotations and Markdown of one verdict, with texts that mean harm; docs/examples."""

from __future__ import annotations

import importlib
import io
import re
import shutil
import subprocess
from pathlib import Path
from xml.etree import ElementTree as ET

import click
import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from rich.console import Console
from tests.rows import each_row

import gate_run
from decisions.gate_print import (
    MARKER,
    MOST,
    _escape_data,
    _escape_property,
    gate_page,
    junit,
    workflow_commands,
)
from records.gate_verdict import Accept, Check, Verdict, parse_accepts, with_accepts
from storage import StorageError
from terminal.page import DataColumn
from terminal.print_page import print_page
from terminal.tables import harmless_lines
from views.page import _cell, code
from views.page import markdown as markdown_of

HOSTILE = "</failure><script>alert(1)</script>]]>&\x00\x1b[31m\n::error::x\r| `a` @team #1 \ud800"


def check(status: str, metric: str = "recall@5", section: str = "retrieval", **more: str) -> Check:
    more = {"reason": "0.1, must be >= 0.5"} | more if status != "passed" else more
    return Check("floor", section, metric, status, ">= 0.5", 0.1, line=3, **more)  # type: ignore[arg-type]


def verdict(*checks: Check, **more: object) -> Verdict:
    return Verdict("run", "gates.toml", checks, **more)  # type: ignore[arg-type]


WHOLE = verdict(
    check("failed", HOSTILE, reason=HOSTILE),
    check("accepted", "mrr", accepted=HOSTILE),
    check("skipped", "baseline", "run"),
    check("passed", "ndcg@5"),
    check("passed", "cost_usd", "run"),
    accepts=(Accept("mrr", HOSTILE, True),),
    caveats=(HOSTILE,),
    baseline=HOSTILE,
)


def markdown(shown: Verdict) -> str:
    rest = "gate.json holds all checks"
    return markdown_of([gate_page(shown)], head=MARKER, most=MOST, rest=rest)


SUITE = {"name", "tests", "failures", "errors", "skipped", "time"}
ALLOWED = {
    "testsuites": ({"name", "tests", "failures", "errors", "time"}, ["testsuite"]),
    "testsuite": (SUITE, ["properties", "testcase"]),
    "properties": (set(), ["property"]),
    "property": ({"name", "value"}, []),
    "testcase": ({"classname", "name", "time"}, ["skipped", "failure"]),
    "failure": ({"type", "message"}, []),
    "skipped": ({"message"}, []),
}
"""Attributes and children, in order, as the schema of Jenkins' xUnit plugin has them."""


def test_junit_keeps_the_schema_and_its_counts() -> None:
    root = ET.fromstring(junit(WHOLE))
    assert root.tag == "testsuites"
    for element in root.iter():
        attributes, children = ALLOWED[element.tag]
        assert set(element.attrib) <= attributes, element.tag
        assert [child.tag for child in element] == sorted(
            (child.tag for child in element), key=children.index
        )
    assert (root.get("tests"), root.get("failures")) == ("5", "1")
    for suite in root:
        cases = suite.findall("testcase")
        assert suite.get("tests") == str(len(cases))
        assert suite.get("failures") == str(sum(case.find("failure") is not None for case in cases))
        assert suite.get("skipped") == str(sum(case.find("skipped") is not None for case in cases))


def test_junit_holds_hostile_text_as_text() -> None:
    data = junit(WHOLE)
    assert b"<script>" not in data
    assert not re.search(rb"[\x00-\x08\x0b\x0c\x0e-\x1f]", data)
    failure = next(ET.fromstring(data).iter("failure"))
    assert "<script>alert(1)</script>]]>&" in (failure.text or "")
    accepted = next(ET.fromstring(data).iter("skipped"))
    assert (accepted.get("message") or "").startswith("accepted: ")


@given(st.text(max_size=80))
def test_junit_of_any_text_is_well_formed(text: str) -> None:
    root = ET.fromstring(junit(verdict(check("failed", text, text, reason=text))))
    assert len(list(root.iter("failure"))) == 1


@given(st.text(max_size=80))
def test_an_annotation_is_one_line_that_reads_back(text: str) -> None:
    """What GitHub does: split at the first :: behind the properties, then undo the escapes.
    Control characters are gone, which the text of a log might obey."""
    failing = verdict(check("failed", "m", reason=text))
    line = workflow_commands(failing, "eval/gates.toml")[0]
    assert not {"\n", "\r"} & set(line)
    level, _, message = line.removeprefix("::").partition("::")
    assert level.startswith("error file=eval/gates.toml,line=3,title=")
    for escape, char in (("%0A", "\n"), ("%25", "%")):
        message = message.replace(escape, char)
    assert message == harmless_lines(text)


def test_the_levels_of_annotations() -> None:
    lines = workflow_commands(WHOLE, "g.toml")
    assert [line.partition(" ")[0] for line in lines] == [
        "::error", "::warning", "::notice", "::notice", "::notice",
    ]  # fmt: skip
    assert "Gate FAILED: 1 check failed, 1 accepted, 1 skipped, 2 passed." in lines[2]
    assert _escape_data("100 %\r\na:b,c") == "100 %25%0Aa:b,c"
    assert _escape_property("a:b,c%") == "a%3Ab%2Cc%25"
    many = verdict(*(check("failed", f"m{place}") for place in range(25)))
    errors = [line for line in workflow_commands(many, "g") if line.startswith("::error")]
    assert len(errors) == 10
    assert "title=16 more" in errors[-1]
    assert "m24" in errors[-1]


def test_markdown_is_inert() -> None:
    text = markdown(WHOLE)
    assert text.startswith(f"{MARKER}\n## ❌ Gate FAILED: 1 check failed, 1 accepted, 1 skipped")
    assert "\x1b" not in text
    assert "\x00" not in text
    tokens = (
        MarkdownIt("commonmark", {"html": True})
        .enable("table")
        .parse(text.encode("utf-8", "replace").decode())
    )
    parts = [part for token in tokens for part in (token, *(token.children or ()))]
    outside = "".join(part.content for part in parts if part.type in ("text", "html_inline"))
    blocks = {part.content for part in parts if part.type == "html_block"}
    assert "<script>" in "".join(part.content for part in parts if part.type == "code_inline")
    for harm in ("<script", "@team", "#1 ", "::error", "alert"):
        assert harm not in outside
        assert not any(harm in block for block in blocks)
    rows = [line for line in text.splitlines() if line.startswith("| ")]
    assert {len(re.findall(r"(?<!\\)\|", row)) for row in rows} == {10}


@given(st.text(max_size=100))
def test_a_code_span_ends_where_it_should(text: str) -> None:
    span = code(text)
    tokens = MarkdownIt("commonmark").parse(f"before {span} after")
    parts = [part for token in tokens for part in token.children or ()]
    assert [part.type for part in parts] == ["text", "code_inline", "text"]
    assert (parts[0].content, parts[2].content) == ("before ", " after")


@given(st.text("a`|\\ <b>", max_size=12))
def test_a_cell_ends_where_it_should(text: str) -> None:
    row = f"| {_cell(DataColumn('', str, foreign=True), text)} | 1 |"
    tokens = MarkdownIt("commonmark").enable("table").parse(f"| a | b |\n|---|---|\n{row}\n")
    inside = [token.children for token in tokens if token.type == "inline"][2:]
    assert [[part.type for part in parts or ()] for parts in inside] == [["code_inline"], ["text"]]


def test_a_comment_keeps_the_limit() -> None:
    long = verdict(*(check("failed", f"m{place}", reason="x" * 400) for place in range(1000)))
    text = markdown(long)
    assert len(text) <= MOST + 10
    assert "gate.json holds all checks" in text
    wide = verdict(*(check("passed", f"m{place}" + "x" * 80) for place in range(1000)))
    assert "gate.json holds all checks" in markdown(wide)
    assert "<details>" not in markdown(wide)


def test_a_passed_gate() -> None:
    good = verdict(check("passed"))
    assert "✅ Gate passed: 1 check passed." in markdown(good)
    assert workflow_commands(good, "g") == ["::notice title=Gate::Gate passed: 1 check passed."]
    assert good.passed


def test_an_accept_needs_a_name_and_a_reason_once() -> None:
    assert parse_accepts(["a=b=c"]) == [Accept("a", "b=c")]
    for words in (["recall@5"], ["recall@5="], ["=why"], [" = "]):
        with pytest.raises(StorageError, match="metric=reason"):
            parse_accepts(words)
    with pytest.raises(StorageError, match="twice"):
        parse_accepts(["a=b", "a=c"])


def test_accepts_fit_the_name_or_the_metric() -> None:
    checks = [check("failed", "mrr"), check("failed", "recall@5"), check("passed", "ndcg@5")]
    judged, accepts = with_accepts(
        checks, [Accept("retrieval.mrr", "why"), Accept("recall@5", "so"), Accept("ndcg@5", "no")]
    )
    assert [one.status for one in judged] == ["accepted", "accepted", "passed"]
    assert [one.accepted for one in judged] == ["why", "so", None]
    assert [one.needed for one in accepts] == [True, True, False]
    with pytest.raises(StorageError, match="no gate checks that"):
        with_accepts(checks, [Accept("mmr", "typo")])
    gone = Check("measured", "retrieval", "mrr", "failed", "> 0")
    assert gone.name == "retrieval.mrr:measured"
    judged, accepts = with_accepts([gone], [Accept("mrr", "why")])
    assert (judged[0].status, accepts[0].needed) == ("failed", False)
    judged, _ = with_accepts([gone], [Accept("retrieval.mrr:measured", "why")])
    assert judged[0].status == "accepted"


def test_the_verdict_comes_first_and_no_number_is_cut_on_a_narrow_terminal() -> None:
    long = check(
        "failed", "a-case-with-a-very-long-name" * 3, "case", reason="0.100, must be >= 0.5"
    )
    screen = io.StringIO()
    print_page(Console(file=screen, width=60), gate_page(verdict(long)), every=True)
    lines = screen.getvalue().splitlines()
    assert lines[0] == "Run run, rules of gates.toml"
    assert "0.100" in screen.getvalue()
    assert "must be" in lines[1]
    assert lines[-1] == "Gate FAILED: 1 check failed."


EXAMPLES = Path(gate_run.__file__).resolve().parents[2] / "docs" / "examples"
FILES = ["nightly.sh", "github-actions.yml"]
COMMAND = re.compile(r"eval/scripts/(\w+)\.py((?:[^\n\\]|\\\n)*)")


@each_row("name", FILES)
def test_the_commands_have_the_options_they_use(name: str) -> None:
    text = (EXAMPLES / name).read_text("utf-8")
    found = COMMAND.findall(text)
    assert {"run_eval", "eval_suite", "track_metrics"} <= {script for script, _ in found}
    for script, words in found:
        command = importlib.import_module(script).main
        assert isinstance(command, click.Command)
        known = {
            option for param in command.params for option in (*param.opts, *param.secondary_opts)
        }
        assert set(re.findall(r"(?<!\S)--[a-z-]+", words)) <= known, (script, words)


def test_the_comment_is_found_by_the_marker_that_the_gate_writes() -> None:
    assert f'startswith("{MARKER}")' in (EXAMPLES / "github-actions.yml").read_text("utf-8")
    assert "fetch-depth: 0" in (EXAMPLES / "github-actions.yml").read_text("utf-8")


@pytest.mark.skipif(shutil.which("sh") is None, reason="no sh")
def test_the_nightly_script_is_sound_and_says_what_it_needs() -> None:
    path = EXAMPLES / "nightly.sh"
    assert subprocess.run(["sh", "-n", str(path)]).returncode == 0
    done = subprocess.run(["sh", str(path)], env={}, capture_output=True, encoding="utf-8")
    assert done.returncode != 0
    assert "say which bot to ask" in done.stderr
