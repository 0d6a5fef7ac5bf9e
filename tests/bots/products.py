"""Replies of known products, each after its published schema, over five questions of a handbook.

The sentences are ours. ``PLAN`` says which files come for a question, best first: so the metrics of
a run can be worked out by hand. Each reply is named as its recipe in eval/profiles/known, where
repository, path and commit of the schema stand. A server refuses what the product would refuse.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
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

Values = dict[str, Any]


def hits(question: str) -> list[Values]:
    """What the templates below may name of each passage."""
    files = next((PLAN[path] for path, text in QUESTIONS.items() if text == question), [])
    found = []
    for rank, path in enumerate(files, start=1):
        text, name, score = PAGES[path][1], path.rpartition("/")[2], 0.9 - 0.1 * (rank - 1)
        hit = {"path": path, "name": name, "text": text, "score": score, "id": f"7d1c-{name}"}
        counts = {"rank": rank, "place": rank - 1, "words": len(text.split()), "end": len(text)}
        found.append(hit | counts | {"half": score / 2, "third": score / 3})
    return found


def answer(question: str) -> str:
    path = next((path for path, text in QUESTIONS.items() if text == question), None)
    return ANSWERS[path] if path else NOT_FOUND


def filled(template: Any, values: Values, found: list[Values]) -> Any:
    """A template with its values. In a list {"each": item} is an item for each passage, {"first":
    item} one for the best; an object has also what stands under "any", or without passages "none".
    """
    if isinstance(template, str):
        if template[:1] == "$" and template[1:] in values:
            return values[template[1:]]
        return re.sub(r"\$(\w+)", lambda name: str(values[name[1]]), template)
    if isinstance(template, dict):
        plain = {key: item for key, item in template.items() if key not in ("any", "none")}
        made = {key: filled(item, values, found) for key, item in plain.items()}
        more: dict[str, Any] = template.get("any" if found else "none", {})
        return made | (filled(more, values, found) if more else {})
    if not isinstance(template, list):
        return template
    items: list[Any] = []
    for item in template:
        of_hits = item.keys() & {"each", "first"} if isinstance(item, dict) else set()
        for key in of_hits:
            chosen = found if key == "each" else found[:1]
            items += [filled(item[key], values | hit, found) for hit in chosen]
        items += [] if of_hits else [filled(item, values, found)]
    return items


CHAT = """{"id": "chatcmpl-1", "object": "chat.completion", "created": 1760000000,
  "model": "handbook", "choices": [{"index": 0, "finish_reason": "stop",
    "message": {"role": "assistant", "content": "$answer$doc1" MESSAGE}}], "usage": "$tokens" MORE}
"""


def chat(message: str = "", more: str = "") -> str:
    """A completion of OpenAI's protocol with further fields."""
    return CHAT.replace(" MESSAGE", message).replace(" MORE", more)


DIFY_METADATA = """{
  "usage": {"prompt_tokens": 310, "completion_tokens": 12, "total_tokens": 322,
    "prompt_unit_price": "0.001", "prompt_price_unit": "0.001", "prompt_price": "0.00031",
    "total_price": "0.00033", "currency": "USD", "latency": 0.41},
  "any": {"retriever_resources": [{"each": {"id": "r-$id", "message_id": "5b0a-msg",
    "position": "$rank", "dataset_id": "ds-1", "dataset_name": "Handbook",
    "document_id": "d-$name", "document_name": "$name", "data_source_type": "upload_file",
    "segment_id": "$id", "score": "$score", "hit_count": 3, "word_count": "$words",
    "segment_position": 1, "index_node_hash": "f0e1", "content": "$text",
    "created_at": 1760000000}}]}}"""
R2R_CHUNK = """{"id": "3f3d47f3-$name", "document_id": "3e157b3a-$name", "owner_id": null,
  "collection_ids": [], "score": "$score", "text": "$text",
  "metadata": {"title": "$name", "version": "v0", "chunk_order": 0}}"""
FOUND = '[{"each": {"path": "$path", "text": "$text", "score": "$score"}}]'

TEMPLATES = {
    "dify": """{"event": "message", "task_id": "90aa-task", "id": "5b0a-msg",
      "message_id": "5b0a-msg", "conversation_id": "c-4711", "mode": "chat", "answer": "$answer",
      "metadata": DIFY_METADATA, "created_at": 1760000000}""".replace(
        "DIFY_METADATA", DIFY_METADATA
    ),
    "flowise": """{"text": "$answer", "question": "$question", "chatId": "chat-81",
      "chatMessageId": "m-81", "sessionId": "chat-81", "sourceDocuments": [{"each": {
        "pageContent": "$text",
        "metadata": {"source": "/data/docs/$path", "loc": {"lines": {"from": 1}}}}}]}""",
    "anythingllm": """{"id": "aa-1", "type": "textResponse", "close": true, "error": null,
      "chatId": 12, "textResponse": "$answer", "sources": [{"each": {"id": "d-$name",
        "url": "file:///app/collector/hotdir/$name", "title": "$name", "docAuthor": "Unknown",
        "docSource": "a text file uploaded by the user.", "chunkSource": "",
        "wordCount": "$words", "text": "$text", "score": "$score"}}],
      "metrics": {"prompt_tokens": 310, "completion_tokens": 12, "total_tokens": 322,
        "outputTps": 40.1, "duration": 0.3}}""",
    "ragflow": chat(""", "reference": [{"each": {"id": "$id", "content": "$text",
      "document_id": "d-$name", "document_name": "$name", "dataset_id": "kb-1", "image_id": "",
      "positions": [], "url": null, "similarity": "$score", "vector_similarity": "$half",
      "term_similarity": "$third", "row_id": null, "doc_type": "", "document_metadata": null}}]"""),
    "langserve": """{"output": {"answer": "$answer", "context": [{"each": {"id": null,
        "metadata": {"source": "docs/$path"}, "page_content": "$text", "type": "Document"}}]},
      "metadata": {"run_id": "4309447a-47bd-440a-a608-45fdf7e2eb96", "feedback_tokens": []}}""",
    "langgraph": """{"messages": [
        {"type": "human", "id": "h-1", "content": "$question", "additional_kwargs": {}},
        {"type": "ai", "id": "a-1", "content": "$answer", "tool_calls": []}],
      "documents": [
        {"each": {"id": "$id", "page_content": "$text", "metadata": {"source": "$path"}}}]}""",
    "hayhooks": """{"result": {"retriever": {"documents": [{"each": {"id": "$id",
        "content": "$text", "blob": null, "meta": {"file_path": "$path"}, "score": "$score",
        "embedding": null}}]}, "llm": {"replies": ["$answer"]}}}""",
    "workflows": """{"handler_id": "MRXnjkNlro", "workflow_name": "rag", "run_id": "s27XtpS0h8",
      "error": null, "result": {
        "value": {"result": {"response": "$answer", "source_nodes": [{"each": {"node": {
          "id_": "$id", "text": "$text", "metadata": {"file_path": "/app/$path"}},
          "score": "$score"}}]}},
        "qualified_name": "workflows.events.StopEvent", "type": "StopEvent", "types": null},
      "status": "completed", "started_at": "2026-11-23T06:30:41+00:00",
      "updated_at": "2026-11-23T06:30:42+00:00", "completed_at": "2026-11-23T06:30:42+00:00"}""",
    "openai_chat": chat(
        more=""", "sources": [
        {"each": {"id": "$id", "file": "$path", "content": "$text", "score": "$score"}}]"""
    ),
    "openai_responses": """{"id": "resp_1", "object": "response", "status": "completed",
      "error": null, "model": "handbook", "output": [
        {"type": "file_search_call", "id": "fs_1", "status": "completed",
          "queries": ["$question"], "results": [{"each": {"file_id": "file-$name",
            "filename": "$name", "text": "$text", "score": "$score", "attributes": {}}}]},
        {"type": "message", "id": "msg_1", "role": "assistant", "content": [
          {"type": "output_text", "text": "$answer", "annotations": [{"first": {
            "type": "file_citation", "file_id": "file-$name", "filename": "$name",
            "index": 9}}]}]}],
      "usage": {"input_tokens": 310, "output_tokens": 12, "total_tokens": 322}}""",
    "azure_openai": chat(""", "context": {"citations": [{"each": {"content": "$text",
      "title": "$name", "filepath": "$path",
      "url": "https://store.blob.core.windows.net/docs/$path", "chunk_id": "0"}}],
      "intent": "handbook"}"""),
    "bedrock": """{"citations": [{
        "generatedResponsePart": {"textResponsePart": {"text": "$answer",
          "span": {"start": 0, "end": 20}}},
        "retrievedReferences": [{"each": {"content": {"type": "TEXT", "text": "$text"},
          "location": {"type": "S3", "s3Location": {"uri": "s3://handbook/$path"}},
          "metadata": {"x-amz-bedrock-kb-chunk-id": "$id"}}}]}],
      "output": {"text": "$answer"}, "sessionId": "s-1"}""",
    "vertex": """{"answer": {"name": "projects/1/answers/1", "state": "SUCCEEDED",
      "answerText": "$answer", "any": {
        "references": [{"each": {"chunkInfo": {
          "chunk": "projects/1/locations/global/chunks/$name", "content": "$text",
          "relevanceScore": "$score", "documentMetadata": {
            "document": "projects/1/documents/$name", "uri": "gs://handbook/$path",
            "title": "$name"}}}}],
        "citations": [{"startIndex": "0", "endIndex": "20", "sources": [{"referenceId": "0"}]}]},
      "none": {"answerSkippedReasons": ["NO_RELEVANT_CONTENT"]}}, "answerQueryToken": "NMwK"}""",
    "vectara": """{"summary": "$answer", "response_language": "eng", "search_results": [{"each": {
        "text": "$text", "score": "$score", "part_metadata": {"lang": "eng", "offset": 0},
        "document_metadata": {"kind": "handbook"}, "document_id": "$path",
        "request_corpora_index": 0}}], "factual_consistency_score": 0.8}""",
    "onyx": """{"answer": "$answer$mark", "answer_citationless": "$answer",
      "pre_answer_reasoning": null, "tool_calls": [], "top_documents": [{"each": {
        "document_id": "FILE_CONNECTOR__$name", "chunk_ind": 0, "semantic_identifier": "$name",
        "link": null, "blurb": "$text", "source_type": "file", "boost": 0, "hidden": false,
        "metadata": {}, "score": "$score", "match_highlights": [], "is_internet": false}}],
      "citation_info": [{"first": {"type": "citation_info", "citation_number": 1,
        "document_id": "FILE_CONNECTOR__$name"}}],
      "message_id": 7, "chat_session_id": "2b6d4a4e-0000-4000-8000-000000000001",
      "error_msg": null}""",
    "r2r": """{"results": {"generated_answer": "$answer", "completion": "$answer",
      "search_results": {"chunk_search_results": [{"each": CHUNK}], "graph_search_results": []},
      "citations": [
        {"first": {"id": "3f3d47f", "object": "citation", "is_new": true, "span": null,
          "payload": CHUNK}},
        {"first": {"id": "3f3d47f", "object": "citation", "is_new": false}}],
      "metadata": {}}}""".replace("CHUNK", R2R_CHUNK),
    "langflow": """{"session_id": "s-1", "outputs": [{"inputs": {"input_value": "$question"},
      "outputs": [
        {"results": {"message": {"text": "$answer", "sender": "Machine", "sender_name": "AI",
          "session_id": "s-1", "timestamp": "2026-11-23T06:30:41+00:00",
          "flow_id": "d2bbd92b"}}, "component_id": "ChatOutput-1"},
        {"results": {"search_results": [{"each": {"text": "$text", "file_path": "/app/$path",
          "_score": "$score"}}]}, "component_id": "Retriever-1"}]}]}""",
    "cohere_v2": """{"id": "c14c80c3", "finish_reason": "COMPLETE", "message": {
        "role": "assistant", "content": [{"type": "text", "text": "$answer"}],
        "any": {"citations": [{"each": {"start": 0, "end": "$answer_end", "text": "$answer",
          "type": "TEXT_CONTENT", "sources": [{"type": "document", "id": "$id",
            "document": {"id": "$id", "path": "$path", "snippet": "$text"}}]}}]}},
      "usage": {"tokens": {"input_tokens": 41, "output_tokens": 12}}}""",
    "anthropic_messages": """{"id": "msg_01", "type": "message", "role": "assistant",
      "model": "m", "stop_reason": "end_turn", "usage": {"input_tokens": 41, "output_tokens": 12},
      "any": {"content": [{"each": {"type": "char_location", "cited_text": "$text",
        "document_index": "$place", "document_title": "$path", "start_char_index": 0,
        "end_char_index": "$end"}}]},
      "none": {"content": [{"type": "text", "text": "$answer", "citations": null}]}}""",
    "a2a": """{"jsonrpc": "2.0", "id": "1", "result": {"kind": "task", "id": "t-1",
      "contextId": "c-1", "status": {"state": "completed"}, "artifacts": [{"artifactId": "a-1",
        "parts": [{"kind": "text", "text": "$answer"},
          {"kind": "data", "data": {"passages": FOUND}}]}]}}""".replace("FOUND", FOUND),
    "perplexity": chat(
        more=""", "search_results": [{"each": {"title": "The handbook",
          "url": "https://handbook.example/$path#top", "date": "2026-01-05", "snippet": "$text"}}],
        "citations": [{"each": "https://handbook.example/$path#top"}]"""
    ),
    "open_webui": """[{"source": {"id": "kb-1", "name": "Handbook", "type": "collection"},
      "document": [{"each": "$text"}],
      "metadata": [{"each": {"source": "$name", "name": "$name", "file_id": "f-$name"}}],
      "distances": [{"each": "$score"}]}]""",
    "create_llama": """[{"each": {"id": "$id",
      "metadata": {"file_path": "/app/data/$path", "file_name": "$name"}, "score": "$score",
      "text": "$text", "url": "http://localhost:8000/api/files/data/$path"}}]""",
    "dify_stream": DIFY_METADATA,
    "ai_sdk_5": FOUND,
    "ag_ui": FOUND,
}
"""A reply in JSON; of a stream the part that holds the passages."""


def reply(name: str, question: str) -> Any:
    """What a product sends: JSON, or the text of a stream."""
    found, text = hits(question), answer(question)
    values = {"answer": text, "question": question, "answer_end": len(text)}
    values |= {"doc1": " [doc1]" if found and name == "azure_openai" else ""}
    values |= {"mark": " [[1]]()" if found else "", "tokens": TOKENS}
    made = filled(json.loads(TEMPLATES[name]), values, found)
    if name == "anthropic_messages" and found:
        cited = made["content"]
        parts = ((text[:9], cited[:1]), (text[9:], cited[1:]))
        made["content"] = [{"type": "text", "text": t, "citations": c} for t, c in parts]
    return STREAMS[name](question, text, made) if name in STREAMS else made


TOKENS = {"prompt_tokens": 310, "completion_tokens": 12, "total_tokens": 322}


def events(*values: Any) -> str:
    return "".join(f"data: {json.dumps(value)}\n\n" for value in values)


def words(text: str) -> list[str]:
    return [f"{word} " for word in text.split()]


def dify_stream(question: str, text: str, metadata: Any) -> str:
    ids = {"task_id": "90aa-task", "message_id": "5b0a-msg", "conversation_id": "c-4711"}
    thought = ids | {"event": "agent_thought", "id": "t-1", "thought": "Look it up.", "position": 1}
    pieces = [ids | {"event": "agent_message", "answer": word} for word in words(text)]
    end = ids | {"event": "message_end", "metadata": metadata}
    return events(thought, *pieces[:1]) + "event: ping\n\n" + events(*pieces[1:], end)


def open_webui(question: str, text: str, sources: Any) -> str:
    chunk = {"id": "c-1", "object": "chat.completion.chunk"}
    chunks = [chunk | {"choices": [{"delta": {"content": word}}]} for word in words(text)]
    first = [{"sources": sources}] if sources[0]["document"] else []
    return events(*first, *chunks) + "data: [DONE]\n\n"


def create_llama(question: str, text: str, nodes: Any) -> str:
    call = {"type": "agent", "data": {"agent": "RAG", "type": "text", "text": "Searching."}}
    sources = {"type": "sources", "data": {"nodes": nodes}}
    lines = [f"8:[{json.dumps(each)}]" for each in (call, sources)]
    return "\n".join([*lines, *(f"0:{json.dumps(word)}" for word in words(text))]) + "\n"


def ai_sdk_5(question: str, text: str, found: Any) -> str:
    call = {"toolCallId": "call-1", "toolName": "search"}
    return events(
        {"type": "start", "messageId": "m"},
        {"type": "tool-input-available", **call, "input": {"query": question}},
        {"type": "tool-output-available", "toolCallId": "call-1", "output": found},
        {"type": "text-start", "id": "t"},
        *({"type": "text-delta", "id": "t", "delta": word} for word in words(text)),
        {"type": "text-end", "id": "t"},
        {"type": "finish"},
    )


def ag_ui(question: str, text: str, found: Any) -> str:
    call, message = {"toolCallId": "c-1"}, {"messageId": "m-1"}
    return events(
        {"type": "RUN_STARTED", "threadId": "t", "runId": "r"},
        {"type": "TOOL_CALL_START", **call, "toolCallName": "search"},
        {"type": "TOOL_CALL_ARGS", **call, "delta": json.dumps({"query": question})},
        {"type": "TOOL_CALL_END", **call},
        {"type": "TOOL_CALL_RESULT", **message, **call, "content": json.dumps(found)},
        {"type": "TEXT_MESSAGE_START", **message, "role": "assistant"},
        *({"type": "TEXT_MESSAGE_CONTENT", **message, "delta": word} for word in words(text)),
        {"type": "TEXT_MESSAGE_END", **message},
        {"type": "RUN_FINISHED", "threadId": "t", "runId": "r"},
    )


STREAMS: dict[str, Callable[[str, str, Any], str]] = {
    f.__name__: f for f in (dify_stream, open_webui, create_llama, ai_sdk_5, ag_ui)
}


@dataclass(frozen=True)
class Product:
    """How a product is reached, and what it refuses. ``question``: keys that lead to it in a
    request's body. ``needs``: fields of that body."""

    path: str
    question: str
    needs: Mapping[str, Any] = field(default_factory=dict)
    header: tuple[str, str] | None = None
    options: tuple[str, ...] = ()
    more: Mapping[tuple[str, str], Any] = field(default_factory=dict)
    url: str | None = None
    """What the user types, where it is not the endpoint."""
    refusal: Answer | None = None
    """What a request that is not the product's gets."""


def _openapi(path: str, schema: Any, *more: str) -> dict[tuple[str, str], Any]:
    content = {"content": {"application/json": {"schema": schema}}}
    paths: dict[str, Any] = {each: {"get": {}} for each in more}
    paths |= {path: {"post": {"requestBody": content}}}
    return {("GET", "/openapi.json"): {"openapi": "3.1.0", "paths": paths}}


def _schema(**fields: Any) -> dict[str, Any]:
    return {"type": "object", "properties": fields, "required": [*fields]}


_QUESTION = _schema(question={"type": "string"})
_MODELS = {"object": "list", "data": [{"id": "handbook", "object": "model"}]}
_TOOLS = {"tools": [{"type": "file_search", "vector_store_ids": ["vs_1"]}]}
_SOURCES = {"data_sources": [{"type": "azure_search"}]}
_LAST = "messages.-1.content"
_APP, _KEY = ("Authorization", "Bearer app-1"), ("Authorization", "Bearer key-4711")
_DIFY = {"inputs": {}, "user": "rag-eval"}


def _body(**fields: Any) -> tuple[str, str]:
    return ("--body", json.dumps(fields))


def _missing(*names: str) -> Answer:
    rows = [{"type": "missing", "loc": ["body", n], "msg": "Field required"} for n in names]
    return Answer({"detail": rows}, 422)


PRODUCTS: dict[str, Product] = {
    "cohere_v2": Product(
        "/v2/chat", _LAST, {"model": "command-r"}, options=("--model", "command-r")
    ),
    "anthropic_messages": Product(
        "/v1/messages", _LAST, {"model": "m", "max_tokens": 1024}, options=("--model", "m")
    ),
    "ai_sdk_5": Product("/api/chat", "messages.-1.parts.0.text"),
    "a2a": Product(
        "/agent",
        "params.message.parts.0.text",
        refusal=Answer({"jsonrpc": "2.0", "id": None, "error": {"code": -32600, "message": "No"}}),
    ),
    "ag_ui": Product(
        "/run",
        _LAST,
        {"tools": [], "context": []},
        refusal=_missing("threadId", "runId", "messages", "tools", "context"),
    ),
    "perplexity": Product(
        "/chat/completions", _LAST, {"model": "sonar"}, options=("--model", "sonar")
    ),
    "dify": Product("/v1/chat-messages", "query", _DIFY | {"response_mode": "blocking"}, _APP),
    "dify_stream": Product(
        "/v1/chat-messages", "query", _DIFY | {"response_mode": "streaming"}, _APP
    ),
    "flowise": Product("/api/v1/prediction/9f2d-flow", "question"),
    "anythingllm": Product("/api/v1/workspace/handbook/chat", "message", {"mode": "chat"}, _KEY),
    "open_webui": Product(
        "/api/chat/completions",
        _LAST,
        {"model": "handbook", "stream": True},
        _KEY,
        more={("GET", "/api/models"): _MODELS},
    ),
    "ragflow": Product(
        "/api/v1/openai/c1/chat/completions",
        _LAST,
        {"model": "model", "stream": False, "extra_body": {"reference": True}},
        _KEY,
    ),
    "langserve": Product(
        "/rag/invoke",
        "input.question",
        url="",
        more=_openapi("/rag/invoke", _schema(input=_QUESTION), "/rag/input_schema"),
    ),
    "langgraph": Product(
        "/runs/wait",
        "input.messages.-1.content",
        {"assistant_id": "agent"},
        more={("POST", "/assistants/search"): [{"assistant_id": "fe09", "graph_id": "agent"}]},
    ),
    "hayhooks": Product(
        "/rag/run",
        "question",
        url="",
        more=_openapi("/rag/run", _QUESTION, "/status/{pipeline_name}", "/draw/{pipeline_name}"),
    ),
    "workflows": Product("/workflows/rag/run", "start_event.question"),
    "create_llama": Product("/api/chat", _LAST),
    "openai_chat": Product(
        "/v1/chat/completions",
        _LAST,
        {"model": "handbook"},
        _KEY,
        more={("GET", "/v1/models"): _MODELS},
    ),
    "openai_responses": Product(
        "/v1/responses",
        "input",
        {"model": "handbook", "include": ["file_search_call.results"], **_TOOLS},
        _KEY,
        _body(model="handbook", input="{question}", **_TOOLS),
    ),
    "azure_openai": Product(
        "/openai/deployments/d1/chat/completions",
        _LAST,
        _SOURCES,
        ("api-key", "key-4711"),
        _body(messages=[{"role": "user", "content": "{question}"}], **_SOURCES),
    ),
    "bedrock": Product("/retrieveAndGenerate", "input.text"),
    "vertex": Product("/v1/servingConfigs/default_search:answer", "query.text"),
    "vectara": Product(
        "/v2/corpora/handbook/query", "query", {"stream_response": False}, ("x-api-key", "key-4711")
    ),
    "onyx": Product("/api/chat/send-chat-message", "message", {"stream": False}, _KEY),
    "r2r": Product("/v3/retrieval/rag", "query", {"rag_generation_config": {"stream": False}}),
    "langflow": Product(
        "/api/v1/run/f1", "input_value", {"input_type": "chat"}, ("x-api-key", "key-4711")
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
            for key in product.question.split("."):
                body = body[int(key) if isinstance(body, list) else key]
        except (KeyError, TypeError, IndexError):
            return product.refusal or Answer({"message": "the request has no question"}, 400)
        made = reply(name, str(body))
        if not isinstance(made, str):
            return Answer(made)
        kind = "text/event-stream" if made[:1] == "d" else "text/plain"
        return Answer(iter(made.splitlines(keepends=True)), 200, {"Content-Type": kind})

    def fixed(value: Any) -> View:
        return lambda body, headers: Answer(value)

    views: dict[tuple[str, str], View] = {key: fixed(value) for key, value in product.more.items()}
    return BotServer(views | {("POST", product.path): chat})
