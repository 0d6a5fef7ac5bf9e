"""How the searches of a result stand in its line: each text once, whole again when read."""

from __future__ import annotations

import msgspec

from records.results import TEXT_LIMIT, RetrievedChunk, Search, SearchedChunk, TestResult

LONG = "word " * 100


def chunk(name: str, text: str) -> SearchedChunk:
    return SearchedChunk(name, rel_path="a.md", text=text, text_length=len(text))


def answer() -> TestResult:
    searches = [
        Search("first", retrieved=[chunk("1", LONG), chunk("2", "two")]),
        Search("second", retrieved=[chunk("2", "two"), chunk("1", "other text, same id")]),
    ]
    seen = RetrievedChunk("1", rel_path="a.md", text=LONG, text_length=len(LONG), rank=1)
    return TestResult("q", retrieved=[seen], searches=searches)


def read_again(result: TestResult, *, full: bool) -> TestResult:
    return msgspec.convert(result.to_dict(store_full_text=full), TestResult)


def test_a_text_of_retrieved_or_of_an_earlier_search_is_written_once() -> None:
    stored = answer().to_dict(store_full_text=True)
    texts = [[item.get("text") for item in search["retrieved"]] for search in stored["searches"]]
    # 1 stands in retrieved; 2 in the first search; the other text under id 1 is another passage
    assert texts == [[None, "two"], [None, "other text, same id"]]
    read = read_again(answer(), full=True).searched()
    whole = [[item.text for item in chunks] for _, chunks in read]
    assert whole == [[LONG, "two"], ["two", "other text, same id"]]
    assert not any(item.truncated for _, chunks in read for item in chunks)
    twice = read_again(read_again(answer(), full=True), full=True)
    assert twice == read_again(answer(), full=True)  # a line that is written again stays as it is


def test_texts_of_searches_are_cut_like_those_of_retrieved() -> None:
    (_, first), _ = read_again(answer(), full=False).searched()
    assert (first[0].text, first[0].truncated) == (LONG[:TEXT_LIMIT], True)
    assert (first[1].text, first[1].truncated) == ("two", False)


def test_an_id_alone_stands_for_the_passage_of_that_id() -> None:
    result = answer()
    result.searches = [Search("ids", retrieved=["1", SearchedChunk("1", rank=2)])]
    ((_, chunks),) = read_again(result, full=True).searched()
    found = [(item.rel_path, item.text, item.rank) for item in chunks]
    assert found == [("a.md", LONG, 1), ("a.md", LONG, 2)]


def test_a_line_without_searches_has_none_of_the_fields() -> None:
    stored = TestResult("q").to_dict()
    assert not stored.keys() & {"searches", "rewritten_query", "retrieved_from_search"}
