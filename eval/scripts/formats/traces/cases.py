"""A trace as a case with its answer, and the traces of a session as turns of a conversation."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from formats.shared.item import (
    CONTEXTS,
    ImportedCase,
    ImportOptions,
    Notes,
    SystemAnswer,
    chunk_of,
    passages_in,
)
from formats.traces.ids import Key, hashed, hidden
from formats.traces.private import mask_case
from formats.traces.reading import (
    HIDDEN,
    Trace,
    TracedSearch,
    message_in_prompt,
    read_trace,
    text_of_document,
)
from formats.traces.spans import (
    AGENT,
    CHAT,
    COST,
    LAST_TIME,
    MESSAGES,
    MLFLOW_COST,
    MLFLOW_USAGE,
    MODELS,
    RETRIEVAL,
    TOOL,
    USAGE,
    VALUES,
    Span,
    has_content,
    is_read,
    is_read_event,
    messages_of,
    value_of,
)
from formats.traces.values import is_printed, structured, texts_within, tokens_in
from records.results import (
    UNREADABLE,
    ErrorInfo,
    RetrievedChunk,
    Search,
    SearchedChunk,
    TestResult,
    union_of,
)
from records.tool_calls import ToolCall, calls_beside_passages, is_of_passages
from records.tool_passages import query_of
from records.tool_searches import ToolResult, ToolVerdict, judge_tool

UNREAD = "answers that could not be read (no span says for certain which text is the answer)"
INCOMPLETE = "traces without their outermost span, or not ended yet (incomplete)"
NO_QUESTION = "traces without a question (content capture off?)"
PRINTED = "traces whose question is in a printed Python object, which is not read"
REFERRED = "traces whose contents are kept elsewhere (…messages_ref)"
EARLIER = "earlier turns of a conversation"
UNSEARCHED = "passages in a prompt, where no span is a search (what was retrieved is unknown)"
_PROMPTED = re.compile(
    r"\[\[ ## (?:context|passages|documents) ## \]\]|\b(?:context|passages|documents|sources)\s*:",
    re.IGNORECASE,
)
CAPTURE = (
    "Traces have no contents: instrumentation leaves them out unless a setting includes them. Set "
    "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=true (or SPAN_ONLY), for OpenLLMetry "
    "TRACELOOP_TRACE_CONTENT=true, for OpenInference leave OPENINFERENCE_HIDE_INPUTS unset. "
    "Semantic Kernel and Google ADK write contents into log records: export these, too."
)
"""The advice where no contents were captured."""
AS_JSON = (
    "Values such as ChatMessage(…) are printed Python objects, which are not read: write OTLP JSON "
    "whose values are JSON, by the framework's own tracer or another instrumentation."
)
"""The advice where a question is in a printed object."""


@dataclass(slots=True)
class TracedCase:
    """A trace with the case that was made of it."""

    trace: Trace
    item: ImportedCase

    @property
    def result(self) -> TestResult:
        return self.item.answers[0].result


def case_of_trace(
    path: Path,
    run: str | None,
    name: str,
    spans: Iterable[Span],
    notes: Notes,
    key: Key = None,
) -> TracedCase | None:
    """The case in the spans of one trace, with its answer; None, and counted, without one.

    ``key``: of the hashes of ids. What the outermost span says beside it is kept under
    ``metadata``; what inner spans say is counted.
    """
    trace = read_trace(spans)
    notes.left_out.update(trace.dropped)
    if trace.state == "incomplete":
        notes.left_out[INCOMPLETE] += 1
        return None
    if trace.question is None:
        kind, advice = _unasked(trace)
        notes.left_out[kind] += 1
        if advice and advice not in notes.remarks:
            notes.remarks.append(advice)
        return None
    if trace.is_cut:
        notes.changed["questions cut out of a prompt with passages"] += 1
    asked = sum(role == "user" for role, _ in trace.earlier)
    if asked:
        notes.left_out[EARLIER] += asked
    result = TestResult(name, trace.question, answer=trace.answer)
    _take_passages(result, trace, notes)
    result.latency_ms = _times(trace)
    result.usage = _usage(trace)
    result.cost_usd = _cost(trace)
    _take_errors(result, trace, notes)
    extra: dict[str, Any] = {}
    if models := sorted({str(model) for span in trace.of_kind(CHAT) if (model := _model(span))}):
        extra["models"] = models
    if trace.session:
        extra["conversation"] = hashed(trace.session, key)
    if trace.weight != 1.0:
        extra["sampling_weight"] = round(trace.weight, 6)
    if notes.counts_rest:
        extra |= hidden(_rest(trace, notes), key)
    notes.carried.update(list(extra))
    case: dict[str, Any] = {"id": name, "question": trace.question}
    case |= {"metadata": extra} if extra else {}
    answers = [SystemAnswer(run or path.stem, result)]
    # A log holds what its service was asked, and nothing else was asked of it.
    return TracedCase(trace, ImportedCase(case, path, None, answers, asked=False))


def _unasked(trace: Trace) -> tuple[str, str]:
    """Why a trace has no question, and what to do about it; "" where that is not known."""
    if trace.state == "by reference":
        return REFERRED, ""
    chats = [has_content(span) for span in trace.of_kind(CHAT)]
    if not any(chats or map(has_content, trace.spans)):
        return NO_QUESTION, CAPTURE
    value = value_of(trace.root, "in") if trace.root is not None else None
    printed = any(map(is_printed, texts_within(value)))
    return (PRINTED, AS_JSON) if printed else (NO_QUESTION, "")


def as_conversations(
    cases: Sequence[TracedCase], options: ImportOptions, notes: Notes
) -> Iterator[ImportedCase]:
    """The cases, masked, those of one session as turns of a conversation, in order of time.

    What an earlier turn brought and the prompt of a later answer holds, that answer saw as well.
    Tools that return passages are searches, decided over all of the cases.
    """
    key = options.key_of_ids
    take_tool_searches(cases, options, notes)
    sessions: dict[tuple[str, str], list[TracedCase]] = {}
    for traced in cases:
        if traced.trace.session:
            place = (traced.item.answers[0].run, traced.trace.session)
            sessions.setdefault(place, []).append(traced)
    told: set[int] = set()
    for traced in cases:
        if id(traced) in told:
            continue
        place = (traced.item.answers[0].run, traced.trace.session or "")
        turns = sorted(sessions.get(place, [traced]), key=lambda turn: _start(turn.trace))
        for number, turn in enumerate(turns, 1):
            told.add(id(turn))
            if len(turns) > 1:
                name = hashed(turn.trace.session or "", key)
                turn.item.case |= {"conversation": name, "turn": number}
                _drop_session(turn.item.case, notes)
                turn.result.asked_with = "live"
                _see_earlier(turn, turns[: number - 1])
            yield mask_case(turn.item, notes)


def tool_results(traces: Iterable[Trace]) -> dict[str, list[tuple[str, ToolResult]]]:
    """The results of each tool that is no search by its spans, each with the id of its trace and
    the arguments of the call."""
    traces = list(traces)
    spanned = {search.tool for trace in traces for search in trace.searches}
    results: dict[str, list[tuple[str, ToolResult]]] = {}
    for trace in traces:
        for each in trace.calls:
            call = each.call
            if call.error is None and call.name not in spanned:
                of_call = (call.arguments, each.value)
                results.setdefault(call.name, []).append((trace.spans[0].trace, of_call))
    return results


def take_tool_searches(cases: Sequence[TracedCase], options: ImportOptions, notes: Notes) -> None:
    """Add the searches that tools made: a tool is one by all of its results, or by its form."""
    verdicts: dict[str, ToolVerdict] = {}
    for name, results in tool_results(traced.trace for traced in cases).items():
        calls = [call for _, call in results]
        decided = judge_tool(name, calls, options.tools.get(name), options.documents)
        if decided.about:
            notes.remarks.append(decided.about)
        if decided.is_search:
            verdicts[name] = decided
    for traced in cases:
        trace, result = traced.trace, traced.result
        searches = [
            TracedSearch(
                each.span,
                each.call.name,
                query_of(each.call.arguments),
                verdict.passages(each.value, options.tools.get(each.call.name)),
            )
            for each in trace.calls
            if (verdict := verdicts.get(each.call.name)) is not None
        ]
        if searches and result.status == "ok":
            begun = [*trace.searches, *searches]
            trace.searches = sorted(begun, key=lambda s: s.span.start if s.span else 0)
            result.retrieved = []
            result.retrieved_from_search = result.seen = result.seen_tools = msgspec.UNSET
            _take_passages(result, trace, notes)


def _start(trace: Trace) -> int:
    return min((span.start for span in trace.spans if span.start), default=0)


def _drop_session(case: dict[str, Any], notes: Notes) -> None:
    metadata = case.get("metadata", {})
    if metadata.pop("conversation", None) is not None:
        notes.carried["conversation"] -= 1
    if not metadata:
        case.pop("metadata", None)


def _see_earlier(turn: TracedCase, earlier: Sequence[TracedCase]) -> None:
    """Add what earlier turns brought and this answer's prompt holds to what it saw."""
    result, trace = turn.result, turn.trace
    if result.answer is None or trace.prompt is None:
        return
    chunks, texts = result.chunks(), list(result.seen_tools or ())
    held = {chunk.text for chunk in chunks} | set(texts)
    for before in earlier:
        for chunk in (chunk for _, listed in before.result.searched() for chunk in listed):
            if chunk.text and chunk.text not in held and message_in_prompt(trace, chunk.text):
                held.add(chunk.text)
                chunks.append(_plain(chunk))
        for tool in _bare_tools(before.trace):
            if tool.result and tool.result not in held and message_in_prompt(trace, tool.result):
                held.add(tool.result)
                texts.append(tool.result)
    if len(chunks) > len(result.chunks()):
        result.retrieved, result.seen = [*_ranked(chunks)], "prompt"
    if texts:
        result.seen_tools = texts


def _ranked(chunks: Sequence[RetrievedChunk]) -> Sequence[RetrievedChunk]:
    for rank, chunk in enumerate(chunks, 1):
        chunk.rank = rank
    return chunks


def _take_passages(result: TestResult, trace: Trace, notes: Notes) -> None:
    """Every search of a trace, every call of a tool, and what the answer saw.

    That is what the last reranker gave out, or the one search that brought something. Of several
    it is what stood in the prompt of the answer; where that was not captured, all that they
    brought, and the result says which of the two.
    """
    begin = _start(trace)
    searches = [_search(search, begin, notes) for search in trace.searches]
    if searches:
        result.searches = searches
    brought = [number for number, search in enumerate(searches, 1) if search.retrieved]
    if trace.reranked:
        result.retrieved = [
            chunk_of(row, rank, notes) for rank, row in enumerate(trace.reranked, 1)
        ]
    elif len(brought) == 1:
        result.retrieved_from_search = brought[0]
        result.retrieved = [_plain(chunk) for chunk in _chunks(searches[brought[0] - 1])]
    elif brought:
        result.retrieved, result.seen = _seen(trace, [searches[number - 1] for number in brought])
    if trace.calls:
        result.tools = trace.tools
    if trace.handoffs:
        result.handoffs = trace.handoffs
    if not (searches or trace.calls) and _PROMPTED.search(trace.prompt or ""):
        notes.left_out[UNSEARCHED] += 1
    seen = [text for tool in _bare_tools(trace) if (text := tool.result)]
    if seen and trace.prompt is not None:
        seen = [text for text in seen if message_in_prompt(trace, text)] or seen
    shown = (text for text in trace.shown if text not in seen)
    seen += [text for text in shown if not is_of_passages(text, _texts_found(trace))]
    if seen:
        result.seen_tools = list(dict.fromkeys(seen))


def _bare_tools(trace: Trace) -> list[ToolCall]:
    """The calls of tools that brought no passages: those of a search are part of the search."""
    searching = {search.tool for search in trace.searches}
    return calls_beside_passages(trace.tools, searching, _texts_found(trace), trace.answer)


def _texts_found(trace: Trace) -> list[list[str]]:
    """The texts that each search found."""
    return [[text_of_document(row) for row in search.documents] for search in trace.searches]


def _seen(trace: Trace, searches: Sequence[Search]) -> tuple[list[RetrievedChunk | str], Any]:
    """What an answer saw of several searches, each passage once, and how that is known."""
    how, seen = "union", union_of([_chunks(search) for search in searches])
    if trace.prompt is not None and all(chunk.text for chunk in seen):
        in_prompt = [chunk for chunk in seen if message_in_prompt(trace, chunk.text or "")]
        how, seen = ("prompt", in_prompt) if in_prompt else (how, seen)
    return [*_ranked(seen)], how


def _chunks(search: Search) -> list[SearchedChunk]:
    return [chunk for chunk in search.retrieved if isinstance(chunk, SearchedChunk)]


def _plain(chunk: RetrievedChunk) -> RetrievedChunk:
    return RetrievedChunk(**{n: getattr(chunk, n) for n in RetrievedChunk.__struct_fields__})


def _search(search: TracedSearch, begin: int, notes: Notes) -> Search:
    span = search.span
    start = span.start if span is not None else 0
    failed = span.failed if span is not None else None
    chunks = [chunk_of(row, rank, notes) for rank, row in enumerate(search.documents, 1)]
    return Search(
        query=search.query,
        tool=search.tool,
        start_ms=(start - begin) / 1e6 if 0 < begin <= start < LAST_TIME else None,
        latency_ms=span.milliseconds if span is not None else None,
        error=None if failed is None else failed or "failed",
        retrieved=[SearchedChunk(**msgspec.structs.asdict(chunk)) for chunk in chunks],
    )


def _take_errors(result: TestResult, trace: Trace, notes: Notes) -> None:
    failed = [span for span in trace.spans if span.failed is not None]
    if result.answer is not None:
        notes.left_out["errors of spans in traces that have an answer"] += len(failed)
        return
    if trace.state == "unknown":
        # A tool or a search that failed is no failure of the answer, which came all the same.
        failed = [span for span in failed if trace.kinds[id(span)] not in HIDDEN]
        if not failed:
            notes.left_out[UNREAD] += 1
            result.status = UNREADABLE
            result.absent = {"answer": "no span says for certain which text is the answer"}
            return
    if failed or not result.retrieved:
        failure = failed[0].failed or failed[0].name if failed else "the spans have no answer"
        result.status = "error"
        result.error = ErrorInfo("imported", failure)
        result.retrieved = []
        result.retrieved_from_search = result.seen = result.seen_tools = msgspec.UNSET


def passages_kept(item: ImportedCase, name: str, notes: Notes) -> None:
    """Take the passages from the outermost span's output, if no retriever reported them.

    ``name``: where ``case_of_trace`` kept it in the metadata of the case.
    """
    result, metadata = item.answers[0].result, item.case.get("metadata", {})
    given = metadata.get(name)
    if result.status != "ok" or result.retrieved or not isinstance(given, dict):
        return
    if told := passages_in(given, notes):
        result.retrieved, result.retrieved_from_search = [*told], msgspec.UNSET
        left = {key: value for key, value in given.items() if key not in CONTEXTS}
        metadata |= {name: left} if left else {}
        if not left:
            del metadata[name]


def _times(trace: Trace) -> dict[str, float]:
    roots = [span for span in trace.spans if span.is_root] or trace.spans
    times = {"total": roots[0].milliseconds}
    searching = [span for span in trace.of_kind(RETRIEVAL) if span.milliseconds is not None]
    times["retrieve"] = _covered(searching) if searching else None
    durations = [span.milliseconds for span in trace.of_kind(CHAT)]
    reported = [time for time in durations if time is not None]
    times["generate"] = sum(reported) if reported else None
    return {stage: time for stage, time in times.items() if time is not None}


def _covered(spans: Sequence[Span]) -> float:
    """Milliseconds in which at least one of the spans ran, in order of their start."""
    total, until = 0, 0
    for span in spans:
        total += max(0, span.end - max(span.start, until))
        until = max(until, span.end)
    return total / 1e6


def _model(span: Span) -> Any:
    return next((span.attributes[name] for name in MODELS if span.attributes.get(name)), None)


def _once(trace: Trace, kind: str, numbers: Callable[[Span], Any]) -> list[Any]:
    """What each span of a kind says, but not what one within another says again."""
    spans = trace.of_kind(kind)
    said = {id(span): found for span in spans if (found := numbers(span))}
    ids = {span.id: span for span in trace.spans}
    kept = []
    for span in spans:
        outer: Span | None = ids.get(span.parent)
        passed = {span.id}
        while outer is not None and outer.id not in passed and id(outer) not in said:
            passed.add(outer.id)
            outer = ids.get(outer.parent)
        if id(span) in said and (outer is None or outer.id in passed):
            kept.append(said[id(span)])
    return kept


def _cost(trace: Trace) -> float | None:
    """US dollars of all chats; of the agent when no chat tells them."""
    for kind in (CHAT, AGENT):
        if costs := _once(trace, kind, _cost_of):
            return float(sum(costs))
    return None


def _cost_of(span: Span) -> float | None:
    inner = structured(span.attributes.get(MLFLOW_COST))
    cost = inner.get("total_cost") if isinstance(inner, dict) else span.attributes.get(COST)
    if not isinstance(cost, int | float) or isinstance(cost, bool) or cost < 0:
        return None
    return float(cost)


def _usage(trace: Trace) -> dict[str, Any]:
    """Tokens of all chats; of the agent when no chat tells them."""
    for kind in (CHAT, AGENT):
        if counts := _once(trace, kind, _tokens_of):
            names = [name for name in USAGE if any(name in count for count in counts)]
            return {name: sum(count.get(name, 0) for count in counts) for name in names}
    return {}


def _tokens_of(span: Span) -> dict[str, int]:
    told: Mapping[str, Any] = span.attributes
    counts = {}
    for name, keys in USAGE.items():
        values = [value for key in keys if type(value := told.get(key)) is int and value >= 0]
        if values:
            counts[name] = values[0]
    if counts:
        return counts
    return tokens_in(structured(told.get(MLFLOW_USAGE)) or _reply(span))


def _reply(span: Span) -> Any:
    """The whole reply of a model, where it was captured."""
    listed = (span.attributes.get(name) for name in (*MESSAGES["out"], *VALUES["out"]))
    return next((value for raw in listed if isinstance(value := structured(raw), dict)), None)


_NUMBER = re.compile(r"\.\d+(?=\.|$)")


def _rest(trace: Trace, notes: Notes) -> dict[str, Any]:
    """What no field of ours holds: of the outermost span unchanged, of the others as counts."""
    outermost = next((span for span in trace.spans if span.is_root), trace.spans[0])
    kept: dict[str, Any] = {}
    for span in trace.spans:
        if not trace.kinds[id(span)] and not span.is_root:
            continue  # of another operation
        for name, value in span.attributes.items():
            if is_read(name) or value in (None, "", [], {}):
                continue
            if span is outermost:
                kept[name] = structured(value)
            else:
                notes.left_out[f"{_NUMBER.sub('.N', name)} of inner spans"] += 1
        # Those of searches and tools are kept.
        sides = () if trace.kinds[id(span)] in (RETRIEVAL, TOOL) else ("in", "out")
        told = [message.text for side in sides for message in messages_of(span, side)]
        others = sum(text not in (trace.question, trace.answer) for text in told)
        notes.left_out["messages beside question and answer (prompts, tools, steps)"] += others
        for name, _ in span.events:
            if not is_read_event(name):
                notes.left_out[f"events {name[:60]} of spans"] += 1
    return kept
