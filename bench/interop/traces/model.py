"""A scripted model behind the OpenAI API, on loopback: chat completions and responses.

It has no state: what it says follows from the request alone. With tools on offer it takes the
queries of the turn one by one and then answers; without tools it answers at once. Tokens are round
numbers that a person can add up: the n-th call of a turn counts 101·n in and 11·n out, a helper
call (grading, rewriting, planning) counts 50 in and 5 out.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import shop

NAME = "scripted-1"
HELPER = (50, 5)
CREATED = 1_767_225_600  # 2026-01-01

PLAN = "Write the search queries"
REWRITE = "Formulate an improved question"
CONDENSE = "standalone question"


def text_of(content: Any) -> str:
    """The words of a message's content, whatever its shape."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "\n".join(str(part.get("text", "")) for part in content if isinstance(part, dict))
    return ""


def reply(messages: list[dict[str, Any]], tools: list[str], forced: bool) -> dict[str, Any]:
    """What the model says: `text`, or `tool` with `arguments`; and `usage` in and out."""
    asked = max(
        n
        for n, message in enumerate(messages)
        if message["role"] == "user" and _asks(text_of(message["content"]))
    )
    prompt = text_of(messages[asked]["content"])
    turn = shop.turn_of(prompt)
    if forced:
        return _grade(turn, prompt, tools)
    whole = "\n".join(text_of(message.get("content")) for message in messages)
    if PLAN in whole:
        return {"text": json.dumps(list(turn.queries)), "usage": HELPER}
    if REWRITE in prompt:
        return {"text": f"In this shop: {turn.question}", "usage": HELPER}
    if CONDENSE in prompt.casefold():
        return {"text": turn.standalone or turn.question, "usage": HELPER}
    if "[[ ## " in whole:
        return _dspy(turn, whole, prompt)
    done = _searched(messages, asked, turn)
    usage = (101 * (done + 1), 11 * (done + 1))
    react = "Action Input:" in whole
    if done < len(turn.queries) and (tools or react):
        query = {"query": turn.queries[done]}
        if react and not tools:
            lines = ["Thought: I need to search.", "Action: search"]
            return {
                "text": "\n".join([*lines, f"Action Input: {json.dumps(query)}"]),
                "usage": usage,
            }
        name = next(name for name in tools if name != "final_answer")
        return {"tool": name, "arguments": query, "call": done + 1, "usage": usage}
    if "final_answer" in tools:
        return {
            "tool": "final_answer",
            "arguments": {"answer": turn.answer},
            "call": done + 1,
            "usage": usage,
        }
    if react and not tools:
        said = f"Thought: I can answer without using any more tools.\nAnswer: {turn.answer}"
        return {"text": said, "usage": usage}
    return {"text": turn.answer, "usage": usage}


def _asks(text: str) -> bool:
    return any(
        turn.question in text or (turn.standalone and turn.standalone in text)
        for turn in shop.TURNS
    )


def _searched(messages: list[dict[str, Any]], asked: int, turn: shop.Turn) -> int:
    """How many searches of this turn the model has the results of."""
    results = [message for message in messages[asked + 1 :] if _is_result(message)]
    rewritten = text_of(messages[asked]["content"]).startswith("In this shop: ")
    if rewritten:  # the question was asked before, and searched once
        return len(results) + 1
    return len(results)


def _is_result(message: dict[str, Any]) -> bool:
    if message["role"] in ("tool", "tool-response"):
        return True
    return message["role"] == "user" and text_of(message["content"]).startswith("Observation:")


def _grade(turn: shop.Turn, prompt: str, tools: list[str]) -> dict[str, Any]:
    """Whether the passages in a grader's prompt answer the whole question."""
    last = shop.search(turn.queries[-1])
    complete = turn.answer != shop.REFUSAL and last[0].text in prompt
    fields = {"binary_score": "yes" if complete else "no"}
    if tools:
        return {"tool": tools[0], "arguments": fields, "call": 0, "usage": HELPER}
    return {"text": json.dumps(fields), "usage": HELPER}


def _dspy(turn: shop.Turn, whole: str, prompt: str) -> dict[str, Any]:
    """The fields of DSPy's chat adapter, for ReAct's steps and its last prediction."""
    fields: dict[str, Any]
    if "[[ ## next_tool_name ## ]]" in whole:
        done = len(set(re.findall(r"\[\[ ## observation_(\d+) ## \]\]", prompt)))
        usage = (101 * (done + 1), 11 * (done + 1))
        if done < len(turn.queries):
            query = json.dumps({"query": turn.queries[done]})
            fields = {"next_thought": "I need to search.", "next_tool_name": "search"}
            fields["next_tool_args"] = query
        else:
            fields = {"next_thought": "I can answer.", "next_tool_name": "finish"}
            fields["next_tool_args"] = "{}"
    else:
        usage = HELPER
        fields = {"answer": turn.answer}
        if "[[ ## reasoning ## ]]" in whole:
            fields = {"reasoning": "The passages say so.", **fields}
    lines = [f"[[ ## {name} ## ]]\n{text}\n" for name, text in fields.items()]
    return {"text": "\n".join([*lines, "[[ ## completed ## ]]"]), "usage": usage}


def chat_completion(body: dict[str, Any]) -> dict[str, Any]:
    """A chat completion in the form of the API."""
    tools = [tool["function"]["name"] for tool in body.get("tools") or []]
    choice = body.get("tool_choice")
    forced = isinstance(choice, dict) or bool(body.get("response_format"))
    said = reply(body["messages"], tools, forced)
    message: dict[str, Any] = {"role": "assistant", "content": said.get("text")}
    if "tool" in said:
        function = {"name": said["tool"], "arguments": json.dumps(said["arguments"])}
        call = {"id": _call_id(body, said), "type": "function", "function": function}
        message["tool_calls"] = [call]
    reads, writes = said["usage"]
    return {
        "id": "chatcmpl-scripted",
        "object": "chat.completion",
        "created": CREATED,
        "model": NAME,
        "choices": [
            {
                "index": 0,
                "message": message,
                "finish_reason": "tool_calls" if "tool" in said else "stop",
            }
        ],
        "usage": {
            "prompt_tokens": reads,
            "completion_tokens": writes,
            "total_tokens": reads + writes,
        },
    }


def _call_id(body: dict[str, Any], said: dict[str, Any]) -> str:
    """An id that no other call of the conversation has."""
    past = len(body.get("messages") or body.get("input") or [])
    return f"call_{past:02d}_{said['call']}"


def chunks(whole: dict[str, Any], usage: bool) -> list[dict[str, Any]]:
    """The same completion as the chunks of a stream."""
    head = {key: whole[key] for key in ("id", "created", "model")}
    head |= {"object": "chat.completion.chunk"}
    choice = whole["choices"][0]
    message = choice["message"]
    first: dict[str, Any] = {"role": "assistant", "content": message["content"] or ""}
    if "tool_calls" in message:
        first["tool_calls"] = [{"index": 0, **message["tool_calls"][0]}]
    parts = [
        head | {"choices": [{"index": 0, "delta": first, "finish_reason": None}]},
        head | {"choices": [{"index": 0, "delta": {}, "finish_reason": choice["finish_reason"]}]},
    ]
    if usage:
        parts.append(head | {"choices": [], "usage": whole["usage"]})
    return parts


def response(body: dict[str, Any]) -> dict[str, Any]:
    """A response in the form of the Responses API."""
    items = body["input"]
    if isinstance(items, str):
        items = [{"role": "user", "content": items}]
    messages = [
        {"role": "tool", "content": item.get("output")}
        if item.get("type") == "function_call_output"
        else {"role": item.get("role", "assistant"), "content": item.get("content")}
        for item in items
    ]
    tools = [tool["name"] for tool in body.get("tools") or [] if tool.get("type") == "function"]
    said = reply(messages, tools, False)
    output: dict[str, Any]
    if "tool" in said:
        call = _call_id(body, said)
        output = {"type": "function_call", "id": f"fc_{call}", "call_id": call}
        output |= {"name": said["tool"], "arguments": json.dumps(said["arguments"])}
        output |= {"status": "completed"}
    else:
        content = {"type": "output_text", "text": said["text"], "annotations": []}
        output = {"type": "message", "id": f"msg_{len(items):02d}", "role": "assistant"}
        output |= {"status": "completed", "content": [content]}
    reads, writes = said["usage"]
    return {
        "id": f"resp_{len(items):02d}",
        "object": "response",
        "created_at": CREATED,
        "model": NAME,
        "status": "completed",
        "error": None,
        "incomplete_details": None,
        "instructions": body.get("instructions"),
        "metadata": {},
        "output": [output],
        "parallel_tool_calls": False,
        "temperature": 1.0,
        "top_p": 1.0,
        "tool_choice": "auto",
        "tools": body.get("tools") or [],
        "usage": {
            "input_tokens": reads,
            "input_tokens_details": {"cached_tokens": 0},
            "output_tokens": writes,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": reads + writes,
        },
    }


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        try:
            if self.path.endswith("/responses"):
                self._send(json.dumps(response(body)))
                return
            whole = chat_completion(body)
        except Exception as error:
            self._send(json.dumps({"error": {"message": repr(error)}}), status=400)
            raise
        if body.get("stream"):
            usage = bool((body.get("stream_options") or {}).get("include_usage"))
            lines = [f"data: {json.dumps(part)}\n\n" for part in chunks(whole, usage)]
            self._send("".join([*lines, "data: [DONE]\n\n"]), "text/event-stream")
        else:
            self._send(json.dumps(whole))

    def _send(self, text: str, kind: str = "application/json", status: int = 200) -> None:
        data = text.encode()
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: Any) -> None:
        pass


def collect(take: Callable[[str, Any], Any]) -> str:
    """Start a server of another product's API that only takes what is sent; returns its address."""

    class Collector(_Handler):
        def do_POST(self) -> None:
            data = self.rfile.read(int(self.headers["Content-Length"]))
            take(self.path, json.loads(data))
            self._send("{}")

        do_PATCH = do_POST

        def do_GET(self) -> None:
            self._send("{}")

    server = ThreadingHTTPServer(("127.0.0.1", 0), Collector)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return f"http://127.0.0.1:{server.server_address[1]}"


def serve() -> str:
    """Start the model in a thread of this process; returns its address."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return f"http://127.0.0.1:{server.server_address[1]}/v1"
