"""A real server with the facts behind it: ``python serving_peer.py NAME PORT``.

NAME is langserve, hayhooks or workflows. Each answers a question of the facts with its answer and
its passages, in the product's own way.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path
from typing import Any

from facts import FACTS

HERE = Path(__file__).resolve().parent
WRAPPER = f"""
import sys
sys.path.insert(0, {str(HERE)!r})
from facts import FACTS
from haystack import Document, Pipeline, component
from haystack.components.builders import AnswerBuilder
from hayhooks import BasePipelineWrapper


@component
class Retriever:
    @component.output_types(documents=list[Document])
    def run(self, query: str):
        fact = next((fact for fact in FACTS if fact["question"] == query), None)
        return {{"documents": [
            Document(id=one["id"], content=one["text"], meta={{"file_path": one["rel_path"]}},
                     score=one["score"])
            for one in (fact["passages"] if fact else [])
        ]}}


@component
class Generator:
    @component.output_types(replies=list[str])
    def run(self, query: str):
        return {{"replies": [next(f["answer"] for f in FACTS if f["question"] == query)]}}


class PipelineWrapper(BasePipelineWrapper):
    def setup(self) -> None:
        self.pipeline = Pipeline()
        self.pipeline.add_component("retriever", Retriever())
        self.pipeline.add_component("llm", Generator())
        self.pipeline.add_component("answers", AnswerBuilder())
        self.pipeline.connect("llm.replies", "answers.replies")
        self.pipeline.connect("retriever.documents", "answers.documents")

    def run_api(self, question: str) -> dict:
        data = {{name: {{"query": question}} for name in ("retriever", "llm", "answers")}}
        return self.pipeline.run(data, include_outputs_from={{"retriever", "llm"}})
"""


def fact_of(question: str) -> dict[str, Any]:
    return next(fact for fact in FACTS if fact["question"] == question)


def langserve(port: int) -> None:
    import uvicorn
    from fastapi import FastAPI
    from langchain_core.documents import Document
    from langchain_core.runnables import RunnableLambda
    from langserve import add_routes
    from pydantic import BaseModel

    class Asked(BaseModel):
        question: str

    def answer(asked: Any) -> dict[str, Any]:
        fact = fact_of(asked["question"] if isinstance(asked, dict) else asked.question)
        context = [
            Document(page_content=one["text"], metadata={"source": one["rel_path"]})
            for one in fact["passages"]
        ]
        return {"answer": fact["answer"], "context": context}

    app = FastAPI()
    add_routes(app, RunnableLambda(answer).with_types(input_type=Asked), path="/rag")
    uvicorn.run(app, port=port, log_level="error")


def hayhooks(port: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        wrapper = Path(folder) / "rag" / "pipeline_wrapper.py"
        wrapper.parent.mkdir()
        wrapper.write_text(WRAPPER)
        program = str(Path(sys.executable).with_name("hayhooks"))
        words = [program, "run", "--port", str(port), "--pipelines-dir", folder]
        os.spawnv(os.P_WAIT, program, words)


def workflows(port: int) -> None:
    import asyncio

    from llama_agents.server import WorkflowServer
    from workflows import Workflow, step
    from workflows.events import StartEvent, StopEvent

    class Rag(Workflow):
        @step
        async def answer(self, asked: StartEvent) -> StopEvent:
            fact = fact_of(asked.get("question"))
            nodes = [
                {
                    "node": {
                        "id_": one["id"],
                        "text": one["text"],
                        "metadata": {"file_path": one["rel_path"]},
                    },
                    "score": one["score"],
                }
                for one in fact["passages"]
            ]
            return StopEvent(result={"response": fact["answer"], "source_nodes": nodes})

    server = WorkflowServer()
    server.add_workflow("rag", Rag())
    asyncio.run(server.serve(host="127.0.0.1", port=port))


if __name__ == "__main__":
    {"langserve": langserve, "hayhooks": hayhooks, "workflows": workflows}[sys.argv[1]](
        int(sys.argv[2])
    )
