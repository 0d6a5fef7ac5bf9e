"""The remark on headings that the bot never writes as the labels do."""

from __future__ import annotations

from typing import Any

import pytest
from tests.rows import each_row

from decisions.diagnosis import place_mismatch
from records.metrics import load_metrics
from storage import ErrorInfo, TestResult


@pytest.fixture
def asked(evaluated: Any, chunk: Any, gold: Any) -> Any:
    """``asked("/A/B/", files=5, cases=20)``: the right file with that heading for some cases."""

    def make(heading: str, files: int = 5, cases: int = 20, right: int = 0) -> Any:
        labelled = [{"id": f"q{n}", "gold_supports": gold("a.md > A > B")} for n in range(cases)]
        places = [f"a.md > {heading}"] * files + ["b.md > A > B"] * (cases - files)
        places[:right] = ["a.md > A > B > C"] * right
        results = [TestResult(f"q{n}", retrieved=[chunk(place)]) for n, place in enumerate(places)]
        labelled += [{"id": "open"}, {"id": "broken", "gold_supports": gold("a.md > A > B")}]
        failed = TestResult("broken", status="error", error=ErrorInfo("timeout"))
        return evaluated(labelled, [*results, TestResult("open"), failed])

    return make


def test_headings_of_another_form_are_told_first(asked: Any) -> None:
    run = asked("/A/B/")
    noted = run.section()["place_mismatch"]
    assert noted == {
        "cases": 20, "path_found": 5, "path": "a.md", "wanted": "A > B", "got": "/A/B/",
    }  # fmt: skip
    shown = run.score().stdout
    text = " ".join(shown.split())
    assert "So labels without a quote are compared by file alone." in text
    assert "retrieved for 5 of 20 cases, and its heading matched in none" in text
    assert 'set heading_separator = "/".' in text
    assert text.index("heading_separator") < text.index("evidence_recall@5")
    assert run.rows()["q0"]["evidence"]["instead"] == ["a.md", "A > B", "/A/B/"]
    assert load_metrics(run.path / "metrics.json")["sections"]["retrieval"]["place_mismatch"]
    # Files are compared. That of 5 of 20 cases is found, each alone in its list: recall 5 / 20.
    section = run.section()
    assert section["mean"]["evidence_recall@5"] is None
    assert section["mean"]["mrr"] is None
    assert section["mean"]["evidence_recall@5 (by document)"] == 0.25
    assert section["n"]["evidence_recall@5 (by document)"] == 20
    assert run.section("--match", "anchor")["mean"]["mrr"] == 0, "as it was asked for"


def test_a_quote_tells_where_headings_do_not(evaluated: Any, chunk: Any, gold: Any) -> None:
    """Six labels with a quote, whose passages hold other words: nothing is found, which is true.
    The seventh has no quote: it is compared by file."""
    quoted = [{**gold("a.md > A")[0], "snippets": ["The fee is five euros a month."]}]
    labels = [*[quoted] * 6, gold("a.md > A")]
    cases = [{"id": f"q{n}", "gold_supports": supports} for n, supports in enumerate(labels)]
    passage = chunk("a.md > Title of the page", text="Opening hours are on the door, as ever.")
    results = [TestResult(f"q{n}", retrieved=[passage]) for n in range(7)]
    section = evaluated(cases, results).section()
    assert (section["mean"]["mrr"], section["n"]["mrr"]) == (0, 6)
    assert section["mean"]["mrr (by document)"] == 1


@pytest.mark.parametrize(
    "few",
    [
        {"files": 4},  # fewer than five
        {"files": 5, "cases": 26},  # less than a fifth
        {"right": 1},  # one heading matches, so it is no matter of form
    ],
)
def test_a_few_misses_are_no_matter_of_form(asked: Any, few: dict[str, int]) -> None:
    run = asked("/A/B/", **few)
    assert "place_mismatch" not in run.section()
    assert "heading_separator" not in run.score().stdout


@each_row(
    ("got", "remedy"),
    [
        ("/A/B/", 'set heading_separator = "/".'),
        ("A | B", 'set heading_separator = "|".'),
        ("A::B", 'set heading_separator = "::".'),
        ("A>B", 'set heading_separator = ">".'),
        ("/Book/Part/A/B/", 'heading_separator = "/" and heading_root = "Book > Part".'),
        ("Book > A > B", 'set heading_root = "Book".'),
        ("A", "coarser"),
        (" ", "map heading_path"),
        ("X/Y", 'heading_separator = "/" if the bot'),
        ("a b", "heading_separator and heading_root say"),
    ],
)
def test_the_remedy_fits_the_pair(got: str, remedy: str) -> None:
    noted = {"cases": 9, "path_found": 9, "path": "a.md", "wanted": "A > B", "got": got}
    found = place_mismatch({"place_mismatch": noted})
    assert found is not None
    assert place_mismatch({}) is None
    assert remedy in found.look_at
