"""The spans of one trace as a case with its answer, whatever tool wrote them.

Questions, answers and documents stand in the values that LLM tools log: texts, objects, messages.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from formats.shared.item import CONTEXTS, ImportedCase, Notes, SystemAnswer, chunk_of, passages_in
from formats.shared.spans import (
    COST,
    MODELS,
    QUERY,
    TOOL_NAMES,
    TOOL_WORDS,
    USAGE,
    Span,
    documents_of,
    is_read,
    is_read_event,
    kind_of,
    messages_of,
    structured,
    words_of,
)
from records.results import ErrorInfo, RetrievedChunk, Search, SearchedChunk, TestResult

_ROLES = {"human": "user", "user": "user", "ai": "assistant", "assistant": "assistant"}
_CLASSES = {"HumanMessage": "user", "AIMessage": "assistant"}


def words_in(value: Any, side: str, field: str | None = None) -> str | None:
    """The user's words (``in``) or the answer (``out``) in a value; None when it tells none.

    ``field``: the name that the user gave for the question. An object with one text alone is that.
    """
    value = structured(value)
    if field and isinstance(value, dict) and isinstance(value.get(field), str):
        text: str = value[field]
        return text
    messages = messages_in(value)
    if messages:
        role = "user" if side == "in" else "assistant"
        return next((m["content"] for m in reversed(messages) if m["role"] == role), None)
    words = words_of(value, side)
    if words is None and isinstance(value, dict):
        texts = [text for text in value.values() if isinstance(text, str) and text.strip()]
        return texts[0] if len(texts) == 1 else None
    return words


def rest_of(value: Any, words: str | None) -> dict[str, Any]:
    """What an object holds beside the words that were taken from it, and beside its messages."""
    value = structured(value)
    fields = value if isinstance(value, dict) else {}
    said = messages_in(value)
    return {
        name: item
        for name, item in fields.items()
        if item != words and not (said and name in ("messages", "role", "content", "type"))
    }


def messages_in(value: Any) -> list[dict[str, str]]:
    """The messages of a value, as role and content: OpenAI's, LangChain's and its serialised."""
    value = structured(value)
    if isinstance(value, dict):
        value = value.get("messages") or [value]
    if isinstance(value, list) and len(value) == 1 and isinstance(value[0], list):
        value = value[0]
    found = [_message(item) for item in value] if isinstance(value, list) else []
    return [message for message in found if message is not None]


def _message(raw: Any) -> dict[str, str] | None:
    if not isinstance(raw, dict):
        return None
    inner, names = raw.get("kwargs"), raw.get("id")
    if isinstance(inner, dict) and isinstance(names, list) and names:
        role, raw = _CLASSES.get(str(names[-1]), "other"), inner
    elif isinstance(raw.get("data"), dict) and raw.get("type") in _ROLES:
        role, raw = _ROLES[str(raw["type"])], raw["data"]
    elif "role" in raw or raw.get("type") in _ROLES:
        role = _ROLES.get(str(raw.get("role") or raw.get("type")), "other")
    else:
        return None
    content = raw.get("content")
    if isinstance(content, list):
        parts = [part.get("text") for part in content if isinstance(part, dict)]
        content = "\n".join(text for text in parts if isinstance(text, str))
    return {"role": role, "content": content} if isinstance(content, str) and content else None


def case_of_trace(
    path: Path, run: str | None, trace: str, spans: list[Span], notes: Notes
) -> ImportedCase | None:
    """The case that the spans of one trace tell, with its answer; None without a question.

    What the outermost span says beside it is kept under ``metadata``; what inner spans say is
    counted.
    """
    spans.sort(key=lambda span: (span.start, span.end))
    kinds = ("agent", "chat", "retrieval", "reranker", "tool", "")
    by_kind: dict[str, list[Span]] = {kind: [] for kind in kinds}
    for span in spans:
        by_kind[kind_of(span)].append(span)
    question = _question(by_kind, notes)
    if question is None:
        return None
    result = TestResult(trace, question)
    result.answer = _answer(by_kind)
    _take_passages(result, spans, by_kind, notes)
    result.latency_ms = _times(spans, by_kind)
    result.usage = _usage(by_kind)
    result.cost_usd = _cost(by_kind)
    failed = [span for span in spans if span.failed is not None]
    if result.answer is not None:
        notes.left_out["errors of spans in traces that have an answer"] += len(failed)
    if result.answer is None and (failed or not result.retrieved):
        failure = failed[0].failed if failed else "the spans hold no answer"
        result.status = "error"
        result.error = ErrorInfo("imported", failure or failed[0].name)
        result.retrieved, result.retrieved_from_search = [], msgspec.UNSET
    case: dict[str, Any] = {"id": trace, "question": question}
    named = (
        next((span.attributes[name] for name in MODELS if span.attributes.get(name)), None)
        for span in by_kind["chat"]
    )
    models = {str(name) for name in named if name}
    extra: dict[str, Any] = {"models": sorted(models)} if models else {}
    conversation = next(
        (
            conversation
            for span in spans
            if (conversation := span.attributes.get("gen_ai.conversation.id"))
        ),
        None,
    )
    if conversation:
        extra["conversation"] = str(conversation)
    extra |= _rest(spans, question, result.answer, notes)
    notes.carried.update(list(extra))
    answers = [SystemAnswer(run or path.stem, result)]
    case |= {"metadata": extra} if extra else {}
    return ImportedCase(
        case, path, None, answers, asked=False
    )  # a log holds what its service was asked


def passages_kept(item: ImportedCase, name: str, notes: Notes) -> None:
    """Take the passages from what the outermost span gave out, when no retriever told them.

    ``name``: where ``case_of_trace`` kept it in the metadata of the case.
    """
    result, metadata = item.answers[0].result, item.case.get("metadata", {})
    given = metadata.get(name)
    by_tool = _is_text_of_tool(result)
    if result.status != "ok" or (result.retrieved and not by_tool) or not isinstance(given, dict):
        return
    if told := passages_in(given, notes):
        result.retrieved, result.retrieved_from_search = [*told], msgspec.UNSET
        left = {key: value for key, value in given.items() if key not in CONTEXTS}
        metadata |= {name: left} if left else {}
        if not left:
            del metadata[name]


def _is_text_of_tool(result: TestResult) -> bool:
    """True when the passages are nothing but the text that a tool gave back."""
    number = result.retrieved_from_search
    chunks = result.chunks() if number else []
    return len(chunks) == 1 and chunks[0].doc_id is None


def _question(by_kind: dict[str, list[Span]], notes: Notes) -> str | None:
    """The user's words: of the agent, else of the first chat, else the retrieval's query.

    A prompt into which passages were put is longer than the query that it holds: then the query
    is the question.
    """
    query = next(
        (
            text
            for span in by_kind["retrieval"]
            for text in (span.attributes.get(QUERY), span.attributes.get("input.value"))
            if isinstance(text, str) and text.strip()
        ),
        None,
    )
    for span in [*by_kind["agent"], *by_kind["chat"], *by_kind[""]]:
        texts = [text for role, text in messages_of(span, "in") if role == "user" and text.strip()]
        if texts:
            if len(texts) > 1:
                notes.left_out["earlier turns of a conversation"] += len(texts) - 1
            if query is not None and query.strip() in texts[-1] and query.strip() != texts[-1]:
                notes.changed["questions taken from the retrieval's query, not the prompt"] += 1
                return query
            return texts[-1]
    return query


def _answer(by_kind: dict[str, list[Span]]) -> str | None:
    """What came out of the outermost agent, else of the chat that ended last."""
    chats = sorted(by_kind["chat"], key=lambda span: span.end, reverse=True)
    for span in [*by_kind["agent"], *chats, *by_kind[""]]:
        texts = [text for role, text in messages_of(span, "out") if role in ("assistant", "")]
        if texts:
            return texts[-1]
    return None


def _take_passages(
    result: TestResult, spans: Sequence[Span], by_kind: Mapping[str, list[Span]], notes: Notes
) -> None:
    """Every search of a trace, and what the answer saw of their passages.

    That is what the last reranker gave out. Without one it is what the last search brought, and
    the result says from which; a tool's passages only where no retriever has any.
    """
    begin = min((span.start for span in spans if span.start), default=0)
    searches: list[Search] = []
    last: tuple[bool, int, int] | None = None
    for span, around in _searching(spans, by_kind):
        by_retriever = kind_of(span) == "retrieval"
        chunks = _chunks_of(span, notes) if by_retriever else _chunks_of_tool(span, notes)
        searches.append(_search(span, begin, _tool_of(span, around), chunks))
        rank = (by_retriever, span.end, len(searches))
        if chunks and (last is None or rank > last):
            last = rank
    if searches:
        result.searches = searches
    reranked = [documents for span in by_kind["reranker"] if (documents := documents_of(span))]
    if reranked:
        result.retrieved = [chunk_of(row, rank, notes) for rank, row in enumerate(reranked[-1], 1)]
    elif last is not None:
        result.retrieved_from_search = last[2]
        result.retrieved = [
            RetrievedChunk(**msgspec.structs.asdict(chunk))
            for chunk in searches[last[2] - 1].retrieved
            if isinstance(chunk, SearchedChunk)
        ]


def _searching(
    spans: Sequence[Span], by_kind: Mapping[str, list[Span]]
) -> list[tuple[Span, list[Span]]]:
    """The retrievals and tools in the order in which they began, each with the spans around it.

    What instrumentation tells several times is counted once: a tool, or a retrieval without
    documents, that holds another search is told by that one; a retrieval that lies within one of
    the same documents, or that has none while the one around it has some, is told by the outer one.
    """
    by_id = {span.id: span for span in spans}
    searching = [*by_kind["retrieval"], *by_kind["tool"]]
    around = {id(span): _ancestors(span, by_id) for span in searching}
    holders = {id(outer) for span in searching for outer in around[id(span)]}
    kept = []
    for span in spans:
        if id(span) not in around:
            continue
        documents = documents_of(span)
        outer_lists = [found for outer in around[id(span)] if (found := documents_of(outer))]
        if documents:
            counts = documents not in outer_lists
        else:
            counts = id(span) not in holders and not (
                outer_lists and span.failed is None and kind_of(span) == "retrieval"
            )
        if counts:
            kept.append((span, around[id(span)]))
    return kept


def _ancestors(span: Span, by_id: Mapping[str, Span]) -> list[Span]:
    """The spans around a span, the nearest first."""
    around: list[Span] = []
    inner = span
    while (outer := by_id.get(inner.parent)) not in (None, span, *around):
        assert outer is not None
        around.append(outer)
        inner = outer
    return around


def _tool_of(span: Span, around: Sequence[Span]) -> str | None:
    """The name of the tool that searched: of one around the retrieval, else of the span."""
    holder = next((outer for outer in around if kind_of(outer) == "tool"), span)
    named = (holder.attributes.get(name) for name in TOOL_NAMES)
    return next((name for name in named if isinstance(name, str) and name), holder.name) or None


def _search(span: Span, begin: int, tool: str | None, chunks: Sequence[RetrievedChunk]) -> Search:
    words = (words_in(span.attributes.get(name), "in") for name in (QUERY, *TOOL_WORDS["in"]))
    return Search(
        query=next((text.strip() for text in words if text), None),
        tool=tool,
        start_ms=(span.start - begin) / 1e6 if span.start else None,
        latency_ms=span.milliseconds,
        error=None if span.failed is None else span.failed or "failed",
        retrieved=[SearchedChunk(**msgspec.structs.asdict(chunk)) for chunk in chunks],
    )


def _chunks_of(span: Span, notes: Notes) -> list[RetrievedChunk]:
    return [chunk_of(row, rank, notes) for rank, row in enumerate(documents_of(span), 1)]


def _chunks_of_tool(span: Span, notes: Notes) -> list[RetrievedChunk]:
    """The passages that a tool gave back; a text alone is one of them, named by its hash."""
    for name in TOOL_WORDS["out"]:
        value = structured(span.attributes.get(name))
        if isinstance(value, dict | list) and (chunks := passages_in(value, notes)):
            return chunks
        if text := words_in(value, "out"):
            inner = structured(text)
            if isinstance(inner, dict | list) and (chunks := passages_in(inner, notes)):
                return chunks
            name = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]
            return [RetrievedChunk(chunk_id=name, text=text, text_length=len(text), rank=1)]
    return []


def _times(spans: list[Span], by_kind: dict[str, list[Span]]) -> dict[str, float]:
    roots = [span for span in spans if not span.parent] or spans
    times = {"total": roots[0].milliseconds}
    for stage, kind in (("retrieve", "retrieval"), ("generate", "chat")):
        durations = [span.milliseconds for span in by_kind[kind]]
        reported = [time for time in durations if time is not None]
        times[stage] = sum(reported) if reported else None
    return {stage: time for stage, time in times.items() if time is not None}


def _cost(by_kind: dict[str, list[Span]]) -> float | None:
    """US dollars of all chats; of the agent when no chat tells them."""
    for kind in ("chat", "agent"):
        costs = [span.attributes.get(COST) for span in by_kind[kind]]
        known = [float(cost) for cost in costs if isinstance(cost, int | float) and cost >= 0]
        if any(known):
            return sum(known)
    return None


def _rest(spans: list[Span], question: str, answer: str | None, notes: Notes) -> dict[str, Any]:
    """What no field of ours holds: of the outermost span as it is, of the others as counts."""
    outermost = next((span for span in spans if not span.parent), spans[0])
    kept: dict[str, Any] = {}
    for span in spans:
        for name, value in span.attributes.items():
            if is_read(name) or value in (None, "", [], {}):
                continue
            if span is outermost:
                kept[name] = structured(value)
            else:
                notes.left_out[f"{_NUMBER.sub('.N', name)} of inner spans"] += 1
        sides = () if kind_of(span) in ("retrieval", "tool") else ("in", "out")  # those are kept
        told = [text for side in sides for _, text in messages_of(span, side)]
        others = sum(text not in (question, answer) for text in told)
        notes.left_out["messages beside question and answer (prompts, tools, steps)"] += others
        for name, _ in span.events:
            if not is_read_event(name):
                notes.left_out[f"events {name[:60]} of spans"] += 1
    return kept


_NUMBER = re.compile(r"\.\d+(?=\.|$)")


def _usage(by_kind: dict[str, list[Span]]) -> dict[str, Any]:
    """Tokens of all chats; of the agent when no chat tells them."""
    for kind in ("chat", "agent"):
        usage = {
            name: sum(numbers)
            for name, keys in USAGE.items()
            if (numbers := [count for span in by_kind[kind] for count in _counts(span, keys)])
        }
        if usage:
            return usage
    return {}


def _counts(span: Span, names: tuple[str, ...]) -> list[int]:
    values = (span.attributes.get(name) for name in names)
    return [value for value in values if type(value) is int and value >= 0][:1]
