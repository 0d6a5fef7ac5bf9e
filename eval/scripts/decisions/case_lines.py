"""The line of each case in metrics.json: its primary scores, then whether it fails and why.

Written after each section that is scored; read where git holds metrics.json alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from decisions.case_rules import Basis, CaseRules, basis_of_sections, read_case_rules
from decisions.case_verdict import UNREADABLE_BIT, Ruling, RunVerdicts, read_verdicts
from decisions.primary import MOST_CASES, read_primary
from records.asked import asked_ids
from records.errors import StorageError
from records.files import locked
from records.fingerprints import read_short
from records.id_numbers import id_number
from records.metrics import (
    CASE_RULE,
    CASE_VERDICTS,
    StoredVerdicts,
    read_sections,
    read_summary,
    update_primary,
)
from records.results import UNREADABLE
from records.run import Run
from records.runs import METRICS, read_config

OK, FAILS = "ok", "fails"

SHA256, DEPTH = "sha256", "depth"
"""Members of ``CASE_RULE``."""


def update_case_lines(folder: Path, eval_set: Path) -> None:
    """The line of every asked case, of all that is scored by now, into metrics.json.

    Raises StorageError for damaged score lines or rules.
    """
    head = read_summary(folder / METRICS)
    asked = None
    if head.missing and head.asked is not None and head.asked <= MOST_CASES:
        asked = asked_ids(read_config(folder), eval_set)
    write_case_lines(folder, asked, large=(head.cases or 0) > MOST_CASES)


def write_case_lines(
    folder: Path, asked: Sequence[str] | None = None, *, large: bool = False
) -> None:
    """Put the primary scores and verdicts of a scored run's cases into its metrics.json; a
    ``large`` set has none there.

    ``asked``: the ids of the cases that were asked; those without a result get a line, too. Of
    several scorers at once the last one sees what all have written: scores are read under the lock
    of the file. Raises StorageError for damaged score lines or rules.
    """
    with locked(folder / METRICS):
        table = Run(folder)
        scores = None if large else read_primary(folder, asked=asked or (), table=table)
        if scores is None or len(scores.case_ids) > MOST_CASES:
            update_primary(folder, (), {})
            return
        rows = {
            case_id: [None if value != value else value for value in row]
            for case_id, row in zip(scores.case_ids, scores.values.tolist(), strict=True)
        }
        run = read_verdicts(folder, read_case_rules(), table=table)
        sections = {name.partition(".")[0] for name in scores.names}
        update_primary(folder, scores.names, rows, _stored(run, rows), read_short(folder, sections))


def _stored(run: RunVerdicts, case_ids: Iterable[str]) -> StoredVerdicts:
    ends: dict[str, tuple[str, ...]] = {}
    for case_id in case_ids:
        if (verdict := run.verdict(case_id)) is not None:
            ends[case_id] = (FAILS, verdict.reasons[0].name) if verdict.fails else (OK,)
            if not verdict.measured:
                ends[case_id] = (UNREADABLE,)
    return StoredVerdicts({SHA256: run.ruling.sha256, DEPTH: run.ruling.depth}, ends)


class CommittedVerdicts:
    """The verdicts on cases in a metrics.json alone, or in a report that names one.

    ``ruling``: by which the verdicts were given. ``missing``: why there are none, in words.
    """

    def __init__(self, source: Path, rules: CaseRules) -> None:
        path = source / METRICS if source.is_dir() else source
        metrics = read_sections(path)
        rule = metrics.get(CASE_RULE) or {}
        self._ends: Mapping[str, Sequence[str]] = metrics.get(CASE_VERDICTS) or {}
        basis = basis_of_sections(metrics.get("sections", {}), _depth(path, rule))
        self.ruling = Ruling(rules, basis)
        self.missing = ""
        if not self._ends:
            self.missing = f"{path} does not say which cases fail; score that run again"
        elif rule.get(SHA256) != rules.sha256:
            self.missing = (
                "the rules by which a case fails are not those of the baseline ([cases] of "
                "targets.toml, or of another version); score that run again"
            )

    def differs(self, shared: Basis) -> str:
        """The reason why the shared basis of both runs would give other verdicts; "" if it would
        not."""
        own, both = self.ruling, Ruling(self.ruling.case_rules, shared)
        if self.missing:
            return self.missing
        if own.gold_within != both.gold_within:
            return (
                f"gold counted within {_first(own.gold_within)} in the baseline, and counts within "
                f"{_first(both.gold_within)} here"
            )
        if own.deciding != both.deciding:
            return "the runs were scored or judged differently, and the baseline has no score lines"
        return ""

    def by(self, basis: Basis) -> RunVerdicts:
        """As the verdicts of a run, an answer for each case; none where there are none to give."""
        run = RunVerdicts(Ruling(self.ruling.case_rules, basis))
        bits = {rule.name: 1 << place for place, rule in enumerate(run.ruling.rules)}
        for case_id, end in self._ends.items() if not self.differs(basis) else ():
            run.number(id_number(case_id), 0)
            run.broken[-1] = bits.get(end[1], 0) if end[0] == FAILS and len(end) > 1 else 0
            if end[0] == UNREADABLE:
                run.broken[-1] = UNREADABLE_BIT
        return run


def _depth(path: Path, rule: Mapping[str, Any]) -> int | None:
    depth = rule.get(DEPTH)
    if depth is not None and (not isinstance(depth, int) or depth < 1):
        raise StorageError(f"{path}: {CASE_RULE}: {DEPTH} is no number of passages.")
    return depth


def _first(depth: int | None) -> str:
    return "all passages" if depth is None else f"the first {depth}"
