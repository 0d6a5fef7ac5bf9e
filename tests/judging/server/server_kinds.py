"""Twelve kinds of judges' servers on loopback, which answer as their makers document it.

Forms of replies: the types of openai-python 2.54.0 and anthropic-sdk-python 2.12.0, against which
they were checked once. Errors and their words, as published:
OpenAI https://platform.openai.com/docs/guides/error-codes, github.com/Dooy/chatgpt-web-midjourney-
proxy#650 (unsupported_parameter), github.com/BerriAI/litellm 1.106.2 llms/openai/common_utils.py
("Could not finish the message …"); Azure github.com/openai/openai-python#331 and
github.com/compl-ai/compl-ai#20 (content_filter), learn.microsoft.com/answers/questions/2225315
(DeploymentNotFound); Anthropic https://docs.anthropic.com/en/api/errors,
github.com/mastra-ai/mastra#7507 (thinking and forced tools), github.com/BuilderIO/agent-native#3207
(temperature and thinking); Gemini github.com/Vali-98/ChatterUI#227 (a list of errors, "Unknown
name"); Bedrock github.com/promptfoo/promptfoo#9587 (<reasoning> before the answer); OpenRouter
https://openrouter.ai/docs/api/reference/errors-and-debugging, github.com/maximhq/bifrost#5425
(finish_reason "error"), github.com/open-webui/computer#293 (metadata.raw); LiteLLM
github.com/BerriAI/litellm#16231 (ContentPolicyViolationError); vLLM and Ollama: the error types of
their servers (vllm/entrypoints/openai/protocol.py 0.11, ollama/openai/openai.go 0.12).
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from tests.fake_bot import Exchange, FakeBot

Body = dict[str, Any]
Answer = tuple[int, Any, dict[str, str]]
Reply = Callable[[Body], Answer]
Cases = dict[str, tuple[list[Reply], str | None]]

KEY = "sk-judge-1234567890"
CANARY = {"wet": "yes", "code": "zq-17-umber"}
GOOD = {"verdicts": [{"id": "1", "verdict": "supported"}, {"id": "2", "verdict": "not_found"}]}
NOT_IN_FORM = {"verdicts": [{"id": "1", "verdict": "perhaps"}, {"id": "2", "verdict": "yes"}]}


def ok(payload: Any, **headers: str) -> Answer:
    return 200, payload, headers


class OpenAI:
    """``behave``: what a question of the test gets; the trial is always answered properly.

    ``thinks``: tokens that the model thinks before each answer. ``refuses``: parameters.
    """

    name = "openai"
    address = "/v1"
    path = "/v1/chat/completions"
    key = ("Authorization", f"Bearer {KEY}")
    model = "gpt-4o-2024-08-06"
    answers_as = "gpt-4o-2024-08-06"
    refuses: tuple[str, ...] = ()
    holds: tuple[str, ...] = ("json_schema", "tools")
    thinks = 0

    def __init__(self) -> None:
        self.bot = FakeBot()
        self.bot.question = lambda exchange: exchange.path
        self.bot.default = self.serve
        self.behave: list[Reply] = []
        self.bodies: list[Body] = []

    @property
    def url(self) -> str:
        return self.bot.url + self.address

    def serve(self, exchange: Exchange) -> None:
        if exchange.handler.command == "GET" or not exchange.path.endswith(self.path):
            status, payload, headers = self.resource(exchange)
        elif exchange.handler.headers.get(self.key[0]) != self.key[1]:
            told = exchange.handler.headers.get(self.key[0])
            status, payload, headers = self.error(401, f"Incorrect API key provided: {told}.")
        else:
            body = exchange.json()
            self.bodies.append(body)
            status, payload, headers = self.refusal_of(body) or self.answer(body)
        if isinstance(payload, bytes):
            exchange.raw(payload, status, **headers)
        else:
            exchange.reply(payload, status, **headers)

    def resource(self, exchange: Exchange) -> Answer:
        if exchange.path == self.path.removesuffix("/chat/completions") + "/models":
            own = {"id": self.model, "object": "model", "created": 1, "owned_by": "system"}
            return ok({"object": "list", "data": [own]})
        return self.error(404, "Invalid URL")

    def answer(self, body: Body) -> Answer:
        if "Is water wet?" in json.dumps(body["messages"]):
            held = any(self.asked_for(body, way) for way in self.holds)
            told = "harbour" in json.dumps(body["messages"])
            return ok(self.says(body, CANARY if held or not told else {"wet": "it depends"}))
        if not self.behave:
            return ok(self.says(body, GOOD))
        reply = self.behave.pop(0) if len(self.behave) > 1 else self.behave[0]
        return reply(body)

    def asked_for(self, body: Body, way: str) -> bool:
        return way in body or body.get("response_format", {}).get("type") == way

    def refusal_of(self, body: Body) -> Answer | None:
        """What the server has against the request itself."""
        for name in self.refuses:
            if name in body:
                return self.refused(name)
        return None

    def refused(self, name: str) -> Answer:
        message = f"Unsupported parameter: '{name}' is not supported with this model."
        return self.error(400, message, param=name, code="unsupported_parameter")

    def error(self, status: int, message: str, /, **more: Any) -> Answer:
        error = {"message": message, "type": "invalid_request_error", "param": None, "code": None}
        return status, {"error": error | more}, {}

    def limit(self, body: Body) -> int:
        return int(body.get("max_tokens") or body.get("max_completion_tokens") or 10**6)

    def says(self, body: Body, data: Any, finish: str = "stop", **message: Any) -> Body:
        """A completion; one that thinks longer than its room is cut and empty."""
        text = data if isinstance(data, str) else json.dumps(data)
        own: Body = {"role": "assistant", "content": text, "refusal": None, "annotations": []}
        if "tools" in body and not isinstance(data, str):
            call: Body = {"id": "call_1", "type": "function"}
            call |= {"function": {"name": body["tools"][0]["function"]["name"], "arguments": text}}
            own |= {"content": None, "tool_calls": [call]}
            finish = "tool_calls" if finish == "stop" else finish
        own |= message
        room = self.limit(body)
        if self.thinks >= room:
            own |= {"content": None, "tool_calls": None}
            finish = "length"
        prompt = len(json.dumps(body["messages"])) // 4 + 1
        done = min(room, self.thinks + len(text) // 4 + 1)
        thought = {"reasoning_tokens": min(self.thinks, done), "audio_tokens": 0}
        usage: Body = {"prompt_tokens": prompt, "completion_tokens": done}
        usage |= {"total_tokens": prompt + done, "completion_tokens_details": thought}
        usage |= {"prompt_tokens_details": {"cached_tokens": 0, "audio_tokens": 0}}
        choice = {"index": 0, "message": own, "logprobs": None, "finish_reason": finish}
        whole: Body = {"id": "chatcmpl-1", "object": "chat.completion", "created": 1_790_000_000}
        whole |= {"model": self.answers_as, "choices": [choice], "usage": usage}
        return whole | {"service_tier": "default", "system_fingerprint": "fp_1"}

    def cases(self) -> Cases:
        """By name: what the server gives in turn, and the failure; None: a verdict."""

        def says(data: Any, finish: str = "stop", **more: Any) -> list[Reply]:
            return [lambda body: ok(self.says(body, data, finish, **more))]

        def fails(status: int, message: str, /, **more: Any) -> Reply:
            return lambda body: self.error(status, message, **more)

        def other(body: Body) -> Answer:
            return ok(self.says(body, GOOD) | {"model": "cheaper-2023-01-01"})

        busy = fails(429, "Rate limit reached", code="rate_limit_exceeded")
        down = fails(503, "The server is overloaded")

        def half(body: Body) -> Answer:
            return ok(json.dumps(self.says(body, GOOD)).encode()[:-9])

        too_long = fails(400, "This model's maximum context length is 8 tokens")
        cases: Cases = {
            "good": (says(GOOD), None),
            "cut": (says(GOOD, "length"), "truncated"),
            "empty": (says(""), "malformed"),
            "prose": (says("The claims are fine."), "malformed"),
            "another form": (says(NOT_IN_FORM), "schema"),
            "another model": ([other], "other_model"),
            "busy, then good": ([busy, busy, *says(GOOD)], None),
            "busy": ([busy], "transport"),
            "down, then good": ([down, *says(GOOD)], None),
            "down": ([down], "transport"),
            "a gateway's page": ([lambda body: (502, b"<html>Bad</html>", {})], "transport"),
            "half a reply": ([half], "transport"),
            "too long": ([too_long], "rejected"),
            "no choices": ([lambda body: ok(self.says(body, "") | {"choices": []})], "transport"),
        }
        return cases | self.more_cases(says, fails)

    def more_cases(self, says: Any, fails: Any) -> Cases:
        declined = says("", content=None, refusal="I'm sorry, I cannot help with that.")
        return {
            "refusal": (declined, "refused"),
            "filtered": (says("", "content_filter"), "refused"),
            "no credit": ([fails(429, "You exceeded your current quota")], "transport"),
        }


class Reasoning(OpenAI):
    """Of the kind of gpt-5: no max_tokens, no temperature, and thoughts that take room."""

    name = "openai reasoning"
    model = answers_as = "gpt-5-2025-08-07"
    refuses = ("max_tokens", "temperature")
    thinks = 600

    def refused(self, name: str) -> Answer:
        if name == "temperature":
            message = "Unsupported value: 'temperature' does not support 0 with this model."
            return self.error(400, message, param=name, code="unsupported_value")
        message = f"Unsupported parameter: '{name}' is not supported with this model."
        return self.error(400, message, param=name, code="unsupported_parameter")

    def more_cases(self, says: Any, fails: Any) -> Cases:
        message = "Could not finish the message because max_tokens or model output limit was "
        message += "reached. Please try again with higher max_tokens."
        return super().more_cases(says, fails) | {"no room": ([fails(400, message)], "truncated")}


FILTERED = (
    "The response was filtered due to the prompt triggering Azure OpenAI's content management"
)


class AzureV1(OpenAI):
    name = "azure v1"
    address = "/openai/v1"
    path = "/openai/v1/chat/completions"

    def error(self, status: int, message: str, /, **more: Any) -> Answer:
        error = {"code": str(status), "message": message} | more
        return status, {"error": error}, {"Retry_After": "0"} if status == 429 else {}

    def more_cases(self, says: Any, fails: Any) -> Cases:
        result = {"violence": {"filtered": True, "severity": "medium"}}
        inner = {"code": "ResponsibleAIPolicyViolation", "content_filter_result": result}
        more = {"param": "prompt", "type": None, "status": 400, "innererror": inner}
        prompt = fails(400, FILTERED, code="content_filter", **more)
        return super().more_cases(says, fails) | {"prompt filtered": ([prompt], "refused")}


class AzureClassic(AzureV1):
    name = "azure classic"
    path = "/openai/deployments/ours/chat/completions?api-version=2024-10-21"
    address = path
    key = ("api-key", KEY)

    def resource(self, exchange: Exchange) -> Answer:
        return self.error(404, "Resource not found")


class Anthropic(OpenAI):
    """The messages of Anthropic: strict about fields, and about thoughts with a forced tool."""

    name = "anthropic messages"
    address = path = "/v1/messages"
    key = ("x-api-key", KEY)
    model = answers_as = "claude-sonnet-4-5-20250929"
    fields = (
        *("model", "max_tokens", "messages", "system", "temperature", "top_k", "top_p", "tools"),
        *("tool_choice", "thinking", "output_config", "stop_sequences", "metadata", "stream"),
    )

    def refusal_of(self, body: Body) -> Answer | None:
        if unknown := sorted(body.keys() - set(self.fields)):
            return self.error(400, f"{unknown[0]}: Extra inputs are not permitted")
        if "temperature" in self.refuses and "temperature" in body:
            return self.error(400, "`temperature` is deprecated for this model.")
        if "max_tokens" not in body:
            return self.error(400, "max_tokens: Field required")
        if {message["role"] for message in body["messages"]} - {"user", "assistant"}:
            return self.error(400, 'messages: Unexpected role "system"')
        if body.get("thinking", {}).get("type") in ("enabled", "adaptive"):
            if body.get("temperature", 1) != 1:
                message = "`temperature` may only be set to 1 when thinking is enabled."
                return self.error(400, message)
            if body.get("tool_choice", {}).get("type") in ("tool", "any"):
                message = "Thinking may not be enabled when tool_choice forces tool use."
                return self.error(400, message)
        return None

    def asked_for(self, body: Body, way: str) -> bool:
        return "tools" in body or "format" in body.get("output_config", {})

    def error(self, status: int, message: str, /, **more: Any) -> Answer:
        kinds = {400: "invalid_request_error", 401: "authentication_error", 404: "not_found_error"}
        kinds |= {413: "request_too_large", 429: "rate_limit_error", 529: "overloaded_error"}
        error = {"type": kinds.get(status, "api_error"), "message": message}
        whole = {"type": "error", "error": error, "request_id": "req_1"}
        return status, whole, {"retry_after": "0"} if status == 429 else {}

    def says(self, body: Body, data: Any, finish: str = "stop", **message: Any) -> Body:
        stops = {"length": "max_tokens", "stop": "end_turn"}
        content: list[Body] = []
        if "tools" in body and not isinstance(data, str):
            name = body["tools"][0]["name"]
            content = [{"type": "tool_use", "id": "toolu_1", "name": name, "input": data}]
            stops["stop"] = "tool_use"
        elif data:
            text = data if isinstance(data, str) else json.dumps(data)
            content = [{"type": "text", "text": text, "citations": None}]
        if self.thinks:
            thought = {"type": "thinking", "thinking": "Hm.", "signature": "x"}
            content = [thought, *content]
        room = self.limit(body)
        if self.thinks >= room:
            content, finish = content[:1], "length"
        done = min(room, self.thinks + len(json.dumps(data)) // 4 + 1)
        usage: Body = {"input_tokens": len(json.dumps(body["messages"])) // 4 + 1}
        usage |= {"cache_creation_input_tokens": 0, "cache_read_input_tokens": 300}
        usage |= {"output_tokens": done, "service_tier": "standard"}
        if self.thinks:
            usage["output_tokens_details"] = {"thinking_tokens": min(self.thinks, done)}
        whole: Body = {"id": "msg_1", "type": "message", "role": "assistant"}
        whole |= {"model": self.answers_as, "content": content, "usage": usage}
        whole |= {"stop_reason": stops.get(finish, finish), "stop_sequence": None}
        return whole | message

    def cases(self) -> Cases:
        def empty(body: Body) -> Answer:
            return ok({"id": "msg_1", "type": "message"})

        return super().cases() | {"no choices": ([empty], "transport")}

    def more_cases(self, says: Any, fails: Any) -> Cases:
        why = {"type": "refusal", "category": "bio", "explanation": "It could do harm."}
        full = "model_context_window_exceeded"
        overloaded = fails(529, "Overloaded")
        return {
            "refusal": (says("", "refusal", stop_details=why), "refused"),
            "pause": (says("", "pause_turn"), "truncated"),
            "context full": (says(GOOD, full), "truncated"),
            "overloaded": ([overloaded], "transport"),
            "overloaded, then good": ([overloaded, *says(GOOD)], None),
            "too large": ([fails(413, "Request exceeds the maximum size")], "rejected"),
            "no credit": ([fails(400, "Your credit balance is too low to access")], "rejected"),
        }


class AnthropicCompatible(OpenAI):
    """Anthropic's end in OpenAI's form: response_format is passed over, tools are not."""

    name = "anthropic compatible"
    model = answers_as = "claude-sonnet-4-5-20250929"
    holds = ("tools",)


class Gemini(OpenAI):
    """Errors are a list; a field that is not known is one."""

    name = "gemini"
    address = "/v1beta/openai"
    path = "/v1beta/openai/chat/completions"
    model = answers_as = "gemini-2.5-flash-preview-05-20"
    refuses = ("seed",)

    def refused(self, name: str) -> Answer:
        told = f'Invalid JSON payload received. Unknown name "{name}": Cannot find field.'
        return self.error(400, told)

    def error(self, status: int, message: str, /, **more: Any) -> Answer:
        names = {400: "INVALID_ARGUMENT", 429: "RESOURCE_EXHAUSTED", 503: "UNAVAILABLE"}
        error = {"code": status, "message": message, "status": names.get(status, "UNKNOWN")}
        return status, [{"error": error}], {}


class Bedrock(OpenAI):
    """OpenAI's open models there write their thoughts before the answer."""

    name = "bedrock"
    address = "/openai/v1"
    path = "/openai/v1/chat/completions"
    model = answers_as = "openai.gpt-oss-20b-2025-08-05"
    holds = ()

    def resource(self, exchange: Exchange) -> Answer:
        return 403, {"message": "Missing Authentication Token"}, {}

    def error(self, status: int, message: str, /, **more: Any) -> Answer:
        return status, {"message": message}, {}

    def refusal_of(self, body: Body) -> Answer | None:
        asked = "response_format" in body or "tools" in body
        return self.error(400, "response_format and tools are not supported") if asked else None

    def says(self, body: Body, data: Any, finish: str = "stop", **message: Any) -> Body:
        text = data if isinstance(data, str) else json.dumps(data)
        text = f"<reasoning>The user wants {{}} of claims.</reasoning>{text}" if text else text
        return super().says(body, text, finish, **message)


class OpenRouter(OpenAI):
    """Errors of a model's host come with status 200."""

    name = "openrouter"
    address = "/api/v1"
    path = "/api/v1/chat/completions"
    model = answers_as = "openai/gpt-4o-2024-08-06"

    def error(self, status: int, message: str, /, **more: Any) -> Answer:
        return status, {"error": {"code": status, "message": message} | more, "user_id": "u"}, {}

    def says(self, body: Body, data: Any, finish: str = "stop", **message: Any) -> Body:
        whole = super().says(body, data, finish, **message)
        whole["choices"][0]["native_finish_reason"] = finish
        return whole | {"provider": "OpenAI", "id": "gen-1"}

    def more_cases(self, says: Any, fails: Any) -> Cases:
        def within(code: int, message: str, **more: Any) -> Reply:
            return lambda body: ok(self.error(code, message, **more)[1])

        raw = {"raw": "z-ai/glm is temporarily rate-limited upstream", "provider_name": "BaseTen"}
        host = within(429, "Provider returned error", metadata=raw)

        def broken(body: Body) -> Answer:
            return ok(self.says(body, '{"verdicts": [', "error"))

        def in_choice(body: Body) -> Answer:
            whole = self.says(body, "", "error")
            whole["choices"][0]["error"] = {"code": 502, "message": "Upstream idle timeout"}
            return ok(whole)

        flagged = {"reasons": ["violence"], "flagged_input": "…", "provider_name": "OpenAI"}
        moderated = fails(403, "Your input was flagged", metadata=flagged)
        return super().more_cases(says, fails) | {
            "host busy": ([host], "transport"),
            "host busy, then good": ([host, host, *says(GOOD)], None),
            "host down": ([within(502, "Provider returned error")], "transport"),
            "broken off": ([broken], "transport"),
            "broken off, then good": ([broken, *says(GOOD)], None),
            "error of a choice": ([in_choice], "transport"),
            "no code": ([lambda body: ok({"error": {"message": "no"}})], "transport"),
            "no credits": ([fails(402, "Insufficient credits")], "rejected"),
            "moderated": ([moderated], "refused"),
            "moderated within": ([within(403, "flagged", metadata=flagged)], "refused"),
        }


class LiteLLM(OpenAI):
    """Its errors name the class of the exception; parameters by a list."""

    name = "litellm"
    model = answers_as = "bedrock-claude-20250929"
    refuses = ("seed",)

    def refused(self, name: str) -> Answer:
        told = f"litellm.UnsupportedParamsError: bedrock does not support parameters: ['{name}'], "
        told += "for model=anthropic.claude. To drop these, set `litellm.drop_params=True`"
        return self.error(400, told)

    def error(self, status: int, message: str, /, **more: Any) -> Answer:
        error = {"message": message, "type": None, "param": None, "code": str(status)}
        return status, {"error": error}, {}

    def more_cases(self, says: Any, fails: Any) -> Cases:
        told = "litellm.BadRequestError: litellm.ContentPolicyViolationError: AzureException - "
        filtered = fails(400, told + FILTERED)
        return super().more_cases(says, fails) | {"prompt filtered": ([filtered], "refused")}


class VLLM(OpenAI):
    """Thoughts in a field of their own; names its model and its version."""

    name = "vllm"
    model = answers_as = "judge-8b"
    thinks = 200

    def resource(self, exchange: Exchange) -> Answer:
        own = {"id": self.model, "owned_by": "vllm", "root": "org/judge-8b", "max_model_len": 40960}
        known = {"/v1/models": {"object": "list", "data": [own]}, "/version": {"version": "0.11.0"}}
        if exchange.path in known:
            return ok(known[exchange.path])
        return 404, {"detail": "Not Found"}, {}

    def error(self, status: int, message: str, /, **more: Any) -> Answer:
        error = {"message": message, "type": "BadRequestError", "param": None, "code": status}
        return status, {"error": error}, {}

    def says(self, body: Body, data: Any, finish: str = "stop", **message: Any) -> Body:
        more = {"reasoning_content": "The claims are two.", "tool_calls": []}
        return super().says(body, data, finish, **more | message)


class Ollama(OpenAI):
    """Known by the digest of its model: another name in a reply is noted, and no failure."""

    name = "ollama"
    model = answers_as = "qwen3:8b"
    thinks = 200

    def resource(self, exchange: Exchange) -> Answer:
        known = {
            "/api/version": {"version": "0.12.3"},
            "/api/tags": {"models": [{"name": self.model, "digest": "ab" * 32}]},
            "/api/show": {"template": "{{ .Prompt }}", "details": {}},
        }
        absent: Answer = (404, b"404 page not found", {})
        return ok(known[exchange.path]) if exchange.path in known else absent

    def more_cases(self, says: Any, fails: Any) -> Cases:
        def other(body: Body) -> Answer:
            return ok(self.says(body, GOOD) | {"model": "cheaper-2023-01-01"})

        return super().more_cases(says, fails) | {"another model": ([other], None)}

    def error(self, status: int, message: str, /, **more: Any) -> Answer:
        error = {"message": message, "type": "api_error", "param": None, "code": None}
        return status, {"error": error}, {}


KINDS: tuple[type[OpenAI], ...] = (OpenAI, Reasoning, AzureV1, AzureClassic, Anthropic)
KINDS += (AnthropicCompatible, Gemini, Bedrock, OpenRouter, LiteLLM, VLLM, Ollama)
