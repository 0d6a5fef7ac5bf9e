"""The labelled prompts of a safety label file, asked once each and kept in a file of their own."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from clients.bot import ChatApi, Question
from clients.http import ask_all
from records.files import JsonlWriter
from records.results import TestResult, iter_results
from records.runs import SAFETY_PARTIAL, SAFETY_RESULTS
from records.syncing import move_into_place


class SafetyPrompt(NamedTuple):
    """A labelled prompt: its id and its text."""

    id: str
    text: str


def ask_labelled(
    api: ChatApi,
    prompts: Sequence[SafetyPrompt],
    folder: Path,
    *,
    concurrency: int,
    seed: int = 0,
    step: Callable[[TestResult], None] = lambda result: None,
) -> int:
    """Ask the prompts that have no answer yet; write safety_results.jsonl. Returns the number of
    errors.

    What an earlier, broken-off call got is kept (its errors are asked again), so a kill loses the
    calls in flight. Passages are kept as 200 characters: guardrail scores are what is wanted.
    """
    partial, target = folder / SAFETY_PARTIAL, folder / SAFETY_RESULTS
    texts = {prompt.id: prompt.text for prompt in prompts}
    results: dict[str, TestResult] = {}
    for path in (target, partial):
        for result in iter_results(path) if path.exists() else ():
            same = texts.get(result.test_case_id) == result.question
            if same and result.status == "ok":
                results[result.test_case_id] = result
    missing = [prompt for prompt in prompts if prompt.id not in results]

    async def ask(prompt: SafetyPrompt) -> TestResult:
        question = Question(prompt.id, prompt.text, seed=seed, run_id=folder.name)
        return (await api.ask(question)).result

    answers = ask_all(missing, ask, min(concurrency, max(1, len(missing))), api.stop)
    with JsonlWriter(partial) as writer, contextlib.closing(answers):
        for result in answers:
            writer.write(result.to_dict())
            results[result.test_case_id] = result
            step(result)
    _write_ordered([results[prompt.id] for prompt in prompts], partial, target)
    return sum(result.status == "error" for result in results.values())


def _write_ordered(results: Sequence[TestResult], partial: Path, target: Path) -> None:
    """Put the results at ``target`` in one step; the partial file goes after it."""
    ordered = target.with_suffix(".ordered")
    ordered.unlink(missing_ok=True)
    with JsonlWriter(ordered) as writer:
        for result in results:
            writer.write(result.to_dict())
        writer.sync()
    move_into_place(ordered, target)
    partial.unlink()
