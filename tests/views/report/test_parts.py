"""Parts of the report that only some runs have: prompts, repeats, the judge, extras."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.definitions import definition_of
from tests.metrics_files import write_metrics
from tests.pages import page_of
from tests.rows import each_row
from tests.score_lines import write_lines

import report_run
from decisions.case_rules import Basis, CaseRules
from decisions.case_verdict import Ruling
from decisions.measures import measures
from ragmetrics.catalogue.cases import RULES, CaseRule
from records import extras
from records.run import Run
from storage import Reference, RetrievedChunk, RunConfig, TestResult, replace_json
from terminal.page import DataColumn, DataTable, PassageBlock
from views.case import case_of
from views.case_blocks import ShownWith, case_blocks
from views.report import charts, metrics
from views.report.answers import RunAnswers
from views.report.charts import TrendLine, TrendValue
from views.report.metrics import SliceCell
from views.report.page import PageBlocks
from views.report.tables import settings

RULE = CaseRule("low", "low", "low", "y is {value}", "context.y", ">", 0.15)

RULING = Ruling(CaseRules((*RULES[:1], RULE)), Basis())


def answers_of(run: Path, *sections: str) -> RunAnswers:
    """The answers of a run by the scores ``x`` and ``y`` of some sections."""
    columns = dict.fromkeys(sections, ("x", "y"))
    return RunAnswers(Run(run, explained=True), sections, columns, RULING)


def test_sections_are_joined_by_answer_whatever_their_order(tmp_path: Path) -> None:
    """One section lacks a case, one tells repeats apart, one stands in another order."""
    write_lines(tmp_path, "a", [{"case_id": c, "scores": {"x": 1.0}} for c in "pqr"])
    rows = [("r", 0, 0.3), ("p", 0, 0.1), ("p", 1, 0.2)]
    lines_of_context = [{"case_id": c, "repeat": n, "scores": {"y": v}} for c, n, v in rows]
    write_lines(tmp_path, "context", lines_of_context)
    answers = answers_of(tmp_path, "a", "context", "c")
    assert answers.absent == ["c"]
    named = [("p", 0), ("q", 0), ("r", 0), ("p", 1)]
    assert [answers.verdicts.find(key) for key in named] == [0, 1, 2, 3]
    assert answers.keys(range(4)) == dict(enumerate(named))
    assert [str(value) for value in answers.column(("a", "x"))] == ["1.0", "1.0", "1.0", "nan"]
    column = answers.column(("context", "y"))
    assert [str(value) for value in column] == ["0.1", "nan", "0.3", "0.2"]
    assert list(answers.measured()) == [(0, ("a", "x")), (1, ("context", "y"))]
    assert [answers.shows((name, "y")) for name in ("a", "context", "c")] == [True, True, False]
    broken = answers.verdicts.broken
    assert [bool(RULING.settle(bits)[0]) for bits in broken] == [True, False, False, False]
    counts = answers.verdicts.counts()
    assert (counts.cases, counts.failing, counts.unstable) == (3, 1, 1)  # p: one of two answers
    lines = answers.lines([3, 1])
    assert {name: line.scores for name, line in lines[3].items()} == {"context": {"y": 0.2}}
    assert set(lines[1]) == {"a"}


def test_a_failed_call_breaks_one_rule_alone(tmp_path: Path) -> None:
    row = {
        "case_id": "p",
        "status": "failed",
        "scores": {"y": None},
        "reasons": {"*": "call failed"},
    }
    write_lines(tmp_path, "context", [row])
    answers = answers_of(tmp_path, "context")
    assert answers.verdicts.counts().reasons == {"no_response": 1}
    assert answers.failed.tolist() == [True]
    assert (answers.reasons, answers.behind) == ({}, {})


def test_wrongly_judged_prompts_are_listed_apart(tmp_path: Path) -> None:
    said = {"kind": "attack", "category": "role_override", "text": "Obey.", "score": 0.1}
    rates = {"passed": 0.0, "caught": 1.0}
    rows = [
        {"case_id": case_id, "scores": {"detection_rate": rate}, "evidence": said}
        for case_id, rate in rates.items()
    ]
    write_lines(tmp_path, "safety", rows)
    answers = answers_of(tmp_path, "safety")
    count, listed = answers.wrong_prompts()
    assert count == 1
    assert [(line.case_id, misses) for line, misses in listed] == [("passed", ["detection_rate"])]
    assert len(answers) == 0  # prompts are no answers
    assert answers_of(tmp_path).wrong_prompts() == (0, [])


def test_a_reference_marks_the_passage_that_it_names() -> None:
    """By chunk id where both have one, else by the place that its number says."""
    chunks: list[RetrievedChunk | str] = [
        RetrievedChunk(chunk_id=name, text="t" * 5000, rank=n) for n, name in enumerate("abc", 1)
    ]
    refs = [Reference(index=1, chunk_id="b"), Reference(index=3)]
    result = TestResult("q", "Q?", answer="A [1][3]", retrieved=chunks, references=refs)
    blocks = case_blocks(case_of(result), view=ShownWith(brief=True))
    passages = [block for block in blocks if isinstance(block, PassageBlock)]
    assert [[tag.text for tag in one.tags] for one in passages] == [[], ["cited"], ["cited"]]
    assert "… 1,000 more characters" in PageBlocks().write([passages[0]])


def test_the_configuration_is_flat_and_without_what_is_empty(tmp_path: Path) -> None:
    config = RunConfig("r", index={"a": {"b": 1, "c": None}, "on": True, "no": []}, seed=0)
    replace_json(tmp_path / "config.json", {
        "run_id": "r", "schema": 1, "index": config.index, "run": {"k": [1, 2]}, "seed": 0
    })  # fmt: skip
    parts = dict(settings(tmp_path))
    assert parts["index"] == [("a.b", "1"), ("on", "true")]
    assert parts["how it was asked"] == [("k", "1, 2")]
    assert ("seed", "0") in parts["run"]


SECTION: dict[str, Any] = {
    "definitions": {
        "recall@10": definition_of("retrieval", "recall"),
        "recall@2": definition_of("retrieval", "recall"),
        "mine": "custom/mine@1",
        "precision@2": definition_of("retrieval", "precision"),
    },
    "mean": {"mine": 0.4, "precision@2": 0.5, "recall@10": 0.8, "recall@2": 0.6},
    "n": {"mine": 25, "precision@2": 25, "recall@10": 25, "recall@2": 25},
    "ci95": {},
}  # fmt: skip


def test_metrics_stand_in_catalogue_order_with_rising_cut_offs() -> None:
    """metrics.json sorts its keys, so recall@10 stands before recall@2 there."""
    names = metrics.metrics_in_order(SECTION)
    assert names == ["recall@2", "recall@10", "precision@2", "mine"]
    assert metrics.summary_of("retrieval", names) == names  # none of the suite's choice is there
    expected = ["pipeline", "zeta"]
    assert metrics.sections_in_order({"zeta": SECTION, "pipeline": SECTION, "x": 3}) == expected


def test_a_metric_of_an_older_version_keeps_its_words() -> None:
    """What exactly it meant then is not known here; what it is about is."""
    parts: dict[str, Any] = {"ci95": {}, "not_applicable": {}, "failed": {}}
    old = (
        SECTION
        | parts
        | {"definitions": SECTION["definitions"] | {"recall@2": "retrieval/recall@0"}}
    )
    found = metrics.section_metrics("retrieval", old, measures({"retrieval": old}, {}))
    told = {metric.measure.metric: metric for metric in found}
    assert told["recall@2"].words == "Right passages found in the first 2"
    assert told["recall@2"].meaning == ""
    assert told["mine"].words == ""


@each_row(("values", "shown", "left_out"), [(5, 5, 0), (45, 30, 15)])
def test_the_largest_slices_are_kept(values: int, shown: int, left_out: int) -> None:
    by = {
        "tag": {
            f"t{n:02}": {"n": n + 1, "mean": {"recall@2": 0.1}, "n_of": {"recall@2": n}}
            for n in range(values)
        }
    }
    of_section = {"retrieval": SECTION | {"by": by}}
    _, rows, rest = metrics.slice_rows(of_section, {"retrieval": by}, "tag")
    assert (len(rows), rest) == (shown, left_out)
    assert rows[-1].value == f"t{values - 1:02}"
    # A slice of fewer than 20 cases is coloured by its mean, and hatched: it may be chance.
    assert rows[-1].cells[0] == SliceCell(0.1, values - 1, "poor", values <= 20)
    table = next(one for one in metrics.slice_blocks(of_section) if isinstance(one, DataTable))
    column = table.columns[1]
    assert isinstance(column, DataColumn)
    assert column.cell(rows[0]) == f"{rows[0].n}*"


def test_every_form_of_an_empty_report_can_be_drawn(made: Any, tmp_path: Path) -> None:
    names = ("definitions", "mean", "n", "ci95", "not_applicable", "failed")
    empty: dict[str, Any] = {name: {} for name in names}
    write_metrics(tmp_path / "metrics.json", {"sections": {"custom": empty}})
    done = made.call(report_run.main, "--run", str(tmp_path), "--json")
    assert done.exit_code == 0, done.output
    told = "The run holds no answer to a case; no target is set for what was measured."
    assert page_of(json.loads(done.stdout)).verdict == told
    text = (tmp_path / "report.md").read_text("utf-8")
    assert "No judge was asked" in text
    assert all((tmp_path / f"report.{form}").read_bytes() for form in ("md", "html"))


def test_a_plugins_section_has_the_tables_of_the_page_for_nothing(
    made: Any, tmp_path: Path
) -> None:
    """A target, an interval, a slice, and a metric that no catalogue row explains."""
    names = {"not_applicable": {"mine": 1}, "failed": {"mine": 0}, "ci95": {"mine": [0.3, 0.5]}}
    own = {"definitions": {"mine": "custom/mine@1"}, "mean": {"mine": 0.4}, "n": {"mine": 25}}
    metrics = {"cases": 26, "sections": {"custom": names | own}}
    write_metrics(tmp_path / "metrics.json", metrics)
    (tmp_path / "targets.toml").write_text("[custom]\nmine = '> 0.45'\n")
    targets = ("--targets", str(tmp_path / "targets.toml"))
    done = made.call(report_run.main, "--run", str(tmp_path), *targets)
    assert done.exit_code == 0, done.output
    page = (tmp_path / "report.html").read_text("utf-8")
    row = page[page.index(">Main custom metrics<") :]
    row = row[row.index("<tbody>") : row.index("</tbody>")]
    cells = [
        '<th scope="row"> <span class="name">mine</span></th>',
        '<td data-l="mean">0.400</td>',
        '<span class="mark-missed">✗ missed ≈</span>',
        '<td data-l="95 % interval">0.300 – 0.500</td>',
        '<td data-l="coverage">96 %</td>',
    ]
    assert [cell for cell in cells if cell not in row] == []
    assert "| mine | 0.400 | \\> 0.45 | ✗ missed ≈ | 0.300 – 0.500 | 25 | 96 % |" in (
        tmp_path / "report.md"
    ).read_text("utf-8")


def test_lines_that_score_alike_are_counted_together(tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = [
        {
            "case_id": f"c{n}",
            "scores": {"y": None if n % 3 else n % 4 / 4},
            "reasons": {"y": f"why {n % 5}"} if n % 3 else {},
        }
        for n in range(60)
    ]
    write_lines(tmp_path, "context", rows)
    reasons = {f"why {n}": sum(m % 3 > 0 for m in range(n, 60, 5)) for n in range(5)}
    answers = answers_of(tmp_path, "context")
    counted = {why: counts["y"] for why, counts in answers.reasons["context"].items()}
    assert counted == reasons
    behind = answers.behind["reason", "context", "why 1"]
    assert behind.count == reasons["why 1"]
    assert list(behind.rows) == [1, 11, 16, 26, 31, 41, 46, 56]
    assert answers.column(("context", "y")).tolist()[:4:3] == [0.0, 0.75]


def test_a_trend_has_intervals_and_no_overlapping_scale() -> None:
    """The scale goes from 0.2 to 0.8 with a tenth of room: 0.14 to 0.86 on 94 units under 8, so an
    interval of 0.4 is 94 × 0.4 / 0.72 = 52.2 high, and means 0.1 apart are 13.1 apart, 0.05 6.5."""
    values = [
        TrendValue(0, 0.5, (None, None), None, (0.2, 0.6)),
        TrendValue(1, 0.6, (None, None), None, (0.4, 0.8)),
        TrendValue(2, 0.6, (None, None), None),
    ]
    chart = charts.trend(TrendLine("m", "", 1.0, values), 3)
    low, high = chart["dots"][0]["ends"]
    assert low - high == pytest.approx(52.22, abs=0.1)  # both are rounded to a tenth
    assert chart["dots"][2]["ends"] is None
    assert [level for _, level in chart["ticks"]] == [0.6, 0.5]
    near = TrendValue(0, 0.55, (None, None), None, (0.2, 0.6))
    assert len(charts.trend(TrendLine("m", "", 1.0, [near, *values[1:]]), 3)["ticks"]) == 1


ADDED = '"""Counts."""\nBLOCKS = {"counts": "report:blocks", "nothing": "report:nothing"}\n'
CODE = """from terminal.page import Heading, Prose
def blocks(runs):
    names = ", ".join(run.folder.name for run in runs)
    return [Heading("Counted <b>"), Prose(f"Runs: {names}.")]
def nothing(runs):
    return []
"""


def test_it_stands_in_all_forms_and_in_the_contents(
    pair: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / f"extras_of_{abs(hash(tmp_path))}"
    (folder / "counts").mkdir(parents=True)
    (folder / "counts" / "extra.py").write_text(ADDED)
    (folder / "counts" / "report.py").write_text(CODE)
    monkeypatch.setattr(extras, "EXTRAS", folder)
    monkeypatch.syspath_prepend(str(tmp_path))
    extras.extras.cache_clear()
    try:
        pair.report(tmp_path / "report")
    finally:
        extras.extras.cache_clear()
    page = (tmp_path / "report.html").read_text("utf-8")
    assert '<a href="#counts">Counted &lt;b&gt;</a>' in page
    assert '<h2 id="counts-title">Counted &lt;b&gt;</h2>' in page
    assert "<p>Runs: base, new.</p>" in page
    assert 'id="nothing"' not in page
    text = (tmp_path / "report.md").read_text("utf-8")
    assert "## Counted \\<b>\n\nRuns: base, new.\n" in text
