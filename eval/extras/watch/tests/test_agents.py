"""Agents in production: refusals of the final answer, what cannot be read, what was sampled."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from extras.watch.tests.conftest import DAY, REFUSAL, START, call, otlp, span, trace
from records.errors import StorageError


def shares(outcome: Any) -> dict[str, tuple[int, int]]:
    """Bad units and units of each figure."""
    return {
        name: (sum(d.bad for d in days), sum(d.n for d in days))
        for name, days in outcome.series.items()
    }


def agent(name: str, said: str | None, *, at: float = START, **more: Any) -> list[dict[str, Any]]:
    """A loop as LangGraph's instrumentation writes it: messages at the root, routing words within.

    ``said``: None for a loop that ended in the middle.
    """
    human = {"type": "human", "data": {"content": "How is a crane greased?"}}
    call = {"type": "ai", "data": {"content": "", "tool_calls": [{"name": "find", "args": {}}]}}
    answer = [] if said is None else [{"type": "ai", "data": {"content": said}}]
    given, out = {"messages": [human]}, {"messages": [human, call, *answer]}
    kind = "openinference__span__kind"
    return [
        span(name, "edge", "root", at + 0.5, 0.1, **{kind: "CHAIN"}, output__value="__end__"),
        span(name, "find", "root", at, 0.1, **{kind: "RETRIEVER"}, input__value="grease",
             retrieval__documents__0__document__content="Cranes are greased with oil."),
        span(name, "root", "", at, 1, **{kind: "CHAIN"}, input__value=json.dumps(given),
             output__value=json.dumps(out), **more),
    ]  # fmt: skip


def test_refusals_and_unreadable_answers_are_figures_of_their_own(folder: Path, look: Any) -> None:
    lines = [agent(f"t{n}", REFUSAL) for n in range(3)] + [agent("a", None)]
    (folder / "1.jsonl").write_text("".join(otlp(*spans) for spans in lines))
    figures = shares(look(check_share=1.0))
    assert (figures["refusals"], figures["unreadable"]) == ((3, 3), (1, 4))
    assert figures["odd_length"] == (0, 3)


def test_groundedness_is_of_the_final_answer_and_of_all_that_was_searched(
    folder: Path, look: Callable[..., Any]
) -> None:
    """The claim stands in what the first of two searches brought."""
    kind = "openinference__span__kind"
    later = span("t", "again", "root", START + 0.3, 0.1, **{kind: "RETRIEVER"}, input__value="more",
                 retrieval__documents__0__document__content="A winch is painted red.")  # fmt: skip
    spans = agent("t", "Cranes are greased with oil.")
    made_up = agent("u", "Cranes are greased with 400 litres of milk in Norway.")
    (folder / "1.jsonl").write_text(otlp(*spans, later) + otlp(*made_up))
    assert shares(look(check_share=1.0))["unsupported"] == (1, 2)


def test_an_answer_under_a_request_span_is_read_from_its_trace(folder: Path, look: Any) -> None:
    inner = [dict(s) for s in agent("t", REFUSAL)]
    inner[-1]["parentSpanId"] = "t.http"
    request = span("t", "http", "", START, 2, http__route="/ask")
    (folder / "1.jsonl").write_text(otlp(*inner, request))
    assert shares(look())["refusals"] == (1, 1)


def test_traces_without_contents_are_not_empty_answers(
    folder: Path, tmp_path: Path, look: Callable[..., Any]
) -> None:
    """What OpenTelemetry writes unless contents are asked for."""
    bare = [
        span("t", "chat", "root", START, 1, gen_ai__operation__name="chat", gen_ai__system="x"),
        span("t", "tool", "root", START, 1, gen_ai__operation__name="execute_tool"),
        span("t", "root", "", START, 1, gen_ai__operation__name="invoke_agent"),
    ]
    (folder / "1.jsonl").write_text(otlp(*bare))
    outcome = look()
    figures = shares(outcome)
    assert "odd_length" not in {name for name, (_, n) in figures.items() if n}
    assert figures["errors"] == (0, 1)
    done = call(str(folder), "--index", str(tmp_path / "index.sqlite"))
    assert "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=true" in done.stdout


def test_contents_in_log_records_are_read(folder: Path, look: Callable[..., Any]) -> None:
    chat = span("t", "chat", "", START, 1, gen_ai__operation__name="chat")
    message = {"role": {"stringValue": "assistant"}, "content": {"stringValue": REFUSAL}}
    pairs = [{"key": key, "value": value} for key, value in message.items()]
    record = {
        "traceId": "t", "spanId": "t.chat", "eventName": "gen_ai.choice",
        "timeUnixNano": str(START * 10**9),
        "body": {"kvlistValue": {"values": [
            {"key": "message", "value": {"kvlistValue": {"values": pairs}}}]}},
    }  # fmt: skip
    logs = {"resourceLogs": [{"scopeLogs": [{"logRecords": [record]}]}]}
    (folder / "spans.jsonl").write_text(otlp(chat))
    (folder / "logs.jsonl").write_text(json.dumps(logs) + "\n")
    outcome = look()
    assert shares(outcome)["refusals"] == (1, 1)
    assert outcome.counts["log records"] == 1


def test_shares_are_weighted_by_the_sampling_rate(folder: Path, look: Callable[..., Any]) -> None:
    """One refusal that stands for four traces, and two answers for one each: 4 of 6. The weights
    4, 1, 1 say as much as 36 / 18 = 2 traces of one weight."""
    refused = agent("a", REFUSAL)
    refused[-1]["traceState"] = "ot=th:c"
    lines = [refused, *(agent(name, "With oil, once a week.") for name in "bc")]
    (folder / "1.jsonl").write_text("".join(otlp(*spans) for spans in lines))
    from extras.watch.look import share_of

    (day,) = look().series["refusals"]
    assert (day.bad, day.n, day.weight, day.bad_weight) == (1, 3, 6.0, 4.0)
    assert share_of([day]) == pytest.approx(4 / 6)
    assert day.effective == pytest.approx(2.0)
    assert day.as_counts == (1, 2)


def test_a_tail_sampler_leaves_out_the_shares_that_it_makes(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spans = [s for n in range(4) for s in trace(f"t{n}", at=START + n * DAY)]
    (folder / "1.jsonl").write_text(otlp(*spans))
    config = tmp_path / "c.toml"
    config.write_text('[watch_traces]\nsampling = "tail"\n')
    monkeypatch.setenv("RAG_EVAL_CONFIG", str(config))
    words = [str(folder), "--index", str(tmp_path / "index.sqlite")]
    names = [figure["name"] for figure in json.loads(call(*words, "--json").stdout)["figures"]]
    kept = "refusals empty_retrievals odd_length unsupported leaks unreadable feedback"
    assert names == kept.split()
    assert "A tail sampler chose the traces" in call(*words).stdout
    config.write_text('[watch_traces]\nsampling = "middle"\n')
    assert call(*words).returncode == 2


def test_a_folder_of_which_nothing_can_be_read_is_refused(folder: Path, look: Any) -> None:
    case = {"id": "r", "inputs": {"question": "q"}, "expected_outputs": {}}
    (folder / "runs.jsonl").write_text(json.dumps(case) + "\nno json\n")
    with pytest.raises(StorageError, match="no trace can be read") as caught:
        look()
    told = ("in 1 file. The keys are: ", "1 values without spans", "1 damaged lines")
    for word in (*told, "expected_outputs", "Langfuse"):
        assert word in caught.value.message


@pytest.mark.parametrize(
    ("failing", "errors", "unreadable"), [("find", 0, (1, 1)), ("root", 1, (0, 0))]
)
def test_a_search_that_failed_does_not_make_an_unreadable_answer_an_error(
    folder: Path, look: Callable[..., Any], failing: str, errors: int, unreadable: tuple[int, int]
) -> None:
    """A loop that failed itself is an error, and nothing else."""
    spans = agent("a", None)
    for one in spans:
        if one["name"] == failing:
            one["status"] = {"code": 2, "message": "timed out"}
    (folder / "1.jsonl").write_text(otlp(*spans))
    figures = shares(look())
    assert (figures["errors"], figures["unreadable"]) == ((errors, 1), unreadable)
