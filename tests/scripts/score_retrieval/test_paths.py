"""The remark on files that the bot never names as the labels do."""

from __future__ import annotations

from typing import Any

import pytest

from decisions.diagnosis import diagnose
from records.metrics import load_metrics
from storage import TestResult

FILES = [f"part{n}/f{n}.md" for n in range(14)]


@pytest.fixture
def asked(evaluated: Any, chunk: Any, gold: Any) -> Any:
    """``asked(paths)``: the bot names the right file of each case so."""

    def make(paths: list[str]) -> Any:
        cases = [{"id": f"q{n}", "gold_supports": gold(f"{FILES[n]} > A")} for n in range(14)]
        results = [
            TestResult(f"q{n}", retrieved=[chunk(f"{path} > A")]) for n, path in enumerate(paths)
        ]
        return evaluated(cases, results)

    return make


def test_the_last_part_is_told_and_the_embedding_is_not_blamed(asked: Any) -> None:
    run = asked([path.rpartition("/")[2] for path in FILES])
    text = " ".join(run.score().stdout.split())
    expected = "gold files seen 0 of 14; 14 of 14 by their last part: the labels say part0/f0.md"
    assert expected in text
    section = load_metrics(run.path / "metrics.json")["sections"]["retrieval"]
    findings = diagnose({}, {"retrieval": section})
    assert findings[0].rule == "paths_never_match"
    assert expected in findings[0].says
    assert not any("embedding" in finding.look_at for finding in findings)


def test_two_name_spaces_are_told(asked: Any) -> None:
    run = asked([f"node-{n}" for n in range(14)])
    assert "the bot names none of the labels' files" in " ".join(run.score().stdout.split())
