"""OpenTelemetry GenAI spans in JSON: one question for each trace."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from formats.shared.item import ImportedCase, ImportOptions, Notes
from formats.shared.parquet import SUFFIX as PARQUET
from formats.shared.rows import JSON_ENDINGS, source_files
from formats.traces.cases import TracedCase, as_conversations, case_of_trace, tool_results
from formats.traces.feedback import Ratings
from formats.traces.reading import read_trace
from formats.traces.spans import Span, has_content, kind_of
from formats.traces.wire import NoSpans, spans_of
from records.errors import StorageError

NAME = "otel"

ABOUT = (
    "traces in JSON or Parquet: OTLP with gen_ai.*, OpenInference, Traceloop, Vercel AI or "
    "pydantic-ai names, also in log records; Phoenix, MLflow, OpenAI Agents"
)


_ENDINGS = JSON_ENDINGS | {PARQUET}


def _spans(
    path: Path, notes: Notes, ratings: Ratings, empty: list[StorageError] | None
) -> Iterator[Span]:
    """The spans of a file; a file without any is added to ``empty`` where that is a list."""
    try:
        yield from spans_of(path, notes, ratings.take)
    except NoSpans as error:
        if empty is None:
            raise
        notes.left_out["files without spans"] += 1
        empty.append(error)


def _traces(
    sources: Sequence[Path], options: ImportOptions, notes: Notes, ratings: Ratings
) -> tuple[dict[str, list[Span]], dict[str, Path]]:
    """The spans of each trace, and the file or folder in which it begins."""
    traces: dict[str, list[Span]] = {}
    begun: dict[str, Path] = {}
    empty: list[StorageError] = []
    for path, named in source_files(sources, _ENDINGS, options.scratch, notes):
        for span in _spans(path, notes, ratings, empty if named is not path else None):
            notes.rows["log records" if span.is_log else "spans"] += 1
            if not (span.is_log or span.is_root or kind_of(span)):
                notes.left_out["spans of other operations"] += 1
                if not has_content(span):  # it is kept as a link between others
                    span.attributes, span.events, span.known_shape = {}, [], None
                    span.known_messages.clear()
            traces.setdefault(span.trace, []).append(span)
            begun.setdefault(span.trace, named)
    if empty and not traces:
        raise StorageError(
            f"{sources[0]}: no trace can be read. Files: {len(empty)}. {empty[0].message}"
        )
    return traces, begun


def results_of_tools(
    source: Path, options: ImportOptions, notes: Notes
) -> dict[str, list[tuple[str, Any]]]:
    """The results of the tools in the traces of a file or folder: see ``tool_results``."""
    traces, _ = _traces([source], options, notes, Ratings(notes))
    return tool_results(read_trace(spans) for spans in traces.values())


def read(sources: Sequence[Path], options: ImportOptions, notes: Notes) -> Iterator[ImportedCase]:
    """A case for each trace with a question; its id is the trace's.

    Spans of one trace may stand anywhere in the files, so all GenAI spans are held in memory. A run
    is named like the file in which its traces begin, or the folder that was named; --run-id joins
    them into one run. In a folder, files without any span are counted and passed over.
    """
    ratings = Ratings(notes)
    traces, begun = _traces(sources, options, notes, ratings)
    cases: list[TracedCase] = []
    for trace, spans in traces.items():
        notes.rows["traces"] += 1
        traced = case_of_trace(
            begun[trace], options.run_id, trace, spans, notes, options.key_of_ids
        )
        if traced is not None:
            cases.append(traced)
    ratings.give(cases, options.key_of_ids)
    yield from as_conversations(cases, options, notes)
