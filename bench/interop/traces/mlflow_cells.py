"""Golden traces of MLflow's own decorators: ``python mlflow_cells.py APP.INSTRUMENTATION FILE``."""

import json
import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ |= {"OPENAI_API_KEY": "none", "DO_NOT_TRACK": "1", "MLFLOW_DISABLE_TELEMETRY": "true"}
os.environ |= {"MLFLOW_ALLOW_FILE_STORE": "true"}

import model
import shop
from capture import fixed_mlflow, write_lines

Ask = Callable[[shop.Turn], str]


def traced() -> Ask:
    """Functions of one's own under `mlflow.trace`, and the model's calls by autologging."""
    import mlflow
    from mlflow.entities import Document, SpanType
    from openai import OpenAI

    mlflow.openai.autolog()
    client = OpenAI(base_url=model.serve(), api_key="none", max_retries=0)

    @mlflow.trace(span_type=SpanType.RETRIEVER)
    def retrieve(query: str) -> list[Any]:
        return [
            Document(
                page_content=passage.text,
                metadata={"doc_uri": passage.rel_path, "heading": passage.heading},
                id=passage.chunk_id,
            )
            for passage in shop.search(query)
        ]

    @mlflow.trace(span_type=SpanType.CHAIN)
    def answer(question: str, session: str) -> str:
        if session:
            mlflow.update_current_trace(metadata={"mlflow.trace.session": session})
        found = [part for query in shop.turn_of(question).queries for part in retrieve(query)]
        passages = "\n\n".join(document.page_content for document in found)
        prompt = f"Answer from these passages.\n\n{passages}\n\nQuestion: {question}"
        done = client.chat.completions.create(
            model=model.NAME, messages=[{"role": "user", "content": prompt}]
        )
        return str(done.choices[0].message.content)

    return lambda turn: str(answer(turn.question, turn.thread))


APPS: dict[str, Callable[[], Ask]] = {"mlflow_traced": traced}


def mlflow(app: str, target: Path) -> None:
    """Traces as `Trace.to_json` writes them, one a line."""
    import mlflow

    mlflow.set_tracking_uri(f"file:{tempfile.mkdtemp()}")
    mlflow.set_experiment("golden")
    ask = APPS[app]()
    for turn in shop.TURNS:
        assert ask(turn) == turn.answer, turn
    mlflow.flush_trace_async_logging()
    rows = [json.loads(trace.to_json()) for trace in mlflow.search_traces(return_type="list")]
    rows.sort(key=lambda row: row["info"]["request_time"])
    write_lines(target, fixed_mlflow(rows))


if __name__ == "__main__":
    app, _, kind = sys.argv[1].partition(".")
    globals()[kind](app, Path(sys.argv[2]))
