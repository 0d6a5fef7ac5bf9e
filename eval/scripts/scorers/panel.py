"""Measures how far the judges of a panel agree, besides the metrics that their votes decide."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ragmetrics.stats.agreement import Level, krippendorff_alpha
from records.judgements import Calls
from records.rubrics import PREFIX
from records.verdicts import CallKind

if TYPE_CHECKING:
    from rich.console import Console

Votes = Sequence[str | None]


def votes_of(calls: Calls) -> dict[str, dict[str, list[Votes]]]:
    """Return a panel's votes from an answer's evidence; {} for a single judge. By call, a list per
    judged item, a vote per member."""
    found = {
        name: [votes for part in call.extra("votes") for votes in part.values()]
        for name, call in calls.items()
    }
    said = {name: votes for name, votes in found.items() if votes}
    return {"votes": said} if said else {}


class PanelAgreement:
    """Gathers the votes of all answers. ``judge``: as in config.json."""

    def __init__(self, judge: Mapping[str, Any]) -> None:
        self._members = judge.get("members") or ()
        self._votes: dict[str, list[Votes]] = defaultdict(list)
        self._failed: Counter[str] = Counter()

    def add(self, evidence: Mapping[str, Any]) -> None:
        """Add the evidence of one answer's scores."""
        for name, votes in (evidence.get("votes") or {}).items():
            self._votes[name] += votes
        for name, why in (evidence.get("failed") or {}).items():
            self._failed[name] += why == "no_majority"

    def section(
        self, calls_of: Mapping[str, Sequence[str]], kinds: Mapping[str, CallKind]
    ) -> dict[str, Any]:
        """``panel`` of a section: its judges, and by metric the lowest alpha of its calls; {} for a
        single judge. ``calls_of``: the calls that each metric is counted from."""
        if not self._members:
            return {}
        of_call = {name: self._agreement(name, kinds[name]) for name in self._votes}
        agreement = {}
        for metric, calls in calls_of.items():
            rows = [of_call[name] for name in calls if name in of_call]
            if rows:
                agreement[metric] = min(
                    rows, key=lambda row: 2 if row["alpha"] is None else row["alpha"]
                )
        judges = [member["identity"]["model"] for member in self._members]
        return {"panel": {"judges": judges, "agreement": agreement}}

    def _agreement(self, name: str, kind: CallKind) -> dict[str, Any]:
        votes = self._votes[name]
        level: Level = "ordinal" if kind.scale else "nominal"
        units: list[list[float | str | None]] = [list(unit) for unit in votes]
        if kind.scale:
            rank = {label: float(place) for place, label in enumerate(kind.scale, 1)}
            units = [[rank.get(vote or "") for vote in unit] for unit in votes]
        return {
            "alpha": krippendorff_alpha(units, level),
            "level": level,
            "items": len(votes),
            "split": sum(len({*unit} - {None}) > 1 for unit in votes),
            "missing_votes": sum(vote is None for unit in votes for vote in unit),
            "no_majority": self._failed[name.removeprefix(PREFIX)],
        }


def print_panel(console: Console, section: Mapping[str, Any]) -> None:
    """The agreement of a panel's judges by metric; nothing for a single judge."""
    from terminal.page import number
    from terminal.tables import plain, print_rows

    if not (panel := section.get("panel")):
        return
    rows = [
        (
            plain(name),
            f"{number(row['alpha'])} ({row['level']})",
            f"{row['split']} of {row['items']}",
            str(row["missing_votes"]),
            str(row["no_majority"]),
        )
        for name, row in panel["agreement"].items()
    ]
    console.print(f"A panel of {', '.join(map(plain, panel['judges']))}:")
    head = ("metric", "alpha between judges", "judges split on", "votes missing", "no majority")
    print_rows(console, head, rows)
