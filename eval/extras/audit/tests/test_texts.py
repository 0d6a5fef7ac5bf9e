"""Near doubles, stale passages and sentences that may contradict, on small vaults."""

from __future__ import annotations

from datetime import date

from tests.rows import each_row

from documents.sections import Note, Sheet
from extras.audit.contradictions import Statement, contradiction_candidates, difference
from extras.audit.dates import dates_of, deadline_of, markers_of, versions_of
from extras.audit.doubles import double_findings, groups_of, near_doubles
from extras.audit.pages import REMEDY, page_note
from extras.audit.passages import paragraphs_of, sections_of
from extras.audit.stale import stale_findings

TEXT = (
    "The reading room of the library is open from nine in the morning until eight in the evening, "
    "and on Saturdays the staff close its doors at two in the afternoon because of the market."
)
OTHER = (
    "Drinks are allowed in bottles with lids, food is eaten in the entrance hall alone, and groups "
    "that book a room two weeks ahead may bring a projector and flowers of their own choice."
)
NEAR = TEXT.replace("market", "fair")
TODAY = date(2026, 6, 1)


def grams(text: str) -> set[str]:
    return {text[at : at + 5] for at in range(len(text) - 4)}


def test_near_doubles_are_what_a_plain_count_of_5_grams_says() -> None:
    """Four words of 33 changed; a third cut off; other text."""
    changed = TEXT.replace("morning", "dawn").replace("staff", "team").replace("market", "fair")
    changed = changed.replace("eight", "six")
    texts = [text.casefold() for text in (TEXT, changed, TEXT[:120], OTHER)]
    shared = len(grams(texts[0]) & grams(texts[1]))
    assert 0.5 < shared / len(grams(texts[0]) | grams(texts[1])) < 0.8  # its words in order decide
    assert grams(texts[2]) < grams(texts[0])
    assert set(near_doubles(texts)) == {(0, 1), (0, 2)}  # 1 and 2 differ in too much


def test_no_pair_of_a_crowd_is_lost() -> None:
    """A hundred paragraphs that differ in one word: one group."""
    texts = [TEXT.replace("market", f"fair number {number}") for number in range(100)]
    notes = [Note("v", f"{number}.md", f"# A\n\n{text}\n") for number, text in enumerate(texts)]
    sections = sections_of(notes)
    groups, _ = groups_of(paragraphs_of(sections), sections)
    assert [len(group.members) for group in groups] == [100]


def test_texts_side_by_side_are_parallel_and_no_doubles_unless_they_are_the_same() -> None:
    """Two rules for mornings and evenings below one heading; the same two apart are doubles."""
    other = TEXT.replace("morning", "evening").replace("until eight", "until ten")
    beside = [Note("v", "a.md", f"# A\n\n## B\n\n{TEXT}\n\n## C\n\n{other}\n")]
    twice = [Note("v", "a.md", f"# A\n\n## B\n\n{TEXT}\n\n## C\n\n{TEXT}\n")]
    apart = [Note("v", "a.md", f"# A\n\n{TEXT}\n"), Note("v", "b.md", f"# B\n\n{other}\n")]
    counts = []
    for notes in (beside, twice, apart):
        sections = sections_of(notes)
        groups, pairs = groups_of(paragraphs_of(sections), sections)
        counts.append((len(groups), pairs))
    assert counts == [(0, {(0, 1)}), (1, {(0, 1)}), (1, {(0, 1)})]


def test_two_parts_of_a_long_text_are_no_doubles_of_each_other() -> None:
    long = f"{TEXT} {OTHER} {TEXT.replace('library', 'archive')} {OTHER.replace('lids', 'caps')}"
    notes = [
        Note("v", f"{name}.md", f"# {name}\n\n{text}\n")
        for name, text in (("a", TEXT), ("b", OTHER), ("c", long))
    ]
    sections = sections_of(notes)
    groups, _ = groups_of(paragraphs_of(sections), sections)
    assert [group.members for group in groups] == [(0, 2), (1, 2)]


def test_doubles_are_groups_and_identical_ones_one_line() -> None:
    notes = [
        Note("v", "a.md", f"# A\n\n{TEXT}\n"),
        Note("v", "b.md", f"# B\n\n{NEAR}\n"),
        Note("v", "c.md", f"# C\n\n{OTHER}\n"),
        Note("v", "d.md", f"# D\n\n{OTHER}\n\nShort text, too short.\n"),
        Note("v", "e.md", "# E\n\nShort text, too short.\n"),
    ]
    sections = sections_of(notes)
    paragraphs = paragraphs_of(sections)
    groups, pairs = groups_of(paragraphs, sections)
    assert pairs == {(0, 1), (2, 3)}
    together = {frozenset((0, 1)): 7}
    near_ones, same = double_findings(groups, paragraphs, sections, together)
    why = "a paragraph nearly the same in 2 sections; retrieved together in 7 answers"
    assert near_ones.why == why
    assert [quote.text for quote in near_ones.quotes] == [TEXT, NEAR]
    assert same.why == "a paragraph identical in 2 sections"
    assert [quote.text for quote in same.quotes] == [OTHER, ""]
    assert near_ones.harm > same.harm


@each_row(
    ("sentence", "day"),
    [
        ("Updated: 2024-02-03", date(2024, 2, 3)),
        ("valid from 3. 2. 2024 on", None),
        ("since 03.02.2024", date(2024, 2, 3)),
        ("on 3 February 2024", date(2024, 2, 3)),
        ("on February 3rd, 2024", date(2024, 2, 3)),
        ("in February 2024", date(2024, 2, 29)),
        ("as of 2024", date(2024, 12, 31)),
        ("In 1967 he coined the term", None),
        ("on 2024-13-03", None),
    ],
)
def test_dates_are_read_and_lone_years_only_where_they_date_a_text(
    sentence: str, day: date | None
) -> None:
    assert [found for found, _ in dates_of(sentence)] == ([] if day is None else [day])


def test_versions_are_named_and_chapters_are_none() -> None:
    sentence = "Version 2.1 of Rust 1.85.0 needs v3.2, see Chapter 4.1 and 3.14."
    assert [value for value, _ in versions_of(sentence)] == [(2, 1), (1, 85, 0), (3, 2)]
    assert markers_of("Changed in version 3.8: it is faster.") == []
    small = "It needs glibc 2.34 or newer and npm 9.2, takes 2.5 seconds, about 1.5 of them."
    assert [value for value, _ in versions_of(small)] == [(2, 34), (9, 2)]


@each_row(
    ("sentence", "over"),
    [
        ("The offer is valid until 31 May 2026.", True),
        ("The offer is valid until 1 June 2026.", False),  # it is that day
        ("Your licence expires on 2025-01-31.", True),
        ("Until March 2025 you can register.", True),
        ("Until March 2025 he was the head of it.", False),  # history
        ("The offer was valid until March 2025.", False),
        ("The library, rented until March 1925, is closed on Mondays.", False),
        ("It is open until eight.", False),
    ],
)
def test_a_deadline_is_a_past_date_in_the_present_tense(sentence: str, over: bool) -> None:
    assert (deadline_of(sentence, TODAY) is not None) is over


def test_an_older_date_in_a_near_double_is_stale_and_history_is_not() -> None:
    dated = "Reviewed in March {year}.\n\n"
    notes = [
        Note("v", "new.md", f"# Hours\n\n{dated.format(year=2025)}{TEXT}\n"),
        Note("v", "old.md", f"# Hours\n\n{dated.format(year=2019)}{NEAR}\n"),
        Note("v", "x.md", f"# Hours\n\n{dated.format(year=2001)}{OTHER}\n"),  # the same heading
        Note("v", "y.md", "# Past\n\nIn March 1950 the reading room of the library was founded.\n"),
        Note("v", "z.md", "# Offer\n\nThe card is valid until 2020-01-01.\n"),
    ]
    sections = sections_of(notes)
    _, pairs = groups_of(paragraphs_of(sections), sections)
    stale, expired = stale_findings(sections, pairs, TODAY)
    assert (stale.kind, stale.quotes[0].place.rel_path) == ("stale", "old.md")
    assert stale.why == "March 2019 here, March 2025 in new.md > Hours"
    assert expired.kind == "expired"
    assert expired.quotes[0].text == "The card is valid until 2020-01-01."


def test_an_old_passage_is_one_finding_with_the_newest_of_its_successors() -> None:
    notes = [
        Note("v", f"{year}.md", f"# {year}\n\nReviewed in March {year}.\n\n{TEXT}\n")
        for year in (2019, 2023, 2025)
    ]
    sections = sections_of(notes)
    _, pairs = groups_of(paragraphs_of(sections), sections)
    assert [finding.why for finding in stale_findings(sections, pairs, TODAY)] == [
        "March 2019 here, March 2025 in 2025.md > 2025",
        "March 2023 here, March 2025 in 2025.md > 2025",
    ]


@each_row(
    ("first", "second", "what"),
    [
        ("A book is lent for four weeks.", "A book is lent for 6 weeks.", "four weeks / 6 weeks"),
        ("A book is lent for four weeks.", "A book is lent for 4 weeks.", ""),
        ("A book is lent for four weeks.", "A book has 300 pages.", ""),  # another noun
        ("The desk takes cards.", "The desk does not take cards.", "a negation"),
        ("The desk never takes cards.", "The desk does not take cards.", ""),
        ("The desk is not open and will not help.", "The desk is open and helps.", "a negation"),
        ("Closed on 3 May 2024.", "Closed on 4 May 2024.", "dates"),
        ("Listing 4-2 shows the desk.", "Listing 4-3 shows the desk.", ""),
        ("See chapter 4 on the desk.", "See chapter 5 on the desk.", ""),
        ("The desk needs ~1.1.1 here.", "The desk needs ~1.2.0 here.", ""),
    ],
)
def test_sentences_differ_in_numbers_of_one_noun_dates_and_negations(
    first: str, second: str, what: str
) -> None:
    nowhere: frozenset[int] = frozenset()
    assert difference(Statement(first, nowhere), Statement(second, nowhere)) == what


def test_candidates_are_one_a_pair_of_sections_best_first_and_identical_sections_one() -> None:
    fact = "A reminder of the northern branch library costs {} euros at the counter."
    more = "The northern branch library {} a printer beside the counter for its visitors."
    notes = [
        Note("v", "a.md", f"# A\n\n{fact.format('two')} {more.format('has')}\n"),
        Note("v", "b.md", f"# B\n\n{fact.format('five')} {more.format('does not have')}\n"),
        Note("v", "c.md", f"# B\n\n{fact.format('five')} {more.format('does not have')}\n"),
        Note("v", "d.md", "# D\n\nThe southern garden shop sells five kinds of roses in spring.\n"),
    ]
    (finding,) = contradiction_candidates(sections_of(notes))
    assert finding.why == "same subject, differ in two euros / five euros"
    assert [quote.place.rel_path for quote in finding.quotes] == ["a.md", "b.md"]


def test_a_number_of_one_noun_comes_before_a_negation() -> None:
    """Both pairs share all of their words but one."""
    notes = [
        Note("v", "a.md", "# A\n\nThe desk lends umbrellas and lamps for two days.\n"),
        Note("v", "b.md", "# B\n\nThe desk lends umbrellas and lamps for five days.\n"),
        Note("v", "c.md", "# C\n\nVisitors carry bottles upstairs into quiet rooms.\n"),
        Note("v", "d.md", "# D\n\nVisitors never carry bottles upstairs into quiet rooms.\n"),
    ]
    findings = contradiction_candidates(sections_of(notes))
    assert [
        (each.why.removeprefix("same subject, differ in "), each.harm) for each in findings
    ] == [("two days / five days", 1.0), ("a negation", 0.7)]


def test_a_word_of_many_sentences_makes_no_pairs() -> None:
    """81 sentences of one form differ in a number, and share no rarer words."""
    notes = [
        Note("v", f"{n}.md", f"# {n}\n\nThe counter clerk wrote {n + 100} letters yesterday.\n")
        for n in range(81)
    ]
    assert contradiction_candidates(sections_of(notes)) == []
    assert contradiction_candidates(sections_of(notes[:80])) != []


WORDS = "alpha beta gamma delta epsilon zeta eta theta iota kappa".split()  # noqa: SIM905
TEXTS = [" ".join(f"{word}{number}" for word in WORDS) for number in range(1, 7)]
LABELS = ("i", "ii", "1", "2", "3", "4")
NOTE = Note("v", "a.pdf", "", [Sheet(t, label) for t, label in zip(TEXTS, LABELS, strict=True)])


@each_row(
    ("pages", "reading"),
    [
        ((1, 2, 3, 4, 5, 6), 1),
        ((0, 1, 2, 3, 4, 5), 0),
        (tuple("012345"), 0),  # some servers send numbers as text
        (LABELS, "label"),
        ((7, 8, 9, 9, 9, 9), None),
        ((1, 2, 3, 4, 5, 5), None),  # 5 of 6 agree: less than .9
    ],
)
def test_one_reading_holds_for_the_whole_bot(pages: tuple[int | str, ...], reading: object) -> None:
    passages = [("a.pdf", page, text) for page, text in zip(pages, TEXTS, strict=True)]
    assert page_note(passages, [NOTE]) == REMEDY[reading]


def test_two_passages_or_texts_that_are_nowhere_say_nothing() -> None:
    assert page_note([("a.pdf", 9, TEXTS[0]), ("a.pdf", 9, TEXTS[1])], [NOTE]) == ""
    other = " ".join(f"{word}x" for word in WORDS)
    assert page_note([("a.pdf", n, other) for n in range(9)], [NOTE]) == ""
    assert page_note([("b.pdf", n, TEXTS[0]) for n in range(9)], [NOTE]) == ""
