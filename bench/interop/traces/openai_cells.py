"""Golden traces of OpenAI's SDKs: ``python openai_cells.py APP.INSTRUMENTATION FILE``."""

import asyncio
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ |= {"OPENAI_API_KEY": "none", "DO_NOT_TRACK": "1"}

import model
import shop
from capture import Fixed, Spans, ranked, write_lines

Ask = Callable[[shop.Turn], str]


def agents(chat: bool = False) -> Ask:
    """An agent of the OpenAI Agents SDK with one function as its tool, over the Responses API."""
    from agents import Agent, RunConfig, Runner, SQLiteSession, function_tool
    from agents.models.openai_chatcompletions import OpenAIChatCompletionsModel
    from agents.models.openai_responses import OpenAIResponsesModel
    from openai import AsyncOpenAI

    @function_tool
    def search(query: str) -> str:
        """Search the documents of the shop."""
        return shop.as_text(shop.search(query))

    client = AsyncOpenAI(base_url=model.serve(), api_key="none", max_retries=0)
    kind = OpenAIChatCompletionsModel if chat else OpenAIResponsesModel
    agent = Agent(
        name="ShopAgent",
        instructions=shop.INSTRUCTIONS,
        tools=[search],
        model=kind(model=model.NAME, openai_client=client),
    )
    sessions: dict[str, Any] = {}

    async def run(turn: shop.Turn) -> str:
        session = None
        if turn.thread:
            session = sessions.setdefault(turn.thread, SQLiteSession(turn.thread))
        config = RunConfig(group_id=turn.thread or None)
        done = await Runner.run(agent, turn.question, session=session, run_config=config)
        return str(done.final_output)

    loop = asyncio.new_event_loop()
    return lambda turn: loop.run_until_complete(run(turn))


def agents_chat() -> Ask:
    """The same agent over chat completions."""
    return agents(chat=True)


def loop() -> Ask:
    """A tool loop of one's own over chat completions, in spans that its author opens."""
    from openai import OpenAI
    from opentelemetry import trace

    client = OpenAI(base_url=model.serve(), api_key="none", max_retries=0)
    tracer = trace.get_tracer("shop")
    schema = {"type": "object", "properties": {"query": {"type": "string"}}}
    tool = {"name": "search", "description": "Search the shop's pages.", "parameters": schema}
    chats: dict[str, list[Any]] = {}

    def ask(turn: shop.Turn) -> str:
        start = [{"role": "system", "content": shop.INSTRUCTIONS}]
        messages = chats.setdefault(turn.thread or turn.name, start)
        messages.append({"role": "user", "content": turn.question})
        named = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "ShopAgent"}
        if turn.thread:
            named["gen_ai.conversation.id"] = turn.thread
        with tracer.start_as_current_span("invoke_agent ShopAgent", attributes=named):
            while True:
                done = client.chat.completions.create(
                    model=model.NAME,
                    messages=messages,
                    tools=[{"type": "function", "function": tool}],  # type: ignore[list-item]
                )
                message = done.choices[0].message
                messages.append(message.model_dump(exclude_none=True))
                if not message.tool_calls:
                    return str(message.content)
                for call in message.tool_calls:
                    doing = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "search"}
                    doing["gen_ai.tool.call.id"] = call.id
                    with tracer.start_as_current_span("execute_tool search", attributes=doing):
                        query = json.loads(call.function.arguments)["query"]
                        text = shop.as_text(shop.search(query))
                    messages.append({"role": "tool", "tool_call_id": call.id, "content": text})

    return ask


APPS: dict[str, Callable[[], Ask]] = {
    "openai_agents": agents,
    "openai_agents_chat": agents_chat,
    "openai_loop": loop,
}


def _no_upload() -> None:
    """Take away the SDK's own exporter, which would post to OpenAI."""
    from agents import set_trace_processors

    set_trace_processors([])


def openinference(app: str, target: Path) -> None:
    from openinference.instrumentation import using_session
    from openinference.instrumentation.openai_agents import OpenAIAgentsInstrumentor

    spans = Spans()
    _no_upload()
    OpenAIAgentsInstrumentor().instrument(tracer_provider=spans.provider)
    answer = APPS[app]()

    def ask(turn: shop.Turn) -> str:
        if not turn.thread:
            return answer(turn)
        with using_session(turn.thread):
            return answer(turn)

    spans.run(ask, shop.TURNS)
    spans.write(target)


def openllmetry(app: str, target: Path) -> None:
    from opentelemetry.instrumentation.openai_agents import OpenAIAgentsInstrumentor

    spans = Spans()
    _no_upload()
    OpenAIAgentsInstrumentor().instrument(tracer_provider=spans.provider)
    spans.run(APPS[app](), shop.TURNS)
    spans.write(target)


def sdk(app: str, target: Path) -> None:
    """What the SDK's own exporter would post: one trace or span a line."""
    from agents import set_trace_processors
    from agents.tracing.processors import BatchTraceProcessor

    rows: list[dict[str, Any]] = []

    class Kept:
        def export(self, items: list[Any]) -> None:
            rows.extend(row for item in items if (row := item.export()))

    processor = BatchTraceProcessor(exporter=Kept())  # type: ignore[arg-type]
    set_trace_processors([processor])
    ask = APPS[app]()
    for turn in shop.TURNS:
        assert ask(turn) == turn.answer, turn
        processor.force_flush()
    write_lines(target, _fixed_items(rows))


def _fixed_items(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    from datetime import UTC, datetime

    names = ("started_at", "ended_at")
    clock = ranked(row[name] for row in rows for name in names if row.get(name))
    fixed = Fixed()
    done = []
    for row in rows:
        new = fixed.value(row)
        for name in names:
            if row.get(name):
                new[name] = datetime.fromtimestamp(clock[row[name]] / 1e9, UTC).isoformat()
        done.append(new)
    return done


def _semconv(app: str, target: Path, capture: str, latest: bool) -> None:
    os.environ["OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"] = capture
    if latest:
        os.environ["OTEL_SEMCONV_STABILITY_OPT_IN"] = "gen_ai_latest_experimental"
    spans = Spans()
    logs = spans.with_logs()
    if app == "openai_agents":
        from opentelemetry.instrumentation.openai_agents import OpenAIAgentsInstrumentor as Made
    else:
        from opentelemetry.instrumentation.openai_v2 import OpenAIInstrumentor as Made
    if app == "openai_agents":
        _no_upload()
    Made().instrument(tracer_provider=spans.provider, logger_provider=logs)
    spans.run(APPS[app](), shop.TURNS)
    spans.write(target)


def semconv_messages(app: str, target: Path) -> None:
    """OpenTelemetry's conventions until 1.36: each message an event of its own, in log records."""
    _semconv(app, target, "true", latest=False)


def semconv_spans(app: str, target: Path) -> None:
    """OpenTelemetry's conventions from 1.37: messages as attributes of the spans."""
    _semconv(app, target, "span_only", latest=True)


def semconv_events(app: str, target: Path) -> None:
    """OpenTelemetry's conventions from 1.37: messages in one event of each call, a log record."""
    _semconv(app, target, "event_only", latest=True)


def semconv_no_content(app: str, target: Path) -> None:
    """OpenTelemetry's default: no content is captured."""
    _semconv(app, target, "no_content", latest=True)


if __name__ == "__main__":
    app, _, kind = sys.argv[1].partition(".")
    globals()[kind](app, Path(sys.argv[2]))
