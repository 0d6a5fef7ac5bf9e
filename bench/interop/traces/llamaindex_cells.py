"""Golden traces of LlamaIndex: ``python llamaindex_cells.py APP.INSTRUMENTATION FILE``."""

import asyncio
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ |= {"OPENAI_API_KEY": "none", "DO_NOT_TRACK": "1", "LLAMA_INDEX_DISABLE_TELEMETRY": "1"}

import model
import shop
from capture import Spans

Ask = Callable[[shop.Turn], str]


class _Lazy:
    """Names of the library, imported after the instrumentation is switched on."""

    def __init__(self) -> None:
        from llama_index.core import Settings
        from llama_index.core.retrievers import BaseRetriever
        from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode
        from llama_index.llms.openai_like import OpenAILike

        class ShopRetriever(BaseRetriever):
            def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
                return [
                    NodeWithScore(
                        node=TextNode(
                            id_=passage.chunk_id,
                            text=passage.text,
                            metadata={"file_path": passage.rel_path, "heading": passage.heading},
                            excluded_llm_metadata_keys=["file_path", "heading"],
                        ),
                        score=passage.score,
                    )
                    for passage in shop.search(query_bundle.query_str)
                ]

        self.retriever = ShopRetriever()
        self.llm = OpenAILike(
            model=model.NAME,
            api_base=model.serve(),
            api_key="none",
            is_chat_model=True,
            is_function_calling_model=True,
            max_retries=0,
        )
        Settings.llm = self.llm

        async def search(query: str) -> str:
            """Search the documents of the shop."""
            nodes = await self.retriever.aretrieve(query)
            return "\n\n".join(node.get_content() for node in nodes)

        self.search = search


def query() -> Ask:
    """The query engine over a retriever: one search with the question itself."""
    from llama_index.core.query_engine import RetrieverQueryEngine

    lib = _Lazy()
    engine = RetrieverQueryEngine.from_args(lib.retriever, llm=lib.llm)
    return lambda turn: str(engine.query(turn.question))


def chat() -> Ask:
    """The chat engine that condenses the history and the question into a new question."""
    from llama_index.core.chat_engine import CondensePlusContextChatEngine

    lib = _Lazy()
    chats: dict[str, Any] = {}

    def ask(turn: shop.Turn) -> str:
        key = turn.thread or turn.name
        if key not in chats:
            chats[key] = CondensePlusContextChatEngine.from_defaults(lib.retriever, llm=lib.llm)
        return str(chats[key].chat(turn.question))

    return ask


def _agent(kind: str) -> Ask:
    from llama_index.core.agent import workflow
    from llama_index.core.workflow import Context

    lib = _Lazy()
    agent = getattr(workflow, kind)(
        name="ShopAgent", tools=[lib.search], llm=lib.llm, system_prompt=shop.INSTRUCTIONS
    )
    contexts: dict[str, Any] = {}

    async def run(turn: shop.Turn) -> str:
        key = turn.thread or turn.name
        context = contexts.setdefault(key, Context(agent))
        return str(await agent.run(turn.question, ctx=context))

    loop = asyncio.new_event_loop()
    return lambda turn: loop.run_until_complete(run(turn))


def function_agent() -> Ask:
    """FunctionAgent: a tool loop by the model's tool calls."""
    return _agent("FunctionAgent")


def react_agent() -> Ask:
    """ReActAgent: a tool loop by Thought, Action and Observation in text."""
    return _agent("ReActAgent")


def workflow() -> Ask:
    """A workflow of one's own: a step that retrieves, a step that answers."""
    from llama_index.core.workflow import Event, StartEvent, StopEvent, Workflow, step

    lib = _Lazy()

    class Retrieved(Event):  # type: ignore[misc]
        question: str
        nodes: list[Any]

    class Rag(Workflow):  # type: ignore[misc]
        @step
        async def retrieve(self, event: StartEvent) -> Retrieved:
            queries = shop.turn_of(event.question).queries
            nodes = [node for query in queries for node in await lib.retriever.aretrieve(query)]
            return Retrieved(question=event.question, nodes=nodes)

        @step
        async def answer(self, event: Retrieved) -> StopEvent:
            passages = "\n\n".join(node.get_content() for node in event.nodes)
            prompt = f"Answer from these passages.\n\n{passages}\n\nQuestion: {event.question}"
            return StopEvent(result=str(await lib.llm.acomplete(prompt)))

    loop = asyncio.new_event_loop()

    async def run(turn: shop.Turn) -> str:
        return str(await Rag(timeout=60).run(question=turn.question))

    return lambda turn: loop.run_until_complete(run(turn))


APPS: dict[str, Callable[[], Ask]] = {
    "llamaindex_query": query,
    "llamaindex_chat": chat,
    "llamaindex_function_agent": function_agent,
    "llamaindex_react_agent": react_agent,
    "llamaindex_workflow": workflow,
}
TURNS = {"llamaindex_query": [turn for turn in shop.TURNS if turn.name in ("one", "refusal")]}
"""A query engine searches once with the question, and has no conversation."""


def openinference(app: str, target: Path) -> None:
    from openinference.instrumentation import using_session
    from openinference.instrumentation.llama_index import LlamaIndexInstrumentor

    spans = Spans()
    LlamaIndexInstrumentor().instrument(tracer_provider=spans.provider)
    answer = APPS[app]()

    def ask(turn: shop.Turn) -> str:
        if not turn.thread:
            return answer(turn)
        with using_session(turn.thread):
            return answer(turn)

    spans.run(ask, TURNS.get(app, shop.TURNS))
    spans.write(target)


def openllmetry(app: str, target: Path) -> None:
    from opentelemetry.instrumentation.llamaindex import LlamaIndexInstrumentor

    spans = Spans()
    LlamaIndexInstrumentor().instrument(tracer_provider=spans.provider)
    spans.run(APPS[app](), TURNS.get(app, shop.TURNS))
    spans.write(target)


if __name__ == "__main__":
    app, _, kind = sys.argv[1].partition(".")
    globals()[kind](app, Path(sys.argv[2]))
