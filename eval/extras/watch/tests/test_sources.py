"""Whatever traces an import reads, a watch reads: the golden traces and served exports."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.formats.test_damaged_traces import DAMAGES, source_of
from tests.formats.test_golden_traces import (
    EXPECT,
    FOLDER,
    NOT_READ,
    READ,
    WITHOUT_CONTENT,
    expected_turns,
)
from tests.rows import each_row

from extras.watch.look import watch
from extras.watch.tests.conftest import DAY
from extras.watch.watch_options import WatchOptions
from records.errors import StorageError


def units(outcome: Any) -> dict[str, tuple[int, int]]:
    """Bad units and units of each figure."""
    return {
        name: (sum(day.bad for day in days), sum(day.n for day in days))
        for name, days in outcome.series.items()
    }


@pytest.mark.parametrize("cell", READ)
def test_a_watch_finds_the_one_refusal_among_the_turns_of_each_framework(
    folder: Path, look: Callable[..., Any], cell: str
) -> None:
    """Each cell has a refusal once; a thread that its spans name is one unit with both turns."""
    unpacked(folder, cell)
    outcome = look(check_share=1.0)
    turns = expected_turns(cell)
    assert outcome.traces == len(turns)
    of_thread = sum(bool(turn["turn"]) for turn in turns.values())
    n = len(turns) - max(0, of_thread - 1)
    figures = units(outcome)
    assert figures["unreadable"] == (0, n)
    assert figures["refusals"] == (int("refusal" in turns), n)
    assert figures["odd_length"][0] == figures["errors"][0] == figures["leaks"][0] == 0


ASKED, SAID = "How long can I return shoes?", "Within 60 days."
REFUSED = EXPECT["turns"]["refusal"]["answer"]


def langfuse_trace(name: str, answer: str, *, lasts: bool) -> dict[str, Any]:
    """A trace as Langfuse's API gives it, with a retriever and a generation below it."""
    at = "2026-01-01T10:00:0%d.000Z"
    found = [{"page_content": "Shoes can be returned within 60 days.", "metadata": {"id": "r1"}}]
    shared: dict[str, Any] = {"traceId": name, "parentObservationId": None, "level": "DEFAULT"}
    search = shared | {"id": f"{name}-1", "type": "RETRIEVER", "name": "search", "input": "return"}
    search |= {"startTime": at % 0, "endTime": at % 1, "output": found}
    model = shared | {"id": f"{name}-2", "type": "GENERATION", "name": "llm", "output": answer}
    model |= {"startTime": at % 1, "endTime": at % 3, "input": [{"role": "user", "content": ASKED}]}
    trace: dict[str, Any] = {"id": name, "timestamp": at % 0, "name": "shop", "projectId": "p"}
    trace |= {"input": ASKED, "output": answer, "sessionId": None, "observations": [search, model]}
    return trace | ({"latency": 3.0} if lasts else {})


def unpacked(folder: Path, cell: str) -> None:
    """A golden trace as a file of the folder."""
    packed = (FOLDER / f"{cell}.jsonl.gz").read_bytes()
    (folder / f"{cell}.jsonl").write_bytes(gzip.decompress(packed))


def write(path: Path, rows: list[Any]) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


@pytest.mark.parametrize("form", ["one", "list", "lines", "download", "tables"])
@pytest.mark.parametrize("lasts", [True, False])
def test_langfuse_is_watched_in_each_form_that_it_writes(
    folder: Path, look: Callable[..., Any], form: str, lasts: bool
) -> None:
    traces = [langfuse_trace("a", SAID, lasts=lasts), langfuse_trace("b", REFUSED, lasts=lasts)]
    if form == "list":
        whole = {"data": traces, "meta": {"page": 1}}
        (folder / "all.json").write_text(json.dumps(whole, indent=2))
    elif form == "lines":
        write(folder / "all.jsonl", traces)
    elif form == "tables":  # of an export, of which each row is a line
        rows = [row for trace in traces for row in trace.pop("observations")]
        write(folder / "observations.jsonl", rows)
        write(folder / "traces.jsonl", traces)
    for trace in traces if form in ("one", "download") else []:
        path = folder / f"{trace['id']}.json"
        inner = trace.pop("observations") if form == "download" else None
        whole = {"trace": trace, "observations": inner} if inner else trace
        path.write_text(json.dumps(whole, indent=2))
    outcome = look(check_share=1.0)
    assert outcome.traces == 2
    figures = units(outcome)
    assert figures["refusals"] == (1, 2)
    assert figures["unreadable"] == figures["empty_retrievals"] == (0, 2)
    assert figures["unsupported"] == (0, 1)
    assert figures["slow"][1] == 2
    assert outcome.counts.get("traces with an impossible time") is None


def test_a_thumb_or_an_item_of_a_data_set_is_no_trace(folder: Path, look: Any) -> None:
    """Exports have them beside the traces; they say neither a question nor an answer of a bot."""
    score = {"id": "s", "traceId": "a", "name": "thumb", "value": 1, "timestamp": "2026-01-01"}
    item = {"id": "i", "datasetId": "d", "input": ASKED, "expectedOutput": SAID}
    write(folder / "all.jsonl", [score, item, langfuse_trace("a", SAID, lasts=True)])
    outcome = look()
    assert (outcome.traces, outcome.counts["values without spans"]) == (1, 1)
    assert (outcome.feedback["rated"], outcome.feedback["bad"]) == (1, 0)


def test_cells_without_content_say_so(folder: Path, look: Callable[..., Any]) -> None:
    for cell in WITHOUT_CONTENT:
        unpacked(folder, cell)
    outcome = look()
    assert outcome.traces > 0
    assert units(outcome)["unreadable"] == units(outcome)["odd_length"] == (0, 0)
    assert outcome.counts["traces whose contents were not captured"] == outcome.traces


@pytest.mark.parametrize("cell", NOT_READ)
def test_a_trace_of_printed_objects_counts_as_unreadable_and_not_as_a_good_answer(
    folder: Path, look: Callable[..., Any], cell: str
) -> None:
    unpacked(folder, cell)
    n = len(expected_turns(cell)) - 1  # the two turns of its thread are one unit
    assert units(look(check_share=1.0))["unreadable"] == (n, n)


@pytest.mark.parametrize("number", ["NaN", "Infinity", "1e308", "-1", "true", '"3"', "[3]"])
def test_a_damaged_number_of_langfuse_costs_no_trace(folder: Path, look: Any, number: str) -> None:
    """The latency of a trace and the tokens of an observation as other writers may have them."""
    trace = langfuse_trace("a", REFUSED, lasts=True) | {"latency": "LATENCY"}
    trace["observations"][1]["usageDetails"] = {"input": "LATENCY"}
    (folder / "a.json").write_text(json.dumps(trace).replace('"LATENCY"', number))
    outcome = look()
    assert (outcome.traces, units(outcome)["refusals"]) == (1, (1, 1))


NOW = (1_767_225_600 + 40 * DAY) * 1_000_000
"""Of a look: 40 days after the golden traces."""
_LOST_LINES = ("damaged lines or spans", "spans that cannot be read")


def watch_damaged(tmp_path: Path, name: str) -> None:
    _, data, chosen = source_of(name)
    source = tmp_path / "traces" / "source.jsonl"
    source.parent.mkdir()
    source.write_bytes(data)
    index, drawn = tmp_path / "index.sqlite", tmp_path / "drawn"
    options = WatchOptions(
        folder=source.parent, index=index, output=drawn, cases=20, sample=1000, check_share=1.0
    )
    said = ""
    try:
        outcome = watch(options, NOW)
    except StorageError as error:
        assert DAMAGES[name].code == 2
        said = error.message
    else:
        if DAMAGES[name].source in ("otel", "documents", "logs"):
            ids = set(re.findall(rb'"traceId": "([0-9a-f]{32})"', data))
            missing = len(ids) - outcome.traces - outcome.waiting
            assert missing <= sum(outcome.counts.get(kind, 0) for kind in _LOST_LINES)
    files = (path for path in tmp_path.rglob("*") if path.is_file() and path != source)
    written = said.encode() + b"\n".join(path.read_bytes() for path in files)
    assert [value for value, _ in chosen if value.encode() in written] == []


test_a_watch_counts_a_damaged_trace_and_draws_no_secret = each_row("name", [*DAMAGES][::4])(
    watch_damaged
)
test_so_with_every_damage = pytest.mark.thorough(each_row("name", DAMAGES)(watch_damaged))
