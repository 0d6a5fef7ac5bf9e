"""The goals on the planted faults of two real vaults."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from extras.audit.tests.measure import Measured, measure

HAS_DATA = pytest.mark.skipif(not os.environ.get("RAG_EVAL_DATA"), reason="no RAG_EVAL_DATA")
IS_311 = pytest.mark.skipif(sys.version_info[:2] != (3, 11), reason="quotes of Python 3.11")
VAULTS = (("rust_book", HAS_DATA), ("python_reference", IS_311))


@pytest.fixture(scope="module", params=[pytest.param(n, marks=mark) for n, mark in VAULTS])
def measured(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Measured:
    folder: Path = tmp_path_factory.mktemp(request.param)
    return measure(request.param, folder)


def test_every_label_that_moved_is_found_and_no_new_place_is_wrong(measured: Measured) -> None:
    assert (measured.gold, measured.gold_false, measured.gold_wrong_places) == (10, 0, 0)
    assert measured.gold_places >= 4


def test_near_doubles_and_stale_passages_are_found(measured: Measured) -> None:
    assert measured.doubles >= 8
    assert measured.stale >= 7
    assert len(measured.false_stale) <= 5


def test_contradictions_are_among_the_first_candidates(measured: Measured) -> None:
    assert measured.within("copy", 30) >= 6
    assert measured.within("own", 100) >= 3
