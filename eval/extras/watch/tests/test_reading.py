"""What is new is read once: growing, packed and renamed files, torn lines, killed processes."""

from __future__ import annotations

import gzip
import json
import os
import signal
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

from extras.watch.tests.conftest import DAY, NOW, REFUSAL, START, otlp, span, trace
from extras.watch.trace_index import TraceIndex
from records.files import _lock_of


def shares(outcome: Any) -> dict[str, tuple[int, int]]:
    """Bad units and units of each figure."""
    return {
        name: (sum(d.bad for d in days), sum(d.n for d in days))
        for name, days in outcome.series.items()
    }


def test_a_second_look_reads_only_what_is_new(folder: Path, look: Callable[..., Any]) -> None:
    path = folder / "spans.jsonl"
    first = otlp(*trace("a")) + otlp(*trace("b", answer=REFUSAL))
    path.write_text(first)
    outcome = look()
    assert (outcome.traces, outcome.look.bytes_read) == (2, len(first))
    assert look().look.bytes_read == 0
    new = otlp(*trace("c"))
    torn = otlp(*trace("d"))
    with path.open("a") as file:
        file.write(new + torn[:-30])
    outcome = look()
    assert (outcome.traces, outcome.look.bytes_read) == (3, len(new))
    with path.open("a") as file:
        file.write(torn[-30:])
    outcome = look()
    assert (outcome.traces, outcome.look.bytes_read) == (4, len(torn))
    assert shares(outcome)["refusals"] == (1, 4)
    assert "damaged lines or spans" not in outcome.counts


def test_a_trace_counts_once_and_when_it_is_quiet(folder: Path, look: Callable[..., Any]) -> None:
    spans = trace("a", at=NOW / 1e6 - 30, lasted=1)
    (folder / "1.jsonl").write_text(otlp(spans[0]))
    outcome = look(quiet=60)
    assert (outcome.traces, outcome.waiting) == (0, 1)
    # The rest comes in another file, and the first span is sent again.
    (folder / "2.jsonl").write_text(otlp(spans[1], spans[0]))
    outcome = look(now=NOW + 20_000_000, quiet=60)  # 49 s after its last span
    assert (outcome.traces, outcome.waiting) == (0, 1)
    outcome = look(now=NOW + 32_000_000, quiet=60)  # 61 s
    assert (outcome.traces, outcome.waiting) == (1, 0)
    assert outcome.counts["spans that are repeated"] == 1
    late = span("a", "late", "root", START, 1, gen_ai__operation__name="chat")
    (folder / "3.jsonl").write_text(otlp(late))
    outcome = look(now=NOW + 90_000_000)
    assert outcome.traces == 1
    assert outcome.counts["spans of traces that were counted before"] == 1


def test_a_file_that_was_packed_or_renamed_is_known_again(folder: Path, look: Any) -> None:
    path = folder / "spans.jsonl"
    path.write_text("".join(otlp(*trace(f"t{n}")) for n in range(3)))
    look()
    with gzip.open(folder / "spans.jsonl.1.gz", "wb") as packed:
        packed.write(path.read_bytes() + otlp(*trace("t3")).encode())
    path.write_text(otlp(*trace("t4")))  # the writer begins the name anew
    outcome = look()
    assert outcome.traces == 5
    assert outcome.look.counts["spans"] == 4  # of t3 and t4 alone
    assert "spans that are repeated" not in outcome.counts
    torn = (folder / "spans.jsonl.1.gz").read_bytes()
    (folder / "torn.jsonl.gz").write_bytes(torn[: len(torn) // 2])
    assert look().traces == 5  # waits for its rest


def test_documents_over_several_lines_are_read_as_far_as_they_go(folder: Path, look: Any) -> None:
    spans = [s for n in range(4) for s in trace(f"t{n}", answer=REFUSAL if n else "Oil.")]
    text = json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]}, indent=2)
    half = text.index('"spanId": "t2.retrieve"')
    (folder / "spans.json").write_text(text[:half])
    assert look().traces == 2
    (folder / "spans.json").write_text(text)
    outcome = look()
    assert shares(outcome)["refusals"] == (3, 4)


def test_hostile_spans_are_counted(folder: Path, look: Callable[..., Any]) -> None:
    ahead = trace("ahead", at=START + 400 * DAY)
    back = trace("back", lasted=-5)
    digits = {"key": f"llm.output_messages.{'9' * 5000}.content", "value": {"stringValue": "x"}}
    wrong: list[Any] = [
        {"traceId": 5, "spanId": "x"},
        {"traceId": "w", "spanId": None},
        {"traceId": "w", "spanId": "s", "startTimeUnixNano": "noon"},
        7,
        {"traceId": "w", "spanId": "s", "attributes": [digits]},
    ]
    deep = '{"arrayValue":{"values":[' * 300 + "1" + "]}}" * 300
    huge = span("huge", "root", "", START, 1, openinference__span__kind="CHAIN",
                input__value="Q?", output__value="word " * 400_000)  # fmt: skip
    nested = span("deep", "root", "", START, 1, openinference__span__kind="CHAIN",
                  input__value="Q?", output__value="Oil.")  # fmt: skip
    nested["attributes"].append({"key": "metadata", "value": "nesting"})
    lines = [otlp(*ahead), otlp(*back), otlp(*wrong), otlp(huge)]
    lines += [otlp(nested, nested).replace('"nesting"', deep)]
    lines += ["[" * 3000 + "\n", '{"a": \n', "no json\n", '{"resourceSpans": {"scopeSpans": 3}}\n']
    lines += ['{"traceId": "half", "spanId": "s", "name": "\\ud83d"}\n', "null\n"]
    (folder / "spans.jsonl").write_text("".join(lines))
    outcome = look()
    assert outcome.waiting == 3  # one that is ahead, two without times: until read a minute ago
    outcome = look(now=NOW + 60_000_000)
    # ahead, back, huge; the line with deep is refused, see below. A number of 5000 digits in a name
    # is none of a message, and the span tells nothing else.
    assert outcome.traces == 3
    assert outcome.counts["spans that cannot be read"] == 4
    assert outcome.counts["damaged lines or spans"] == 4  # 600 levels deep among them
    assert outcome.counts["traces with an impossible time"] == 2
    assert outcome.counts["values without spans"] == 2
    days = [day.day for day in outcome.series["errors"]]
    assert max(days) == NOW // 1_000_000 // DAY  # of the clock that is ahead: the day of reading


QUERIES = (
    "SELECT key, day, session, applies, bad, latency, length FROM traces",
    "SELECT key, span, kind, flags, offset, length FROM spans",
    "SELECT * FROM counts",
    "SELECT path, offset FROM files",
)


def rows(path: Path) -> list[Any]:
    """All that an index holds of traces, spans and counts."""
    with sqlite3.connect(path) as database:
        return [sorted(database.execute(query).fetchall(), key=repr) for query in QUERIES]


def test_a_killed_look_loses_and_doubles_nothing(
    folder: Path, tmp_path: Path, look: Callable[..., Any], monkeypatch: Any
) -> None:
    """Killed -9 at the n-th statement of SQLite, for n over the whole of a look."""
    monkeypatch.setattr("extras.watch.reading._SPANS_A_STEP", 6)
    monkeypatch.setattr("extras.watch.counting._TRACES_A_STEP", 4)
    for part in range(2):
        names = [f"{part}.{n}" for n in range(10)]
        text = "".join(otlp(*trace(name, at=START + n * 90)) for n, name in enumerate(names))
        (folder / f"{part}.jsonl").write_text(text + "damaged\n")
    look(check_share=1.0)
    index = tmp_path / "index.sqlite"
    expected = rows(index)

    def killing(at: int) -> int:
        """The signal that ended a look in a process of its own; 0 for none."""
        child = os.fork()
        if child == 0:
            left = [at]
            _lock_of.cache_clear()  # a lock knows that it was inherited

            def count(_: str) -> None:
                left[0] -= 1
                if left[0] == 0:
                    os.kill(os.getpid(), signal.SIGKILL)

            opened = TraceIndex.__init__

            def init(self: TraceIndex, path: Path) -> None:
                opened(self, path)
                self.database.set_trace_callback(count)

            TraceIndex.__init__ = init  # type: ignore[method-assign]
            try:
                look(check_share=1.0)
            finally:
                os._exit(0)
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

    for path in tmp_path.glob("index.sqlite*"):
        path.unlink()
    kills = 0
    for at in (3, 8, 14, 25, 40, 60, 90, 130):
        kills += killing(at) == -signal.SIGKILL
    look(check_share=1.0)
    assert kills >= 6, kills
    assert rows(index) == expected
