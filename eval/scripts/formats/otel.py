"""OpenTelemetry GenAI spans in JSON: one question for each trace."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from formats.shared.item import ImportedCase, ImportOptions, Notes
from formats.shared.rows import unpacked
from formats.traces.cases import TracedCase, as_conversations, case_of_trace
from formats.traces.feedback import Ratings
from formats.traces.spans import Span, has_content, kind_of
from formats.traces.wire import spans_of

NAME = "otel"

ABOUT = (
    "traces in JSON or Parquet: OTLP with gen_ai.*, OpenInference, Traceloop, Vercel AI or "
    "pydantic-ai names, also in log records; console, Phoenix, Jaeger, MLflow, OpenAI Agents"
)


def read(sources: Sequence[Path], options: ImportOptions, notes: Notes) -> Iterator[ImportedCase]:
    """A case for each trace that tells a question; its id is the trace's.

    Spans of one trace may stand anywhere in the files, so all GenAI spans are held in memory. A run
    is named like the file in which its traces begin; --run-id joins the files into one run.
    """
    traces: dict[str, list[Span]] = {}
    begun: dict[str, Path] = {}
    ratings = Ratings(notes)
    for source in sources:
        path = unpacked(source, options.scratch)
        for span in spans_of(path, notes, ratings.take):
            notes.rows["log records" if span.is_log else "spans"] += 1
            if not (span.is_log or span.is_root or kind_of(span)):
                notes.left_out["spans of other operations"] += 1
                if not has_content(span):  # it is kept as a link between others
                    span.attributes, span.events, span.known_shape = {}, [], None
                    span.known_messages.clear()
            traces.setdefault(span.trace, []).append(span)
            begun.setdefault(span.trace, path)
    cases: list[TracedCase] = []
    for trace, spans in traces.items():
        notes.rows["traces"] += 1
        traced = case_of_trace(
            begun[trace], options.run_id, trace, spans, notes, options.key_of_ids
        )
        if traced is not None:
            cases.append(traced)
    ratings.give(cases, options.key_of_ids)
    yield from as_conversations(cases, options.key_of_ids, notes)
