"""Places of a bot against those of the labels: what is counted, which settings make them match."""

from __future__ import annotations

from typing import Any

import pytest

from clients.place_check import (
    AskedQuestion,
    PlaceCheck,
    PlaceVerdict,
    check_places,
    measurable,
    suggest,
)
from ragmetrics.matching import anchor
from records.results import RetrievedChunk, TestResult


def asked(gold: list[tuple[str, str]], *places: tuple[str, str]) -> AskedQuestion:
    chunks = tuple(RetrievedChunk("c", rel_path=path, heading_path=name) for path, name in places)
    return AskedQuestion(tuple(anchor(path, name) for path, name in gold), chunks)


GOLD = [("rental/a.md", "Returns > Late"), ("rental/b.md", "Prices")]


@pytest.mark.parametrize(
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
            {"path_root": "kb", "heading_separator": "»", "heading_root": "Book"},
        ),
        (
            [("rental/a.md", "Book A > Returns > Late"), ("rental/b.md", "Book B > Prices")],
            {"heading_root": "*"},  # each file has a title of its own
        ),
        ([("rental/a.md", "elsewhere"), ("x/y.md", "Prices")], {}),
        ([], {}),
    ],
)
def test_settings_that_make_labels_match(
    places: list[tuple[str, str]], settings: dict[str, str]
) -> None:
    assert suggest([asked(GOLD, *places)], [path for path, _ in GOLD]) == settings


def test_what_is_counted() -> None:
    """Of two gold places the file of both came, the heading of one."""
    check = check_places([asked(GOLD, ("rental/a.md", "Returns"), ("rental/b.md", "Prices > Day"))])
    assert (check.gold, check.paths, check.headings) == (2, 2, 1)
    assert check.example == ("Returns > Late", "Returns")
    assert check.coarse
    assert check_places([asked(GOLD, ("c.md", "Returns"))]) == PlaceCheck(gold=2)


def test_the_check_in_words() -> None:
    before, after = PlaceCheck(3, 0, 0), PlaceCheck(3, 2, 2)
    verdict = PlaceVerdict(after, before, {"path_root": "/srv"}, stable=False)
    text = " ".join(verdict.sentences())
    assert "0 of 3 gold files and 0 of 3 gold headings match" in text
    assert 'With path_root = "/srv": 2 of 3 gold files were retrieved' in text
    assert "label by file and heading" in text
    assert "No gold supports" in PlaceVerdict(PlaceCheck(), PlaceCheck()).sentences()[0]


def fields(**tables: dict[str, str]) -> dict[str, dict[str, str]]:
    return {"response": {}, "chunk": {}, "reference": {}, "facts": {}} | tables


@pytest.mark.parametrize(
    ("chunk", "mapped", "stable", "possible", "why"),
    [
        (
            RetrievedChunk("1", rel_path="a"),
            "rel_path heading_path",
            True,
            True,
            "by file and head",
        ),
        (RetrievedChunk("1", rel_path="a.md"), "rel_path", True, True, "by file; no heading_path"),
        (RetrievedChunk("1"), "chunk_id", True, True, "no rel_path: labels by chunk id only"),
        (RetrievedChunk("1"), "chunk_id", False, False, "ids change from call to call"),
        (RetrievedChunk("1", text="some"), "chunk_id text", False, True, "--match text can"),
        (None, "chunk_id", None, False, "no passage came back"),
    ],
)
def test_what_can_be_measured_and_why(
    chunk: Any, mapped: str, stable: bool | None, possible: bool, why: str
) -> None:
    result = TestResult("q", retrieved=[chunk] if chunk else [])
    chunk_paths = dict.fromkeys(mapped.split(), "x")
    retrieval = measurable(
        fields(response={"retrieved": "x"}, chunk=chunk_paths), [result], stable
    )[0]
    assert retrieval.possible == possible
    assert why in retrieval.why
    assert not measurable(fields(), [result], stable)[0].possible
