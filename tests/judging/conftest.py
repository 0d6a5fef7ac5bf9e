"""A scripted judge, and answers to be judged."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from typing import Any

import orjson
import pytest

from judging.answers import JudgedAnswer
from judging.types import JudgeTask, JudgeVerdict
from records.verdicts import JudgeIdentity
from storage import RetrievedChunk, TestCase, TestResult

Script = Callable[[JudgeTask], Any]


class ScriptedJudge:
    """Answers by a function of the task: a reply, or the name of a failure. Notes every task."""

    def __init__(self, script: Script, model: str = "scripted") -> None:
        self.identity = JudgeIdentity("unknown", model, revision="1", strength="revision")
        self.script = script
        self.tasks: list[JudgeTask] = []

    async def ask(self, task: JudgeTask) -> JudgeVerdict:
        self.tasks.append(task)
        parts = [task.prompt.sha256, [dict(m) for m in task.key_messages], task.repeat]
        key = hashlib.sha256(orjson.dumps(parts)).hexdigest()
        said = self.script(task)
        if isinstance(said, str):
            return JudgeVerdict(key, None, said, f"scripted {said}", mode="json_schema", asks=1)
        data = {"notes": "", "manipulation": False} | said
        problems = list(task.check(data))
        if problems:
            return JudgeVerdict(key, None, "incomplete", problems[0], mode="json_schema", asks=1)
        return JudgeVerdict(key, data, raw=orjson.dumps(data).decode(), mode="json_schema", asks=1)


@pytest.fixture
def scripted() -> Callable[..., ScriptedJudge]:
    return ScriptedJudge


@pytest.fixture
def verdicts() -> Callable[..., Mapping[str, Any]]:
    """A reply from ``id=verdict`` or ``id=(verdict, quote, context)``."""

    def entry(name: str, said: Any) -> Mapping[str, Any]:
        verdict, quote, context = said if isinstance(said, tuple) else (said, "", "")
        shown = {"id": name.removeprefix("n"), "context": context, "quote": quote, "reason": ""}
        return shown | {"verdict": verdict}

    return lambda **said: {"verdicts": [entry(*item) for item in said.items()]}


FIRST = "The fee is 15 euros. It is paid at the north desk."
SECOND = "The tour begins at noon and takes two hours."


@pytest.fixture
def subject() -> Callable[..., JudgedAnswer]:
    """An answer of two claims with two chunks, unless told otherwise."""

    def make(
        answer: str | None = "The fee is 15 euros. The tour begins at noon.",
        chunks: tuple[str, ...] = (FIRST, SECOND),
        *,
        repeat: int = 0,
        abstained: bool | None = None,
        length: int | None = None,
        **case: Any,
    ) -> JudgedAnswer:
        base = {"id": "tour", "question": "What does the tour cost, and when does it begin?"}
        retrieved: list[RetrievedChunk | str] = [
            RetrievedChunk(f"k{n}", text=text, rank=n, text_length=length)
            for n, text in enumerate(chunks, start=1)
        ]
        result = TestResult(
            "tour", answer=answer, retrieved=retrieved, repeat=repeat, abstained=abstained
        )
        return JudgedAnswer(TestCase(**(base | case)), result)

    return make
