"""Why a section has nothing to score: one sentence, the same in every process."""

from __future__ import annotations

from pathlib import Path

from records.scores import ScoreLine, write_scores
from scorers.sections import _most_common_reason

REASONS = {f"metric_{n}": f"no label {n}" for n in range(12)}


def test_of_reasons_that_are_as_common_the_first_metric_s_is_said(tmp_path: Path) -> None:
    """Sets of texts have another order in each process; the metrics of a line have not."""
    line = ScoreLine("a", 0, "not_applicable", dict.fromkeys(REASONS), REASONS)
    write_scores(tmp_path, "pipeline", [line])
    assert _most_common_reason(tmp_path, "pipeline") == "no label 0 (1 case)"


def test_the_reason_of_most_cases_is_said(tmp_path: Path) -> None:
    lines = [
        ScoreLine(name, 0, "not_applicable", {"m": None}, {"m": why})
        for name, why in (("a", "rare"), ("b", "usual"), ("c", "usual"))
    ]
    write_scores(tmp_path, "pipeline", lines)
    assert _most_common_reason(tmp_path, "pipeline") == "usual (2 cases)"
