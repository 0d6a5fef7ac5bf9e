"""Golden traces of Haystack: ``python haystack_cells.py APP.INSTRUMENTATION FILE``."""

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ |= {"OPENAI_API_KEY": "none", "DO_NOT_TRACK": "1", "HAYSTACK_TELEMETRY_ENABLED": "false"}
os.environ |= {"HAYSTACK_CONTENT_TRACING_ENABLED": "true", "HAYSTACK_AUTO_TRACE_ENABLED": "false"}

import model
import shop
from capture import Spans
from haystack import Document, component

Ask = Callable[[shop.Turn], str]


@component
class ShopRetriever:
    @component.output_types(documents=list[Document])
    def run(self, query: str) -> dict[str, Any]:
        return {
            "documents": [
                Document(
                    id=passage.chunk_id,
                    content=passage.text,
                    meta={"file_path": passage.rel_path, "heading": passage.heading},
                    score=passage.score,
                )
                for passage in shop.search(query)
            ]
        }


def _parts() -> tuple[Any, Any]:
    from haystack.components.generators.chat import OpenAIChatGenerator

    return ShopRetriever(), OpenAIChatGenerator(model=model.NAME, api_base_url=model.serve())


def pipeline() -> Ask:
    """Retriever, prompt builder, generator: one search with the question itself."""
    from haystack import Pipeline
    from haystack.components.builders import ChatPromptBuilder
    from haystack.dataclasses import ChatMessage

    retriever, generator = _parts()
    template = (
        "Answer from these documents.\n{% for document in documents %}{{ document.content }}\n\n"
        "{% endfor %}Question: {{ question }}"
    )
    rag = Pipeline()
    rag.add_component("retriever", retriever)
    rag.add_component(
        "prompt",
        ChatPromptBuilder(template=[ChatMessage.from_user(template)], required_variables="*"),
    )
    rag.add_component("llm", generator)
    rag.connect("retriever.documents", "prompt.documents")
    rag.connect("prompt.prompt", "llm.messages")

    def ask(turn: shop.Turn) -> str:
        asked = {"retriever": {"query": turn.question}, "prompt": {"question": turn.question}}
        return str(rag.run(asked)["llm"]["replies"][0].text)

    return ask


def agent() -> Ask:
    """Haystack's Agent with one tool, which asks the retriever."""
    from haystack import Pipeline
    from haystack.components.agents import Agent
    from haystack.dataclasses import ChatMessage
    from haystack.tools import ComponentTool

    retriever, generator = _parts()
    search = ComponentTool(
        component=retriever,
        name="search",
        description="Search the documents of the shop.",
        outputs_to_string={
            "source": "documents",
            "handler": lambda documents: "\n\n".join(document.content for document in documents),
        },
    )
    app = Pipeline()
    app.add_component(
        "agent", Agent(chat_generator=generator, tools=[search], system_prompt=shop.INSTRUCTIONS)
    )
    past: dict[str, list[Any]] = {}

    def ask(turn: shop.Turn) -> str:
        history = past.get(turn.thread, []) if turn.thread else []
        messages = [*history, ChatMessage.from_user(turn.question)]
        done = app.run({"agent": {"messages": messages}})["agent"]
        if turn.thread:
            past[turn.thread] = [part for part in done["messages"] if part.role.value != "system"]
        return str(done["messages"][-1].text)

    return ask


APPS: dict[str, Callable[[], Ask]] = {"haystack_pipeline": pipeline, "haystack_agent": agent}
TURNS = {"haystack_pipeline": [turn for turn in shop.TURNS if turn.name in ("one", "refusal")]}
"""The pipeline searches once with the question, and has no conversation."""


def openinference(app: str, target: Path) -> None:
    from openinference.instrumentation import using_session
    from openinference.instrumentation.haystack import HaystackInstrumentor

    spans = Spans()
    HaystackInstrumentor().instrument(tracer_provider=spans.provider)
    answer = APPS[app]()

    def ask(turn: shop.Turn) -> str:
        if not turn.thread:
            return answer(turn)
        with using_session(turn.thread):
            return answer(turn)

    spans.run(ask, TURNS.get(app, shop.TURNS))
    spans.write(target)


def openllmetry(app: str, target: Path) -> None:
    from opentelemetry.instrumentation.haystack import HaystackInstrumentor

    spans = Spans()
    HaystackInstrumentor().instrument(tracer_provider=spans.provider)
    spans.run(APPS[app](), TURNS.get(app, shop.TURNS))
    spans.write(target)


def native(app: str, target: Path) -> None:
    """Haystack's own tracer over OpenTelemetry, with contents."""
    from haystack import tracing
    from haystack_integrations.tracing.opentelemetry import OpenTelemetryTracer

    spans = Spans()
    tracing.tracer.is_content_tracing_enabled = True
    tracing.enable_tracing(OpenTelemetryTracer(spans.provider.get_tracer("haystack")))
    spans.run(APPS[app](), TURNS.get(app, shop.TURNS))
    spans.write(target)


if __name__ == "__main__":
    app, _, kind = sys.argv[1].partition(".")
    globals()[kind](app, Path(sys.argv[2]))
