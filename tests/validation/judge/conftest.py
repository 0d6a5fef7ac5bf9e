"""A run that a judge has judged, on disk."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.validation.judge.judged_run import JudgedRun


@pytest.fixture
def judged_run(tmp_path: Path) -> JudgedRun:
    """An empty `JudgedRun`; write it."""
    return JudgedRun(tmp_path)
