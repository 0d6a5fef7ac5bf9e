"""A scored run to report on."""

from __future__ import annotations

from typing import Any

import pytest
from tests.scripts.report_run.answers import CASES, RESULTS

import score_retrieval


@pytest.fixture
def run(finished: Any) -> Any:
    finished.write(CASES, RESULTS)
    assert finished.score(score_retrieval.main, "--quiet").exit_code == 0
    return finished
