"""Golden traces of pydantic-ai: ``python pydantic_cells.py APP.INSTRUMENTATION FILE``."""

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ |= {"OPENAI_API_KEY": "none", "DO_NOT_TRACK": "1", "LOGFIRE_SEND_TO_LOGFIRE": "false"}

import model
import shop
from capture import Spans

Ask = Callable[[shop.Turn], str]


def agent() -> Ask:
    """An agent of pydantic-ai with one function as its tool."""
    from pydantic_ai import Agent
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai import OpenAIProvider

    chat = OpenAIChatModel(
        model.NAME, provider=OpenAIProvider(base_url=model.serve(), api_key="none")
    )
    agent = Agent(chat, name="shop_agent", instructions=shop.INSTRUCTIONS)

    @agent.tool_plain
    def search(query: str) -> str:
        """Search the documents of the shop."""
        return shop.as_text(shop.search(query))

    past: dict[str, Any] = {}

    def ask(turn: shop.Turn) -> str:
        more: dict[str, Any] = {}
        if turn.thread:
            more = {"message_history": past.get(turn.thread), "conversation_id": turn.thread}
        done = agent.run_sync(turn.question, **more)
        if turn.thread:
            past[turn.thread] = done.all_messages()
        return str(done.output)

    return ask


APPS: dict[str, Callable[[], Ask]] = {"pydantic_ai": agent}


def logfire(app: str, target: Path) -> None:
    """Logfire's own spans, kept instead of sent."""
    import logfire
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor

    spans = Spans()
    logfire.configure(
        send_to_logfire=False,
        console=False,
        inspect_arguments=False,
        additional_span_processors=[SimpleSpanProcessor(spans.exporter)],
    )
    logfire.instrument_pydantic_ai()
    spans.run(APPS[app](), shop.TURNS)
    spans.write(target)


def openinference(app: str, target: Path) -> None:
    from openinference.instrumentation.pydantic_ai import OpenInferenceSpanProcessor
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from pydantic_ai import Agent, InstrumentationSettings

    spans = Spans()
    provider = TracerProvider()
    provider.add_span_processor(OpenInferenceSpanProcessor())
    provider.add_span_processor(SimpleSpanProcessor(spans.exporter))
    Agent.instrument_all(InstrumentationSettings(tracer_provider=provider))
    spans.run(APPS[app](), shop.TURNS)
    spans.write(target)


if __name__ == "__main__":
    app, _, kind = sys.argv[1].partition(".")
    globals()[kind](app, Path(sys.argv[2]))
