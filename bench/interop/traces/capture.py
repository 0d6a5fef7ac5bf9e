"""From spans of a process to lines that are the same at every run.

Ids are numbered in order of appearance, times become ranks on a fixed clock, and what a machine
says of itself (resource, host, process, paths, addresses) is fixed or left out. Everything else
stays byte for byte what the instrumentation wrote.
"""

from __future__ import annotations

import base64
import gzip
import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

START = 1_767_225_600_000_000_000  # 2026-01-01T00:00:00Z in nanoseconds
STEP = 1_000_000
RESOURCE = {"service.name": "golden"}

_LEFT_OUT = re.compile(r"^(host|process|os|server|net|code|thread)\.")
_UUID = re.compile(r"[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}")
_PORT = re.compile(r"(127\.0\.0\.1|localhost):\d+")
_PATH = re.compile(r"/(?:root|home|tmp|usr|opt|work)/[^\s\"',:;)\]}\\]*")
_ISO = re.compile(r"20\d\d-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:?\d\d)?")
_HEX = re.compile(
    r"(?<![0-9a-f])(?=[0-9a-f]*[a-f])(?=[0-9a-f]*\d)(?:[0-9a-f]{32}|[0-9a-f]{24}|[0-9a-f]{16})(?![0-9a-f])"
)
_SECONDS = re.compile(r"((?:start_time|end_time|duration|created)=)\d+\.\d+(?:e-\d+)?")
_EPOCH = re.compile(r"(?<![\d.-])17[6-9]\d{7}(?:\.\d+)?(?![\d-])")
_RUN_ID = re.compile(
    r"(run_id\W{1,8})[A-Za-z0-9]{10}\b"
)  # random letters of LlamaIndex's workflows
_ADDRESS = re.compile(r"\b0x[0-9a-f]{6,16}\b")


class Fixed:
    """Puts numbered ids and a fixed clock in the place of those of one run."""

    def __init__(self) -> None:
        self._ids: dict[str, str] = {}

    def id(self, text: str) -> str:
        """A hexadecimal id of the same length, by order of appearance."""
        if not text:
            return text
        if text not in self._ids:
            self._ids[text] = f"{len(self._ids) + 1:0{len(text)}x}"
        return self._ids[text]

    def uuid(self, text: str) -> str:
        key = text.lower()
        if key not in self._ids:
            self._ids[key] = f"00000000-0000-4000-8000-{len(self._ids) + 1:012x}"
        return self._ids[key]

    def text(self, text: str) -> str:
        """A text without what differs from run to run or machine to machine."""
        text = _UUID.sub(lambda match: self.uuid(match[0]), text)
        text = _HEX.sub(lambda match: self.id(match[0]), text)
        text = _PORT.sub("127.0.0.1:8080", text)
        text = _SECONDS.sub(r"\g<1>0.5", text)
        text = _EPOCH.sub("1767225600", text)
        text = _RUN_ID.sub(r"\g<1>run0000001", text)
        text = _ADDRESS.sub("0x1", text)
        text = _ISO.sub("2026-01-01T00:00:00.000000Z", text)
        return _PATH.sub("/app", text)

    def value(self, value: Any) -> Any:
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, list):
            return [self.value(part) for part in value]
        if isinstance(value, dict):
            return {self.text(key): self.value(part) for key, part in value.items()}
        return value


def ranked(times: Iterable[Any]) -> dict[Any, int]:
    """A fixed time in nanoseconds for each time: same order, same ties."""
    return {time: START + n * STEP for n, time in enumerate(sorted(set(times)))}


def fixed_requests(requests: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """OTLP requests (resourceSpans, resourceLogs) with fixed ids, times and resources."""
    times: set[int] = set()

    def look(value: Any) -> None:
        if isinstance(value, dict):
            for key, part in value.items():
                if key.endswith("UnixNano") and int(part):
                    times.add(int(part))
                else:
                    look(part)
        elif isinstance(value, list):
            for part in value:
                look(part)

    look(requests)
    clock = ranked(times)
    fixed = Fixed()

    def walk(value: Any, key: str = "") -> Any:
        if isinstance(value, dict):
            if key == "resource":
                pairs = [{"key": k, "value": {"stringValue": v}} for k, v in RESOURCE.items()]
                return {"attributes": pairs}
            return {name: walk(part, name) for name, part in value.items()}
        if isinstance(value, list):
            if key == "attributes":
                value = [pair for pair in value if not _LEFT_OUT.match(pair["key"])]
            return [walk(part) for part in value]
        if key in ("traceId", "spanId", "parentSpanId"):
            return fixed.id(value if len(value) in (16, 32) else base64.b64decode(value).hex())
        if key.endswith("UnixNano"):
            return str(clock.get(int(value), 0))
        if isinstance(value, str):
            return fixed.text(value)
        return value

    return [walk(request) for request in requests]


def fixed_mlflow(traces: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Traces of MLflow (`Trace.to_json`) with fixed ids and times, without who made them where."""
    names = ("start_time_unix_nano", "end_time_unix_nano")
    clock = ranked(
        span[name] for trace in traces for span in trace["data"]["spans"] for name in names
    )
    fixed = Fixed()

    def encoded(text: str | None) -> str | None:
        if not text:
            return text
        return base64.b64encode(bytes.fromhex(fixed.id(base64.b64decode(text).hex()))).decode()

    done = []
    for n, trace in enumerate(traces):
        info, spans = trace["info"], trace["data"]["spans"]
        kept = {
            key: value
            for key, value in sorted(info["trace_metadata"].items())
            if not key.startswith(("mlflow.source", "mlflow.user", "mlflow.trace.size"))
        }
        info = info | {"trace_metadata": kept}
        info["execution_duration_ms"] = len(spans)
        info["trace_location"] = {"type": "MLFLOW_EXPERIMENT"}
        info["trace_location"]["mlflow_experiment"] = {"experiment_id": "1"}
        info["tags"].pop("mlflow.artifactLocation", None)
        new = fixed.value({"info": info, "data": {"spans": []}})
        new["info"]["request_time"] = f"2026-01-01T00:00:{n:02}.000Z"
        for span in spans:
            ids = {name: encoded(span[name]) for name in ("trace_id", "span_id", "parent_span_id")}
            times = {name: clock[span[name]] for name in names}
            new["data"]["spans"].append(fixed.value(span) | ids | times)
        done.append(new)
    return done


def spans_request(spans: list[Any]) -> dict[str, Any]:
    """Finished spans of the SDK as one OTLP request in JSON."""
    from google.protobuf.json_format import MessageToDict
    from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans

    return MessageToDict(encode_spans(spans), use_integers_for_enums=True)


def logs_request(records: list[Any]) -> dict[str, Any]:
    """Finished log records of the SDK as one OTLP request in JSON."""
    from google.protobuf.json_format import MessageToDict
    from opentelemetry.exporter.otlp.proto.common._log_encoder import encode_logs

    return MessageToDict(encode_logs(records), use_integers_for_enums=True)


class Spans:
    """A tracer provider that keeps what it is given, one OTLP request a turn."""

    def __init__(self) -> None:
        from opentelemetry import trace
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import SimpleSpanProcessor
        from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

        self.provider = TracerProvider()
        self.exporter = InMemorySpanExporter()
        self.logs: Any = None
        self.provider.add_span_processor(SimpleSpanProcessor(self.exporter))
        trace.set_tracer_provider(self.provider)
        self.requests: list[dict[str, Any]] = []

    def run(self, ask: Any, turns: Iterable[Any]) -> None:
        """Ask every turn; each answer must be the script's."""
        for turn in turns:
            answer = ask(turn)
            if answer != turn.answer:
                raise AssertionError(f"{turn.name}: {answer!r} is not {turn.answer!r}")
            self.turn_over()

    def quiet(self) -> Any:
        """An exporter for a library that wants one of its own: it sends nothing."""
        from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

        return InMemorySpanExporter()

    def with_logs(self) -> Any:
        """A logger provider whose records are kept beside the spans."""
        from opentelemetry._logs import set_logger_provider
        from opentelemetry.sdk._logs import LoggerProvider
        from opentelemetry.sdk._logs.export import (
            InMemoryLogRecordExporter,
            SimpleLogRecordProcessor,
        )

        self.logs = InMemoryLogRecordExporter()
        provider = LoggerProvider()
        provider.add_log_record_processor(SimpleLogRecordProcessor(self.logs))
        set_logger_provider(provider)
        return provider

    def turn_over(self) -> None:
        """Put the spans of a turn on a line of their own, as a collector would."""
        spans = self.exporter.get_finished_spans()
        self.exporter.clear()
        if spans:
            self.requests.append(spans_request(list(spans)))
        if self.logs is not None:
            records = self.logs.get_finished_logs()
            self.logs.clear()
            if records:
                self.requests.append(logs_request(list(records)))

    def write(self, target: Path) -> None:
        self.turn_over()
        write_lines(target, fixed_requests(self.requests))


def write_lines(target: Path, rows: Iterable[Any]) -> None:
    """Gzipped JSON lines without a time or a name in the header: same rows, same bytes."""
    lines = [json.dumps(row, ensure_ascii=False, separators=(",", ":")) + "\n" for row in rows]
    data = "".join(lines).encode()
    target.write_bytes(gzip.compress(data, 9, mtime=0))
