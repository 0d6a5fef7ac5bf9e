"""A chat endpoint with OpenAI's protocol, a key, and the sources as lines under the answer's text.

There is no /openapi.json. ``python -m tests.bots.chat_endpoint 9000`` serves it; the key is
``CHAT_KEY``.
"""

from __future__ import annotations

import sys
import time
import uuid
from collections.abc import Mapping
from typing import Any

from tests.bots.handbook import search
from tests.bots.serving import Answer, BotServer, run

CHAT_KEY = "sk-shop-4711-canary-0815"


def error(message: str, status: int) -> Answer:
    kind = "invalid_request_error"
    return Answer({"error": {"message": message, "type": kind, "code": None}}, status)


def completion(body: Any, headers: Mapping[str, str]) -> Answer:
    if headers.get("Authorization") != f"Bearer {CHAT_KEY}":
        return error("You did not provide a valid API key.", 401)
    if not isinstance(body, dict) or "messages" not in body:
        return error("Missing required parameter: 'messages'.", 400)
    if "model" not in body:
        return error("you must provide a model parameter", 400)
    question = body["messages"][-1]["content"]
    hits = search(question)
    content = "I am sorry, I do not know."
    if hits:
        lines = (
            f"[{number}] {part.file} — {' > '.join(part.headings)}"
            for number, (_, part) in enumerate(hits, start=1)
        )
        content = f"{hits[0][1].text} [1]\n\nSources:\n" + "\n".join(lines)
    message = {"role": "assistant", "content": content}
    spent = {"prompt_tokens": len(question) // 4, "completion_tokens": len(content) // 4}
    return Answer(
        {
            "id": f"chatcmpl-{uuid.uuid4().hex[:12]}",
            "object": "chat.completion",
            "created": int(time.time()),
            "model": "shop-rag-1",
            "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
            "usage": spent | {"total_tokens": sum(spent.values())},
        }
    )


def make(port: int = 0) -> BotServer:
    return BotServer({("POST", "/v1/chat/completions"): completion}, port)


if __name__ == "__main__":
    run(make, int(sys.argv[1]))
