"""The order of cases, and what clusters are called, change no p: all readers of two runs agree."""

from __future__ import annotations

import numpy as np
from tests.rows import each_row

from decisions.joint import joint_p


@each_row("side", ["both", "worse"])
def test_the_order_of_cases_changes_no_p(side: str) -> None:
    """40 changed clusters, so the flips are drawn and not enumerated."""
    rng = np.random.default_rng(0)
    differences = rng.choice([-1.0, -0.5, 0.0, 0.0, 0.5, 1.0], (120, 3))
    clusters = np.arange(120) // 3
    expected = joint_p(differences, clusters, side)  # type: ignore[arg-type]
    for _ in range(5):
        order = rng.permutation(120)
        names = rng.permutation(1000)[:40]
        again = joint_p(differences[order], names[clusters][order], side)  # type: ignore[arg-type]
        np.testing.assert_array_equal(again, expected)
