"""A section for the tests of clusters: scoring takes its time, and each case scored is noted."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ragmetrics.catalogue.metric import Metric
from records.cases import TestCase
from records.results import TestResult
from scorers.contract import ScoreOutcome, ScoreRow


@dataclass(frozen=True)
class SlowScorer:
    """Scores the length of each answer, after a wait. ``log``: where the cases are noted."""

    log: Path
    wait_s: float = 0.0

    section = "slow"
    metrics = (Metric("length", "made", "", "", "", high=None),)

    @property
    def options(self) -> dict[str, Any]:
        return {}

    def score(self, case: TestCase, result: TestResult) -> ScoreOutcome:
        time.sleep(self.wait_s)
        with open(self.log, "a") as file:
            file.write(f"{os.getpid()} {case.id}\n")
        return ScoreRow((len(result.answer or "") / 7,)), {}
