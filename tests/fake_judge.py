"""A judge that a test can script: an OpenAI-compatible server on loopback."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any

from tests.fake_bot import Behaviour, Exchange, FakeBot


class FakeJudge:
    """An OpenAI-compatible server. Every chat is answered by ``answer`` unless scripted.

    ``answer``: the reply's text, or its object, from the request's body. ``resources``: what GET
    (and POST, but chats) gives by path. ``modes``: ways to ask for JSON that the server knows; a
    request for another one is answered by ``unknown_mode``. ``script(text, a, b)``: chats whose
    messages hold ``text`` get a, then b, then b for ever.
    """

    def __init__(self) -> None:
        self.bot = FakeBot()
        self.url = f"{self.bot.url}/v1"
        self.model = "judge-2024-08-06"
        self.answer: Callable[[dict[str, Any]], Any] = lambda body: {}
        self.resources: dict[str, Any] = {}
        self.modes = {"json_schema", "json_object_schema", "tool", "json_object", "plain"}
        self.unknown_mode: Callable[[str], Behaviour] = lambda mode: self.says("Water is wet.")
        self._marks: list[str] = []
        self.bot.question = self._mark
        self.bot.default = self._default

    def script(self, text: str, *behaviours: Behaviour) -> None:
        self._marks.append(text)
        self.bot.script(text, *behaviours)

    def chats(self, canaries: bool = False) -> list[dict[str, Any]]:
        """The bodies of all chats so far, in order of arrival."""
        bodies = [one.json() for one in self.bot.seen if self._is_chat(one)]
        return [body for body in bodies if canaries or not self._is_canary(body)]

    def says(self, reply: Any, **more: Any) -> Behaviour:
        """Answer a chat with this text, or this object as JSON; ``more`` as in ``completion``."""
        return lambda exchange: exchange.reply(self.completion(exchange.json(), reply, **more))

    def fails(self, status: int, message: str = "no", **headers: str) -> Behaviour:
        """Answer with an error in the form that OpenAI gives it."""
        error = {"message": message, "type": "error", "param": None, "code": None}
        return lambda exchange: exchange.reply({"error": error}, status, **headers)

    def refuses(self, parameter: str, **fields: Any) -> Behaviour:
        """HTTP 400 for a request with this field, else the usual answer."""
        message = f"Unsupported parameter: '{parameter}' is not supported with this model."
        error = {"message": message, "param": parameter, "code": "unsupported_parameter"} | fields

        def behave(exchange: Exchange) -> None:
            if parameter in exchange.json():
                exchange.reply({"error": error}, 400)
            else:
                self._default(exchange)

        return behave

    def completion(
        self, body: dict[str, Any], reply: Any, finish_reason: str | None = "stop", **more: Any
    ) -> dict[str, Any]:
        """A chat completion; ``usage`` and ``message`` replace what is usual."""
        text = reply if isinstance(reply, str) else json.dumps(reply)
        message: dict[str, Any] = {"role": "assistant", "content": text}
        if "tools" in body and not isinstance(reply, str):
            function = {"name": body["tools"][0]["function"]["name"], "arguments": text}
            call = {"id": "call_1", "type": "function", "function": function}
            message |= {"content": None, "tool_calls": [call]}
        length = sum(len(one["content"]) for one in body["messages"])
        usage = {"prompt_tokens": length // 4 + 1, "completion_tokens": len(text) // 4 + 1}
        usage["total_tokens"] = sum(usage.values())
        whole: dict[str, Any] = {"id": "chat-1", "object": "chat.completion"}
        whole |= {
            "created": int(time.time()),
            "model": body.get("model", self.model),
            "usage": more.get("usage", usage),
        }
        message |= more.get("message", {})
        choice = {"index": 0, "message": message, "finish_reason": finish_reason}
        fields: dict[str, Any] = more.get("fields", {})
        return whole | {"choices": [choice]} | fields

    def close(self) -> None:
        self.bot.close()

    def _is_chat(self, exchange: Exchange) -> bool:
        return exchange.path.endswith("/chat/completions")

    def _is_canary(self, body: dict[str, Any]) -> bool:
        return "Is water wet?" in body["messages"][1]["content"]

    def _mark(self, exchange: Exchange) -> str:
        if not self._is_chat(exchange):
            return exchange.path
        text = "\n".join(one["content"] for one in exchange.json()["messages"])
        return next((mark for mark in self._marks if mark in text), "")

    def _default(self, exchange: Exchange) -> None:
        if not self._is_chat(exchange):
            known = self.resources.get(exchange.path)
            exchange.reply(known if known is not None else {}, 404 if known is None else 200)
            return
        body = exchange.json()
        wanted = body.get("response_format", {})
        kind = "tool" if "tools" in body else wanted.get("type", "plain")
        kind += "_schema" if "schema" in wanted else ""
        if kind not in self.modes:
            self.unknown_mode(kind)(exchange)
        elif self._is_canary(body):
            self.says({"wet": "yes", "code": "zq-17-umber"})(exchange)
        else:
            self.says(self.answer(body))(exchange)
