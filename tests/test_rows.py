"""Rows of one test: all are tried, those that fail are shown with their values."""

from __future__ import annotations

import inspect
from pathlib import Path

import pytest
from tests.rows import each_row


def test_every_row_is_tried_and_those_that_fail_are_named(tmp_path: Path) -> None:
    @each_row(("number", "square"), [(1, 1), (2, 5), (3, 9), (4, 15)])
    def squares(number: int, square: int, tmp_path: Path) -> None:
        assert not list(tmp_path.iterdir()), "a row sees the files of another"
        (tmp_path / "file").touch()
        assert number * number == square

    assert list(inspect.signature(squares).parameters) == ["tmp_path"]
    with pytest.raises(BaseExceptionGroup, match="2 of 4 rows") as failed:
        squares(tmp_path=tmp_path)
    notes = [error.__notes__ for error in failed.value.exceptions]
    assert notes == [[f"row: {{'number': {a}, 'square': {b}}}"] for a, b in [(2, 5), (4, 15)]]


def test_what_is_expected_to_raise_and_does_not_is_a_failure() -> None:
    @each_row("text", ["x", "1"])
    def raises(text: str) -> None:
        with pytest.raises(ValueError, match="invalid"):
            int(text)

    with pytest.raises(BaseExceptionGroup, match="1 of 2 rows"):
        raises()


def test_a_row_that_cannot_be_tried_is_told_and_hides_no_failure() -> None:
    @each_row("number", [1, 2])
    def skips_the_first(number: int) -> None:
        if number == 1:
            pytest.skip("only of pairs")
        assert number == 2

    with pytest.raises(pytest.skip.Exception, match="1 of 2 rows: only of pairs"):
        skips_the_first()


async def test_rows_of_coroutines_are_awaited() -> None:
    @each_row("number", [1, 2])
    async def only_ones(number: int) -> None:
        assert number == 1

    with pytest.raises(BaseExceptionGroup, match="1 of 2 rows"):
        await only_ones()


def test_no_rows_are_refused() -> None:
    with pytest.raises(AssertionError, match="no rows"):
        each_row("number", [])
