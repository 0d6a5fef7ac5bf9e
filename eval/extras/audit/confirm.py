"""Candidates of contradictions put to a judge: in both orders, with a quote from each passage."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from clients.http import ask_all
from extras.audit.findings import Finding, Quote
from judging.connect import Connection, JudgeOptions, connect
from judging.cost import CostEstimate
from judging.kinds import Material, make_task
from judging.opinion import ask
from ragmetrics.text.quotes import quoted
from records.errors import StorageError
from records.verdicts import CallKind

CONTRADICTS = "contradicts"
CALL = CallKind(
    "audit_contradiction",
    (CONTRADICTS, "compatible"),
    "contexts",
    positive=CONTRADICTS,
    sources=("contexts",),
    prompts=Path(__file__).with_name("prompts"),
)


@dataclass
class JudgedPairs:
    """What a judge confirmed of the candidates. ``failures``: failed calls by kind."""

    confirmed: list[Finding] = field(default_factory=list)
    rejected: int = 0
    failures: Counter[str] = field(default_factory=Counter)


def material_of(pair: Finding, reverse: bool) -> Material:
    """Both passages, in one of the two orders."""
    quotes = pair.quotes[::-1] if reverse else pair.quotes
    contexts = [
        {"id": str(number), "chunk_id": str(quote.place), "text": f"{quote.place}\n\n{quote.text}"}
        for number, quote in enumerate(quotes, 1)
    ]
    return Material(contexts=contexts)


def confirm(
    pairs: Sequence[Finding], judge: JudgeOptions, agree: Callable[[CostEstimate], bool]
) -> JudgedPairs | None:
    """The pairs that a judge calls contradictions in both orders; None if nothing was to be asked.

    ``agree`` is given the estimate before anything is sent. Raises StorageError for a judge that
    only has rules.
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
        return _asked(pairs, link, judge.concurrency)


def _asked(pairs: Sequence[Finding], link: Connection, concurrency: int) -> JudgedPairs:
    outcome = JudgedPairs()

    async def job(number: int) -> tuple[int, Finding | str]:
        return number, await _verdict(pairs[number], link)

    verdicts = dict(ask_all(range(len(pairs)), job, concurrency, link.stop))
    for number in sorted(verdicts):
        verdict = verdicts[number]
        if isinstance(verdict, Finding):
            outcome.confirmed.append(verdict)
        elif verdict == "rejected":
            outcome.rejected += 1
        else:
            outcome.failures[verdict] += 1
    return outcome


async def _verdict(pair: Finding, link: Connection) -> Finding | str:
    """The contradiction with the judge's quotes; else ``rejected``, or the kind of a failure."""
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
                return "rejected"
            own.append(Quote(passage.place, entry["quote"]))
        quotes = quotes or tuple(own)
    return Finding("contradiction", f"confirmed by a judge: {pair.why}", quotes, (), pair.harm)
