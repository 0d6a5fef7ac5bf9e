"""Candidates of contradictions put to a judge: in both orders, with a quote from each passage."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from clients.http import ask_all
from extras.audit.findings import Finding, Quote
from judging.connect import Connection, JudgeOptions, connect
from judging.cost import CostEstimate
from judging.kinds import Material, make_task
from judging.opinion import ask
from ragmetrics.text.quotes import quoted
from records.errors import StorageError
from records.verdicts import CallKind
from terminal.progress import progress

if TYPE_CHECKING:
    from rich.console import Console

CONTRADICTS = "contradicts"
REJECTED = "rejected"
CALL = CallKind(
    "audit_contradiction",
    (CONTRADICTS, "compatible"),
    "contexts",
    positive=CONTRADICTS,
    sources=("contexts",),
    prompts=Path(__file__).with_name("prompts"),
)


def material_of(pair: Finding, reverse: bool) -> Material:
    """Both passages, in one of the two orders."""
    quotes = pair.quotes[::-1] if reverse else pair.quotes
    contexts = [
        {"id": str(number), "chunk_id": str(quote.place), "text": f"{quote.place}\n\n{quote.text}"}
        for number, quote in enumerate(quotes, 1)
    ]
    return Material(contexts=contexts)


def confirm(
    pairs: Sequence[Finding],
    judge: JudgeOptions,
    agree: Callable[[CostEstimate], bool],
    console: Console | None = None,
) -> list[Finding | str] | None:
    """The contradictions that a judge confirms in both orders; None if nothing was to be asked.

    In place of another pair there is REJECTED, or the kind of a failure. ``agree`` is given the
    estimate before anything is sent. ``console``: where progress is shown. Raises StorageError for
    a judge that only has rules.
    """
    if judge.by_rules:
        raise StorageError(
            "--judge: the embedded rules cannot decide about contradictions; name a judge of "
            "eval/judges, or a server."
        )
    with connect(judge, ask_nothing=True) as link:
        tasks = (
            make_task(CALL, material_of(pair, reverse), salt=link.salt, strict=True)
            for pair in pairs
            for reverse in (False, True)
        )
        expected = link.estimate(tasks)
    if not agree(expected):
        return None
    with connect(judge) as link:

        async def job(number: int) -> tuple[int, Finding | str]:
            return number, await _verdict(pairs[number], link)

        verdicts = {}
        with progress(console, "asking the judge", len(pairs)) as step:
            for number, verdict in ask_all(range(len(pairs)), job, judge.concurrency, link.stop):
                verdicts[number] = verdict
                step()
    return [verdicts[number] for number in sorted(verdicts)]


async def _verdict(pair: Finding, link: Connection) -> Finding | str:
    """The contradiction with the judge's quotes; else REJECTED, or the kind of a failure."""
    quotes: tuple[Quote, ...] = ()
    for reverse in (False, True):
        material = material_of(pair, reverse)
        opinion = await ask(link.judge, CALL, material, salt=link.salt)
        if opinion.failure is not None:
            return opinion.failure
        own = []
        passages = pair.quotes[::-1] if reverse else pair.quotes
        for entry, passage in zip(opinion.entries, passages, strict=True):
            if entry["verdict"] != CONTRADICTS or not quoted(entry["quote"], passage.text):
                return REJECTED
            own.append(Quote(passage.place, entry["quote"]))
        quotes = quotes or tuple(own)
    return Finding("contradiction", f"confirmed by a judge: {pair.why}", quotes, (), pair.harm)
