"""One test of many rows: each row is tried, and all that fail are shown together."""

from __future__ import annotations

import contextlib
import functools
import inspect
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import pytest

Test = Callable[..., Any]


class _Trial:
    """What came of the rows of a test, tried in turn."""

    def __init__(self, rows: list[dict[str, Any]], fixtures: dict[str, Any]) -> None:
        self.rows, self.fixtures = rows, fixtures
        self.failures: list[BaseException] = []
        self.skips: list[str] = []

    def arguments(self) -> Iterator[dict[str, Any]]:
        for number, row in enumerate(self.rows):
            yield self.fixtures | self._own_folder(number) | row
        if self.failures:
            text = f"{len(self.failures)} of {len(self.rows)} rows"
            raise BaseExceptionGroup(text, self.failures)
        if self.skips:
            pytest.skip(f"{len(self.skips)} of {len(self.rows)} rows: {self.skips[0]}")

    def _own_folder(self, number: int) -> dict[str, Any]:
        if "tmp_path" not in self.fixtures:
            return {}
        folder = self.fixtures["tmp_path"] / f"row{number}"
        folder.mkdir()
        return {"tmp_path": folder}

    @contextlib.contextmanager
    def row(self, arguments: dict[str, Any]) -> Iterator[None]:
        try:
            yield
        except pytest.skip.Exception as skip:
            self.skips.append(str(skip))
        except (Exception, pytest.fail.Exception) as error:
            row = {name: arguments[name] for name in self.rows[0]}
            error.add_note(f"row: {row!r}"[:1000])
            self.failures.append(error)


def each_row(names: str | Sequence[str], rows: Iterable[Any]) -> Callable[[Test], Test]:
    """`pytest.mark.parametrize` for rows of values: one test, which goes on after a row that fails.

    Fixtures are those of the one test, but `tmp_path` is a folder of its own for each row.
    """
    keys = names.replace(",", " ").split() if isinstance(names, str) else list(names)
    values = [dict(zip(keys, [row] if len(keys) == 1 else row, strict=True)) for row in rows]
    assert values, "no rows: the test would pass without a check"

    def decorate(test: Test) -> Test:
        @functools.wraps(test)
        def all_rows(**fixtures: Any) -> None:
            trial = _Trial(values, fixtures)
            for arguments in trial.arguments():
                with trial.row(arguments):
                    test(**arguments)

        @functools.wraps(test)
        async def all_rows_awaited(**fixtures: Any) -> None:
            trial = _Trial(values, fixtures)
            for arguments in trial.arguments():
                with trial.row(arguments):
                    await test(**arguments)

        whole = all_rows_awaited if inspect.iscoroutinefunction(test) else all_rows
        signature = inspect.signature(test)
        others = [item for name, item in signature.parameters.items() if name not in keys]
        vars(whole)["__signature__"] = signature.replace(parameters=others)
        return whole

    return decorate
