"""Two runs, case by case: invariants, paired tests, verdicts, flips; what gates and reports read.

from comparing import Wanted, compare
comparison = compare(base_folder, new_folder, Wanted(metrics=("ndcg@5",)))
"""

from __future__ import annotations

from comparing.core import compare, compare_many
from comparing.invariants import IncomparableError
from comparing.metric_rows import Wanted
from comparing.rows import Comparison, Difference, Row, Verdict

__all__ = [
    "Comparison",
    "Difference",
    "IncomparableError",
    "Row",
    "Verdict",
    "Wanted",
    "compare",
    "compare_many",
]
