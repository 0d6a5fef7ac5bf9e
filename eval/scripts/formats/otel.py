"""OpenTelemetry GenAI spans in JSON: one question for each trace."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from formats.shared.item import ImportedCase, ImportOptions, Notes
from formats.shared.rows import unpacked
from formats.shared.spans import Span, kind_of, spans_of
from formats.shared.traces import case_of_trace

NAME = "otel"

ABOUT = (
    "spans with gen_ai.*, OpenInference or Traceloop names, JSON or Parquet: OTLP, console, "
    "Phoenix, Jaeger"
)


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
        item = case_of_trace(begun[trace], options.run_id, trace, spans, notes)
        if item is None:
            notes.left_out["traces without a question (content capture off?)"] += 1
        else:
            yield item
