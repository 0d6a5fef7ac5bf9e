"""The options of a look at a folder of traces."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from records import opt


@dataclass(frozen=True, kw_only=True)
class WatchOptions:
    """The options of watch_traces.py; without counts nothing is drawn."""

    folder: Path = opt.argument(required=True)
    reference: str | None = opt.value(
        "Days that are normal, such as 2026-03-02..2026-04-26; frozen at first use.", metavar="A..B"
    )
    replace_reference: bool = opt.flag("Freeze --reference in place of the old one.")
    seen: bool = opt.flag("Mark the alarms of the last look as seen; a further rise is a new one.")
    canaries: Path | None = opt.value(
        "Folder of daily runs of a fixed set, to gate beside the traffic.",
        path="folder",
        metavar="FOLDER",
    )
    fail_on: str | None = opt.value("Exit 1 when a figure has an alarm.", choices=("alarm",))
    quiet: float = opt.value(
        "Wait so long after the last span of a trace.",
        names="--quiet quiet_seconds",
        default=60.0,
        low=0,
        high=86_400,
        metavar="SECONDS",
    )
    check_share: float = opt.value(
        "Share of traces, by hash, checked for unsupported claims and leaks.",
        default=0.05,
        low=0,
        high=1,
    )
    sampling: str = opt.value(
        "tail: the traces are those that a tail sampler kept; leave out the shares it distorts.",
        default="head",
        choices=("head", "tail"),
    )
    cases: int | None = opt.value("Draw N drafts worth labelling.", low=1, high=10_000)
    sample: int | None = opt.value("Draw about N traces uniformly.", low=1, high=1_000_000)
    output: Path | None = opt.value("Folder of the draws.", names="-o --output", path="folder")
    force: bool = opt.flag("Replace earlier draws in --output.")
    since: datetime | None = opt.value("Draw from the traces of this day on.")
    eval_set: Path = opt.eval_set()
    index: Path | None = opt.value(
        "The index file.  [default: eval/cache/watch/…, one for each folder]", path="file"
    )
    html: Path | None = opt.value("Write the figures as one HTML page.", path="file")
    as_json: bool = opt.as_json()
    silent: bool = opt.flag("Print only when there is an alarm.", names="-s --silent")
