"""Chunks fetched ahead: nobody waits, late answers are dropped, failures are said."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.labeller.conftest import arrivals_for
from tests.score_lines import write_lines

import storage
from labeller.fetching import (
    ApiChunks,
    Arrival,
    Fetcher,
    FetchError,
    api_source,
    deliver,
    prefetch,
    run_chunks,
)
from labeller.jobs import failures, uncertainty
from labeller.passages import Chunk
from labeller.session import Session
from records.run import Run


def gather(source: Fetcher, count: int) -> list[Arrival]:
    """Wait for `count` arrivals; the test's own time limit ends a wait without end."""
    found: list[Arrival] = []
    while len(found) < count:
        found += source.arrivals()
        time.sleep(0.001)
    return found


@pytest.fixture
def gate() -> Iterator[threading.Event]:
    """Held back until set; set at the end, so that no thread is left waiting."""
    event = threading.Event()
    yield event
    event.set()


def test_the_next_cases_are_fetched_ahead(cases: dict[str, Any]) -> None:
    asked: list[str] = []

    def ask(case_id: str, query: str, k: int | None) -> list[Chunk]:
        asked.append(case_id)
        return [Chunk("a.md", "", f"for {case_id}")]

    session = Session(cases, {}, record=lambda e: None, now=lambda: 0.0)
    source = Fetcher(ask, "table")
    prefetch(session, source, ahead=1)
    prefetch(session, source, ahead=1)
    arrived = gather(source, 2)
    assert sorted(asked) == ["q-0001", "q-0002"], "each is asked for once"
    assert {arrival.case_id for arrival in arrived} == {"q-0001", "q-0002"}
    source.close()


def test_no_method_waits_for_a_slow_bot(gate: threading.Event) -> None:
    def ask(case_id: str, query: str, k: int | None) -> list[Chunk]:
        gate.wait()
        return []

    source = Fetcher(ask, "slow", threads=1)
    for n in range(50):
        source.request(f"q{n}", "?")
    source.probe("q0", "other")
    assert source.arrivals() == []
    source.close()
    assert all(thread.daemon for thread in source._threads), "no exit waits for them"


def test_a_probe_goes_before_what_is_fetched_ahead(gate: threading.Event) -> None:
    started = threading.Event()

    def ask(case_id: str, query: str, k: int | None) -> list[Chunk]:
        started.set()
        gate.wait()
        return []

    source = Fetcher(ask, "slow", threads=1)
    source.request("a", "?")
    started.wait()
    source.request("b", "?")
    source.probe("a", "other words", 50)
    gate.set()
    order = [(arrival.case_id, arrival.query) for arrival in gather(source, 3)]
    assert order == [("a", None), ("a", "other words"), ("b", None)]
    source.close()


def test_a_late_answer_is_dropped(gate: threading.Event) -> None:
    answers = iter([["old"], ["new"]])
    started = threading.Event()

    def ask(case_id: str, query: str, k: int | None) -> list[Chunk]:
        texts = next(answers)
        if texts == ["old"]:
            started.set()
            gate.wait()
        return [Chunk("a.md", "", text) for text in texts]

    source = Fetcher(ask, "slow", threads=2)
    source.request("a", "?")
    started.wait()
    source.refetch("a", "?")
    (arrival,) = gather(source, 1)
    gate.set()
    assert arrival.chunks[0].text == "new"
    source.close()
    for thread in source._threads:
        thread.join()
    assert source.arrivals() == []


def test_what_failed_can_be_asked_for_again() -> None:
    answers = iter([FetchError("away"), None])

    def ask(case_id: str, query: str, k: int | None) -> list[Chunk]:
        error = next(answers)
        if error is not None:
            raise error
        return [Chunk("a.md", "", "text")]

    source = Fetcher(ask, "table")
    source.request("a", "?")
    assert gather(source, 1)[0].problem == "away"
    source.request("a", "?")
    assert gather(source, 1)[0].chunks[0].text == "text"
    source.close()


def test_failures_arrive_as_sentences(session: Session) -> None:
    def ask(case_id: str, query: str, k: int | None) -> list[Chunk]:
        if case_id == "q-0001":
            raise FetchError("connection: nobody answers")
        raise KeyError("a bug")

    called = threading.Event()
    source = Fetcher(ask, "broken")
    source.listen(called.set)
    session.pool.forget("q-0001")
    session.pool.forget("q-0002")
    source.request("q-0001", "?")
    source.request("q-0002", "?")
    source.request("gone", "?")
    found: list[Arrival] = []
    while len(found) < 3:
        called.wait()
        called.clear()
        found += deliver(session, source)
    expected = {"q-0001": "connection: nobody answers", "q-0002": "KeyError: 'a bug'"}
    assert session.pool.problems == expected
    source.close()


def result(case_id: str, **fields: Any) -> storage.TestResult:
    return storage.TestResult(case_id, f"Question {case_id}?", **fields)


def chunk(name: str, score: float | None = None, **fields: Any) -> storage.RetrievedChunk:
    return storage.RetrievedChunk(name, rel_path=f"{name}.md", score_final=score, **fields)


@pytest.fixture
def run(tmp_path: Path) -> Callable[..., Path]:
    def write(*results: storage.TestResult) -> Path:
        writer = storage.ResultsWriter(tmp_path, "r", store_full_text=True)
        for item in results:
            writer.write_result(item)
        return writer.finish([item.test_case_id for item in results])

    return write


def test_the_chunks_of_a_run(run: Callable[..., Path]) -> None:
    path = run(
        result("a", retrieved=[chunk("x", 0.5, text="Text", text_length=9, heading_path="H")]),
        result("b", status="error", error=storage.ErrorInfo("timeout", "too slow")),
        result("c", retrieved=["only-an-id"]),
    )
    ask = run_chunks(Run(path.parent))
    (found,) = ask("a", "Question a?", None)
    expected = ("x.md", "H", "Text", True)
    assert (found.rel_path, found.heading_path, found.text, found.cut) == expected
    (bare,) = ask("c", "Question c?", None)
    assert (bare.rel_path, bare.cut) == ("only-an-id", True)
    with pytest.raises(FetchError, match="timeout: too slow"):
        ask("b", "Question b?", None)
    with pytest.raises(FetchError, match="no result for this case"):
        ask("z", "?", None)
    with pytest.raises(FetchError, match="cannot answer other questions"):
        ask("a", "other words", None)


@pytest.mark.parametrize("bad", [b'"te\xffxt"', b"3", b"[", b"\0"])
def test_a_damaged_answer_is_told_for_its_case_alone(run: Callable[..., Path], bad: bytes) -> None:
    path = run(result("a", retrieved=[chunk("x", text="text")]), result("b", retrieved=["y"]))
    path.write_bytes(path.read_bytes().replace(b':"text"', b":" + bad))
    ask = run_chunks(Run(path.parent))
    with pytest.raises(FetchError, match=r"results\.jsonl: |no result for this case"):
        ask("a", "Question a?", None)
    assert len(ask("b", "Question b?", None)) == 1


def test_chunks_are_kept_for_when_the_bot_is_away(tmp_path: Path) -> None:
    there = result("a", retrieved=[chunk("x", text="kept")])
    away = result("a", status="error", error=storage.ErrorInfo("connection", "gone"))
    answers = [there, away]
    ask = ApiChunks(lambda *args: answers.pop(0) if answers else away, tmp_path, "bot 1")
    assert [ask("a", "?", None)[0].text for _ in range(2)] == ["kept", "kept"]
    assert ask.offline.startswith("connection")
    with pytest.raises(FetchError, match="connection: gone"):
        ask("a", "other words", None)
    with pytest.raises(FetchError):
        ApiChunks(lambda *args: away, tmp_path, "bot 2")("a", "?", None)
    (kept,) = tmp_path.glob("*.json")
    kept.write_bytes(kept.read_bytes().replace(b"kept", b"k\xffpt"))
    with pytest.raises(FetchError, match="connection: gone"):
        ask("a", "?", None)
    answers = [there, away]
    assert [ask("a", "?", None)[0].text for _ in range(2)] == ["kept", "kept"]


def test_what_teaches_most_by_the_scores_of_a_run(run: Callable[..., Path]) -> None:
    # Gap of the two best, as a share of the best: (.8-.8)/.8 = 0, (.9-.3)/.9 = 2/3.
    path = run(
        result("tie", retrieved=[chunk("x", 0.8), chunk("y", 0.8), chunk("z", 0.1)]),
        result("clear", retrieved=[chunk("x", 0.9), chunk("y", 0.3)]),
        result("none", retrieved=[chunk("x")]),
    )
    found = uncertainty(Run(path.parent))
    assert found == pytest.approx({"tie": 1.0, "clear": 1 / 3})


def test_what_teaches_most_by_the_failures_of_a_run(tmp_path: Path) -> None:
    """The support \"A > B\" was found in the coarser passage \"A\": it counts as the scorer matched
    it. ``late`` has its gold at rank 9 of 10, ``warned`` was too slow."""
    folder = tmp_path / "run"
    lines = {
        "retrieval": {"coarse": {"mrr": 1.0}, "missed": {"mrr": 0.0}, "late": {"mrr": 1 / 9}},
        "abstention": {"refused": {"over_refusal": 1.0}},
        "pipeline": {"warned": {"latency_ok": 0.0}, "coarse": {"latency_ok": 1.0}},
    }
    for section, own in lines.items():
        write_lines(folder, section, [{"case_id": c, "scores": s} for c, s in own.items()])
    cases = ["coarse", "missed", "late", "refused", "warned", "not of the run"]
    found = failures(folder, cases)
    assert sorted(found, key=lambda case_id: -found[case_id]) == ["refused", "missed", "warned"]
    assert found["warned"] == 0.5
    with pytest.raises(storage.StorageError, match=r"is not scored.*eval_suite\.py --run empty"):
        failures(tmp_path / "empty", cases)


TOOLS_PROFILE = """
schema = 1
[request]
path = "/ask"
[request.body]
question = "{question}"
[response]
retrieved = "retrieved"
answer = "answer"
"""


@pytest.mark.parametrize("maps_tools", [True, False])
def test_a_bot_that_is_asked_live_tells_its_calls_of_tools(
    tmp_path: Path, fake_bot: Any, *, maps_tools: bool
) -> None:
    (tmp_path / "own.toml").write_text(TOOLS_PROFILE + 'tools = "calls"\n' * maps_tools)
    answer = fake_bot.answer("?", calls=[{"name": "search", "arguments": {"query": "hat"}}])
    fake_bot.default = lambda exchange: exchange.reply(answer)
    with api_source(fake_bot.url, "own", 5, tmp_path, tmp_path / "cache", {}) as source:
        source.request("a", "?")
        (arrival,) = arrivals_for(source, "a")
    assert (arrival.problem, len(arrival.chunks)) == ("", 1)
    calls = [(call.name, call.arguments) for call in arrival.calls]
    assert calls == [("search", {"query": "hat"})] * maps_tools
