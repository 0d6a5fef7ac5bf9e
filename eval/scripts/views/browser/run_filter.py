"""The filter of the list of runs: words, and conditions on the means of metrics."""

from __future__ import annotations

import difflib
import math
from collections.abc import Sequence

from views.browser.model import RunInfo
from views.browser.query import QueryError, Term, names_in, parse

EXAMPLES = "base -stopped recall@5<0.8 2026-01 words of the configuration"

_ERRORS = "errors"
"""The number of failed calls, beside the metrics."""


def select_runs(text: str, runs: Sequence[RunInfo]) -> list[RunInfo]:
    """The runs for which all terms of a filter hold, in their order. Raises QueryError."""
    numbers = {name for run in runs for means in run.sections.values() for name in means}
    numbers.add(_ERRORS)
    for name in names_in(text):
        if name.casefold() not in map(str.casefold, numbers):
            near = difflib.get_close_matches(name, numbers, n=3, cutoff=0.5)
            also = f"; near it: {', '.join(near)}" if near else ""
            raise QueryError(f"{name}: no run has such a metric; words need no sign{also}")
    terms = parse(text, numbers).terms
    return [run for run in runs if all(_holds(term, run) for term in terms)]


def _holds(term: Term, run: RunInfo) -> bool:
    if term.kind == "number":
        value = run.errors if term.name == _ERRORS else run.mean(term.name)
        holds = term.fits(math.nan if value is None else value)
    else:
        holds = (term.text or term.name).casefold() in _words(run)
    return holds != term.turned


def _words(run: RunInfo) -> str:
    """All that a run's row and the lines below it say in words."""
    config = (f"{label}: {value}" for label, value in run.config)
    parts = (run.run_id, run.state, run.started.replace("T", " "), run.problem, run.missing)
    return "\n".join((*parts, *config)).casefold()
