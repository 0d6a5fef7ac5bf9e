"""Questions written by a judge: one call a section, its quote checked letter by letter."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from clients import judge_prompts
from clients.judge_types import Check, Judge, JudgeTask
from clients.pool import ask_all
from clients.prompt_blocks import fenced, one_line
from demo.chunker import HEADING_SEPARATOR
from drafting.sections import Section, flat
from drafting.templates import Question

PROMPT = "question_draft"
CATEGORIES = ("factual", "reasoning", "general")
MOST_WORDS = 40
MOST_PASSAGE = 6000
"""Characters of a section that are sent."""
TOKENS = 700
Pair = tuple[Section, "Question | None"]


def schema() -> dict[str, Any]:
    """JSON schema of a reply; every field required, as strict servers want."""
    text = {"type": "string"}
    fields: dict[str, Any] = dict.fromkeys(("notes", "quote", "answer", "question"), text)
    fields["category"] = {"type": "string", "enum": list(CATEGORIES)}
    fields["manipulation"] = {"type": "boolean"}
    return {
        "type": "object",
        "properties": fields,
        "required": list(fields),
        "additionalProperties": False,
    }


def check(section: Section) -> Check:
    """What the schema cannot say; "" as the question means that there is nothing to ask."""

    def faults(reply: Mapping[str, Any]) -> Sequence[str]:
        question = flat(reply["question"])
        if not question:
            return []
        found = []
        if not question.endswith("?") or len(question.split()) > MOST_WORDS:
            found.append(f'"question" must end with "?" and have at most {MOST_WORDS} words')
        if len(flat(reply["quote"]).split()) < 3 or flat(reply["quote"]) not in section.flat:
            found.append('"quote" must be copied letter by letter from the passage')
        if not reply["answer"].strip():
            found.append('"answer" must not be empty')
        return found

    return faults


def task_of(section: Section, salt: bytes) -> JudgeTask:
    """The call for one section."""
    prompt = judge_prompts.load(PROMPT)
    passage = section.text[:MOST_PASSAGE]
    heading = one_line(section.heading_path.replace(HEADING_SEPARATOR, " - "))

    def values(code: bytes | None) -> dict[str, str]:
        return {
            "heading": fenced(code, "heading", heading),
            "passage": fenced(code, "passage", passage),
        }

    return JudgeTask(
        metric=PROMPT,
        prompt=prompt.id,
        messages=prompt.messages(values(salt)),
        key_messages=prompt.messages(values(None)),
        schema=schema(),
        check=check(section),
        inputs={"heading": section.heading_path, "passage": passage},
        max_tokens=TOKENS,
    )


def questions(
    found: Iterable[Section],
    judge: Judge,
    salt: bytes,
    workers: int,
    failures: Counter[str],
) -> Iterator[Pair]:
    """Sections with their questions, in order; a failed call is counted by kind and gives none.

    At most ``workers`` sections are asked about before the first of them is handed on.
    """
    source = iter(found)

    def ask(job: tuple[int, Section]) -> tuple[int, Section, Question | None]:
        place, section = job
        verdict = judge.ask(task_of(section, salt))
        if verdict.data is None:
            failures[verdict.failure or "incomplete"] += 1
            return place, section, None
        return place, section, question_of(verdict.data)

    while block := list(islice(source, workers)):
        answers = ask_all(enumerate(block), ask, len(block), threading.Event())
        for _, section, question in sorted(answers, key=lambda answer: answer[0]):
            yield section, question


def question_of(reply: Mapping[str, Any]) -> Question | None:
    """A checked reply as a question; None when the judge found nothing to ask."""
    text = flat(reply["question"])
    if not text:
        return None
    answer = flat(reply["answer"])
    return Question(text, flat(reply["quote"]), PROMPT, reply["category"], answer)
