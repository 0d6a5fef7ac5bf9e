"""The block in the report of a run: findings of the latest audit beside failing cases."""

from __future__ import annotations

from pathlib import Path

import orjson
import pytest
from tests.processes import call_script

import extras.audit.report_block as report_block
from extras.audit.audit import LAST_AUDIT
from records.files import sha256_file
from records.run import Run
from records.runs import ResultsWriter
from storage import ErrorInfo, TestResult
from terminal.page import CaseRef, Prose, Quoted

PLACES = [
    {"rel_path": "a.md", "heading_path": "A", "page": None},
    {"rel_path": "b.pdf", "heading_path": "", "page": 2},
]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Two cases, of which one failed, and an audit with a finding about each."""
    monkeypatch.setattr(report_block, "CACHE_DIR", tmp_path)
    eval_set = tmp_path / "set.jsonl"
    eval_set.write_text('{"id": "good", "question": "q"}\n{"id": "bad", "question": "r"}\n')
    writer = ResultsWriter(tmp_path / "results", "a")
    writer.write_result(TestResult("good", answer="Four weeks."))
    writer.write_result(TestResult("bad", status="error", error=ErrorInfo("timeout")))
    folder = writer.finish(["good", "bad"]).parent
    config = {"schema": 1, "run_id": "a", "dataset": {"sha256": sha256_file(eval_set)}}
    (folder / "config.json").write_bytes(orjson.dumps(config))
    words = ("--run", str(folder), "-q", "--eval-set", str(eval_set))
    assert call_script("score_pipeline", *words).returncode == 0
    return Run(folder, eval_set)


def audited(run: Run, *cases: str) -> None:
    findings = [
        {"kind": kind, "why": why, "cases": [case], "quotes": [{"place": p} for p in places]}
        for case in cases
        for kind, why, places in (
            ("gold", f"the file of {case} is gone", PLACES[:1]),
            ("may_contradict", "same subject, differ in dates", PLACES),
        )
    ]
    sha = run.config.dataset["sha256"]
    data = {"schema": 1, "set_sha256": sha, "vault": "docs", "findings": findings}
    (run.folder.parents[1] / LAST_AUDIT).write_bytes(orjson.dumps(data))


def test_findings_stand_beside_the_failing_cases_alone(run: Run) -> None:
    audited(run, "good", "bad")
    blocks = report_block.blocks([run])
    lines = [block for block in blocks if isinstance(block, Prose) and block.item]
    dates = "same subject, differ in dates; a.md > A; b.pdf > page 2"
    assert [line.words for line in lines] == [
        (CaseRef("bad"), ": its gold: ", Quoted("the file of bad is gone")),
        (CaseRef("bad"), ": may contradict: ", Quoted(dates)),
    ]


def test_the_report_has_them_as_markdown_and_as_html(run: Run) -> None:
    audited(run, "bad")
    done = call_script("report_run", "--run", str(run.folder), "-q")
    assert done.returncode == 0, done.stderr
    for name in ("report.md", "report.html"):
        text = (run.folder / name).read_text("utf-8")
        assert text.count("the file of bad is gone") == 1, name


def test_without_an_audit_or_a_failing_case_there_is_no_block(run: Run) -> None:
    assert report_block.blocks([run]) == []
    audited(run, "good")
    assert report_block.blocks([run]) == []


def test_an_audit_of_another_set_or_a_damaged_one_says_nothing(run: Run) -> None:
    path = run.folder.parents[1] / LAST_AUDIT
    audited(run, "bad")
    other = orjson.loads(path.read_bytes()) | {"set_sha256": "0" * 64}
    for data in (orjson.dumps(other), b'{"find', b"{}", b"[]"):
        path.write_bytes(data)
        assert report_block.blocks([run]) == []
