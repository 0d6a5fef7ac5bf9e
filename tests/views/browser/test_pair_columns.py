"""The column of metric names on the page of two runs."""

from __future__ import annotations

from views.browser.case_page import CaseInRun, _changes_part
from views.browser.document import Doc
from views.browser.model import Detail, SectionScores


def detail(value: float) -> Detail:
    scores = {"mrr": value, "context_relevance_top3": value}
    return Detail("q", 0, "?", "ok", scores=(SectionScores("s", "scored", scores, {}),))


def test_values_stand_under_each_other_whatever_the_length_of_the_names() -> None:
    doc = Doc()
    _changes_part(doc, CaseInRun("a", detail(0.25), ""), CaseInRun("b", detail(0.75), ""))
    rows = [line for line in doc.text.splitlines() if "→" in line]
    assert rows == [
        "mrr                    0.25 → 0.75",
        "context_relevance_top3 0.25 → 0.75",
    ]
