"""The parts of a run: selection, the pool of threads, the summary."""

from __future__ import annotations

import asyncio
import io
import threading
from typing import Any

import pytest
from rich.console import Console
from tests.rows import each_row

import storage
from clients.http import ask_all
from clients.run_counts import RunTally, _rows, table
from clients.run_plan import Job, Jobs, select


def case(case_id: str, **fields: Any) -> storage.TestCase:
    return storage.TestCase(case_id, f"{case_id}?", **fields)


def test_filters_of_one_name_are_an_or_and_of_several_an_and() -> None:
    cases = [
        case("a", category="factual", tags=["x", "y"], difficulty="easy", answerable=False),
        case("b", category="reasoning", tags=["x"]),
        case("c", category="factual", tags=["z"]),
    ]

    def ids(*filters: str, limit: int | None = None) -> list[str]:
        return [kept.id for kept in select(cases, filters, limit)]

    assert ids() == ["a", "b", "c"]
    assert ids("tag=x", "tag=z") == ["a", "b", "c"]
    assert ids("tag=x", "category=factual") == ["a"]
    assert ids("answerable=unknown", limit=1) == ["b"]
    assert ids("answerable=false") == ids("difficulty=easy") == ["a"]
    assert ids("id=[bc]", "id=a?") == ["b", "c"]
    assert ids("id=?") == ids("id=*") == ["a", "b", "c"]
    with pytest.raises(storage.StorageError, match="tag: x, y, z"):
        ids("tag=nothing")


def test_words_of_the_set_cannot_steer_the_terminal() -> None:
    with pytest.raises(storage.StorageError) as caught:
        select([case("a", tags=["red\x1b[31m"])], ["tag=blue"], None)
    assert "The set has tag: red [31m." in caught.value.message


def test_all_cases_come_once_before_any_comes_twice() -> None:
    cases = [case("a"), case("b")]
    keys = [job.key for job in Jobs(cases, 2)]
    assert keys == [("a", 0), ("b", 0), ("a", 1), ("b", 1)]
    assert Job(cases[0]).key == ("a", 0)


def test_an_exception_of_a_worker_reaches_the_consumer() -> None:
    async def ask(number: int) -> int:
        if number == 5:
            raise ZeroDivisionError
        return number

    with pytest.raises(ZeroDivisionError):
        list(ask_all(range(100), ask, 3, threading.Event()))


def test_closing_the_pool_stops_it() -> None:
    stop = threading.Event()
    asked: list[int] = []

    async def ask(number: int) -> int:
        asked.append(number)
        if number > 0:
            await asyncio.sleep(60)
        return number

    answers = ask_all(iter(range(10**9)), ask, 2, stop)
    assert next(answers) == 0
    answers.close()
    assert stop.is_set()
    # the first, and one in flight in each of the two workers
    assert len(asked) <= 3


def test_the_summary() -> None:
    def ok(total: float, **fields: Any) -> storage.TestResult:
        return storage.TestResult("a", latency_ms={"total": total, "retrieve": 1.0}, **fields)

    tally = RunTally(
        [
            *(ok(float(n), usage={"tokens": 2, "model": "m"}, cost_usd=0.5) for n in range(1, 21)),
            ok(100.0, abstained=True),
            storage.TestResult("b", status="error", error=storage.ErrorInfo("timeout")),
        ]
    )
    summary = tally.to_dict()
    assert (summary["answered"], summary["abstained"]) == (20, 1)
    assert summary["errors"] == {"timeout": 1}
    assert summary["usage"] == {"tokens": 40}
    assert summary["cost_usd"] == 10.0
    # 21 times, 1 to 20 and 100: nearest rank of p50 is the 11th, of p95 the 20th (19.95 up)
    assert summary["latency_ms"]["total"] == {"p50": 11.0, "p95": 20.0}
    assert list(summary["latency_ms"]) == ["retrieve", "total"]
    assert ("  timeout", "1") in _rows(summary)


@each_row(
    ("said", "abstained", "rows"),
    [
        ((None, None), None, [("answered or abstained", "2")]),
        ((None, False), 0, [("answered", "2"), ("abstained", "0")]),
        ((None, True), 1, [("answered", "1"), ("abstained", "1")]),
        ((), 0, [("answered", "0"), ("abstained", "0")]),
    ],
)
def test_a_bot_that_does_not_say_whether_it_abstained_is_not_counted_as_answering(
    said: tuple[bool | None, ...], abstained: int | None, rows: list[tuple[str, str]]
) -> None:
    summary = RunTally(storage.TestResult("a", abstained=each) for each in said).to_dict()
    assert summary["abstained"] == abstained
    assert _rows(summary)[1:-1] == rows


def test_a_long_title_is_not_broken() -> None:
    shown = io.StringIO()
    title = "Run 20261122-051743-a-long-name-of-a-profile"
    Console(file=shown, width=80).print(table(RunTally().to_dict(), title))
    assert shown.getvalue().splitlines()[0].strip() == title
