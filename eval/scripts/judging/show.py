"""The terminal output of the judging scripts: the section's notes, bad cases, the bill."""

from __future__ import annotations

from typing import TYPE_CHECKING

from terminal.tables import counted

if TYPE_CHECKING:
    from rich.console import Console

    from judging.cost import CostEstimate, JudgingTotals
    from judging.run import JudgingOutcome


def bill(outcome: JudgingOutcome, totals: JudgingTotals) -> list[str]:
    """The verdicts and cost of this call, in lines for stderr."""
    from judging.types import FAILURES

    parts = [counted(totals.verdicts, "verdict"), f"{totals.cached:,} from the cache"]
    parts += [counted(totals.calls, "call")] if totals.calls else []
    tokens = totals.usage.total_tokens
    parts += [f"{tokens:,} tokens"] if tokens is not None else []
    parts += [f"${totals.cost_usd:,.4f}"] if totals.cost_usd else []
    parts += [f"{outcome.reused:,} that existed already"] if outcome.reused else []
    lines = [f"{counted(outcome.answers, 'answer')} judged: {', '.join(parts)}."]
    lines += [
        f"{counted(count, 'judgement')} failed ({kind}): {FAILURES.get(kind, kind)}."
        for kind, count in outcome.failures.most_common()
    ]
    if outcome.failures["truncated"]:
        lines.append(
            "A model that thinks before it answers needs more tokens: --set thinking_tokens=8000."
        )
    if outcome.unverified:
        lines.append(
            f"{counted(outcome.unverified, 'verdict')} had a quote that is in none of the texts; "
            "they count as not supported, in pairs as undecided."
        )
    if outcome.dropped_ids:
        dropped = counted(outcome.dropped_ids, "verdict")
        lines.append(f"{dropped} on items that were not asked: dropped.")
    return lines


def estimate_line(estimate: CostEstimate, max_cost: float | None) -> str:
    """The expected cost, before anything is sent."""
    line = f"{counted(estimate.calls, 'call')} ({estimate.cached:,} more are in the cache)"
    if estimate.cost_usd is None or estimate.most_cost_usd is None:
        return f"{line}; without prices of each judge the cost is not known."
    line += f", about ${estimate.cost_usd:,.4f}, at most ${estimate.most_cost_usd:,.4f}"
    return f"{line}; --max-cost {max_cost:g} stops it." if max_cost is not None else f"{line}."


def print_estimate(console: Console, estimate: CostEstimate) -> None:
    """Print the expected cost."""
    from terminal.tables import print_rows

    def money(value: float | None) -> str:
        return "no prices given" if value is None else f"${value:,.4f}"

    rows = [
        ("verdicts wanted", f"{estimate.tasks:,}"),
        ("in the cache", f"{estimate.cached:,}"),
        ("calls", f"{estimate.calls:,}"),
        ("prompt tokens, about", f"{estimate.prompt_tokens:,}"),
        ("of them from the provider's memory, about", f"{estimate.remembered_tokens:,}"),
        ("completion tokens, about", f"{estimate.completion_tokens:,}"),
        ("completion tokens, at most", f"{estimate.most_completion_tokens:,}"),
        ("cost, about", money(estimate.cost_usd)),
        ("cost, at most", money(estimate.most_cost_usd)),
    ]
    if not estimate.remembered_tokens:
        del rows[4]
    print_rows(console, ("nothing was asked", ""), rows)
