"""Whatever a bot sends, nothing breaks: not its description, its complaints, nor its answers."""

from __future__ import annotations

import json
import re
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.bots.query_engine import OPENAPI, query

from clients.expressions import compile_path
from clients.guess import propose
from clients.reply_form import guess_stream, tree
from clients.shapes import corrected, known_shapes, openapi_shapes, template

KEYS = st.sampled_from(
    tuple(
        re.findall(
            r"\S+",
            "answer text sources id score source usage tokens event type delta detail loc msg error"
            " latency content schema $ref properties required anyOf messages query in name url enum"
            " done x-y",
        )
    )
)
TEXTS = st.sampled_from(
    ("", "a b c d e f", "shop/a.md", "[1]", "query", "#/paths", "'query' is required", "it's")
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 10**12) | st.floats(allow_nan=False) | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=14,
)


COMPLAINT = {"detail": [{"loc": ["body", "query"], "type": "missing", "msg": "Field required"}]}
ANSWER = query({"query": "late returns", "tenant": "shop"}, {}).body
EVENT = {"type": "token", "choices": [{"delta": {"content": "It"}}]}


@st.composite
def damaged(draw: st.DrawFn, whole: Any) -> Any:
    """A sound value in which one place, at any depth, holds anything."""
    if isinstance(whole, (dict, list)) and whole and draw(st.integers(0, 5)):
        keys = list(whole) if isinstance(whole, dict) else range(len(whole))
        key = draw(st.sampled_from(keys))
        changed: Any = whole.copy()
        changed[key] = draw(damaged(whole[key]))
        return changed
    return draw(JSON)


@settings(max_examples=60)
@given(JSON | damaged(OPENAPI) | damaged(COMPLAINT))
def test_descriptions_and_complaints(value: Any) -> None:
    for shape in openapi_shapes(value, "/"):
        assert shape.path
    shape = known_shapes("/ask")[0]
    better = corrected(shape, json.dumps(value).encode())
    assert better is None or better.path == "/ask"
    assert json.dumps(template(value, "a"))


@settings(max_examples=60)
@given(st.lists(JSON | damaged(ANSWER), min_size=1, max_size=3))
def test_answers(payloads: list[Any]) -> None:
    """Every proposed path is one that a profile can have."""
    proposal = propose(payloads, ["Why?"], seconds=[0.1] * len(payloads))
    for table in proposal.tables.values():
        for path in table.values():
            compile_path(path)
    for payload in payloads:
        assert tree(payload) is not None


@settings(max_examples=60)
@given(
    st.lists(JSON | damaged(EVENT), min_size=1, max_size=4),
    st.sampled_from(["data: %s\n\n", "%s\n"]),
)
def test_streams(events: list[Any], form: str) -> None:
    body = "".join(form % json.dumps(event) for event in events).encode()
    for key, path in (guess_stream(body, "") or {}).items():
        if key != "stream" and path != "[DONE]":
            compile_path(path)
