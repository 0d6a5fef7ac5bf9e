"""Traces of a bot, made for the tests, and a folder in which they are watched."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.processes import call_script

SCRIPT = "extras.watch.watch_traces"

DAY = 86_400
START = 1_772_323_200
"""2026-03-01 00:00 UTC in seconds."""

NOW = (START + 40 * DAY) * 1_000_000
"""The time of a look, in microseconds: 40 days later."""

REFUSAL = "I could not find this in the documents."


def call(*words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """How watch_traces.py ends, and what it prints."""
    return call_script(SCRIPT, *words, cwd=None, **environment)


def span(
    trace: str, name: str, parent: str, begin: float, lasted: float, **attributes: Any
) -> dict[str, Any]:
    """A span as OTLP writes it; ``__`` in a name of an attribute stands for a dot."""

    def typed(value: Any) -> dict[str, Any]:
        kind = {int: "intValue", float: "doubleValue"}.get(type(value), "stringValue")
        return {kind: str(value) if kind == "intValue" else value}

    pairs = {key.replace("__", "."): typed(value) for key, value in attributes.items()}
    ends = [str(int(at * 1e9)) for at in (begin, begin + lasted)]
    return {
        **{"traceId": trace, "spanId": f"{trace}.{name}", "name": name},
        "parentSpanId": f"{trace}.{parent}" if parent else "",
        **{"startTimeUnixNano": ends[0], "endTimeUnixNano": ends[1]},
        "attributes": [{"key": key, "value": value} for key, value in pairs.items()],
    }


def trace(
    name: str,
    *,
    at: float = START,
    question: str = "How is a crane greased?",
    answer: str | None = "With oil, once a week.",
    passages: tuple[str, ...] = ("A crane is greased with oil, once a week.",),
    session: str | None = None,
    lasted: float = 1.0,
) -> list[dict[str, Any]]:
    """The spans of one answer, the outermost last, as exporters send them."""
    documents = {
        f"retrieval__documents__{n}__document__{key}": value
        for n, text in enumerate(passages)
        for key, value in (("id", f"c{n}"), ("content", text))
    }
    more = {} if session is None else {"session__id": session}
    out = {} if answer is None else {"output__value": answer}
    return [
        span(name, "retrieve", "root", at, 0.1, openinference__span__kind="RETRIEVER",
             input__value=question, **documents, **more),
        span(name, "root", "", at, lasted, openinference__span__kind="CHAIN",
             input__value=question, **out, **more),
    ]  # fmt: skip


def otlp(*spans: dict[str, Any]) -> str:
    """One line as the collector's file exporter writes it."""
    return json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": list(spans)}]}]}) + "\n"


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    """The key of hashed ids, which is else made in the user's folder."""
    monkeypatch.setattr("extras.watch.summary.key_of_ids", lambda: b"k" * 64)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "traces"
    path.mkdir()
    return path


@pytest.fixture
def look(tmp_path: Path, folder: Path) -> Callable[..., Any]:
    """A look at the folder of traces."""
    from extras.watch.look import Watch, watch
    from extras.watch.watch_options import WatchOptions

    def take(now: int = NOW, **wishes: Any) -> Watch:
        options = WatchOptions(folder=folder, index=tmp_path / "index.sqlite", **wishes)
        return watch(options, now)

    return take
