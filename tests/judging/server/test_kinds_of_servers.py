"""Each kind of server, with every class of its replies: a verdict or a named failure, no score."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any

import pytest
from tests.judging.server import server_kinds as kinds
from tests.rows import each_row

from clients.http import CallError, RetryPolicy, finish
from judging.identity import JudgeError, JudgePin
from judging.protocols import Sampling, endpoint, failure_of, plain_words, refused_parameter
from judging.server import HttpJudge, key_headers
from judging.types import FAILURES


class Client:
    """Makes clients of one fake server."""

    def __init__(self, server: kinds.OpenAI) -> None:
        self.server = server
        self.made: list[HttpJudge] = []

    def judge(self, **more: Any) -> HttpJudge:
        form = endpoint(self.server.url).form
        settings: dict[str, Any] = {
            "headers": key_headers("JUDGE_KEY", {"JUDGE_KEY": kinds.KEY}, form),
            "policy": RetryPolicy(timeout=60, retries=2, backoff=0.001),
            "pin": JudgePin(revision="r1"),
        }
        judge = HttpJudge(self.server.url, self.server.model, **settings | more)
        self.made.append(judge)
        judge.identify()
        judge.probe()
        return judge


@pytest.fixture
def client(request: Any) -> Iterator[Client]:
    made = Client(request.param())
    yield made
    for judge in made.made:
        judge.close()
    made.server.bot.close()


def each(*servers: type[kinds.OpenAI]) -> pytest.MarkDecorator:
    names = [server.name for server in servers]
    return pytest.mark.parametrize("client", servers, ids=names, indirect=True)


@each(*kinds.KINDS)
def test_every_reply_is_a_verdict_or_a_named_failure(client: Client, task: Any) -> None:
    server = client.server
    cases = server.cases()
    assert len(cases) >= 15
    for name, (replies, failure) in cases.items():
        judge = client.judge()
        server.behave = list(replies)
        verdict = finish(judge.ask(task(max_tokens=2000)))
        assert verdict.failure == failure, (name, verdict.failure, verdict.message)
        assert failure is None or failure in FAILURES
        assert verdict.data == (kinds.GOOD if failure is None else None), name
        assert kinds.KEY not in verdict.message + verdict.raw
    assert all(exchange.path for exchange in server.bot.seen)


@each(*kinds.KINDS)
def test_a_wrong_key_is_one_sentence(client: Client) -> None:
    server = client.server
    right, server.key = server.key, (server.key[0], "another")
    with pytest.raises(JudgeError, match="refuses the key") as caught:
        client.judge()
    assert kinds.KEY not in str(caught.value), "the server says the key, we do not"
    server.key = right
    server.refusal_of = lambda body: server.error(400, f"{kinds.KEY} is no good")  # type: ignore[method-assign]
    with pytest.raises(JudgeError, match=r"HTTP 400: \[secret\] is no good"):
        client.judge()


WAYS: dict[str, tuple[str, tuple[str, ...]]] = {
    "openai reasoning": ("json_schema", ("max_tokens", "temperature")),
    **dict.fromkeys(("gemini", "litellm"), ("json_schema", ("seed",))),
    "anthropic messages": ("tool", ("seed",)),
    "anthropic compatible": ("tool", ()),
    "bedrock": ("plain", ()),
}
"""All others: by a schema, and nothing is left out."""


@each(*kinds.KINDS)
def test_the_way_that_is_found(client: Client) -> None:
    found = client.judge().capabilities
    expected = WAYS.get(client.server.name, ("json_schema", ()))
    assert (found.mode, found.dropped) == expected


@each(*(kind for kind in kinds.KINDS if kind is not kinds.Bedrock))
def test_a_judge_that_thinks_6000_tokens(client: Client, task: Any) -> None:
    """The trial and the questions have the room that the judge was given: 8,000 beside the form."""
    server = client.server
    server.thinks = 6000
    judge = client.judge(thinking=8000)
    verdict = finish(judge.ask(task(max_tokens=500 + 8000)))
    assert (verdict.data, verdict.usage.reasoning_tokens) == (kinds.GOOD, 6000)
    rooms = [server.limit(body) for body in server.bodies]
    assert set(rooms) == {1024 + 8000, 500 + 8000}


@each(kinds.Reasoning, kinds.Anthropic, kinds.VLLM, kinds.Ollama)
def test_a_trial_that_is_cut_gets_twice_the_room_once(client: Client) -> None:
    server = client.server
    server.thinks = 1500
    judge = client.judge()
    assert sorted({server.limit(body) for body in server.bodies}) == [1024, 2048]
    (note,) = judge.notes[-1:]
    assert "thinks before it answers (1,500 tokens in the trial)" in note
    assert "--set thinking_tokens=" in note
    server.bodies.clear()
    server.thinks = 5000
    with pytest.raises(JudgeError, match=r"cut after 2,048 tokens .* --set thinking_tokens=16000"):
        client.judge()
    answered = [body for body in server.bodies if server.refusal_of(body) is None]
    assert [server.limit(body) for body in answered] == [1024, 2048], "no other way is tried"


def test_the_room_of_a_judge_with_an_effort_alone() -> None:
    from judging.connect import JudgeOptions

    assert JudgeOptions().thinking == 0
    assert JudgeOptions(reasoning_effort="low").thinking == 8192
    assert JudgeOptions(reasoning_effort="none").thinking == 0
    assert JudgeOptions(reasoning_effort="high", thinking_tokens=100).thinking == 100
    options = JudgeOptions(reasoning_effort="low", extra_body={"top_k": 5})
    described = options.sampling.described(("temperature",))
    assert described == {"seed": 0, "reasoning_effort": "low", "top_k": 5}


@each(kinds.VLLM)
def test_the_trial_uses_the_judges_own_settings(client: Client, task: Any) -> None:
    extra = {"reasoning_effort": "low", "chat_template_kwargs": {"enable_thinking": False}}
    judge = client.judge(sampling=Sampling(extra=extra))
    verdict = finish(judge.ask(task()))
    for body in client.server.bodies:
        assert {name: body[name] for name in extra} == extra
    assert {name: verdict.sent[name] for name in extra} == extra
    assert {name: judge.describe()["parameters"][name] for name in extra} == extra


@each(kinds.OpenAI)
def test_a_setting_that_the_server_refuses_is_left_out_and_said(client: Client) -> None:
    client.server.refuses = ("top_k",)
    judge = client.judge(sampling=Sampling(extra={"top_k": 5}))
    assert judge.capabilities.dropped == ("top_k",)
    assert judge.notes == ("The server refuses top_k: all requests leave it out.",)


@each(kinds.Anthropic)
def test_anthropics_request(client: Client, task: Any) -> None:
    """Forced tool, system prompt apart and marked; tokens from its memory count."""
    verdict = finish(client.judge().ask(task()))
    (own,) = [body for body in client.server.bodies if "ships" in str(body)]
    assert own["system"] == [
        {"type": "text", "text": "You judge claims.", "cache_control": {"type": "ephemeral"}}
    ]
    assert own["tool_choice"] == {"type": "tool", "name": own["tools"][0]["name"]}
    assert own["tools"][0]["input_schema"] == task().schema
    assert client.server.bot.seen[-1].headers["anthropic-version"] == "2023-06-01"
    fresh = len(str(own["messages"])) // 4  # about what the fake counts, which adds 300 from memory
    assert verdict.usage.cached_tokens == 300
    assert verdict.usage.prompt_tokens is not None
    assert abs(verdict.usage.prompt_tokens - 300 - fresh) < 5
    key = verdict.sent
    assert key == {"mode": "tool", "temperature": 0.0, "max_tokens": 500}


@each(kinds.Anthropic)
def test_anthropic_with_thoughts_is_asked_by_its_form(client: Client, task: Any) -> None:
    """It refuses a forced tool and a temperature then; its form holds the model all the same."""
    client.server.thinks = 900
    extra = {"thinking": {"type": "adaptive"}, "reasoning_effort": "low"}
    judge = client.judge(sampling=Sampling(extra=extra), thinking=4000)
    assert judge.capabilities.mode == "json_schema"
    assert judge.capabilities.dropped == ("seed", "temperature")
    assert finish(judge.ask(task())).data is None, "500 tokens are no room for 900 of thoughts"
    assert finish(judge.ask(task(max_tokens=4500))).data == kinds.GOOD
    last = client.server.bodies[-1]
    assert last["output_config"]["effort"] == "low"
    assert last["output_config"]["format"] == {"type": "json_schema", "schema": task().schema}
    assert "reasoning_effort" not in last


@each(kinds.AzureClassic)
def test_a_deployment_names_the_judge_unless_a_model_is_named(client: Client) -> None:
    server = client.server
    assert {exchange.path for exchange in server.bot.seen} == set()
    judge = client.judge()
    assert judge.identity.provider == "azure"
    assert {exchange.path for exchange in server.bot.seen} == {server.path}
    server.model = None  # type: ignore[assignment]
    assert client.judge(pin=JudgePin(allow_unpinned=True)).identity.model == "ours"
    with pytest.raises(JudgeError, match=r"ours is not pinned: .* behind the deployment"):
        client.judge(pin=JudgePin())
    bare = server.url.partition("?")[0]
    with pytest.raises(JudgeError, match=r"needs its version: add \?api-version="):
        HttpJudge(bare, "m")


@each(kinds.OpenRouter)
def test_what_a_host_said_is_in_the_message(client: Client, task: Any) -> None:
    judge = client.judge()
    client.server.behave = list(client.server.cases()["host busy"][0])
    verdict = finish(judge.ask(task()))
    assert "z-ai/glm is temporarily rate-limited upstream" in verdict.message
    assert verdict.attempts == 3


CHAT, AZURE = "chat/completions", "http://h/openai/deployments/a-b"
VERSION = "?api-version=2024-10-21"


@each_row(
    ("url", "asked", "header", "provider"),
    [
        ("http://h/v1", f"http://h/v1/{CHAT}", "Authorization", None),
        ("http://h/v1/messages", "http://h/v1/messages", "x-api-key", "anthropic"),
        ("http://h/a/v1/messages/", "http://h/a/v1/messages", "x-api-key", "anthropic"),
        (f"{AZURE}/{CHAT}{VERSION}&x=1", f"{AZURE}/{CHAT}{VERSION}", "api-key", "azure"),
        (f"{AZURE}{VERSION}", f"{AZURE}/{CHAT}{VERSION}", "api-key", "azure"),
        (
            f"http://h/openai/v1{VERSION}",
            f"http://h/openai/v1/{CHAT}{VERSION}",
            "Authorization",
            None,
        ),
    ],
)
def test_what_an_address_says(url: str, asked: str, header: str, provider: str | None) -> None:
    end = endpoint(url)
    assert (end.url, end.form.key[0], end.provider) == (asked, header, provider)


ODD: tuple[Any, ...] = (None, [], {}, "x", 0, -1, True, [None], [[]], {"error": {}}, {"text": 3})


def damaged(value: Any, random: Random) -> Any:
    """The value with one of its parts replaced by something odd."""
    if isinstance(value, dict) and value and random.random() < 0.8:
        name = random.choice(sorted(value))
        return {**value, name: damaged(value[name], random)}
    if isinstance(value, list) and value and random.random() < 0.8:
        place = random.randrange(len(value))
        return [*value[:place], damaged(value[place], random), *value[place + 1 :]]
    return random.choice(ODD)


@each(*kinds.KINDS)
def test_damage_to_a_reply_is_an_answer_or_a_named_error(client: Client) -> None:
    """Each part of each reply and of each error may be anything: 300 draws a server."""
    random, server = Random(29), client.server
    form = endpoint(server.url).form
    body = form.body(
        "m", [{"role": "user", "content": "x"}], {}, form.modes[0], {"max_tokens": 9000}
    )
    payloads = [reply(body) for replies, _ in server.cases().values() for reply in replies]
    for _, payload, _ in payloads:
        for _ in range(300 // len(payloads) + 1):
            broken = damaged(payload, random) if not isinstance(payload, bytes) else None
            answer = error = None
            try:
                answer = form.read(broken)
            except CallError as caught:
                error = caught
            if error is not None:
                assert failure_of(error) in FAILURES
                assert plain_words(error)
                refused_parameter(error, {"seed": 0})
            else:
                assert answer is not None
                assert isinstance(answer.text, str)
                assert answer.refusal is None or isinstance(answer.refusal, str)
