"""The spans of one trace as a case with its answer, whatever tool wrote them.

Questions, answers and documents stand in the values that LLM tools log: texts, objects, messages.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from formats.shared.item import CONTEXTS, ImportedCase, Notes, SystemAnswer, chunk_of, passages_in
from formats.shared.spans import (
    COST,
    MODELS,
    QUERY,
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
from records.results import ErrorInfo, TestResult

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
    by_kind: dict[str, list[Span]] = {"agent": [], "chat": [], "retrieval": [], "": []}
    for span in spans:
        by_kind[kind_of(span)].append(span)
    question = _question(by_kind, notes)
    if question is None:
        return None
    result = TestResult(trace, question)
    result.answer = _answer(by_kind)
    result.retrieved = [*_retrieved(by_kind["retrieval"], notes)]
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
        result.retrieved = []
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
    if result.status != "ok" or result.retrieved or not isinstance(given, dict):
        return
    result.retrieved = [*passages_in(given, notes)]
    if result.retrieved:
        left = {key: value for key, value in given.items() if key not in CONTEXTS}
        metadata |= {name: left} if left else {}
        if not left:
            del metadata[name]


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


def _retrieved(spans: list[Span], notes: Notes) -> list[Any]:
    """The documents of the last retrieval that has some: a reranker comes after its retriever."""
    lists = [documents for span in spans if (documents := documents_of(span))]
    notes.left_out["lists of earlier retrievals of a trace"] += max(0, len(lists) - 1)
    last = lists[-1] if lists else []
    return [chunk_of(document, rank, notes) for rank, document in enumerate(last, 1)]


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
        told = [text for side in ("in", "out") for _, text in messages_of(span, side)]
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
