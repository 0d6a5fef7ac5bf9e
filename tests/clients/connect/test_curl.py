"""A curl command as a request."""

from __future__ import annotations

from base64 import b64encode
from typing import Any

import pytest
from tests.rows import each_row

from clients.curl import parse_curl
from records.errors import StorageError

BASIC = {"Authorization": "Basic " + b64encode(b"me:pass").decode()}
FORM = {"Content-Type": "application/x-www-form-urlencoded"}


@each_row(
    ("command", "sends", "more"),
    [
        ("curl http://h:9/ask -d '{\"q\": 1}'", "POST http://h:9/ask", {"body": {"q": 1}}),
        (
            "curl -sS 'h:9/ask?q=a+b&k=3'",
            "GET http://h:9/ask",
            {"query": {"q": "a b", "k": "3"}, "body": None},
        ),
        (
            "curl -X PUT https://h/a \\\n  -H 'X-Key: abc' -H 'Content-Type: application/json' "
            "--data-raw '{}'",
            "PUT https://h/a",
            {"headers": {"X-Key": "abc"}},
        ),
        (
            "curl -G h/a --data-urlencode q=x -d k=2",
            "GET http://h/a",
            {"query": {"k": "2", "q": "x"}, "body": None},
        ),
        ('curl -XPOST --json \'{"q":"x"}\' --url=h/a', "POST http://h/a", {"body": {"q": "x"}}),
        (
            'curl h/a -H "Authorization: Bearer $KEY" -b s=1 --max-time 5 -d "{}"',
            "POST http://h/a",
            {"headers": {"Authorization": "Bearer ${KEY}", "Cookie": "s=1"}},
        ),
        (
            "curl h/a -d 'q=How+so%3F&k=3' --data-urlencode 'r=a b'",
            "POST http://h/a",
            {"headers": FORM, "body": {"q": "How so?", "k": "3", "r": "a b"}},
        ),
        ("curl -u me:pass h/a -d '{}'", "POST http://h/a", {"headers": BASIC}),
    ],
)
def test_what_a_command_sends(command: str, sends: str, more: dict[str, Any]) -> None:
    request = parse_curl(command)
    parts = {name: getattr(request, name) for name in ("headers", "query", "body")}
    assert f"{request.method} {request.url}" == sends
    assert parts == {"headers": {}, "query": {}, "body": {}} | more


@each_row(
    ("command", "words"),
    [
        ("curl 'h/a", "quotes do not match"),
        ("curl -d '{}'", "names no URL"),
        ("curl h/a -d hello", "neither JSON nor a form"),
        ("curl h/a -d '{q=1'", "neither JSON nor a form"),
        ("curl h/a -d '[1]'", "must be a JSON object"),
        ("curl h/a -d @body.json", "--body @FILE"),
        ("curl h/a -F file=@x", "-F has no place in a profile"),
        ("curl h/a --head", "--head has no place in a profile"),
        ("curl h/a -H", "-H has no value"),
        ("curl h/a --data-urlencode q@file", "name=value"),
    ],
)
def test_what_cannot_become_a_profile(command: str, words: str) -> None:
    with pytest.raises(StorageError, match=words):
        parse_curl(command)
