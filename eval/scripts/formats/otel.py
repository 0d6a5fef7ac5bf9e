"""OpenTelemetry GenAI spans in JSON: one question for each trace."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from formats.shared.item import ImportedCase, ImportOptions, Notes, SystemAnswer, chunk_of
from formats.shared.rows import unpacked
from formats.shared.spans import MODELS, USAGE, Span, documents_of, kind_of, messages_of, spans_of
from records.results import ErrorInfo, TestResult

NAME = "otel"

ABOUT = (
    "spans in JSON with gen_ai.*, OpenInference or Traceloop names: OTLP, console, Phoenix, Jaeger"
)

QUERY = "gen_ai.retrieval.query.text"


def read(sources: Sequence[Path], options: ImportOptions, notes: Notes) -> Iterator[ImportedCase]:
    """A case for each trace that tells a question; its id is the trace's.

    Spans of one trace may stand anywhere in the files, so all GenAI spans are held in memory. A run
    is named like the file in which its traces begin; --run-id joins the files into one run.
    """
    traces: dict[str, list[Span]] = {}
    begun: dict[str, Path] = {}
    for source in sources:
        path = unpacked(source, options.scratch)
        for span in spans_of(path, notes):
            notes.rows["spans"] += 1
            if kind_of(span) or not span.parent:
                traces.setdefault(span.trace, []).append(span)
                begun.setdefault(span.trace, path)
            else:
                notes.left_out["spans of other operations"] += 1
    for trace, spans in traces.items():
        notes.rows["traces"] += 1
        item = _item(begun[trace], options.run_id, trace, spans, notes)
        if item is None:
            notes.left_out["traces without a question (content capture off?)"] += 1
        else:
            yield item


def _item(
    path: Path, run: str | None, trace: str, spans: list[Span], notes: Notes
) -> ImportedCase | None:
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
    failed = [span for span in spans if span.failed is not None]
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
    notes.carried.update(list(extra))
    answers = [SystemAnswer(run or path.stem, result)]
    case |= {"metadata": extra} if extra else {}
    return ImportedCase(
        case, path, None, answers, asked=False
    )  # a log holds what its service was asked


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
