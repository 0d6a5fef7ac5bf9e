"""Traces a real LlamaIndex query engine with OpenInference's instrumentation.

It searches three times a question: by a tool, by the retriever alone, and by the engine whose
answer is taken.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from facts import FACTS
from google.protobuf.json_format import MessageToDict
from llama_index.core import PromptTemplate
from llama_index.core.llms import CompletionResponse, CustomLLM, LLMMetadata
from llama_index.core.query_engine import CustomQueryEngine, RetrieverQueryEngine
from llama_index.core.response_synthesizers import get_response_synthesizer
from llama_index.core.retrievers import BaseRetriever
from llama_index.core.schema import NodeWithScore, TextNode
from llama_index.core.tools import RetrieverTool
from openinference.instrumentation.llama_index import LlamaIndexInstrumentor
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter


class Retriever(BaseRetriever):
    """Finds the first passage of a question, and all of them by the question itself."""

    def _retrieve(self, query: Any) -> list[NodeWithScore]:
        fact = next(fact for fact in FACTS if query.query_str.strip() in fact["searches"])
        most = 3 if query.query_str.strip() == fact["question"] else 1
        return [
            NodeWithScore(
                node=TextNode(
                    id_=passage["id"],
                    text=passage["text"],
                    metadata={
                        "file_path": passage["rel_path"],
                        "header_path": "/" + passage["heading"].replace(" > ", "/") + "/",
                        "note": fact["note"],
                    },
                ),
                score=passage["score"],
            )
            for passage in fact["passages"][:most]
        ]


class SearchingEngine(CustomQueryEngine):
    """Searches by a tool and by itself before it asks the engine that answers."""

    inner: Any
    tool: Any
    retriever: Any

    def custom_query(self, query_str: str) -> Any:
        fact = next(fact for fact in FACTS if fact["question"] == query_str)
        self.tool(fact["searches"][0])
        self.retriever.retrieve(fact["searches"][1])
        return self.inner.query(query_str)


class Model(CustomLLM):
    """Answers as the facts say."""

    @property
    def metadata(self) -> LLMMetadata:
        return LLMMetadata(model_name="model-xyz")

    def complete(self, prompt: str, formatted: bool = False, **more: Any) -> CompletionResponse:
        fact = next(fact for fact in FACTS if fact["question"] in prompt)
        return CompletionResponse(text=fact["answer"])

    def stream_complete(self, prompt: str, formatted: bool = False, **more: Any) -> Any:
        yield self.complete(prompt)


def instrumented() -> InMemorySpanExporter:
    """Where the spans of LlamaIndex are from now on."""
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    LlamaIndexInstrumentor().instrument(tracer_provider=provider)
    return exporter


def request_of(exporter: InMemorySpanExporter) -> dict[str, Any]:
    """The finished spans as one OTLP request in JSON; the exporter is empty then."""
    message = encode_spans(exporter.get_finished_spans())
    exporter.clear()
    request: dict[str, Any] = MessageToDict(message, use_integers_for_enums=True)
    return request


def make(folder: Path) -> None:
    exporter = instrumented()
    synthesizer = get_response_synthesizer(
        llm=Model(), text_qa_template=PromptTemplate("{context_str}\nQuestion: {query_str}")
    )
    retriever = Retriever()
    engine = SearchingEngine(
        inner=RetrieverQueryEngine(retriever, synthesizer),
        tool=RetrieverTool.from_defaults(retriever, name="notes", description="Looks up."),
        retriever=retriever,
    )
    for fact in FACTS:
        engine.query(fact["question"])
    (folder / "spans.json").write_text(json.dumps(request_of(exporter)), encoding="utf-8")


DAYS, CHANGED, A_DAY = 24, 15, 40
START = datetime(2026, 3, 1, tzinfo=UTC)
"""The first day of ``watch``; the bot changes on the 16th."""


class ChangedModel(Model):
    """Refuses one question in twenty, and one in four from the day of the change on."""

    def complete(self, prompt: str, formatted: bool = False, **more: Any) -> CompletionResponse:
        words = prompt.rpartition("part ")[2].rstrip("?").split(" of crane ")
        number, day = map(int, words)
        if number % (4 if day >= CHANGED else 20) == 0:
            return CompletionResponse(text="I could not find this in the documents.")
        return CompletionResponse(text=f"Part {number} is greased with oil, as the maker says.")


class CraneRetriever(BaseRetriever):
    def _retrieve(self, query: Any) -> list[NodeWithScore]:
        return [
            NodeWithScore(node=TextNode(text="Cranes are greased with oil."), score=1.0 - n / 10)
            for n in range(3)
        ]


def watch(folder: Path) -> None:
    """Spans of a bot that changes in the middle, moved to the days that they stand for."""
    exporter = instrumented()
    synthesizer = get_response_synthesizer(
        llm=ChangedModel(), text_qa_template=PromptTemplate("{context_str}\nQuestion: {query_str}")
    )
    engine = RetrieverQueryEngine(CraneRetriever(), synthesizer)
    with open(folder / "spans.jsonl", "w", encoding="utf-8") as file:
        for day in range(DAYS):
            for number in range(A_DAY):
                engine.query(f"How does one grease part {number} of crane {day}?")
                begin = START + timedelta(days=day, minutes=10 * number)
                file.write(json.dumps(moved(request_of(exporter), begin)) + "\n")


def moved(request: dict[str, Any], begin: datetime) -> dict[str, Any]:
    """The spans of one trace, which begins at another time."""
    spans = list(spans_of(request))
    shift = int(begin.timestamp()) * 10**9 - min(int(span["startTimeUnixNano"]) for span in spans)
    for span in spans:
        for name in ("startTimeUnixNano", "endTimeUnixNano"):
            span[name] = str(int(span[name]) + shift)
    return request


def spans_of(request: dict[str, Any]) -> Iterable[dict[str, Any]]:
    for resource in request["resourceSpans"]:
        for scope in resource["scopeSpans"]:
            yield from scope["spans"]


if __name__ == "__main__":
    {"make": make, "watch": watch}[sys.argv[1]](Path(sys.argv[2]))
