"""Places of a bot against those of the labels: what is counted, which settings make them match."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tests.rows import each_row

from clients.place_check import (
    NO_LABELS,
    AskedQuestion,
    PlaceCheck,
    PlaceVerdict,
    asked_of,
    check_places,
    suggest,
)
from clients.proof import _places_doubt
from ragmetrics.matching import anchor
from ragmetrics.paths import PathVerdict
from records.cases import GoldSupport
from records.results import RetrievedChunk, TestResult


def asked(gold: list[tuple[str, str]], *places: tuple[str, str]) -> AskedQuestion:
    chunks = tuple(RetrievedChunk("c", rel_path=path, heading_path=name) for path, name in places)
    return AskedQuestion(tuple(anchor(path, name) for path, name in gold), chunks)


GOLD = [("rental/a.md", "Returns > Late"), ("rental/b.md", "Prices")]


@each_row(
    ("places", "settings"),
    [
        ([("rental/a.md", "Returns > Late"), ("rental/b.md", "Prices > Day")], {}),
        (
            [("rental/a.md", "/Returns/Late/"), ("rental/b.md", "/Prices/")],
            {"heading_separator": "/"},
        ),
        (
            [("/srv/x/rental/a.md", "Returns > Late"), ("/srv/x/rental/b.md", "Prices")],
            {"path_root": "/srv/x"},
        ),
        (
            [("kb/rental/a.md", "Book » Returns » Late"), ("kb/rental/b.md", "Book » Prices")],
            {"path_root": "kb", "heading_separator": " » ", "heading_root": "Book"},
        ),
        (
            [("rental/a.md", "Book A > Returns > Late"), ("rental/b.md", "Book B > Prices")],
            {"heading_root": "*"},  # each file has a title of its own
        ),
        ([("rental/a.md", "elsewhere"), ("x/y.md", "Prices")], {}),
        ([], {}),
    ],
)
def test_settings_that_make_labels_match(places: Any, settings: dict[str, str]) -> None:
    assert suggest([asked(GOLD, *places)], [path for path, _ in GOLD]) == settings


def test_what_is_counted() -> None:
    """Of two gold places the file of both came, the heading of one."""
    check = check_places([asked(GOLD, ("rental/a.md", "Returns"), ("rental/b.md", "Prices > Day"))])
    assert (check.gold, check.paths, check.headings) == (2, 2, 1)
    assert check.example == ("Returns > Late", "Returns")
    assert check.coarse
    assert check_places([asked(GOLD, ("c.md", "Returns"))]) == PlaceCheck(gold=2)


def test_the_check_in_words() -> None:
    before, after = PlaceCheck(3, 0, 1), PlaceCheck(3, 2, 2)
    verdict = PlaceVerdict(after, before, {"path_root": "/srv", "heading_root": "A"})
    (text,) = verdict.sentences()
    assert text == (
        'Without path_root = "/srv" and heading_root = "A", 0 of 3 gold files and 1 of 3 gold '
        "headings match."
    )
    assert replace(verdict, has_paths=False).sentences() == []
    assert _places_doubt("path", (), None, PlaceVerdict(PlaceCheck())) == ("?", NO_LABELS)


def test_places_without_headings_are_compared_by_their_quotes() -> None:
    """Of two quotes one is in a passage, and of the other's file the text is missing."""
    gold = [
        GoldSupport("a.pdf", snippets=["Keys are handed out at the gate."]),
        GoldSupport("b.pdf", snippets=["Visitors wear a badge at all times."]),
    ]
    chunks: list[RetrievedChunk | str] = [
        RetrievedChunk("1", rel_path="a.pdf", text="Keys are handed out at the gate. Ring twice."),
        RetrievedChunk("2", rel_path="b.pdf"),
    ]
    check = check_places([asked_of(TestResult("q", retrieved=chunks), gold)])
    assert (check.gold, check.paths, check.headings, check.quotes, check.untold) == (2, 2, 1, 2, 1)
    text = " ".join(PlaceVerdict(check).sentences())
    assert "1 quote could not be searched: the passages' text is missing or cut" in text
    chunks[0] = RetrievedChunk("1", rel_path="a.pdf", text="Dogs may come in.")
    assert check_places([asked_of(TestResult("q", retrieved=chunks), gold)]).headings == 0


def test_a_part_of_the_section_without_the_quote_is_no_heading_that_differs() -> None:
    """The bot's headings are the labels' own, so nothing is wrong with the mapping."""
    gold = [GoldSupport("a.md", "Description", ["Keys are handed out at the gate."])]
    chunk = RetrievedChunk("1", rel_path="a.md", heading_path="Description > name", text="A name.")
    check = check_places([asked_of(TestResult("q", retrieved=[chunk]), gold)])
    assert (check.paths, check.headings, check.below, check.example) == (1, 0, 1, None)
    verdict = PlaceVerdict(check)
    text = " ".join(verdict.sentences())
    assert "Of 1 labelled section only parts without the label's quote were retrieved" in text
    assert "does not match" not in text
    mark, says = _places_doubt("path", (), None, replace(verdict, paths=PathVerdict(gold=1)))
    assert mark == "✓"
    assert says.endswith(
        "0 of them at the labelled place, 1 only in parts of it without the quote."
    )
    chunk.text = "Keys are handed out at the gate."
    found = check_places([asked_of(TestResult("q", retrieved=[chunk]), gold)])
    assert (found.headings, found.below) == (1, 0)
    chunk.text, chunk.text_length = "Keys are", 400
    cut = check_places([asked_of(TestResult("q", retrieved=[chunk]), gold)])
    assert (cut.headings, cut.below, cut.untold) == (0, 1, 1)
