"""Which chunks match which supports: anchors, ids, texts, pages, paths of a bot; groups; scope."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rapidfuzz.distance import Levenshtein
from tests.rows import each_row

from clients.mapping import PlaceForm
from ragmetrics.gold import gold_names, gold_of, match_chunks, unusable
from ragmetrics.matching import (
    Passage,
    anchor,
    by_heading_only,
    evidence_rank,
    heading_segments,
    holds,
    match_anchors,
    match_ids,
    match_texts,
    matches_place,
    normalise_path,
    scope_miss,
    window_similarity,
)
from ragmetrics.paths import PathCut, examine_paths, shared_folder
from records.cases import GoldSupport, TestCase
from records.results import RetrievedChunk


@each_row(
    ("written", "meant"),
    [
        ("./notes/a.md", "notes/a.md"),
        ("././a.md", "a.md"),
        ("notes\\a.md", "notes/a.md"),
        ("u\u0308ber.md", "\u00fcber.md"),  # decomposed and composed are one file
        (".hidden/a.md", ".hidden/a.md"),
    ],
)
def test_paths_have_one_spelling(written: str, meant: str) -> None:
    assert normalise_path(written) == meant


@each_row(
    ("written", "segments"),
    [
        ("# Guide > ## Set  up", ("Guide", "Set up")),
        ("Guide>Set", ("Guide>Set",)),  # the separator has spaces; ">" alone is text
        ("", ()),
        ("###", ()),
        ("C# > F#", ("C#", "F#")),  # only marks in front are dropped
        (" > Guide > ", ("Guide",)),
    ],
)
def test_heading_segments(written: str, segments: tuple[str, ...]) -> None:
    assert heading_segments(written) == segments


@each_row(
    ("gold", "found", "matches"),
    [
        ("Intro", "Intro > Aims", True),
        ("Intro", "Introduction", False),  # segment-wise, not by characters
        ("Intro > Aims", "Intro", False),  # a chunk above the gold is not enough
        ("", "Anything > At all", True),  # no heading and no quote: the whole file
        ("intro", "Intro", False),  # case is kept
        ("## Intro", "Intro", True),
    ],
)
def test_anchor_prefix_by_segment(gold: str, found: str, matches: bool) -> None:
    passage = Passage(anchor("./a.md", found))
    assert matches_place(anchor("a.md", gold), [], passage) is matches


def test_a_url_with_an_anchor_is_a_place_of_its_own() -> None:
    """Its anchor belongs to the place: another one, or none, is another place."""
    gold = anchor("https://a.example/rooms#food", None)
    for path, is_there in (
        ("https://a.example/rooms#food", True),
        ("https://a.example/rooms#floors", False),
        ("https://a.example/rooms", False),
    ):
        assert matches_place(gold, (), Passage(anchor(path, None), "Water.")) is is_there


def test_match_anchors_keeps_first_rank_of_each_support_and_all_hits() -> None:
    gold = [anchor("a.md", "A"), anchor("a.md", "A > B"), anchor("c.md", "")]
    named = [("x.md", "A"), ("a.md", "A > B"), None, ("a.md", "A > Z")]
    places = [Passage(anchor(*name)) if name else None for name in named]
    # Rank 2 matches supports 0 and 1, rank 4 only support 0; c.md never comes.
    assert match_anchors(gold, places)[:2] == ([2, 2, None], [2, 4])
    assert match_ids({"a": 0, "b": 1}, ["x", "a", "a", None, "b"], 2)[:2] == ([2, 5], [2, 3, 5])
    assert matches_place(anchor("a.md", ""), [], Passage(anchor("b.md", ""))) is False
    golds, passage = (
        [anchor("a.md", "A"), anchor("a.md", "A > B")],
        Passage(anchor("a.md", "A > B")),
    )
    assert match_anchors(golds[:1], [passage], [["ten days"]]).by_heading == [1]
    assert match_anchors(golds, [passage], [["ten days"]] * 2).by_heading == []


def test_match_texts_finds_a_snippet_with_a_typo() -> None:
    gold = [["the cache is dropped"], ["nothing like it at all"]]
    texts = ["Before.  The Cache\nis droped after", "other words"]
    # "the cache is dropped" (20 characters) against the window "the cache is droped " differs by
    # one deletion and one insertion: distance 2, similarity 1 - 2/20 = 0.9 >= 0.8.
    assert match_texts(gold, texts)[:2] == ([1, None], [1])
    assert match_texts(gold, texts, min_similarity=0.95)[:2] == ([None, None], [])


def test_window_similarity_by_hand() -> None:
    # Windows of "xxabcdxx" of length 4: "abcd" is one of them.
    assert window_similarity("abcd", "xxabcdxx") == 1.0
    # "abed" against "abcd": one substitution of four.
    assert window_similarity("abed", "xxabcdxx") == 0.75
    assert window_similarity("", "abc") == 0.0
    assert window_similarity("abc", "") == 0.0
    # A chunk shorter than the snippet is one window: distance 2 of 4.
    assert window_similarity("abcd", "ab") == 0.5


EDITS = [(length, edits) for length in range(2, 61) for edits in range(1, length // 2 + 1)]
"""A snippet of so many characters with so many wrong ones is 1 - edits / length similar."""


@each_row("slip", [Fraction(0), Fraction(1, 10**6)])
def test_a_similarity_of_exactly_the_least_is_enough(slip: Fraction) -> None:
    for length, edits in EDITS:
        snippet = "a" * length
        chunk = "a" * (length - edits) + "b" * edits
        least = float(1 - Fraction(edits, length) + slip)
        assert holds(chunk, snippet, least) is (slip == 0), (length, edits)
        alike = window_similarity(snippet, chunk, least)
        assert alike == pytest.approx(1 - edits / length if slip == 0 else 0.0), (length, edits)


@given(st.text("ab ", min_size=1, max_size=6), st.text("ab ", min_size=1, max_size=20))
def test_window_similarity_is_the_best_of_all_windows(snippet: str, chunk: str) -> None:
    width = len(snippet)
    windows = [chunk[i : i + width] for i in range(max(1, len(chunk) - width + 1))]
    best = max(Levenshtein.normalized_similarity(snippet, window) for window in windows)
    assert window_similarity(snippet, chunk) == pytest.approx(best)


@given(st.text(max_size=30), st.text(max_size=30), st.text(max_size=30))
def test_a_text_holds_its_own_parts(before: str, snippet: str, after: str) -> None:
    if snippet.strip():
        # Blanks around it keep the snippet's first and last character from joining others.
        assert holds(f"{before} {snippet} {after}", snippet)


@each_row(
    ("first", "groups", "rank"),
    [
        ([3, 1, 2], None, 3),  # all supports are needed
        ([3, None, 2], None, None),
        ([3, 1, 2], [[0], [1, 2]], 2),  # (0) complete at 3, (1 and 2) at 2: the first counts
        ([None, 4, None], [[0, 1], [1]], 4),
        ([None, 4], [[0], [0, 1]], None),
        ([5], [], 5),  # no groups: all supports
    ],
)
def test_evidence_is_complete_with_one_whole_group(
    first: list[int | None], groups: list[list[int]] | None, rank: int | None
) -> None:
    assert evidence_rank(first, groups) == rank


@each_row(
    ("chosen", "missed"),
    [
        ([], 0.0),  # nothing chosen: all searched
        (["guide"], 0.0),
        (["./guide/"], 0.0),
        (["gui"], 1.0),  # a folder's name, not its beginning
        (["api", "ops"], 1.0),
        (["."], 0.0),
    ],
)
def test_scope_miss(chosen: list[str], missed: float) -> None:
    assert scope_miss(["guide/a.md", "faq.md"], chosen) == missed


COARSER = [
    # chunk's heading, its text, whether it matches a support at One > Two that quotes "ten days"
    ("One > Two", None, True),
    ("One > Two", "Twelve.", True),  # its own section: by place alone
    ("One", "You get TEN  days off.", True),  # the text of the section stands in its parent
    ("", "You get ten days off.", True),  # a whole file
    ("One", "You get twelve days off.", False),
    ("One", "You get ten daze off.", False),  # 6 of 8 characters: 0.75 alike
    ("One", None, False),  # no text, or one that was cut
    ("Two", "You get ten days off.", False),  # another section
    ("One > Other", "You get ten days off.", False),
]


@each_row(("heading", "text", "matches"), COARSER)
def test_a_coarser_chunk_matches_by_a_snippet(
    heading: str, text: str | None, matches: bool
) -> None:
    gold = anchor("a.md", "One > Two")
    place = Passage(anchor("a.md", heading), text)
    assert matches_place(gold, ["ten days"], place) is matches
    elsewhere = place._replace(anchor=anchor("b.md", heading))
    assert matches_place(gold, ["ten days"], elsewhere) is False
    # Without snippets the place alone counts.
    assert matches_place(gold, [], place) is heading.startswith("One > Two")
    hits = match_anchors([gold], [None, place], [["ten days"]]).hits
    assert hits == ([2] if matches else [])


def test_the_least_similarity_holds_for_coarser_chunks_too() -> None:
    gold, place = anchor("a.md", "One > Two"), Passage(anchor("a.md", "One"), "ten dazs")
    # One of eight characters is wrong: 0.875 alike.
    assert matches_place(gold, ["ten days"], place, 0.8)
    assert not matches_place(gold, ["ten days"], place, 0.9)


BELOW = [
    # text of a passage at One > Two > Three, whether it was cut, and whether it matches a support
    # at One > Two that quotes "ten days"; None: its words cannot tell
    ("You get TEN *days* off.", False, True),
    ("You get twelve days off.", False, False),
    ("", False, True),  # no text at all: by heading only
    (" \n", False, True),
    (None, False, True),
    (None, True, None),  # there is a text, and nothing of it is left
    ("You get", True, None),
    ("You get ten days", True, True),
    ("You get ...", False, None),  # cut by the bot itself
]


@each_row(("text", "cut", "matches"), BELOW)
def test_a_section_below_the_gold_one_matches_by_words_of_a_quote(
    text: str | None, cut: bool, matches: bool | None
) -> None:
    gold, place = anchor("a.md", "One > Two"), anchor("a.md", "One > Two > Three")
    passage = Passage(place, text, cut)
    assert matches_place(gold, ["other words", "ten days"], passage) is matches
    assert matches_place(gold, [], passage) is True
    assert matches_place(gold, ["ten days"], passage._replace(anchor=gold)) is True
    by_heading = matches is True and not (text or "").strip()
    assert by_heading_only(gold, ["ten days"], passage) is by_heading
    assert not by_heading_only(gold, [], passage)
    assert not by_heading_only(gold, ["ten days"], passage._replace(anchor=gold))
    matched = match_anchors([gold], [None, passage], [["ten days"]])
    assert matched.hits == ([2] if matches else [])
    assert matched.undecided == ([2] if matches is None else [])
    assert matched.open is (matches is None)
    assert matched.by_heading == ([2] if by_heading else [])


LONG = "Keys are rotated on the first day of every month by the operator on duty."
"""15 words: half of them are 8."""


@each_row(
    ("text", "cut", "matches"),
    [
        ("Intro. Keys are rotated on the first day of", True, True),  # the first 8 of its words
        ("Intro. Keys are rotated on the first day", True, False),
        ("Intro. Keys are rotated on the first day of …", False, True),
        ("Intro. Keys are rotated on the first day of", False, False),  # whole, and no such quote
        (f"Intro. {LONG} Then", True, True),
    ],
)
def test_a_coarser_chunk_whose_text_is_cut_matches_by_words_of_a_quote(
    text: str, cut: bool, matches: bool
) -> None:
    """Where they are missing it is a miss: the text above a section rarely has its words."""
    gold = anchor("a.md", "One > Two")
    assert matches_place(gold, [LONG], Passage(anchor("a.md", "One"), text, cut)) is matches
    assert matches_place(gold, [LONG], Passage(anchor("a.md", ""), text, cut)) is matches


def chunk(page: Any, text: str = "Loans take four weeks.") -> RetrievedChunk:
    place: dict[str, Any] = {} if page is None else {"page": page}
    return RetrievedChunk(chunk_id="c", rel_path="rules.pdf", text=text, **place)


def case(**support: Any) -> TestCase:
    return TestCase("a", "q", gold_supports=[GoldSupport("rules.pdf", **support)])


def matches(asked: TestCase, *chunks: RetrievedChunk) -> Any:
    gold = gold_of(asked, "auto")
    assert gold is not None
    return match_chunks(gold, chunks), unusable(gold, chunks)


def test_a_page_is_gold_where_neither_quote_nor_heading_decides() -> None:
    asked = case(page=12)
    found, fault = matches(asked, chunk(11), chunk("12"), chunk(12, "Other text."))
    assert (found.first, found.hits, fault) == ([2], [2, 3], "")
    assert gold_names(asked, "anchor") == ["rules.pdf, page 12"]
    found, _ = matches(
        case(page=12, snippets=["Loans take four weeks"]), chunk(11), chunk(12, "Other text.")
    )
    assert found.hits == [1]
    found, _ = matches(case(page=12, heading_path="Loans"), chunk(12))
    assert found.hits == []


def test_a_bot_without_pages_cannot_be_scored_by_page() -> None:
    found, fault = matches(case(page=12), chunk(None))
    assert fault == "no page in the result"
    found, fault = matches(case(page=12), chunk(None), chunk(3))
    assert (found.first, found.open, fault) == ([None], True, "")


@each_row(("base", "page", "sheet"), [(0, 11, 12), (0, "11", 12), (1, 11, 11), (0, "xi", "xi")])
def test_pages_that_a_bot_counts_from_0_are_read_as_sheets(
    base: int, page: object, sheet: object
) -> None:
    assert PlaceForm(page_base=base).applied({"page": page}) == {"page": sheet}


LABELS = ("advanced/timeouts.md", "quickstart.md", "advanced/ssl.md", "api/x y.md")


@each_row(
    ("bot", "seen", "words"),
    [
        (LABELS, 4, "as written"),
        ([f"{path}#top" for path in LABELS], 0, "without what follows #"),
        ([f"{path}?v=2" for path in LABELS], 0, "without what follows ?"),
        ([f"kb://{path}" for path in LABELS], 0, "without the scheme"),
        ([f"kb://h{n}/{path}" for n, path in enumerate(LABELS)], 0, "without scheme and host"),
        ([f"/srv/docs/{path}" for path in LABELS], 0, "without the folder /srv/docs"),
        ([path.replace(" ", "%20") for path in LABELS], 3, "with %20 and the like decoded"),
        ([path.upper() for path in LABELS], 0, "without upper and lower case"),
        ([path.replace(".md", ".html") for path in LABELS], 0, "without the file type"),
        # quickstart.md has no folder: the one that matches as it is
        ([path.rpartition("/")[2] for path in LABELS], 1, "by their last part"),
        (["other.md", "more.md"], 0, "as written"),
        ([], 0, "as written"),
    ],
)
def test_the_weakest_cut_that_makes_most_match(bot: list[str], seen: int, words: str) -> None:
    bot = [*bot]
    asked = [([label], [path]) for label, path in zip(LABELS, bot, strict=False)]
    verdict = examine_paths(asked, LABELS)
    assert (verdict.seen, verdict.cut.words()) == (seen, words)
    if words != "as written":
        assert verdict.seen_cut == 4
        assert f"gold files seen {seen} of 4; 4 of 4 {words}: the labels say" in verdict.sentence()


def test_a_key_that_two_files_share_matches_nothing() -> None:
    """Two labels end in index.md, and so do two files of the bot: neither can be told."""
    assert examine_paths([(["a/index.md"], ["index.md"])], ["a/index.md", "b/index.md"]).cut == (
        PathCut()
    )
    asked = [(["x/index.md"], ["p/index.md"]), (["y/q.md"], ["r/index.md"])]
    assert examine_paths(asked).seen_cut == 0
    # The bot knows api/index.md by its folder, so its docs/index.md is not the label's.
    asked = [(["api/a.md"], ["api/a.md"]), (["docs/index.md"], ["old/index.md"])]
    assert examine_paths(asked).seen_cut == 1


def test_two_name_spaces_need_enough_paths_and_nothing_in_common() -> None:
    """At least 5 distinct paths of the bot and 3 gold files; anchors make no other file."""
    labels = ["a.md", "b.md", "c.md"]

    def two(bot: list[str], gold: list[str] = labels) -> bool:
        return examine_paths([(gold, bot)]).two_name_spaces

    assert two(["p1", "p2", "p3", "p4", "p5"])
    assert not two(["p1", "p2", "p3", "p4"])
    assert not two(["p1#1", "p1#2", "p1#3", "p1#4", "p1#5"])
    assert not two(["p1", "p2", "p3", "p4", "p5"], labels[:2])
    assert not two(["p1", "p2", "p3", "p4", "docs/a.md"])
    same = examine_paths([(["a.md"], ["b.md", "x1", "x2", "x3", "x4"])], labels)
    assert same.sentence() == "gold files seen 0 of 1 (same name space)."


@each_row(
    ("paths", "steps", "root", "first"),
    [
        (["/srv/docs/a.md", "/srv/docs/b/c.md", "/srv/docs/d.md"], (), "/srv/docs", "a.md"),
        (
            ["file:///srv/docs/a.md", "file:///srv/docs/b.md", "file:///srv/docs/c.md"],
            ("scheme",),
            "srv/docs",
            "a.md",
        ),
        (["C:\\kb\\a.md", "C:\\kb\\b.md", "C:\\kb\\c.md"], (), "C:/kb", "a.md"),
        (["/srv/a.md", "/srv/b.md"], (), "", "/srv/a.md"),  # two files say nothing
        (["/srv/a.md", "/opt/b.md", "/var/c.md"], (), "", "/srv/a.md"),
        (["docs/a.md", "docs/b.md", "docs/c.md"], (), "", "docs/a.md"),
    ],
)
def test_absolute_paths_lose_the_folder_they_share(
    paths: list[str], steps: tuple[str, ...], root: str, first: str
) -> None:
    cut = shared_folder(paths)
    assert (cut.steps, cut.root) == (steps, root)
    assert cut.applied(paths[0]) == first
