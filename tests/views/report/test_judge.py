"""The judge in a report: verdicts of one answer, and how it holds against people."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from tests.pages import page_of
from tests.rows import each_row

import report_run
from storage import replace_json
from terminal.page import DataTable, Heading, Labelled, Prose, plain_words
from views.case import Case, Claim, JudgedMetric
from views.case_blocks import ShownWith, case_blocks
from views.report.success import judge_blocks


def test_the_judges_bad_news_come_first() -> None:
    claims = (
        Claim("So.", None, "supported", word="supported", quote="so"),
        Claim("Not so.", None, "unsupported", word="not_found", blame="hallucination"),
    )
    facts = (Claim("F", None, "unsupported", word="missing"),)
    judged = (
        JudgedMetric("groundedness", "j", "ok", items=claims),
        JudgedMetric("correctness", "j", "ok", items=facts),
        JudgedMetric("nuggets", "j", "failed", items=facts),
    )
    case = Case("q", 0, "?", "ok", judged=judged)
    blocks = case_blocks(case, ("judged",), ShownWith(brief=True))
    told = [(one.label, one.words) for one in blocks if isinstance(one, Labelled)]
    assert told == [
        ("✗ not found", "Not so."),
        ("", "hallucination"),
        ("✓ supported", "So."),
        ("", 'quote: "so"'),
        ("✗ missing", "F"),
        ("✗ missing", "F"),
    ]
    notes = [one.note for one in blocks if isinstance(one, Heading)]
    assert notes == ["j · ok", "j · ok", "j · failed"]


CALIBRATION: dict[str, Any] = {
    "schema": 1,
    "judge": {"provider": "local", "model": "support", "revision": "1"},
    "prompt": {"name": "groundedness", "version": 2},
    "metric": "groundedness",
    "n": 50,
    "sources": 30,
    "supported": 30,
    "unsupported": 20,
    "too_few": False,
    "labels": {"annotators": {"maria": 30, "<b>li</b>": 20}, "alpha": 0.8},
    "confusion": {
        "supported_supported": 28,
        "supported_not": 2,
        "not_supported": 5,
        "not_not": 15,
    },
    "figures": {
        "kappa": {"value": 0.7, "ci95": [0.5, 0.9]},
        "auroc": {"value": None, "ci95": None},
    },
    "corrected": {
        "claim_rate": 0.66,
        "faithfulness": 0.7,
        "rogan_gladen": {"mean": 0.6, "ci95": [0.5, 0.7]},
        "ppi": None,
    },
    "by": {"category": {"factual": {"n": 9, "unsupported": 3, "agree": 8, "kappa": None}}},
    "worst": [
        {"case_id": "q", "claim_id": "1", "claim": "C <i>", "human": "not_supported",
         "verdict": "supported", "reason": "r"}
    ],
}  # fmt: skip


FACTS = CALIBRATION | {
    "metric": "correctness",
    "prompt": {"name": "correctness", "version": 1},
    "labels": {
        "annotators": {"rob": 50},
        "by_verdict": {
            "contradicted": {"missing": 4},
            "missing": {"missing": 11, "present": 5},
            "present": {"contradicted": 1, "missing": 1, "present": 28},
        },
    },
    "corrected": {"claim_rate": 0.66, "fact_recall": 0.25},
}


def test_both_calibrations_are_told_each_in_its_own_words(made: Any, tmp_path: Path) -> None:
    (tmp_path / "metrics.json").write_bytes((made.run / "metrics.json").read_bytes())
    replace_json(tmp_path / "calibration.json", CALIBRATION)
    replace_json(tmp_path / "calibration_correctness.json", FACTS)
    done = made.call(report_run.main, "--run", str(tmp_path), "--json")
    assert done.exit_code == 0, done.output
    report = page_of(json.loads(done.stdout)).section("Calibration")
    shares = report.table("Share of supported claims")
    assert [row["share supported"] for row in shares] == [
        "claims, as judged",
        "cases, as judged (faithfulness)",
        "claims, corrected for its errors (Rogan-Gladen)",
    ]
    shares = report.table("Share of present facts")
    expected = ["facts, as judged", "cases, as judged (fact_recall)"]
    assert [row["share present"] for row in shares] == expected
    tables = [one for one in report.of("table") if "what people say" in one["title"]]
    assert len(tables) == 3
    claims, by_word, confusion = tables
    assert sorted(int(cell) for row in claims["rows"] for cell in row[1:]) == [2, 5, 15, 28]
    assert by_word["columns"] == ["people say", "judge: contradicted", "judge: missing",
                                  "judge: present"]  # fmt: skip
    assert by_word["rows"][0] == ["contradicted", "0", "4", "0"]
    assert confusion["rows"][0] == ["not present", "5", "15"]
    told = [text for text in report.texts if ": people " in text]
    expected = ["not supported", "not present"]
    assert [text.split(": people ")[1].split(",")[0] for text in told] == expected
    for form in ("md", "html"):
        text = (tmp_path / f"report.{form}").read_text()
        first, second = text.index("The judge of groundedness"), text.index("of correctness")
        assert first < second
        assert "50 claims of 30 documents" in text[first:second]
        for wanted in ("local/support@1, prompt groundedness@2", "Cohen", "0.500 – 0.900"):
            assert wanted in text[:second]
        for wanted in ("50 facts of 30 cases", "judge: contradicted", "share present"):
            assert wanted in text[second:]
            assert wanted not in text[:second]
        for foreign in ("<b>li</b>", "C <i>"):
            assert foreign not in text
    names = re.findall(r' id="([^"]+)"', (tmp_path / "report.html").read_text())
    assert len(names) == len(set(names))


@each_row("name", ["calibration.json", "calibration_correctness.json"])
@each_row(
    ("damaged", "place"),
    [
        ({"schema": 1}, "`judge`"),
        (CALIBRATION | {"figures": {"kappa": 0.5}}, "$.figures[...]"),
        (CALIBRATION | {"figures": {"kappa": {"value": "high"}}}, "$.figures[...].value"),
        (CALIBRATION | {"corrected": {"ppi": {"mean": 0.5}}}, "$.corrected[...]"),
        (CALIBRATION | {"worst": ["q1"]}, "$.worst[0]"),
        (CALIBRATION | {"by": {"category": 3}}, "$.by[...]"),
        (CALIBRATION | {"by": {"category": {"factual": {"n": 9}}}}, "$.by[...][...]"),
        (CALIBRATION | {"confusion": {"not_not": 4}}, "$.confusion"),
    ],
)
def test_a_damaged_calibration_is_named(
    made: Any, tmp_path: Path, name: str, damaged: dict[str, Any], place: str
) -> None:
    (tmp_path / "metrics.json").write_bytes((made.run / "metrics.json").read_bytes())
    replace_json(tmp_path / name, damaged)
    done = made.call(report_run.main, "--run", str(tmp_path))
    assert done.exit_code == 2
    assert f"{name}: is not a calibration of a judge" in done.stderr
    assert place in done.stderr
    assert list(tmp_path.glob("report.*")) == []


def texts_of(stored: dict[str, Any]) -> list[str]:
    return [plain_words(one.words) for one in judge_blocks(stored) if isinstance(one, Prose)]


def test_a_figure_without_an_interval_has_none() -> None:
    blocks = judge_blocks(CALIBRATION | {"figures": {"kappa": {"value": 0.5}}})
    tables = [one for one in blocks if isinstance(one, DataTable)]
    (table,) = [one for one in tables if "agrees with people" in one.caption]
    assert list(table.rows) == [("Cohen's kappa", "0.500", "–")]


def test_too_few_labels_are_told() -> None:
    few = CALIBRATION | {"too_few": True, "figures": None, "corrected": None}
    captions = ("How the judge agrees with people", "Share of supported")
    tables = [one for one in judge_blocks(few) if isinstance(one, DataTable)]
    tables = [one for one in tables if one.caption.startswith(captions)]
    assert [list(table.rows) for table in tables] == [[], []]
    assert any("Too few to tell: 30 supported and 20 unsupported" in text for text in texts_of(few))
