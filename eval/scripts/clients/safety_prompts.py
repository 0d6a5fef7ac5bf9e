"""Asking the bot the labelled prompts of safety_labels.jsonl, beside the cases of the set.

The answers stand in safety_results.jsonl of the run folder, a line a prompt in the order of the
label file: they are no cases of the set, so no scorer of answers sees them, but score_safety reads
there what the bot's own guardrail said.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from clients.bot import ChatApi, Question
from clients.http import ask_all
from records.files import JsonlWriter, cut_torn_tail
from records.results import TestResult, iter_results

FILE = "safety_results.jsonl"

PARTIAL = "safety_results.partial.jsonl"


class Prompt(NamedTuple):
    """A labelled prompt: its id and its text."""

    id: str
    text: str


def ask_prompts(
    api: ChatApi,
    prompts: Sequence[Prompt],
    folder: Path,
    *,
    concurrency: int,
    seed: int = 0,
    step: Callable[[TestResult], None] = lambda result: None,
) -> int:
    """Ask what has no answer yet; write safety_results.jsonl. Returns the number of errors.

    What an earlier, broken-off call got is kept (its errors are asked again), so a kill loses the
    calls in flight. Passages are kept as 200 characters: guardrail scores are what is wanted.
    """
    partial, target = folder / PARTIAL, folder / FILE
    cut_torn_tail(partial)
    wanted = {prompt.id: prompt.text for prompt in prompts}
    found: dict[str, TestResult] = {}
    for path in (target, partial):
        for result in iter_results(path) if path.exists() else ():
            same = wanted.get(result.test_case_id) == result.question
            if same and result.status == "ok":
                found[result.test_case_id] = result
    missing = [prompt for prompt in prompts if prompt.id not in found]
    answers = ask_all(
        missing,
        lambda prompt: api.ask(Question(prompt.id, prompt.text, seed=seed)).result,
        min(concurrency, max(1, len(missing))),
        api.stop,
    )
    with JsonlWriter(partial) as writer, contextlib.closing(answers):
        for result in answers:
            writer.write(result.to_dict())
            found[result.test_case_id] = result
            step(result)
    _write_ordered([found[prompt.id] for prompt in prompts], partial, target)
    return sum(result.status == "error" for result in found.values())


def _write_ordered(results: Sequence[TestResult], partial: Path, target: Path) -> None:
    """Put the results at ``target`` in one step; the partial file goes after it."""
    ordered = target.with_suffix(".ordered")
    ordered.unlink(missing_ok=True)
    with JsonlWriter(ordered) as writer:
        for result in results:
            writer.write(result.to_dict())
        writer.sync()
    os.replace(ordered, target)
    partial.unlink()
