"""Replies of known products, each after its published schema, over five questions of a handbook.

The sentences are ours. ``PLAN`` says which files come for a question, best first: so the metrics of
a run can be worked out by hand. Each function is named as its recipe in eval/profiles/known, where
repository, path and commit of the schema stand. A server refuses what the product would refuse.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.bots.serving import Answer, BotServer, View
from tests.bots.strange import ANSWERS, PAGES, QUESTIONS

UNKNOWN = "Who walked on Mars?"
NOT_FOUND = "I could not find this in the documents."

PLAN: dict[str, list[str]] = {
    "garden/roses.md": ["garden/roses.md", "garden/lawn.md", "garden/compost.md"],
    "garden/lawn.md": ["garden/compost.md", "garden/lawn.md", "garden/roses.md"],
    "garden/compost.md": ["garden/lawn.md", "garden/roses.md", "garden/compost.md"],
    "house/boiler.md": ["house/gutter.md", "house/chimney.md", "garden/roses.md"],
}
"""The right file is first, second, third, and not there at all."""

CASES: list[dict[str, Any]] = [
    {
        "id": path.partition("/")[2].removesuffix(".md"),
        "question": QUESTIONS[path],
        "answerable": True,
        "gold_supports": [{"rel_path": path, "heading_path": "", "snippets": [PAGES[path][1]]}],
    }
    for path in PLAN
] + [{"id": "mars", "question": UNKNOWN, "answerable": False}]


@dataclass(frozen=True)
class Hit:
    path: str
    text: str
    score: float

    @property
    def name(self) -> str:
        return self.path.rpartition("/")[2]

    @property
    def id(self) -> str:
        return f"7d1c-{self.name}"


def hits(question: str) -> list[Hit]:
    files = next((PLAN[path] for path, text in QUESTIONS.items() if text == question), [])
    return [Hit(path, PAGES[path][1], 0.9 - 0.1 * rank) for rank, path in enumerate(files)]


def answer(question: str) -> str:
    path = next((path for path, text in QUESTIONS.items() if text == question), None)
    return ANSWERS[path] if path else NOT_FOUND


TOKENS = {"prompt_tokens": 310, "completion_tokens": 12, "total_tokens": 322}


def events(*values: Any) -> str:
    return "".join(f"data: {json.dumps(value)}\n\n" for value in values)


def _dify_resources(question: str) -> list[dict[str, Any]]:
    return [
        {
            "id": f"r-{hit.id}",
            "message_id": "5b0a-msg",
            "position": rank,
            "dataset_id": "ds-1",
            "dataset_name": "Handbook",
            "document_id": f"d-{hit.name}",
            "document_name": hit.name,
            "data_source_type": "upload_file",
            "segment_id": hit.id,
            "score": hit.score,
            "hit_count": 3,
            "word_count": len(hit.text.split()),
            "segment_position": 1,
            "index_node_hash": "f0e1",
            "content": hit.text,
            "created_at": 1760000000,
        }
        for rank, hit in enumerate(hits(question), start=1)
    ]


def _dify_metadata(question: str) -> dict[str, Any]:
    usage = TOKENS | {
        "prompt_unit_price": "0.001",
        "prompt_price_unit": "0.001",
        "prompt_price": "0.00031",
        "total_price": "0.00033",
        "currency": "USD",
        "latency": 0.41,
    }
    resources = _dify_resources(question)
    return {"usage": usage} | ({"retriever_resources": resources} if resources else {})


def dify(question: str) -> Any:
    return {
        "event": "message",
        "task_id": "90aa-task",
        "id": "5b0a-msg",
        "message_id": "5b0a-msg",
        "conversation_id": "c-4711",
        "mode": "chat",
        "answer": answer(question),
        "metadata": _dify_metadata(question),
        "created_at": 1760000000,
    }


def dify_stream(question: str) -> str:
    ids = {"task_id": "90aa-task", "message_id": "5b0a-msg", "conversation_id": "c-4711"}
    thought = ids | {"event": "agent_thought", "id": "t-1", "thought": "Look it up.", "position": 1}
    pieces = [
        ids | {"event": "agent_message", "answer": f"{word} "} for word in answer(question).split()
    ]
    end = ids | {"event": "message_end", "metadata": _dify_metadata(question)}
    return events(thought, *pieces[:1]) + "event: ping\n\n" + events(*pieces[1:], end)


def flowise(question: str) -> Any:
    return {
        "text": answer(question),
        "question": question,
        "chatId": "chat-81",
        "chatMessageId": "m-81",
        "sessionId": "chat-81",
        "sourceDocuments": [
            {
                "pageContent": hit.text,
                "metadata": {"source": f"/data/docs/{hit.path}", "loc": {"lines": {"from": 1}}},
            }
            for hit in hits(question)
        ],
    }


def anythingllm(question: str) -> Any:
    return {
        "id": "aa-1",
        "type": "textResponse",
        "close": True,
        "error": None,
        "chatId": 12,
        "textResponse": answer(question),
        "sources": [
            {
                "id": f"d-{hit.name}",
                "url": f"file:///app/collector/hotdir/{hit.name}",
                "title": hit.name,
                "docAuthor": "Unknown",
                "docSource": "a text file uploaded by the user.",
                "chunkSource": "",
                "wordCount": len(hit.text.split()),
                "text": hit.text,
                "score": hit.score,
            }
            for hit in hits(question)
        ],
        "metrics": TOKENS | {"outputTps": 40.1, "duration": 0.3},
    }


def _chat(question: str, **message: Any) -> dict[str, Any]:
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1760000000,
        "model": "handbook",
        "choices": [
            {
                "index": 0,
                "finish_reason": "stop",
                "message": {"role": "assistant", "content": answer(question), **message},
            }
        ],
        "usage": TOKENS,
    }


def open_webui(question: str) -> str:
    sources = [
        {
            "source": {"id": "kb-1", "name": "Handbook", "type": "collection"},
            "document": [hit.text for hit in hits(question)],
            "metadata": [
                {"source": hit.name, "name": hit.name, "file_id": f"f-{hit.name}"}
                for hit in hits(question)
            ],
            "distances": [hit.score for hit in hits(question)],
        }
    ]
    chunks = [
        {"id": "c-1", "object": "chat.completion.chunk", "choices": [{"delta": {"content": text}}]}
        for text in (f"{word} " for word in answer(question).split())
    ]
    first = [{"sources": sources}] if hits(question) else []
    return events(*first, *chunks) + "data: [DONE]\n\n"


def ragflow(question: str) -> Any:
    reference: list[dict[str, Any]] = [
        {
            "id": hit.id,
            "content": hit.text,
            "document_id": f"d-{hit.name}",
            "document_name": hit.name,
            "dataset_id": "kb-1",
            "image_id": "",
            "positions": [],
            "url": None,
            "similarity": hit.score,
            "vector_similarity": hit.score / 2,
            "term_similarity": hit.score / 3,
            "row_id": None,
            "doc_type": "",
            "document_metadata": None,
        }
        for hit in hits(question)
    ]
    return _chat(question, reference=reference)


def langserve(question: str) -> Any:
    context = [
        {
            "id": None,
            "metadata": {"source": f"docs/{hit.path}"},
            "page_content": hit.text,
            "type": "Document",
        }
        for hit in hits(question)
    ]
    return {
        "output": {"answer": answer(question), "context": context},
        "metadata": {"run_id": "4309447a-47bd-440a-a608-45fdf7e2eb96", "feedback_tokens": []},
    }


def langgraph(question: str) -> Any:
    return {
        "messages": [
            {"type": "human", "id": "h-1", "content": question, "additional_kwargs": {}},
            {"type": "ai", "id": "a-1", "content": answer(question), "tool_calls": []},
        ],
        "documents": [
            {"id": hit.id, "page_content": hit.text, "metadata": {"source": hit.path}}
            for hit in hits(question)
        ],
    }


def hayhooks(question: str) -> Any:
    documents = [
        {
            "id": hit.id,
            "content": hit.text,
            "blob": None,
            "meta": {"file_path": hit.path},
            "score": hit.score,
            "embedding": None,
        }
        for hit in hits(question)
    ]
    return {
        "result": {"retriever": {"documents": documents}, "llm": {"replies": [answer(question)]}}
    }


def workflows(question: str) -> Any:
    nodes = [
        {
            "node": {
                "id_": hit.id,
                "text": hit.text,
                "metadata": {"file_path": f"/app/{hit.path}"},
            },
            "score": hit.score,
        }
        for hit in hits(question)
    ]
    return {
        "handler_id": "MRXnjkNlro",
        "workflow_name": "rag",
        "run_id": "s27XtpS0h8",
        "error": None,
        "result": {
            "value": {"result": {"response": answer(question), "source_nodes": nodes}},
            "qualified_name": "workflows.events.StopEvent",
            "type": "StopEvent",
            "types": None,
        },
        "status": "completed",
        "started_at": "2026-11-23T06:30:41+00:00",
        "updated_at": "2026-11-23T06:30:42+00:00",
        "completed_at": "2026-11-23T06:30:42+00:00",
    }


def create_llama(question: str) -> str:
    nodes = [
        {
            "id": hit.id,
            "metadata": {"file_path": f"/app/data/{hit.path}", "file_name": hit.name},
            "score": hit.score,
            "text": hit.text,
            "url": f"http://localhost:8000/api/files/data/{hit.path}",
        }
        for hit in hits(question)
    ]
    call = {"type": "agent", "data": {"agent": "RAG", "type": "text", "text": "Searching."}}
    lines = [
        f"8:[{json.dumps(call)}]",
        f"8:[{json.dumps({'type': 'sources', 'data': {'nodes': nodes}})}]",
    ]
    lines += [f"0:{json.dumps(f'{word} ')}" for word in answer(question).split()]
    return "\n".join(lines) + "\n"


def openai_chat(question: str) -> Any:
    sources = [
        {"id": hit.id, "file": hit.path, "content": hit.text, "score": hit.score}
        for hit in hits(question)
    ]
    return _chat(question) | {"sources": sources}


def openai_responses(question: str) -> Any:
    results = [
        {
            "file_id": f"file-{hit.name}",
            "filename": hit.name,
            "text": hit.text,
            "score": hit.score,
            "attributes": {},
        }
        for hit in hits(question)
    ]
    cited = [
        {
            "type": "file_citation",
            "file_id": each["file_id"],
            "filename": each["filename"],
            "index": 9,
        }
        for each in results[:1]
    ]
    content = {"type": "output_text", "text": answer(question), "annotations": cited}
    return {
        "id": "resp_1",
        "object": "response",
        "status": "completed",
        "error": None,
        "model": "handbook",
        "output": [
            {
                "type": "file_search_call",
                "id": "fs_1",
                "status": "completed",
                "queries": [question],
                "results": results,
            },
            {"type": "message", "id": "msg_1", "role": "assistant", "content": [content]},
        ],
        "usage": {"input_tokens": 310, "output_tokens": 12, "total_tokens": 322},
    }


def azure_openai(question: str) -> Any:
    citations = [
        {
            "content": hit.text,
            "title": hit.name,
            "filepath": hit.path,
            "url": f"https://store.blob.core.windows.net/docs/{hit.path}",
            "chunk_id": "0",
        }
        for hit in hits(question)
    ]
    reply = _chat(question, context={"citations": citations, "intent": "handbook"})
    if citations:
        reply["choices"][0]["message"]["content"] += " [doc1]"
    return reply


def bedrock(question: str) -> Any:
    references = [
        {
            "content": {"type": "TEXT", "text": hit.text},
            "location": {"type": "S3", "s3Location": {"uri": f"s3://handbook/{hit.path}"}},
            "metadata": {"x-amz-bedrock-kb-chunk-id": hit.id},
        }
        for hit in hits(question)
    ]
    part = {"textResponsePart": {"text": answer(question), "span": {"start": 0, "end": 20}}}
    return {
        "citations": [{"generatedResponsePart": part, "retrievedReferences": references}],
        "output": {"text": answer(question)},
        "sessionId": "s-1",
    }


def vertex(question: str) -> Any:
    references = [
        {
            "chunkInfo": {
                "chunk": f"projects/1/locations/global/chunks/{hit.name}",
                "content": hit.text,
                "relevanceScore": hit.score,
                "documentMetadata": {
                    "document": f"projects/1/documents/{hit.name}",
                    "uri": f"gs://handbook/{hit.path}",
                    "title": hit.name,
                },
            }
        }
        for hit in hits(question)
    ]
    said = {"name": "projects/1/answers/1", "state": "SUCCEEDED", "answerText": answer(question)}
    skipped = {} if references else {"answerSkippedReasons": ["NO_RELEVANT_CONTENT"]}
    cited = [{"startIndex": "0", "endIndex": "20", "sources": [{"referenceId": "0"}]}]
    told = {"references": references, "citations": cited} if references else {}
    return {"answer": {**said, **told, **skipped}, "answerQueryToken": "NMwK"}


def vectara(question: str) -> Any:
    return {
        "summary": answer(question),
        "response_language": "eng",
        "search_results": [
            {
                "text": hit.text,
                "score": hit.score,
                "part_metadata": {"lang": "eng", "offset": 0},
                "document_metadata": {"kind": "handbook"},
                "document_id": hit.path,
                "request_corpora_index": 0,
            }
            for hit in hits(question)
        ],
        "factual_consistency_score": 0.8,
    }


def onyx(question: str) -> Any:
    documents: list[dict[str, Any]] = [
        {
            "document_id": f"FILE_CONNECTOR__{hit.name}",
            "chunk_ind": 0,
            "semantic_identifier": hit.name,
            "link": None,
            "blurb": hit.text,
            "source_type": "file",
            "boost": 0,
            "hidden": False,
            "metadata": {},
            "score": hit.score,
            "match_highlights": [],
            "is_internet": False,
        }
        for hit in hits(question)
    ]
    cited = [
        {"type": "citation_info", "citation_number": 1, "document_id": each["document_id"]}
        for each in documents[:1]
    ]
    return {
        "answer": answer(question) + (" [[1]]()" if cited else ""),
        "answer_citationless": answer(question),
        "pre_answer_reasoning": None,
        "tool_calls": [],
        "top_documents": documents,
        "citation_info": cited,
        "message_id": 7,
        "chat_session_id": "2b6d4a4e-0000-4000-8000-000000000001",
        "error_msg": None,
    }


def r2r(question: str) -> Any:
    chunks: list[dict[str, Any]] = [
        {
            "id": f"3f3d47f3-{hit.name}",
            "document_id": f"3e157b3a-{hit.name}",
            "owner_id": None,
            "collection_ids": [],
            "score": hit.score,
            "text": hit.text,
            "metadata": {"title": hit.name, "version": "v0", "chunk_order": 0},
        }
        for hit in hits(question)
    ]
    cited = [
        {"id": each["id"][:7], "object": "citation", "is_new": True, "span": None, "payload": each}
        for each in chunks[:1]
    ]
    again = [{"id": each["id"], "object": "citation", "is_new": False} for each in cited]
    return {
        "results": {
            "generated_answer": answer(question),
            "completion": answer(question),
            "search_results": {"chunk_search_results": chunks, "graph_search_results": []},
            "citations": [*cited, *again],
            "metadata": {},
        }
    }


def langflow(question: str) -> Any:
    message = {
        "text": answer(question),
        "sender": "Machine",
        "sender_name": "AI",
        "session_id": "s-1",
        "timestamp": "2026-11-23T06:30:41+00:00",
        "flow_id": "d2bbd92b",
    }
    found = [
        {"text": hit.text, "file_path": f"/app/{hit.path}", "_score": hit.score}
        for hit in hits(question)
    ]
    outputs = [
        {"results": {"message": message}, "component_id": "ChatOutput-1"},
        {"results": {"search_results": found}, "component_id": "Retriever-1"},
    ]
    return {
        "session_id": "s-1",
        "outputs": [{"inputs": {"input_value": question}, "outputs": outputs}],
    }


@dataclass(frozen=True)
class Product:
    """How a product is reached, and what it refuses. ``needs``: fields of a request's body."""

    path: str
    reply: Callable[[str], Any]
    question: Callable[[Any], str]
    needs: Mapping[str, Any] = field(default_factory=dict)
    header: tuple[str, str] | None = None
    options: tuple[str, ...] = ()
    more: Mapping[tuple[str, str], Any] = field(default_factory=dict)
    url: str | None = None
    """What the user types, where it is not the endpoint."""
    refusal: Answer | None = None
    """What a request that is not the product's gets."""


def _last(body: Any) -> str:
    return str(body["messages"][-1]["content"])


def _openapi(path: str, schema: Mapping[str, Any], *more: str) -> dict[str, Any]:
    content = {"content": {"application/json": {"schema": schema}}}
    paths: dict[str, Any] = {each: {"get": {}} for each in more}
    return {"openapi": "3.1.0", "paths": paths | {path: {"post": {"requestBody": content}}}}


_QUESTION = {
    "type": "object",
    "properties": {"question": {"type": "string"}},
    "required": ["question"],
}
_INPUT = {"type": "object", "properties": {"input": _QUESTION}, "required": ["input"]}
_MODELS = {"object": "list", "data": [{"id": "handbook", "object": "model"}]}
_FILE_SEARCH = {"type": "file_search", "vector_store_ids": ["vs_1"]}


def cohere_v2(question: str) -> Any:
    text = answer(question)
    citations = [
        {
            "start": 0,
            "end": len(text),
            "text": text,
            "type": "TEXT_CONTENT",
            "sources": [
                {
                    "type": "document",
                    "id": hit.id,
                    "document": {"id": hit.id, "path": hit.path, "snippet": hit.text},
                }
            ],
        }
        for hit in hits(question)
    ]
    message = {"role": "assistant", "content": [{"type": "text", "text": text}]}
    message |= {"citations": citations} if citations else {}
    tokens = {"input_tokens": 41, "output_tokens": 12}
    return {
        "id": "c14c80c3",
        "finish_reason": "COMPLETE",
        "message": message,
        "usage": {"tokens": tokens},
    }


def anthropic_messages(question: str) -> Any:
    begin, end = answer(question)[:9], answer(question)[9:]
    cited = [
        {
            "type": "char_location",
            "cited_text": hit.text,
            "document_index": number,
            "document_title": hit.path,
            "start_char_index": 0,
            "end_char_index": len(hit.text),
        }
        for number, hit in enumerate(hits(question))
    ]
    blocks: list[dict[str, Any]] = []
    if cited:
        blocks.append({"type": "text", "text": begin, "citations": cited[:1]})
    blocks.append({"type": "text", "text": end, "citations": cited[1:]})
    if not cited:
        blocks = [{"type": "text", "text": answer(question), "citations": None}]
    return {
        "id": "msg_01",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": blocks,
        "stop_reason": "end_turn",
        "usage": {"input_tokens": 41, "output_tokens": 12},
    }


def _found(question: str) -> list[dict[str, Any]]:
    return [{"path": hit.path, "text": hit.text, "score": hit.score} for hit in hits(question)]


def ai_sdk_5(question: str) -> str:
    call = {"toolCallId": "call-1", "toolName": "search"}
    words = [{"type": "text-delta", "id": "t", "delta": f"{w} "} for w in answer(question).split()]
    return events(
        {"type": "start", "messageId": "m"},
        {"type": "tool-input-available", **call, "input": {"query": question}},
        {"type": "tool-output-available", "toolCallId": "call-1", "output": _found(question)},
        {"type": "text-start", "id": "t"},
        *words,
        {"type": "text-end", "id": "t"},
        {"type": "finish"},
    )


def a2a(question: str) -> Any:
    parts = [
        {"kind": "text", "text": answer(question)},
        {"kind": "data", "data": {"passages": _found(question)}},
    ]
    task = {"kind": "task", "id": "t-1", "contextId": "c-1", "status": {"state": "completed"}}
    return {
        "jsonrpc": "2.0",
        "id": "1",
        "result": task | {"artifacts": [{"artifactId": "a-1", "parts": parts}]},
    }


def ag_ui(question: str) -> str:
    call, message = {"toolCallId": "c-1"}, {"messageId": "m-1"}
    words = [
        {"type": "TEXT_MESSAGE_CONTENT", **message, "delta": f"{word} "}
        for word in answer(question).split()
    ]
    return events(
        {"type": "RUN_STARTED", "threadId": "t", "runId": "r"},
        {"type": "TOOL_CALL_START", **call, "toolCallName": "search"},
        {"type": "TOOL_CALL_ARGS", **call, "delta": json.dumps({"query": question})},
        {"type": "TOOL_CALL_END", **call},
        {"type": "TOOL_CALL_RESULT", **message, **call, "content": json.dumps(_found(question))},
        {"type": "TEXT_MESSAGE_START", **message, "role": "assistant"},
        *words,
        {"type": "TEXT_MESSAGE_END", **message},
        {"type": "RUN_FINISHED", "threadId": "t", "runId": "r"},
    )


def perplexity(question: str) -> Any:
    found = [
        {"title": "The handbook", "url": f"https://handbook.example/{hit.path}#top",
         "date": "2026-01-05", "snippet": hit.text}
        for hit in hits(question)
    ]  # fmt: skip
    return _chat(question) | {"search_results": found, "citations": [row["url"] for row in found]}


PRODUCTS: dict[str, Product] = {
    "cohere_v2": Product(
        "/v2/chat",
        cohere_v2,
        _last,
        {"model": "command-r"},
        options=("--model", "command-r"),
    ),
    "anthropic_messages": Product(
        "/v1/messages",
        anthropic_messages,
        _last,
        {"model": "m", "max_tokens": 1024},
        options=("--model", "m"),
    ),
    "ai_sdk_5": Product(
        "/api/chat", ai_sdk_5, lambda body: str(body["messages"][-1]["parts"][0]["text"])
    ),
    "a2a": Product(
        "/agent",
        a2a,
        lambda body: str(body["params"]["message"]["parts"][0]["text"]),
        refusal=Answer({"jsonrpc": "2.0", "id": None, "error": {"code": -32600, "message": "No"}}),
    ),
    "ag_ui": Product(
        "/run",
        ag_ui,
        _last,
        {"tools": [], "context": []},
        refusal=Answer(
            {
                "detail": [
                    {"type": "missing", "loc": ["body", name], "msg": "Field required"}
                    for name in ("threadId", "runId", "messages", "tools", "context")
                ]
            },
            422,
        ),
    ),
    "perplexity": Product(
        "/chat/completions",
        perplexity,
        _last,
        {"model": "sonar"},
        options=("--model", "sonar"),
    ),
    "dify": Product(
        "/v1/chat-messages",
        dify,
        lambda body: str(body["query"]),
        {"inputs": {}, "user": "rag-eval", "response_mode": "blocking"},
        ("Authorization", "Bearer app-1"),
    ),
    "dify_stream": Product(
        "/v1/chat-messages",
        dify_stream,
        lambda body: str(body["query"]),
        {"inputs": {}, "user": "rag-eval", "response_mode": "streaming"},
        ("Authorization", "Bearer app-1"),
    ),
    "flowise": Product("/api/v1/prediction/9f2d-flow", flowise, lambda body: str(body["question"])),
    "anythingllm": Product(
        "/api/v1/workspace/handbook/chat",
        anythingllm,
        lambda body: str(body["message"]),
        {"mode": "chat"},
        ("Authorization", "Bearer key-4711"),
    ),
    "open_webui": Product(
        "/api/chat/completions",
        open_webui,
        _last,
        {"model": "handbook", "stream": True},
        ("Authorization", "Bearer key-4711"),
        more={("GET", "/api/models"): _MODELS},
    ),
    "ragflow": Product(
        "/api/v1/openai/c1/chat/completions",
        ragflow,
        _last,
        {"model": "model", "stream": False, "extra_body": {"reference": True}},
        ("Authorization", "Bearer key-4711"),
    ),
    "langserve": Product(
        "/rag/invoke",
        langserve,
        lambda body: str(body["input"]["question"]),
        url="",
        more={("GET", "/openapi.json"): _openapi("/rag/invoke", _INPUT, "/rag/input_schema")},
    ),
    "langgraph": Product(
        "/runs/wait",
        langgraph,
        lambda body: str(body["input"]["messages"][-1]["content"]),
        {"assistant_id": "agent"},
        more={("POST", "/assistants/search"): [{"assistant_id": "fe09", "graph_id": "agent"}]},
    ),
    "hayhooks": Product(
        "/rag/run",
        hayhooks,
        lambda body: str(body["question"]),
        url="",
        more={
            ("GET", "/openapi.json"): _openapi(
                "/rag/run", _QUESTION, "/status/{pipeline_name}", "/draw/{pipeline_name}"
            )
        },
    ),
    "workflows": Product(
        "/workflows/rag/run", workflows, lambda body: str(body["start_event"]["question"])
    ),
    "create_llama": Product("/api/chat", create_llama, _last),
    "openai_chat": Product(
        "/v1/chat/completions",
        openai_chat,
        _last,
        {"model": "handbook"},
        ("Authorization", "Bearer key-4711"),
        more={("GET", "/v1/models"): _MODELS},
    ),
    "openai_responses": Product(
        "/v1/responses",
        openai_responses,
        lambda body: str(body["input"]),
        {"model": "handbook", "include": ["file_search_call.results"], "tools": [_FILE_SEARCH]},
        ("Authorization", "Bearer key-4711"),
        (
            "--body",
            json.dumps({"model": "handbook", "input": "{question}", "tools": [_FILE_SEARCH]}),
        ),
    ),
    "azure_openai": Product(
        "/openai/deployments/d1/chat/completions",
        azure_openai,
        _last,
        {"data_sources": [{"type": "azure_search"}]},
        ("api-key", "key-4711"),
        (
            "--body",
            json.dumps(
                {
                    "messages": [{"role": "user", "content": "{question}"}],
                    "data_sources": [{"type": "azure_search"}],
                }
            ),
        ),
    ),
    "bedrock": Product("/retrieveAndGenerate", bedrock, lambda body: str(body["input"]["text"])),
    "vertex": Product(
        "/v1/servingConfigs/default_search:answer",
        vertex,
        lambda body: str(body["query"]["text"]),
    ),
    "vectara": Product(
        "/v2/corpora/handbook/query",
        vectara,
        lambda body: str(body["query"]),
        {"stream_response": False},
        ("x-api-key", "key-4711"),
    ),
    "onyx": Product(
        "/api/chat/send-chat-message",
        onyx,
        lambda body: str(body["message"]),
        {"stream": False},
        ("Authorization", "Bearer key-4711"),
    ),
    "r2r": Product(
        "/v3/retrieval/rag",
        r2r,
        lambda body: str(body["query"]),
        {"rag_generation_config": {"stream": False}},
    ),
    "langflow": Product(
        "/api/v1/run/f1",
        langflow,
        lambda body: str(body["input_value"]),
        {"input_type": "chat"},
        ("x-api-key", "key-4711"),
    ),
}

SAVED_ONLY = ("bedrock", "vertex")


def serve(name: str) -> BotServer:
    """A server of one product; what lacks a needed field or the key it refuses."""
    product = PRODUCTS[name]

    def chat(body: Any, headers: Mapping[str, str]) -> Answer:
        if product.header and headers.get(product.header[0]) != product.header[1]:
            return Answer({"message": "Access token is invalid"}, 401)
        for key, value in product.needs.items():
            if not isinstance(body, dict) or body.get(key) != value:
                return product.refusal or Answer({"message": f"{key} is wrong or missing"}, 400)
        try:
            made = product.reply(product.question(body))
        except (KeyError, TypeError, IndexError):
            return product.refusal or Answer({"message": "the request has no question"}, 400)
        kind = (
            {"Content-Type": "text/event-stream" if made[:1] == "d" else "text/plain"}
            if (isinstance(made, str))
            else {}
        )
        return Answer(_pieces(made) if isinstance(made, str) else made, 200, kind)

    def fixed(value: Any) -> View:
        return lambda body, headers: Answer(value)

    views: dict[tuple[str, str], View] = {key: fixed(value) for key, value in product.more.items()}
    return BotServer(views | {("POST", product.path): chat})


def _pieces(text: str) -> Iterator[str]:
    yield from text.splitlines(keepends=True)
