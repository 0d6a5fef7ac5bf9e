"""The first screen of a run: every number on it is that of metrics.json."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from decisions.measures import measures
from records.metrics import load_metrics
from records.targets import read_targets
from terminal.page import between, number


def test_the_numbers_of_the_first_screen_are_those_of_metrics_json(made: Any) -> None:
    """Means, targets, counts of targets and of questions, read from the file by themselves."""
    report = made.report()
    sections = load_metrics(made.run / "metrics.json")["sections"]
    verdict, sides = report.top[0], report.of("sides")[0]
    (left, right) = sides["rows"][0]
    (table,) = left
    compared = 0
    by_name = {metric: name for name in sections for metric in sections[name]["mean"]}
    for name, mean, interval, picture, target in table["rows"]:
        section = sections[by_name[name]]
        assert mean == number(section["mean"][name])
        ends = section["ci95"].get(name)
        assert interval == between(ends)
        assert picture["value"] == section["mean"][name]
        assert picture["interval"] == (ends and list(ends))
        if target:
            assert picture["mark"] == float(target.split()[1])
        compared += 2 + bool(target)
    assert compared >= 15
    rated = [row for row in measures(sections, read_targets()).values() if row.target]
    met, missed = (sum(row.passed is one for row in rated) for one in (True, False))
    assert verdict["words"].startswith(f"{met} of {len(rated)} targets met, {missed} missed, ")
    marks = [row[-1][-1] for row in table["rows"] if row[-1]]
    assert marks.count("✗") == missed
    evidence = sections["retrieval"]["mean"]["recall_all@5"], sections["retrieval"]["n"]
    found = round(evidence[0] * evidence[1]["recall_all@5"])
    words = f"for {found} of {evidence[1]['recall_all@5']} questions."
    assert verdict["words"].endswith(words)
    heading, *worst = right
    failing = re.match(r"([\d,]+) of ", report.section("Cases in full").texts[0])
    assert failing is not None
    assert heading["words"] == f"The worst of {failing.group(1)} failing cases"
    assert len([block for block in worst if block.get("item")]) >= 5


def test_without_the_set_cases_that_fail_are_counted(made: Any, tmp_path: Path) -> None:
    options = ("--eval-set", str(tmp_path / "gone.jsonl"), "--output", str(tmp_path / "report"))
    heading, counts, *_ = made.report(*options).of("sides")[0]["rows"][0][1]
    assert heading["words"] == "Failing cases"
    assert re.match(r"[1-9]\d* of 48 cases fail: ", counts["words"])
