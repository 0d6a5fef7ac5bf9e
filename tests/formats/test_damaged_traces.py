"""Damaged and hostile traces: each ends with 0 or 2, what is dropped is counted, and no private
value that was planted in it is in anything that is written or said.

The damages are made in real traces (``golden_traces``), so that everything beside a damage is as a
framework writes it.
"""

from __future__ import annotations

import gzip
import json
import random
import re
from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.formats.secrets_in_words import planted

FOLDER = Path(__file__).resolve().parents[1] / "golden_traces"
CELLS = {
    "otel": "openai_agents.semconv_spans",
    "documents": "llamaindex_query.openinference",
    "logs": "openai_loop.semconv_events",
    "agents": "openai_agents.sdk",
    "mlflow": "mlflow_traced.mlflow",
    "langsmith": "langgraph_prebuilt.langsmith",
}
SECRETS = list(planted(random.Random(27)))
"""200 values, each with the words around it."""
A_DAMAGE = 40
"""Secrets planted in one damaged source."""

INCOMPLETE = "traces without their outermost span, or not ended yet (incomplete)"
NO_QUESTION = "traces without a question (content capture off?)"
UNKNOWN = "answers that could not be read (no span says for certain which text is the answer)"
REPEATED = "spans that are repeated"
OTHER_CONTENT = "spans with the id of another one, which is kept"
NO_SPANS = "values without spans"
OF_TRACES = (INCOMPLETE, NO_QUESTION, "traces whose contents are kept elsewhere (…messages_ref)")

SPOTS = (
    "How long can I return shoes?",
    "if they are unworn.",
    "for reasons of hygiene.",
    "Do you sell gift cards?",
    "from the documents that I have.",
    "on weekdays.",
    "what does express shipping cost?",
    "Express shipping costs 12 euros.",
    "And how long does it take?",
    "It takes 3 working days.",
)
"""Ends of questions, answers and passages in every cell; a private text is written behind each."""

LANGFUSE = [
    {"id": f"trace-{n}", "timestamp": "2026-01-01T00:00:00Z", "name": "ask", "userId": "u-1",
     "input": SPOTS[n], "output": f"Call the desk: {SPOTS[n + 1]}", "observations": []}
    for n in (0, 3, 6, 8)
]  # fmt: skip
"""Traces as Langfuse's server exports them."""

Trace = list[dict[str, Any]]
Json = Any


def cell(name: str) -> list[Json]:
    """The lines of a golden trace."""
    text = gzip.decompress((FOLDER / f"{name}.jsonl.gz").read_bytes()).decode()
    return [json.loads(line) for line in text.splitlines()]


def spans_in(document: Json) -> Iterator[dict[str, Any]]:
    for resource in document["resourceSpans"]:
        for scope in resource["scopeSpans"]:
            yield from scope["spans"]


def lines(*documents: Json) -> str:
    return "".join(json.dumps(document, ensure_ascii=False) + "\n" for document in documents)


def with_secrets(text: str, words: list[str]) -> str:
    for number, spot in enumerate(SPOTS):
        text = text.replace(spot, " ".join([spot, *words[number :: len(SPOTS)]]))
    return text


@dataclass
class Damage:
    """``make``: the source out of the lines of a cell. ``says``: what the report counts, ``n``
    times, or what the refusal says."""

    source: str
    make: Callable[[list[Json]], str | bytes]
    code: int = 0
    says: str = ""
    n: int = 1


DAMAGES: dict[str, Damage] = {}


def damage(name: str, says: str = "", n: int = 1, *, code: int = 0, source: str = "otel") -> Any:
    def take(make: Callable[[list[Json]], str | bytes]) -> Callable[[list[Json]], str | bytes]:
        assert name not in DAMAGES
        DAMAGES[name] = Damage(source, make, code, says, n)
        return make

    return take


def of_spans(
    name: str, change: Callable[[Trace], Any], says: str = "", n: int = 1, *, code: int = 0
) -> None:
    """A damage of the spans of the first trace; what ``change`` gives back replaces them."""

    def make(documents: list[Json]) -> str:
        scope = documents[0]["resourceSpans"][0]["scopeSpans"][0]
        changed = change(scope["spans"])
        if changed is not None:
            assert isinstance(changed, list)
            scope["spans"] = changed
        return lines(*documents)

    damage(name, says, n, code=code)(make)


def of_root(name: str, says: str = "", n: int = 1, /, *, code: int = 0, **fields: Any) -> None:
    """Fields of the outermost span with another value; ``...`` takes a field away."""

    def change(spans: Trace) -> None:
        root = outermost(spans)
        root.update(fields)
        for field, value in fields.items():
            if value is ...:
                del root[field]

    of_spans(name, change, says, n, code=code)


def of_attribute(
    name: str, key: str, value: Json, says: str = "", n: int = 1, *, code: int = 0
) -> None:
    """One more attribute of the outermost span, or another value of one."""

    def change(spans: Trace) -> None:
        listed = outermost(spans)["attributes"]
        listed[:] = [pair for pair in listed if pair["key"] != key]
        listed.append({"key": key, "value": value})

    of_spans(name, change, says, n, code=code)


def of_line(name: str, change: Callable[[str], str | bytes], says: str = "", n: int = 1, *,
            code: int = 0) -> None:  # fmt: skip
    """A damage of the first line as it is written."""

    def make(documents: list[Json]) -> bytes:
        first = change(lines(documents[0]).rstrip("\n"))
        rest = lines(*documents[1:]).encode()
        return (first if isinstance(first, bytes) else first.encode("utf-8", "surrogatepass")) + (
            b"\n" + rest
        )

    damage(name, says, n, code=code)(make)


def outermost(spans: Trace) -> dict[str, Any]:
    return next(span for span in spans if not span.get("parentSpanId"))


def text(value: str) -> Json:
    return {"stringValue": value}


def whole(value: int | str) -> Json:
    return {"intValue": str(value)}


def inner(spans: Trace, key: str) -> dict[str, Any]:
    """The first span that has an attribute."""
    return next(s for s in spans if any(pair["key"] == key for pair in s["attributes"]))


def set_attribute(span: dict[str, Any], key: str, value: Json) -> None:
    """Give an attribute another value in its place, or add it."""
    pair = next((pair for pair in span["attributes"] if pair["key"] == key), {"key": key})
    if "value" not in pair:
        span["attributes"].append(pair)
    pair["value"] = value


def within(spans: Trace) -> Trace:
    return [span for span in spans if span.get("parentSpanId")]


def set_all(spans: Trace, key: str, value: Json) -> None:
    for span in spans:
        set_attribute(span, key, value)


def chain(spans: Trace, n: int) -> Trace:
    """Further spans, each within the one before it."""
    root = outermost(spans)
    more = [root | {"spanId": f"{k:x}", "parentSpanId": f"{k - 1:x}", "attributes": [
        {"key": "gen_ai.operation.name", "value": text("invoke_agent")}]}
        for k in range(0x1001, 0x1001 + n)]  # fmt: skip
    more[0]["parentSpanId"] = root["spanId"]
    return spans + more


def without(spans: Trace, *keys: str) -> Trace:
    """The spans without some of their attributes."""
    return [s | {"attributes": [p for p in s["attributes"] if p["key"] not in keys]} for s in spans]


def renamed(spans: Trace, trace: str) -> Trace:
    return [span | {"traceId": trace} for span in spans]


def twice(documents: list[Json], change: Callable[[Trace], Any]) -> str:
    """The first line and behind it the same with another content."""
    again = deepcopy(documents[0])
    change(list(spans_in(again)))
    return lines(*documents, again)


BIDI = "\u202egnikcah\u2066\u200b"
ESCAPES = "\x1b]0;taken over\x07\x1b[2J\x9b2J\x7f"
INPUT, OUTPUT = "gen_ai.input.messages", "gen_ai.output.messages"
RESULT, ARGUMENTS = "gen_ai.tool.call.result", "gen_ai.tool.call.arguments"
TOKENS = "gen_ai.usage.input_tokens"

# Of the file.
of_line("a line that is cut", lambda line: line[: len(line) // 2], "not JSON", code=2)
of_line("a line that is cut within a letter", lambda line: line.encode().replace(
    b"shoes", b"sho\xc3", 1), "UTF-8", code=2)  # fmt: skip
of_line("zeros in place of a line", lambda line: b"\0" * 4096, "not JSON", code=2)
of_line("a line of brackets", lambda line: "[" * 100_000, "not JSON", code=2)
of_line("a number that is no JSON", lambda line: line.replace('"code": 1', '"code": NaN'),
        "not JSON", code=2)  # fmt: skip
of_line("a number without end", lambda line: line.replace('"code": 1', '"code": 1e999'),
        "not JSON", code=2)  # fmt: skip
of_line("half a character", lambda line: line.replace("shoes", "\\ud83d", 1), "not JSON", code=2)
of_line("a mark of byte order", lambda line: "\ufeff" + line)
of_line("a line of another program", lambda line: '{"level": "info"}\n' + line, NO_SPANS)
of_line("null, a number and a text", lambda line: f'null\n7\n"x"\n{line}', "is not a JSON object",
        code=2)  # fmt: skip
of_line("a list of spans of no kind", lambda line: '{"resourceSpans": [1, null, {}]}\n' + line,
        NO_SPANS)  # fmt: skip
of_line("a holder of another type", lambda line: '{"resourceSpans": {"scopeSpans": 3}}\n' + line,
        NO_SPANS)  # fmt: skip
of_line("empty lines and carriage returns", lambda line: "\r\n\r\n" + line + "\r")
damage("nothing", "has no spans", code=2)(lambda documents: "")
damage("blanks alone", "has no spans", code=2)(lambda documents: " \n\n")
damage("another program alone", "no spans", code=2)(lambda documents: '{"level": "info"}\n' * 3)
damage("the lines the other way round")(lambda documents: lines(*documents[::-1]))
damage("the spans in any order, each in a line")(
    lambda documents: lines(*sorted((one for d in documents for one in split(d)), key=json.dumps))
)


def split(document: Json) -> list[Json]:
    return [{"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]} for span in spans_in(document)]


# Of times.
of_root("a time that is not a number", "startTimeUnixNano", startTimeUnixNano="noon", code=2)
of_root("a time of NaN", "startTimeUnixNano", startTimeUnixNano="NaN", code=2)
of_root("a time of 400 digits", endTimeUnixNano="9" * 400)
of_root("both times of 400 digits", startTimeUnixNano="8" * 400, endTimeUnixNano="9" * 400)
of_root("a time of 5000 digits", "startTimeUnixNano", startTimeUnixNano="9" * 5000, code=2)
of_root("it ended before it began", endTimeUnixNano="1")
of_root("times before 1970", startTimeUnixNano="-5", endTimeUnixNano="-1")
of_root("no times", startTimeUnixNano="0", endTimeUnixNano="0")
of_root("no end", INCOMPLETE, endTimeUnixNano="0")
of_spans("inner times of 400 digits", lambda spans: [
    span | ({"startTimeUnixNano": "9" * 400, "endTimeUnixNano": "9" * 401}
            if span.get("parentSpanId") else {}) for span in spans])  # fmt: skip

# Of ids and of the tree.
of_root("no trace id", ":1: resourceSpans[0].scopeSpans[0].spans[7].traceId: is missing",
        traceId=..., code=2)  # fmt: skip
of_root("a trace id of blanks", "traceId", traceId=" ", code=2)
of_root("a trace id that is a number", "traceId", traceId=7, code=2)
of_root("no span id", "spanId", spanId=..., code=2)
of_root("the outermost span is its own parent", INCOMPLETE, parentSpanId="0000000000000009")
of_spans("two spans are parents of each other", lambda spans: outermost(spans).update(
    parentSpanId=spans[0]["spanId"]), INCOMPLETE)  # fmt: skip
of_spans("no outermost span", lambda spans: [s for s in spans if s.get("parentSpanId")], INCOMPLETE)
of_spans("two outermost spans", lambda spans: inner(spans, INPUT).update(parentSpanId=""))
of_spans("a parent that is not there", lambda spans: spans[0].update(parentSpanId="ff" * 8))
of_spans("a tree of 600 levels", lambda spans: chain(spans, 600))
of_spans("a span that came twice", lambda spans: [*spans, spans[0]], REPEATED)
of_spans("two calls of tools with one id", lambda spans: [*spans, other_tool(spans)], OTHER_CONTENT)
of_spans("all spans with one id", lambda spans: [s | {"spanId": "1" * 16} for s in spans])
of_spans("spans of two traces within one list",
         lambda spans: [*spans, *renamed(spans, "f" * 32)])  # fmt: skip
of_spans("a trace id that is a path", lambda spans: renamed(spans, "../../etc/passwd"))
of_spans("a trace id of several lines", lambda spans: renamed(spans, "a\nb\x1b[2J"))
of_spans("a trace id of 20,000 characters", lambda spans: renamed(spans, "ab" * 10_000))
damage("a trace that came twice", REPEATED, 8)(
    lambda documents: lines(documents[0], documents[0], *documents[1:])
)
damage("a trace that came again with other words", OTHER_CONTENT, 2)(
    lambda documents: twice(
        documents,
        lambda spans: set_all([spans[3], spans[5]], OUTPUT, text("Call the desk, please.")),
    )
)


def other_tool(spans: Trace) -> dict[str, Any]:
    span = deepcopy(inner(spans, RESULT))
    set_attribute(span, RESULT, text("Nothing was sent."))
    return span


# Of attributes.
of_attribute("a whole number of 40 digits", "shop.number", whole("9" * 40))
of_attribute("a whole number of 5000 digits", "shop.number", whole("9" * 5000))
of_attribute("tokens of 40 digits", TOKENS, whole("9" * 40))
of_attribute("a number of a message of 5000 digits",
             f"llm.output_messages.{'9' * 5000}.message.content", text("x"))  # fmt: skip
of_attribute("a number of a document of 5000 digits",
             f"retrieval.documents.{'9' * 5000}.document.content", text("x"))  # fmt: skip
of_attribute("an attribute of 10 MB", "shop.log", text("x" * 10_000_000))
of_attribute("JSON of 100,000 levels", "shop.log", text("[" * 100_000 + "]" * 100_000))
of_attribute("JSON of 90 levels", "shop.log", text('{"a":' * 90 + "1" + "}" * 90))
of_attribute("an answer of 90 levels", OUTPUT, text('{"output":' * 90 + '"x"' + "}" * 90))
of_attribute("a name of 100,000 letters", "n" * 100_000, text("x"))
of_attribute("a name with escapes and bidi signs", ESCAPES + BIDI, text(ESCAPES + BIDI))
of_attribute("a value without a type", "shop.log", "bare")
of_attribute("a value of an unknown type", "shop.log", {"colourValue": "red"})
of_attribute("a kind that is a list", "openinference.span.kind", {"arrayValue": {"values": [7]}})
of_attribute("a session that is a list", "session.id", {"arrayValue": {"values": [text("a")]}})
of_attribute("a session of 20,000 letters", "session.id", text("s" * 20_000))
of_spans("20,000 attributes", lambda spans: outermost(spans)["attributes"].extend(
    {"key": f"shop.{n}", "value": text("x")} for n in range(20_000)))  # fmt: skip
of_root("attributes that are a text", attributes="none")
of_root("attributes of no names", attributes=[7, None, {}, {"key": 5}, {"key": "a", "value": 5}])
of_root("names, status and events of other types", name=[1], status=["x"], events={"a": 1})
of_root("the state of a sampler that drops all", traceState="ot=th:ffffffffffffff", flags="all")
of_root("a failure told by an object", status={"code": 2, "message": {"why": ["a"]}})

# Of contents.
of_spans("messages that are cut", lambda spans: [cut_messages(span) for span in spans])
of_spans("messages of other types", lambda spans: set_all(within(spans), INPUT,
    text('[7, null, {"role": 5, "parts": [3]}]')), NO_QUESTION)  # fmt: skip
of_spans("no contents", lambda spans: without(spans, INPUT, OUTPUT), NO_QUESTION)
of_spans("no answer", lambda spans: without(spans, OUTPUT))
of_spans("an answer that is a node", lambda spans: set_all(within(spans), OUTPUT, text("__end__")),
    UNKNOWN)  # fmt: skip
of_spans("escapes and bidi signs in every text", lambda spans: json.loads(json.dumps(spans).replace(
    "shoes", json.dumps(json.dumps(f"shoes {ESCAPES}{BIDI}")[1:-1])[1:-1])))  # fmt: skip
of_spans("arguments that are no JSON", lambda spans: set_all(
    [inner(spans, ARGUMENTS)], ARGUMENTS, text('{"query": ')))  # fmt: skip
of_spans("a result of 10 MB", lambda spans: set_all(
    [inner(spans, RESULT)], RESULT, text("word " * 2_000_000)))  # fmt: skip


def cut_messages(span: dict[str, Any]) -> dict[str, Any]:
    return span | {"attributes": [
        pair | {"value": text(pair["value"]["stringValue"][:-9])}
        if pair["key"] in (INPUT, OUTPUT) else pair for pair in span["attributes"]]}  # fmt: skip


# Of other exporters.
def of_object(name: str, source: str, number: int, change: Callable[[Json], Any], says: str = "",
              n: int = 1, *, code: int = 0) -> None:  # fmt: skip
    """A damage of one line of a source of another kind."""

    def make(documents: list[Json]) -> str:
        changed = change(documents[number])
        if changed is not None:
            documents[number] = changed
        return lines(*documents)

    damage(name, says, n, code=code, source=source)(make)


def searches(document: Json) -> Trace:
    """The spans that have documents."""
    key = "retrieval.documents.0.document.content"
    spans = list(spans_in(document))
    return [span for span in spans if any(pair["key"] == key for pair in span["attributes"])]


def of_documents(field: str, value: Json) -> Callable[[Json], None]:
    key = f"retrieval.documents.0.document.{field}"
    return lambda document: set_all(searches(document), key, value)


def first_span(trace: Json) -> Any:
    return trace["data"]["spans"][0]


of_object(
    "metadata of documents of another type",
    "documents",
    0,
    of_documents("metadata", text("[1, null]")),
)
of_object("a score without end", "documents", 0, of_documents("score", {"doubleValue": "Infinity"}))
of_object("an id of 40 digits", "documents", 0, of_documents("id", whole("9" * 40)))
of_object(
    "a run without ids",
    "langsmith",
    0,
    lambda run: {name: value for name, value in run.items() if name not in ("id", "trace_id")},
    "id: is empty",
    code=2,
)
of_object("a run that is its own parent", "langsmith", 0, lambda run: run | {
    "parent_run_id": run["id"]}, INCOMPLETE)  # fmt: skip
of_object("runs nested in each other", "langsmith", 0, lambda run: nested(run, 200), "not JSON",
          code=2)  # fmt: skip
of_object("a run of other types", "langsmith", 0, lambda run: run | {
    "run_type": ["x"], "name": 5, "extra": "x", "tags": 5, "error": {"a": 1}})  # fmt: skip
of_object("costs and tokens that are no numbers", "langsmith", 0, lambda run: run | {
    "total_cost": "NaN", "prompt_tokens": -1, "completion_tokens": 1e30})  # fmt: skip
of_object("times of no calendar", "langsmith", 0, lambda run: run | {
    "start_time": "2026-99-99", "end_time": 7})  # fmt: skip
of_object("a trace of MLflow without spans", "mlflow", 0, lambda trace: trace | {"data": {}},
          NO_SPANS)  # fmt: skip
of_object("an id of MLflow that is no base64", "mlflow", 0, lambda trace: trace | {"data": {
    "spans": [span | {"trace_id": "***"} for span in trace["data"]["spans"]]}})  # fmt: skip
of_object("a time of MLflow that is a text", "mlflow", 0, lambda trace: first_span(trace).update(
    start_time_unix_nano="soon"), "startTimeUnixNano", code=2)  # fmt: skip
of_object("a whole trace of the SDK without its spans", "agents", 0, lambda row: row | {"id": "t"},
          "contents are kept elsewhere", code=2)  # fmt: skip
of_object("attributes of MLflow that are a text", "mlflow", 0, lambda trace: first_span(
    trace).update(attributes="none"))  # fmt: skip
of_object("a row of Phoenix with cells of other types", "mlflow", 0, lambda trace: {
    "context.trace_id": "p", "context.span_id": "s", "start_time": [1], "span_kind": 5,
    "attributes.input.value": {"a": [1]}, "events": 5}, NO_QUESTION)  # fmt: skip
of_object("a trace of Langfuse without an id", "langfuse", 0, lambda trace: trace | {"id": None},
          ":1: id: is missing", code=2)  # fmt: skip
of_object("spans of OpenTelemetry in place of Langfuse's", "langfuse", 0, lambda trace: {
    "resourceSpans": []}, "import otel", code=2)  # fmt: skip
damage("a trace of Langfuse twice", REPEATED, source="langfuse")(
    lambda documents: lines(*documents, documents[1])
)
of_object("two traces of Langfuse with one id", "langfuse", 0, lambda trace: trace | {
    "id": LANGFUSE[1]["id"]}, OTHER_CONTENT)  # fmt: skip
of_object("observations of other types", "langfuse", 0, lambda trace: trace | {"observations": [
    1, None, "x", {"id": None, "type": 5, "input": {"a": [1]}}]},
    "observations that the trace only names by id", 3)  # fmt: skip
of_object("a latency without end and negative costs", "langfuse", 0, lambda trace: trace | {
    "latency": 1e300, "totalCost": -1.5, "timestamp": "2026-99-99"})  # fmt: skip
of_object("scores of other types", "langfuse", 0, lambda trace: trace | {"scores": [5, None, {}]})


def nested(run: Json, depth: int) -> Json:
    for n in range(depth):
        run = {"id": f"outer-{n}", "run_type": "chain", "name": "x", "child_runs": [run]}
    return run


# Of log records.
def of_log(name: str, says: str = "", n: int = 1, **fields: Any) -> None:
    def make(documents: list[Json]) -> str:
        record = next(
            record
            for document in documents
            for resource in document.get("resourceLogs", ())
            for scope in resource["scopeLogs"]
            for record in scope["logRecords"]
        )
        record.update(fields)
        return lines(*documents)

    damage(name, says, n, source="logs")(make)


OTHER_LOGS = "log records of other events"
of_log("a log record without a trace", OTHER_LOGS, traceId="")
of_log("a log record with ids of other types", OTHER_LOGS, traceId=5, spanId=[1])
of_log("a log record with a body of another type", body=[1, None])
of_log("a log record of another event", OTHER_LOGS, eventName="shop.opened", attributes=[])
of_log("a log record of a span that is not there", spanId="f" * 16)


def source_of(name: str) -> tuple[str, bytes, list[tuple[str, str]]]:
    """Format, text and planted secrets of a damaged source."""
    number = [*DAMAGES].index(name)
    chosen = [SECRETS[(number * A_DAMAGE + k) % len(SECRETS)] for k in range(A_DAMAGE)]
    damaged = DAMAGES[name]
    documents = cell(CELLS[damaged.source]) if damaged.source in CELLS else LANGFUSE
    planted_in = with_secrets(lines(*documents), [words for _, words in chosen])
    made = damaged.make([json.loads(line) for line in planted_in.splitlines()])
    kind = damaged.source if damaged.source in ("langsmith", "langfuse") else "otel"
    return kind, made if isinstance(made, bytes) else made.encode(), chosen


def written_below(folder: Path, source: Path) -> str:
    return "\n".join(
        path.read_text("utf-8") for path in folder.rglob("*") if path.is_file() and path != source
    )


def test_there_are_enough_damages_and_secrets() -> None:
    assert len(DAMAGES) >= 60
    assert len({value for value, _ in SECRETS}) == 200
    read = [name for name, damaged in DAMAGES.items() if damaged.code == 0]
    sources = map(source_of, read)
    found = {value for _, data, chosen in sources for value, _ in chosen if value.encode() in data}
    assert found == {value for value, _ in SECRETS}


@pytest.mark.parametrize("name", DAMAGES)
def test_a_damaged_trace_loses_nothing_in_silence_and_tells_no_secret(desk: Any, name: str) -> None:
    kind, data, chosen = source_of(name)
    path = desk.file("source.jsonl", data)
    target = desk.folder / "out"
    done = desk.convert("import", kind, path, "--output", str(target), "--json", ok=False)
    damaged = DAMAGES[name]
    assert done.exit_code == damaged.code, done.output
    assert "Traceback" not in done.output
    said = done.stdout + done.stderr + written_below(desk.folder, Path(path))
    assert [value for value, _ in chosen if value in said] == []
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]", done.stderr)
    if damaged.code == 2:
        assert damaged.says in done.stderr
        assert not target.exists()
        assert not [*desk.folder.glob(".converting*")]
        return
    report = json.loads(done.stdout)
    counted = report["rows"] | report["changed"] | report["left_out"]
    if damaged.says:
        assert counted.get(damaged.says) == damaged.n, counted
    ids = set(re.findall(rb'"(?:traceId|traceID|context.trace_id)": "([^"]+)"', data))
    cases = desk.cases()
    lost = sum(report["left_out"].get(kind, 0) for kind in OF_TRACES)
    if kind == "langfuse":  # counts the rows
        lost += report["left_out"].get(REPEATED, 0) + report["left_out"].get(OTHER_CONTENT, 0)
    assert report["rows"]["traces"] == len(cases) + lost
    if damaged.source in ("otel", "documents", "logs"):
        assert report["rows"]["traces"] == len(ids)
    answered = [row for path in target.glob("results/*/results.jsonl")
                for row in map(json.loads, path.read_text().splitlines())]  # fmt: skip
    assert len(answered) == len(cases)
    for row in answered:
        assert row["answer"] or row.get("absent", {}).get("answer") or row["error"]["message"]
