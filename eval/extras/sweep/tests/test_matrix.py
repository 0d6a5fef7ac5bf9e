"""What a sweep says: the setting to take, and questions by settings."""

from __future__ import annotations

from pathlib import Path

from tests.rows import each_row
from tests.scripts.test_one_count import home as home

from extras.sweep.matrix import MatrixRow, matrix_blocks, matrix_of
from extras.sweep.page import lead, report_blocks, sweep_page
from extras.sweep.record import SettingOutcome, Sweep, sweep_file, write_sweep
from extras.sweep.scoring import failing_cases
from records.files import read_json, replace_json
from records.run import Run
from terminal.page import DataTable
from views.page import markdown


def test_disagreement_is_the_smaller_side_of_what_was_asked() -> None:
    rows = [(True, False, False), (True, None, None), (True, True, False, False), (False,) * 3]
    assert [MatrixRow("q", fails).disagreement for fails in rows] == [1, 0, 2, 0]


def test_questions_that_settings_disagree_on_come_first(home: Path) -> None:
    """By the depth of 2 that both have, 4 cases fail with base and 5 with new (late's gold, at 1 in
    base, is at 3 in new, and so on): of two settings every disagreement is 1."""
    folders = {name: home / "results" / name for name in ("base", "new")}
    rows = matrix_of(list(folders.values()))
    counts = [sum(row.fails[place] is True for row in rows) for place in (0, 1)]
    assert counts == [4, 5]
    sizes = [row.disagreement for row in rows]
    assert sizes == sorted(sizes, reverse=True)
    assert set(sizes) == {0, 1}
    first, *others = matrix_blocks(folders, most=2)
    apart = sum(sizes)
    both = sum(row.fails == (True, True) for row in rows)
    assert first.words == (  # type: ignore[union-attr]
        f"{apart} questions of 8: ok with some settings, not with others. {both} fail with all, "
        f"{8 - apart - both} with none (gold counts within the first 2, in the column failing too)."
    )
    table = next(block for block in others if isinstance(block, DataTable))
    assert len(table.rows) == 2
    assert [column.name for column in table.columns] == ["question", "1", "2"]  # type: ignore[union-attr]
    assert list(matrix_blocks({"base": folders["base"]}, most=2)) == [], "one setting has no other"


def test_terminal_and_report_show_the_matrix(home: Path) -> None:
    results = home / "results"
    settings = [
        SettingOutcome(name="k2", run="base", state="best", quality=0.8, baseline=True),
        SettingOutcome(name="k9", run="new", quality=0.7),
        SettingOutcome(name="never asked", run="none", state="broken"),
    ]
    sweep = Sweep(sweep_id="s", settings=settings, best="k2", ended="decided")
    write_sweep(sweep_file(results, "s"), sweep)
    config = read_json(results / "new" / "config.json")
    config["run"] = (config.get("run") or {}) | {"pace": {"sweep": "s"}}
    replace_json(results / "new" / "config.json", config)
    text = markdown([sweep_page(sweep, results)])
    assert "| question | 1 | 2 |" in text
    blocks = list(report_blocks([Run(results / "new")]))
    assert sum(isinstance(block, DataTable) for block in blocks) == 2


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
