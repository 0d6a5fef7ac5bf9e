"""An agent with tools, served in two ways: as LangGraph's server answers ``POST /runs/wait`` (the
messages of the state), and as OpenAI's chat completions stream their pieces.

The assistant ``careless`` forgets a tool for even numbers and deletes a basket for every sixth;
the tool of ``finding`` gives back passages in JSON, that of ``surfing`` pages of the web;
``quoting`` searches twice and answers with a sentence of the first search, ``inventing`` with one
of its own.
``python -m tests.bots.tool_agent 9000``.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator, Mapping
from typing import Any

from tests.bots.serving import Answer, BotServer, run

TOKEN = 'tok-"LIVE"-0123456789'
"""A secret with a sign that JSON escapes: the agent hands it to its tools."""


FIRST = "Woollen hats can be returned within 60 days of delivery."
SECOND = "Shipping to Portugal takes four days."
INVENTED = "Silk gloves can be exchanged within 14 weeks at our office in Lisbon."


def calls_of(question: str, assistant: str = "") -> list[tuple[str, dict[str, Any], str]]:
    """Name, arguments and result of each call."""
    number = int((re.findall(r"\d+", question) or ["1"])[0])
    careless = assistant == "careless"
    if assistant == "finding":
        hats = {"text": f"Hat {number} costs {number} EUR in our shop.", "path": f"{number}.md"}
        ships = {"text": SECOND, "path": "shipping.md"}
        searches = [("hat", [hats, ships]), ("shipping", [ships])]
        return [("search", {"query": query}, json.dumps(found)) for query, found in searches]
    if assistant == "surfing":
        sites = ((f"https://{host}.example/{number}", host) for host in ("hats", "shop", "news"))
        pages = [{"url": url, "title": host, "content": SECOND} for url, host in sites]
        return [("web", {"query": f"price of hat {number}"}, json.dumps({"results": pages}))]
    if assistant in ("quoting", "inventing"):
        first = f"{FIRST} Their label must still be on them. {'Ask in the shop. ' * 20}"
        return [("search", {"query": "returns"}, first), ("search", {"query": "to"}, SECOND)]
    calls: list[tuple[str, dict[str, Any], str]] = [
        ("search", {"query": f"hat {number}", "token": TOKEN}, f"Hat {number} is in stock.")
    ]
    if not careless or number % 2:
        calls.append(("price", {"id": number}, f"{number} EUR"))
    if careless and number % 6 == 0:
        calls.append(("delete_basket", {}, "gone"))
    return calls


def messages(question: str, assistant: str) -> list[dict[str, Any]]:
    told: list[dict[str, Any]] = [{"type": "human", "content": question, "id": "m0"}]
    for place, (name, arguments, result) in enumerate(calls_of(question, assistant)):
        call = {"name": name, "args": arguments, "id": f"c{place}", "type": "tool_call"}
        told.append({"type": "ai", "content": "", "tool_calls": [call], "id": f"a{place}"})
        status = {"status": "success", "tool_call_id": f"c{place}"}
        told.append({"type": "tool", "name": name, "content": result, **status})
    answer = f"It costs what the shop says for {question.lower()}"
    answer = {"quoting": FIRST, "inventing": INVENTED}.get(assistant, answer)
    return [*told, {"type": "ai", "content": answer, "tool_calls": [], "id": "end"}]


def pieces(question: str) -> Iterator[str]:
    """Chunks of a chat completion: each call in pieces of seven characters, then the words."""

    def chunk(delta: dict[str, Any]) -> str:
        body = {"object": "chat.completion.chunk", "choices": [{"index": 0, "delta": delta}]}
        return f"data: {json.dumps(body)}\n\n"

    for place, (name, arguments, _) in enumerate(calls_of(question)):
        function = {"name": name, "arguments": ""}
        head = {"index": place, "id": f"c{place}", "type": "function", "function": function}
        yield chunk({"role": "assistant", "content": None, "tool_calls": [head]})
        text = json.dumps(arguments)
        for start in range(0, len(text), 7):
            part = {"index": place, "function": {"arguments": text[start : start + 7]}}
            yield chunk({"tool_calls": [part]})
    for word in ("It ", "costs ", "little."):
        yield chunk({"content": word})
    yield "data: [DONE]\n\n"


def make(port: int = 0) -> BotServer:
    def wait(body: Any, headers: Mapping[str, str]) -> Answer:
        question = body["input"]["messages"][-1]["content"]
        return Answer({"messages": messages(question, body["assistant_id"])})

    def chat(body: Any, headers: Mapping[str, str]) -> Answer:
        stream = pieces(body["messages"][-1]["content"])
        return Answer(stream, 200, {"Content-Type": "text/event-stream"})

    return BotServer({("POST", "/runs/wait"): wait, ("POST", "/v1/chat/completions"): chat}, port)


if __name__ == "__main__":
    run(make, int(sys.argv[1]))
