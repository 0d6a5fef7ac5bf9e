"""What a sweep says, and how many cases fail with each of its settings."""

from __future__ import annotations

from pathlib import Path

from tests.rows import each_row
from tests.scripts.test_one_count import home as home

from extras.sweep.page import lead
from extras.sweep.record import SettingOutcome, Sweep
from extras.sweep.scoring import failing_cases


@each_row(
    ("best", "state", "says"),
    [
        ("k5", "best", "KEEP k5: nothing beat it."),
        ("k9", "worse", "TAKE k9: it beat k5 (k9 has 0.800, k5 0.700)."),
        ("k9", "broken", "TAKE k9: k5 breaks a limit (k9 has 0.800, k5 0.700)."),
        ("k9", "left", "KEEP k5: nothing is proven better (k9 has 0.800, k5 0.700, which may be "),
        (None, "broken", "NONE: no setting keeps the limits."),
    ],
)
def test_a_sweep_says_what_to_take(best: str | None, state: str, says: str) -> None:
    settings = [
        SettingOutcome(name="k5", run="s.01", baseline=True, state=state, quality=0.7),
        SettingOutcome(name="k9", run="s.02", state="best", quality=0.8),
    ]
    assert lead(Sweep(sweep_id="s", settings=settings, best=best)) == "", "it goes on"
    found = Sweep(sweep_id="s", settings=settings, best=best, ended="decided")
    assert lead(found).startswith(says)


def test_a_sweep_counts_within_the_depth_that_all_settings_have(home: Path) -> None:
    folders = {name: home / "results" / name for name in ("base", "new")}
    assert failing_cases(folders) == {"base": 4, "new": 5}  # late's gold is at 3, the depth is 2
