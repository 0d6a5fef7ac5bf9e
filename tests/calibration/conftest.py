"""A run that a judge has judged, on disk."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

import pytest


def load_helper() -> Any:
    """The module ``judged_run.py`` beside this file."""
    path = Path(__file__).with_name("judged_run.py")
    spec = importlib.util.spec_from_file_location("judged_run", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["judged_run"] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="session")
def helper() -> Any:
    """`judged_run`: JudgedRun, mixed, JUDGE, PROMPT."""
    return load_helper()


@pytest.fixture
def judged_run(tmp_path: Path, helper: Any) -> Any:
    """An empty `JudgedRun`; write it."""
    return helper.JudgedRun(tmp_path)
