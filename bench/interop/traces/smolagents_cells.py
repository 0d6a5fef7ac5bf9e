"""Golden traces of smolagents: ``python smolagents_cells.py APP.INSTRUMENTATION FILE``."""

import os
import sys
from collections.abc import Callable
from pathlib import Path

os.environ |= {"OPENAI_API_KEY": "none", "DO_NOT_TRACK": "1", "HF_HUB_DISABLE_TELEMETRY": "1"}

import model
import shop
from capture import Spans

Ask = Callable[[shop.Turn], str]


def agent() -> Ask:
    """A ToolCallingAgent with one function as its tool."""
    from smolagents import OpenAIModel, ToolCallingAgent, tool

    @tool
    def search(query: str) -> str:
        """Search the documents of the shop.

        Args:
            query: what to search for
        """
        return shop.as_text(shop.search(query))

    chat = OpenAIModel(model_id=model.NAME, api_base=model.serve(), api_key="none")

    def made() -> ToolCallingAgent:
        return ToolCallingAgent(tools=[search], model=chat, verbosity_level=0, max_steps=6)

    chats: dict[str, ToolCallingAgent] = {}

    def ask(turn: shop.Turn) -> str:
        if not turn.thread:
            return str(made().run(turn.question))
        first = turn.thread not in chats
        return str(chats.setdefault(turn.thread, made()).run(turn.question, reset=first))

    return ask


APPS: dict[str, Callable[[], Ask]] = {"smolagents_tool_calling": agent}


def openinference(app: str, target: Path) -> None:
    from openinference.instrumentation import using_session
    from openinference.instrumentation.smolagents import SmolagentsInstrumentor

    spans = Spans()
    SmolagentsInstrumentor().instrument(tracer_provider=spans.provider)
    answer = APPS[app]()

    def ask(turn: shop.Turn) -> str:
        if not turn.thread:
            return answer(turn)
        with using_session(turn.thread):
            return answer(turn)

    spans.run(ask, shop.TURNS)
    spans.write(target)


if __name__ == "__main__":
    app, _, kind = sys.argv[1].partition(".")
    globals()[kind](app, Path(sys.argv[2]))
