"""Where the judge is, and which it is by its name alone: addresses, dated and floating names."""

from __future__ import annotations

from typing import Any

import pytest
from tests.rows import each_row

from clients.http import RetryPolicy
from judging.identity import JudgeError, JudgePin, JudgeUnreachable, addresses
from records.verdicts import JudgeIdentity

DATED = "gpt-4o-2024-08-06 gpt-4-0613 claude-3-5-sonnet-20241022 mistral-large-2411"
DATED += " gemini-1.5-pro-002 deepseek/deepseek-chat-v3-0324 qwen3-235b-a22b-2507"
FLOATING = "gpt-4o chatgpt-4o-latest gpt-4o-latest-2024-08-06 gpt-4.1 o3-mini llama-3.1-405b"
FLOATING += " org/judge-8b-instruct latest"


@each_row("model", DATED.split())
def test_a_dated_name_is_a_pin(judge: Any, model: str) -> None:
    assert judge(model=model).identity == JudgeIdentity("unknown", model)


@each_row("model", FLOATING.split())
def test_a_floating_name_is_refused_in_one_sentence(judge: Any, model: str) -> None:
    with pytest.raises(JudgeError, match=f"the judge {model} is not pinned: ") as caught:
        judge(model=model)
    assert caught.value.message.endswith(", or accept this with --set unpinned=true.")
    assert caught.value.exit_code == 2
    assert judge(model=model, pin=JudgePin(revision="abc")).identity.strength == "revision"


def test_an_allowed_alias_is_noted_with_what_it_stands_for(fake_judge: Any, judge: Any) -> None:
    canary = {"wet": "no", "code": "zq-17-umber"}
    fake_judge.script("water", fake_judge.says(canary, fields={"model": "gpt-4o-2024-11-20"}))
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


def test_nobody_at_the_address(fake_judge: Any, judge: Any) -> None:
    fake_judge.close()
    quick = RetryPolicy(timeout=5, retries=0)
    with pytest.raises(JudgeUnreachable, match="the judge cannot be reached: Connection") as caught:
        judge(policy=quick)
    assert caught.value.exit_code == 3


def test_a_refused_key(fake_judge: Any, judge: Any) -> None:
    fake_judge.script("/api/version", fake_judge.fails(401))
    with pytest.raises(JudgeError, match=r"refuses the key .*--set api_key="):
        judge()


@each_row(
    ("url", "root", "base"),
    [
        ("http://h:1", "http://h:1", "http://h:1/v1"),
        ("http://h:1/", "http://h:1", "http://h:1/v1"),
        ("http://h:1/v1/", "http://h:1", "http://h:1/v1"),
        ("http://h/v1/chat/completions", "http://h", "http://h/v1"),
        ("https://h/api/v1", "https://h", "https://h/api/v1"),
        ("https://h/openai", "https://h/openai", "https://h/openai"),
    ],
)
def test_addresses(url: str, root: str, base: str) -> None:
    assert addresses(url) == (root, base)


@each_row("url", ["localhost:11434", "ftp://h/v1", "http://", ""])
def test_what_is_no_address(url: str) -> None:
    with pytest.raises(JudgeError, match="is not a URL such as"):
        addresses(url)
