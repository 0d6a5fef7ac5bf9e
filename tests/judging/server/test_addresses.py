"""Where the judge is: addresses, and what is said when nobody answers there."""

from __future__ import annotations

from typing import Any

import pytest
from tests.rows import each_row

from clients.http import RetryPolicy
from judging.identity import JudgeError, JudgeUnreachable, addresses


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
