"""A judge that is known by its name alone: dated names, floating ones, the only model there is."""

from __future__ import annotations

from typing import Any

import pytest

from judging.identity import JudgeError, JudgePin
from records.verdicts import JudgeIdentity


@pytest.mark.parametrize(
    "model",
    [
        "gpt-4o-2024-08-06",
        "gpt-4-0613",
        "claude-3-5-sonnet-20241022",
        "mistral-large-2411",
        "gemini-1.5-pro-002",
        "deepseek/deepseek-chat-v3-0324",
        "qwen3-235b-a22b-2507",
    ],
)
def test_a_dated_name_is_a_pin(judge: Any, model: str) -> None:
    assert judge(model=model).identity == JudgeIdentity("unknown", model)


@pytest.mark.parametrize(
    "model",
    [
        "gpt-4o",
        "chatgpt-4o-latest",
        "gpt-4o-latest-2024-08-06",
        "gpt-4.1",
        "o3-mini",
        "llama-3.1-405b",
        "org/judge-8b-instruct",
        "latest",
    ],
)
def test_a_floating_name_is_refused_in_one_sentence(judge: Any, model: str) -> None:
    with pytest.raises(JudgeError, match=f"the judge {model} is not pinned: ") as caught:
        judge(model=model)
    assert caught.value.message.endswith(", or accept this with --set unpinned=true.")
    assert caught.value.exit_code == 2
    assert judge(model=model, pin=JudgePin(revision="abc")).identity.strength == "revision"


def test_an_allowed_alias_is_noted_with_what_it_stands_for(
    fake_judge: Any, judge: Any, good: Any
) -> None:
    fields = {"fields": {"model": "gpt-4o-2024-11-20"}}
    canary = {"wet": "no", "code": "zq-17-umber"}
    fake_judge.script("water", fake_judge.says(canary, **fields))
    identity = judge(model="gpt-4o", pin=JudgePin(allow_unpinned=True)).identity
    assert identity == JudgeIdentity("unknown", "gpt-4o", revision="gpt-4o-2024-11-20")


def test_the_only_model_need_not_be_named(fake_judge: Any, judge: Any) -> None:
    fake_judge.resources = {"/v1/models": {"data": [{"id": "a-2024-01-01"}]}}
    assert judge(model=None).identity.model == "a-2024-01-01"
    fake_judge.resources = {"/v1/models": {"data": [{"id": "b"}, {"id": "a"}]}}
    with pytest.raises(JudgeError, match="with --model; the server has: a, b"):
        judge(model=None)


def test_what_a_server_says_cannot_steer_the_terminal(fake_judge: Any, judge: Any) -> None:
    fake_judge.resources = {"/v1/models": {"data": [{"id": "\x1b[31mred\x07\nname"}, {"id": "b"}]}}
    with pytest.raises(JudgeError, match=r"the server has:  \[31mred  name, b\.$"):
        judge(model=None)
