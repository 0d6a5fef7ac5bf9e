"""Prompts begin with what their calls share, in the order in which providers keep it in memory."""

from __future__ import annotations

import itertools
from typing import Any

from msgspec.structs import replace
from tests.rows import each_row

from judging.kinds import Material, make_task
from judging.protocols import ANTHROPIC, OPENAI
from records.verdicts import KINDS

SALT = b"s" * 32
ANSWER = Material(
    question="What is the fee?",
    answer="It is 5 euros. " * 20,
    reference="5 euros.",
    contexts=[{"id": "c1", "chunk_id": "k", "text": "The fee is 5 euros. " * 40}],
)
ITEMS = [[{"id": str(n), "text": f"Claim {n}."}] for n in (1, 2)]


def user_text(task: Any) -> str:
    return str(task.messages[1]["content"])


@each_row("name", ["groundedness", "context_recall"])
def test_blocks_of_one_answer_differ_in_what_is_asked_about_alone(name: str) -> None:
    """All long parts come before the first difference, which is the code of the numbered block."""
    kind = KINDS[name]
    part = kind.items
    assert part is not None
    tasks = [make_task(kind, replace(ANSWER, **{part: items}), salt=SALT) for items in ITEMS]
    first, second = map(user_text, tasks)
    assert tasks[0].messages[0] == tasks[1].messages[0]
    same = itertools.takewhile(lambda pair: pair[0] == pair[1], zip(first, second, strict=False))
    shared = "".join(left for left, _ in same)
    assert shared.rstrip("0123456789abcdef").endswith(f"<<<BEGIN {part} ")
    assert len(shared) > 0.5 * len(first)


def test_what_comes_first_for_a_server() -> None:
    """The form before the system prompt; at Anthropic nothing behind the mark is kept."""
    kind = KINDS["groundedness"]
    task = make_task(kind, replace(ANSWER, claims=ITEMS[0]), salt=SALT)
    system, user = (message["content"] for message in task.messages)
    body = OPENAI.body("m", task.messages, task.schema, "json_schema", {})
    form, rest = OPENAI.prefix(body).split(system)
    assert str(task.schema) in form
    assert rest == user
    body = ANTHROPIC.body("m", task.messages, task.schema, "tool", {})
    form, rest = ANTHROPIC.prefix(body).split(system)
    assert str(task.schema) in form
    assert rest == ""
