"""Counts the results of a run, also while it goes on: counts, errors by kind, latencies, tokens,
cost."""

from __future__ import annotations

import contextlib
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

from ragmetrics.pipeline import percentile
from records.results import UNREADABLE, RetrievedChunk, TestResult
from terminal.progress import progress
from terminal.tables import counted, printable

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table


STAGES = ("retrieve", "first_token", "generate", "guardrail_input", "guardrail_output", "total")


class RunTally:
    """Adds up results one at a time; memory is a number a stage and result."""

    def __init__(self, results: Iterable[TestResult] = ()) -> None:
        self.answered = self.abstained = self.unreadable = 0
        self.says_abstained = False
        """Whether an answer has a field that says if the bot abstained."""
        self.errors: Counter[str] = Counter()
        self.tokens: Counter[str] = Counter()
        self.cost: float | None = None
        self.cut_texts = False
        self.absent = 0
        """Answers without the list of passages that the profile maps."""
        self._latency: dict[str, array[float]] = {}
        for result in results:
            self.add(result)

    def add(self, result: TestResult) -> None:
        if result.status == "error":
            self.errors[result.error.kind if result.error else "unknown"] += 1
            return
        if result.status == UNREADABLE:
            self.unreadable += 1
            return
        self.absent += "retrieved" in (result.absent or {})
        self.says_abstained |= result.abstained is not None
        if result.abstained:
            self.abstained += 1
        else:
            self.answered += 1
        for stage, time in result.latency_ms.items():
            self._latency.setdefault(stage, array("d")).append(time)
        for name, count in result.usage.items():
            if isinstance(count, int) and not isinstance(count, bool):
                self.tokens[name] += count
        if result.cost_usd is not None:
            self.cost = (self.cost or 0.0) + result.cost_usd
        if not self.cut_texts:
            self.cut_texts = any(
                isinstance(chunk, RetrievedChunk) and chunk.truncated
                for chunk in result.retrieved or ()
            )

    def absent_words(self) -> str:
        """The number of answers without their passages, and its meaning."""
        calls = self.answered + self.abstained
        return (
            f"passages absent in {self.absent} of {counted(calls, 'answer')}, where metrics that "
            'need them failed. If the bot omits them when it finds nothing, write absent = "empty".'
        )

    @property
    def failed(self) -> int:
        return sum(self.errors.values())

    @property
    def total(self) -> int:
        return self.answered + self.abstained + self.failed + self.unreadable

    def latency(self) -> dict[str, dict[str, float]]:
        """p50 and p95 (nearest rank) in ms of each stage, known stages first."""
        order = {stage: position for position, stage in enumerate(STAGES)}
        stages = sorted(self._latency, key=lambda stage: (order.get(stage, len(order)), stage))
        return {
            stage: {"p50": percentile(times, 50), "p95": percentile(times, 95)}
            for stage in stages
            if (times := sorted(self._latency[stage]))
        }

    def to_dict(self) -> dict[str, Any]:
        """The same numbers as the table, for --json."""
        return {
            "results": self.total,
            "answered": self.answered,
            "abstained": self.abstained if self.says_abstained or not self.answered else None,
            "errors": dict(sorted(self.errors.items())),
            **({UNREADABLE: self.unreadable} if self.unreadable else {}),
            "latency_ms": self.latency(),
            "usage": dict(sorted(self.tokens.items())),
            "cost_usd": self.cost,
        }


def _outcomes(answered: int, abstained: int | None) -> list[tuple[str, str]]:
    """Whether the bot abstained is known only where it says so; scoring reads it from the words."""
    if abstained is None:
        return [("answered or abstained", f"{answered:,}")]
    return [("answered", f"{answered:,}"), ("abstained", f"{abstained:,}")]


def _rows(summary: dict[str, Any]) -> list[tuple[str, str]]:
    """The table's rows from the data that --json prints."""
    pairs = [
        ("results", f"{summary['results']:,}"),
        *_outcomes(summary["answered"], summary["abstained"]),
        ("errors", f"{sum(summary['errors'].values()):,}"),
    ]
    pairs += [(f"  {kind}", f"{count:,}") for kind, count in summary["errors"].items()]
    if unreadable := summary.get(UNREADABLE):
        pairs.append(("answers that could not be read", f"{unreadable:,}"))
    pairs += [
        (f"{stage}, p50 / p95", f"{times['p50']:,.1f} / {times['p95']:,.1f} ms")
        for stage, times in summary["latency_ms"].items()
    ]
    pairs += [(name, f"{count:,}") for name, count in summary["usage"].items()]
    if summary["cost_usd"] is not None:
        pairs.append(("cost", f"{summary['cost_usd']:.4f} USD"))
    return pairs


def table(summary: dict[str, Any], title: str) -> Table:
    """For the terminal. Names that the bot chose are shown as they are, never as markup."""
    from rich.table import Table
    from rich.text import Text

    # a narrower table would break the run's id
    shown = Table(title=Text(title), show_header=False, title_justify="left", min_width=len(title))
    shown.add_column(style="dim")
    shown.add_column(justify="right")
    for name, value in _rows(summary):
        shown.add_row(Text(printable(name)), Text(value))
    return shown


ResultStep = Callable[[TestResult], None]


@contextlib.contextmanager
def result_progress(
    console: Console, total: int | None, done: int, *, verbose: bool
) -> Iterator[ResultStep]:
    """Yields a function to call with each result; ``verbose``: a line for each error, too."""
    with progress(console, "asking", total, done) as step:

        def count(result: TestResult) -> None:
            if verbose and result.error is not None:
                error = result.error
                tries = f"(tries: {error.attempts})"
                line = f"{result.test_case_id}: {error.kind}: {error.message} {tries}"
                console.print(printable(line), style="red", soft_wrap=True)
            step(failed=result.status == "error")

        yield count
