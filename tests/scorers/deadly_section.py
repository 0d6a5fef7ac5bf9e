"""A section for the tests of killed workers: one case kills the process that scores it."""

from __future__ import annotations

import os
import signal
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ragmetrics.catalogue.metric import Metric
from records.cases import TestCase
from records.results import TestResult
from scorers.contract import ScoreOutcome, ScoreRow


@dataclass(frozen=True)
class DeadlyScorer:
    """Scores the length of each answer. ``deaths``: how often ``case_id`` kills; ``how``: by a
    signal, by an exit code, or (0) for want of memory. ``log``: a folder with a file for each case
    scored, named after case and process, and for each death."""

    log: Path
    case_id: str
    deaths: int
    how: int = signal.SIGKILL

    section = "deadly"
    metrics = (Metric("length", "made", "", "", "", high=None),)

    @property
    def options(self) -> dict[str, Any]:
        return {}

    def score(self, case: TestCase, result: TestResult) -> ScoreOutcome:
        (self.log / f"{case.id} {os.getpid()}").touch()
        earlier = len(list(self.log.glob("death *")))
        if case.id == self.case_id and earlier < self.deaths:
            (self.log / f"death {earlier}").touch()
            if not self.how:
                raise MemoryError
            os.kill(os.getpid(), self.how) if self.how < 64 else os._exit(self.how)
        return ScoreRow((len(result.answer or "") / 7,)), {}
