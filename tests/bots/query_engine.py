"""A FastAPI service around a LlamaIndex query engine: nested JSON, /A/B/ headings, cited numbers.

The framework publishes /openapi.json and checks requests by it; two of its operations are none that
answer questions. ``python -m tests.bots.query_engine 9000`` serves it.
"""

from __future__ import annotations

import hashlib
import sys
import time
from collections.abc import Mapping
from typing import Any

from tests.bots.handbook import Section, search
from tests.bots.serving import Answer, BotServer, run

ROOT = "/srv/shop/content"


def operation(summary: str, schema: str) -> dict[str, Any]:
    content = {"application/json": {"schema": {"$ref": f"#/components/schemas/{schema}"}}}
    return {"post": {"summary": summary, "requestBody": {"content": content, "required": True}}}


OPENAPI: dict[str, Any] = {
    "openapi": "3.1.0",
    "info": {"title": "Shop assistant", "version": "0.3.1"},
    "paths": {
        "/healthz": {"get": {"summary": "Health", "responses": {"200": {"description": "OK"}}}},
        "/v2/feedback": operation("Leave feedback about an answer", "Feedback"),
        "/v2/query": operation("Query", "Query"),
    },
    "components": {
        "schemas": {
            "Feedback": {
                "type": "object",
                "required": ["message"],
                "properties": {"message": {"type": "string"}, "stars": {"type": "integer"}},
            },
            "Query": {
                "type": "object",
                "required": ["query", "tenant"],
                "properties": {
                    "query": {"type": "string", "title": "Query"},
                    "tenant": {"type": "string", "enum": ["shop", "workshop"]},
                    "similarity_top_k": {"type": "integer", "default": 2},
                    "session_id": {"anyOf": [{"type": "string"}, {"type": "null"}]},
                },
            },
        }
    },
}


def node(score: float, part: Section) -> dict[str, Any]:
    """A NodeWithScore as LlamaIndex writes it."""
    name = hashlib.md5(part.text.encode(), usedforsecurity=False).hexdigest()
    return {
        "node": {
            "id_": f"{name[:8]}-{name[8:12]}",
            "metadata": {
                "file_path": f"{ROOT}/{part.file}",
                "file_name": part.file.rpartition("/")[2],
                "header_path": "/" + "/".join(part.headings) + "/",
            },
            "text": part.text,
            "class_name": "TextNode",
        },
        "score": score,
    }


def query(body: Any, headers: Mapping[str, str]) -> Answer:
    started = time.perf_counter()
    for name in ("query", "tenant"):
        if not isinstance(body, dict) or name not in body:
            fault = {"type": "missing", "loc": ["body", name], "msg": "Field required"}
            return Answer({"detail": [fault]}, 422)
    hits = search(body["query"], body.get("similarity_top_k", 2))
    text = "I could not find that in the handbook."
    if hits:
        text = f"{hits[0][1].text} [1]"
    return Answer(
        {
            "status": "success",
            "data": {
                "query": body["query"],
                "response": text,
                "no_answer": not hits,
                "source_nodes": [node(score, part) for score, part in hits],
                "citations": [1] if hits else [],
            },
            "meta": {
                "took_seconds": round(time.perf_counter() - started, 6),
                "llm": {
                    "model": "parrot-2",
                    "tokens": {"prompt": 40 + len(body["query"]), "completion": len(text) // 4},
                },
            },
        }
    )


def make(port: int = 0) -> BotServer:
    return BotServer(
        {
            ("GET", "/openapi.json"): lambda body, headers: Answer(OPENAPI),
            ("GET", "/healthz"): lambda body, headers: Answer({"ok": True}),
            ("POST", "/v2/feedback"): lambda body, headers: Answer({"stored": True}, 201),
            ("POST", "/v2/query"): query,
        },
        port,
    )


if __name__ == "__main__":
    run(make, int(sys.argv[1]))
