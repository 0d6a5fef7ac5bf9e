"""The block of a run's report: what the latest audit found beside the failing cases."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import orjson

from decisions.case_verdict import read_verdicts
from extras.audit.audit import LAST_AUDIT
from extras.audit.findings import KINDS
from extras.audit.passages import Place
from records.run import Run
from records.runs import CACHE_DIR, scored_sections
from terminal.page import Block, CaseRef, Heading, Prose, Quoted

SAYS = {"gold": "its gold", "near_double": "its passages", "stale": "its passages"}
"""What of a case a finding is about, where that is not said by the kind."""


def _latest(path: Path) -> dict[str, Any] | None:
    """The latest audit; None where the file, which can be made anew, is damaged or older."""
    try:
        report = orjson.loads(path.read_bytes())
    except ValueError:
        return None
    keys = {"schema", "set_sha256", "vault", "findings"}
    return report if isinstance(report, dict) and report.keys() >= keys else None


def _places(finding: dict[str, Any]) -> list[str]:
    """The places of a finding about several passages, each once."""
    places = [str(Place(**quote["place"])) for quote in finding["quotes"]]
    return list(dict.fromkeys(places)) if len(places) > 1 else []


def blocks(runs: Sequence[Run]) -> list[Block]:
    """Findings that touch failing cases of the last run; none without an audit or such a case."""
    path, run = CACHE_DIR / LAST_AUDIT, runs[-1]
    if not path.exists() or not scored_sections(run.folder):
        return []
    report = _latest(path)
    if report is None or report["set_sha256"] != run.config.dataset.get("sha256"):
        return []  # its cases are another set's
    verdicts = read_verdicts(run.folder, table=run)
    lines: list[Block] = []
    for finding in report["findings"]:
        for case_id in finding["cases"]:
            verdict = verdicts.verdict(case_id)
            if verdict is not None and verdict.fails:
                what = SAYS.get(finding["kind"], KINDS[finding["kind"]][0].lower())
                why = Quoted("; ".join([finding["why"], *_places(finding)]))
                lines.append(Prose((CaseRef(case_id), f": {what}: ", why), item=1))
    if not lines:
        return []
    about = f"The latest audit of {report['vault']} has findings about these failing cases:"
    return [Heading("What is wrong with their documents"), Prose(about), *lines]
