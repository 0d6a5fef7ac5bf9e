"""Golden traces of LangChain and LangGraph: ``python langchain_cells.py APP.INSTRUMENTATION FILE``.

Each app answers the turns of shop.py with the scripted model; each instrumentation writes what it
saw in its own form. One process makes one cell.
"""

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal, TypedDict

os.environ |= {"OPENAI_API_KEY": "none", "LANGSMITH_TRACING": "false"}
os.environ |= {"MLFLOW_DISABLE_TELEMETRY": "true", "DO_NOT_TRACK": "1"}
os.environ |= {"MLFLOW_ALLOW_FILE_STORE": "true"}

import model
import shop
from capture import Fixed, Spans, fixed_mlflow, ranked, write_lines

Ask = Callable[[shop.Turn], str]


class _Lazy:
    """Names of the libraries, imported after the instrumentation is switched on."""

    def __init__(self) -> None:
        from langchain_core.callbacks import CallbackManagerForRetrieverRun
        from langchain_core.documents import Document
        from langchain_core.retrievers import BaseRetriever
        from langchain_core.tools import tool
        from langchain_openai import ChatOpenAI

        class ShopRetriever(BaseRetriever):
            part: str = ""

            def _get_relevant_documents(
                self, query: str, *, run_manager: CallbackManagerForRetrieverRun
            ) -> list[Document]:
                return [
                    Document(
                        id=passage.chunk_id,
                        page_content=passage.text,
                        metadata={"source": passage.rel_path, "heading": passage.heading},
                    )
                    for passage in shop.search(query)
                    if self.part in passage.rel_path
                ]

        self.retriever = ShopRetriever
        retriever = ShopRetriever()

        @tool
        def search(query: str) -> str:
            """Search the documents of the shop."""
            return "\n\n".join(document.page_content for document in retriever.invoke(query))

        self.search = search
        self.llm = ChatOpenAI(model=model.NAME, base_url=model.serve(), max_retries=0)


def _settings(turn: shop.Turn) -> dict[str, Any]:
    return {"configurable": {"thread_id": turn.thread}} if turn.thread else {}


def prebuilt(extra: dict[str, Any]) -> Ask:
    """LangGraph's prebuilt ReAct agent."""
    from langgraph.checkpoint.memory import InMemorySaver
    from langgraph.prebuilt import create_react_agent

    lib = _Lazy()
    one = create_react_agent(lib.llm, [lib.search], prompt=shop.INSTRUCTIONS)
    chat = create_react_agent(
        lib.llm, [lib.search], prompt=shop.INSTRUCTIONS, checkpointer=InMemorySaver()
    )

    def ask(turn: shop.Turn) -> str:
        agent = chat if turn.thread else one
        asked = {"messages": [{"role": "user", "content": turn.question}]}
        return str(agent.invoke(asked, _settings(turn) | extra)["messages"][-1].content)

    return ask


def create_agent(extra: dict[str, Any]) -> Ask:
    """LangChain's create_agent."""
    from langchain.agents import create_agent
    from langgraph.checkpoint.memory import InMemorySaver

    lib = _Lazy()
    one = create_agent(lib.llm, [lib.search], system_prompt=shop.INSTRUCTIONS)
    chat = create_agent(
        lib.llm, [lib.search], system_prompt=shop.INSTRUCTIONS, checkpointer=InMemorySaver()
    )

    def ask(turn: shop.Turn) -> str:
        agent = chat if turn.thread else one
        asked = {"messages": [{"role": "user", "content": turn.question}]}
        return str(agent.invoke(asked, _settings(turn) | extra)["messages"][-1].content)

    return ask


def agentic_rag(extra: dict[str, Any]) -> Ask:
    """The graph of LangGraph's tutorial on agentic RAG: search, grade, rewrite, answer."""
    from langchain_core.tools import create_retriever_tool
    from langgraph.checkpoint.memory import InMemorySaver
    from langgraph.graph import END, START, MessagesState, StateGraph
    from langgraph.prebuilt import ToolNode, tools_condition
    from pydantic import BaseModel, Field

    lib = _Lazy()
    retrieve = create_retriever_tool(lib.retriever(), "retrieve_shop", "Search the shop's pages.")

    class GradeDocuments(BaseModel):
        """Grade documents by a binary score."""

        binary_score: str = Field(description="'yes' if relevant, 'no' if not")

    def question_of(state: MessagesState) -> str:
        """The last question of the user; the tutorial has no thread and takes the first message."""
        users = [message for message in state["messages"] if message.type == "human"]
        asked = [message for message in users if not str(message.content).startswith("In this ")]
        return str(asked[-1].content)

    def generate_query_or_respond(state: MessagesState) -> dict[str, Any]:
        return {"messages": [lib.llm.bind_tools([retrieve]).invoke(state["messages"])]}

    def grade_documents(state: MessagesState) -> Literal["generate_answer", "rewrite_question"]:
        prompt = (
            f"Grade whether a document is relevant to a question.\nDocument: "
            f"{state['messages'][-1].content}\nQuestion: {question_of(state)}"
        )
        grader = lib.llm.with_structured_output(GradeDocuments, method="function_calling")
        graded: Any = grader.invoke([{"role": "user", "content": prompt}])
        return "generate_answer" if graded.binary_score == "yes" else "rewrite_question"

    def rewrite_question(state: MessagesState) -> dict[str, Any]:
        prompt = f"{model.REWRITE}. The first question was:\n{question_of(state)}"
        reply = lib.llm.invoke([{"role": "user", "content": prompt}])
        return {"messages": [{"role": "user", "content": reply.content}]}

    def generate_answer(state: MessagesState) -> dict[str, Any]:
        prompt = (
            f"Answer the question from the retrieved context.\nQuestion: {question_of(state)}\n"
            f"Context: {state['messages'][-1].content}"
        )
        return {"messages": [lib.llm.invoke([{"role": "user", "content": prompt}])]}

    graph = StateGraph(MessagesState)
    graph.add_node(generate_query_or_respond)
    graph.add_node("retrieve", ToolNode([retrieve]))
    graph.add_node(rewrite_question)
    graph.add_node(generate_answer)
    graph.add_edge(START, "generate_query_or_respond")
    graph.add_conditional_edges(
        "generate_query_or_respond", tools_condition, {"tools": "retrieve", END: END}
    )
    graph.add_conditional_edges("retrieve", grade_documents)
    graph.add_edge("generate_answer", END)
    graph.add_edge("rewrite_question", "generate_query_or_respond")
    one, chat = graph.compile(), graph.compile(checkpointer=InMemorySaver())

    def ask(turn: shop.Turn) -> str:
        app = chat if turn.thread else one
        asked = {"messages": [{"role": "user", "content": turn.question}]}
        return str(app.invoke(asked, _settings(turn) | extra)["messages"][-1].content)

    return ask


def plain(extra: dict[str, Any]) -> Ask:
    """A graph of one's own: plan the searches, retrieve, generate; no messages in its state."""
    from langgraph.checkpoint.memory import InMemorySaver
    from langgraph.graph import END, START, StateGraph

    lib = _Lazy()
    retriever = lib.retriever()

    class State(TypedDict, total=False):
        question: str
        queries: list[str]
        context: list[Any]
        answer: str

    def plan(state: State) -> State:
        prompt = f"{model.PLAN} for this question, as a JSON list: {state['question']}"
        return {"queries": json.loads(str(lib.llm.invoke(prompt).content))}

    def retrieve(state: State) -> State:
        found = [retriever.invoke(query) for query in state["queries"]]
        return {"context": [document for part in found for document in part]}

    def generate(state: State) -> State:
        passages = "\n\n".join(document.page_content for document in state["context"])
        prompt = f"Answer from these passages.\n\n{passages}\n\nQuestion: {state['question']}"
        return {"answer": str(lib.llm.invoke(prompt).content)}

    graph = StateGraph(State)
    for node in (plan, retrieve, generate):
        graph.add_node(node)
    graph.add_edge(START, "plan")
    graph.add_edge("plan", "retrieve")
    graph.add_edge("retrieve", "generate")
    graph.add_edge("generate", END)
    one, chat = graph.compile(), graph.compile(checkpointer=InMemorySaver())

    def ask(turn: shop.Turn) -> str:
        app = chat if turn.thread else one
        return str(app.invoke({"question": turn.question}, _settings(turn) | extra)["answer"])

    return ask


def lcel(extra: dict[str, Any]) -> Ask:
    """A chain of runnables with one retriever, or two for the question of two parts."""
    from langchain_core.messages import AIMessage, HumanMessage
    from langchain_core.output_parsers import StrOutputParser
    from langchain_core.prompts import ChatPromptTemplate, MessagesPlaceholder
    from langchain_core.runnables import RunnableLambda, RunnablePassthrough

    lib = _Lazy()

    def joined(documents: list[Any]) -> str:
        return "\n\n".join(document.page_content for document in documents)

    prompt = ChatPromptTemplate.from_messages(
        [
            ("system", "Answer from this context alone:\n\n{context}"),
            MessagesPlaceholder("history"),
            ("human", "{question}"),
        ]
    )
    rest = prompt | lib.llm | StrOutputParser()
    question = RunnableLambda(lambda asked: asked["question"]).with_config(run_name="question")
    found = question | lib.retriever() | joined
    chain = RunnablePassthrough.assign(context=found) | rest
    returns = question | lib.retriever(part="returns") | joined
    shipping = question | lib.retriever(part="shipping") | joined
    both = (
        RunnablePassthrough.assign(returns=returns)
        | RunnablePassthrough.assign(shipping=shipping)
        | RunnablePassthrough.assign(
            context=lambda found: found["returns"] + "\n\n" + found["shipping"]
        )
        | rest
    )
    history: list[Any] = []

    def ask(turn: shop.Turn) -> str:
        app = both if len(turn.queries) > 1 else chain
        past = list(history) if turn.thread else []
        named = {"metadata": {"session_id": turn.thread}} if turn.thread else {}
        answer = app.invoke({"question": turn.question, "history": past}, named | extra)
        if turn.thread:
            history.extend([HumanMessage(turn.question), AIMessage(answer)])
        return answer

    return ask


APPS: dict[str, Callable[[dict[str, Any]], Ask]] = {
    "langgraph_prebuilt": prebuilt,
    "langgraph_agentic_rag": agentic_rag,
    "langgraph_plain": plain,
    "langchain_create_agent": create_agent,
    "langchain_lcel": lcel,
}


def openinference(app: str, target: Path) -> None:
    from openinference.instrumentation.langchain import LangChainInstrumentor

    spans = Spans()
    LangChainInstrumentor().instrument(tracer_provider=spans.provider)
    spans.run(APPS[app]({}), shop.TURNS)
    spans.write(target)


def openllmetry(app: str, target: Path) -> None:
    from opentelemetry.instrumentation.langchain import LangchainInstrumentor

    spans = Spans()
    LangchainInstrumentor().instrument(tracer_provider=spans.provider)
    spans.run(APPS[app]({}), shop.TURNS)
    spans.write(target)


def langfuse(app: str, target: Path) -> None:
    """What Langfuse's SDK sends: OTLP spans with attributes of its own."""
    from langfuse import Langfuse, propagate_attributes
    from langfuse.langchain import CallbackHandler

    spans = Spans()
    Langfuse(
        public_key="pk-lf-none",
        secret_key="sk-lf-none",
        base_url="http://127.0.0.1:9",
        tracer_provider=spans.provider,
        span_exporter=spans.quiet(),
    )
    answer = APPS[app]({"callbacks": [CallbackHandler()]})

    def ask(turn: shop.Turn) -> str:
        if not turn.thread:
            return answer(turn)
        with propagate_attributes(session_id=turn.thread):
            return answer(turn)

    spans.run(ask, shop.TURNS)
    spans.write(target)


def langsmith(app: str, target: Path) -> None:
    """Runs as LangSmith's API gives them, one a line: what the SDK posts, in its own schema."""
    from langchain_core.tracers.langchain import LangChainTracer
    from langsmith import Client
    from langsmith.schemas import Run

    runs: dict[str, dict[str, Any]] = {}
    address = model.collect(lambda _, run: runs.setdefault(run["id"], {}).update(_stated(run)))
    client = Client(api_url=address, api_key="none", auto_batch_tracing=False)
    ask = APPS[app]({"callbacks": [LangChainTracer(client=client, project_name="golden")]})
    for turn in shop.TURNS:
        assert ask(turn) == turn.answer, turn
    rows = [json.loads(Run(**run).model_dump_json(exclude_none=True)) for run in runs.values()]
    write_lines(target, _fixed_runs(rows, ("start_time", "end_time")))


def _stated(run: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in run.items() if value not in (None, {}, [])}


def _fixed_runs(rows: list[dict[str, Any]], names: tuple[str, ...]) -> list[dict[str, Any]]:
    """Run records with fixed ids and times."""
    from datetime import UTC, datetime

    def seconds(text: str) -> datetime:
        return datetime.fromisoformat(text.replace("Z", "+00:00")).replace(tzinfo=UTC)

    clock = ranked(seconds(row[name]) for row in rows for name in names if row.get(name))
    fixed = Fixed()
    done = []
    for row in sorted(rows, key=lambda row: seconds(row["start_time"])):
        new = fixed.value({k: v for k, v in row.items() if k not in ("dotted_order", "events")})
        for name in names:
            if row.get(name):
                moment = datetime.fromtimestamp(clock[seconds(row[name])] / 1e9, UTC)
                new[name] = moment.isoformat()
        new.get("extra", {}).pop("runtime", None)
        metadata = new.get("extra", {}).get("metadata", {})
        for name in ("revision_id", "LANGSMITH_TRACING"):  # of this checkout and this process
            metadata.pop(name, None)
        done.append(new)
    return done


def mlflow(app: str, target: Path) -> None:
    """Traces of MLflow's autologging, each as `Trace.to_json` writes it."""
    import tempfile

    import mlflow

    mlflow.set_tracking_uri(f"file:{tempfile.mkdtemp()}")
    mlflow.set_experiment("golden")
    mlflow.langchain.autolog()
    ask = APPS[app]({})
    for turn in shop.TURNS:
        assert ask(turn) == turn.answer, turn
    mlflow.flush_trace_async_logging()
    rows = [json.loads(trace.to_json()) for trace in mlflow.search_traces(return_type="list")]
    rows.sort(key=lambda row: row["info"]["request_time"])
    write_lines(target, fixed_mlflow(rows))


if __name__ == "__main__":
    app, _, kind = sys.argv[1].partition(".")
    globals()[kind](app, Path(sys.argv[2]))
