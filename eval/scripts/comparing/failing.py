"""--fail-on: which verdicts end a comparison with exit code 1."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from comparing.rows import Comparison, Row
from storage import StorageError

WORSE, ANY_WORSE = "worse", "any-worse"


def failures(comparisons: Sequence[Comparison], rules: Sequence[str]) -> list[str]:
    """Why the comparison fails, a sentence each; empty when it passes.

    ``worse``: a metric of the declared family got worse or is no longer measured; ``any-worse``:
    any metric; a metric's name: that one. Raises StorageError for a name that no row has.
    """
    found: dict[str, None] = {}
    for one in comparisons:
        for rule in rules:
            rows = _rows(one, rule)
            if not rows and rule not in (WORSE, ANY_WORSE):
                raise StorageError(
                    f"--fail-on {rule}: neither run has that metric; write worse, any-worse or "
                    "the names of metrics."
                )
            found |= dict.fromkeys(_reasons(one, rows))
    return list(found)


def _rows(comparison: Comparison, rule: str) -> list[Row]:
    if rule == ANY_WORSE:
        return list(comparison.rows)
    if rule == WORSE:
        return [row for row in comparison.rows if row.family]
    return [row for row in comparison.rows if rule in (row.metric, row.name)]


def _reasons(comparison: Comparison, rows: Iterable[Row]) -> Iterator[str]:
    for row in rows:
        if row.verdict == "only in base":
            yield f"{row.name} is measured in {comparison.base_id} but not in {comparison.new_id}."
        elif row.verdict == "worse" and row.delta is not None:
            yield (
                f"{row.name} is worse in {comparison.new_id}: {row.delta:+.4f} over {row.n} cases, "
                f"corrected p {row.p_adjusted or 0:.4g}."
            )
