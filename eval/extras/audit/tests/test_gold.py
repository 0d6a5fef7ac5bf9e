"""Gold labels against a vault: what is gone, what moved, and never a wrong new place."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest
from tests.rows import each_row

from documents.sections import Note, Sheet
from extras.audit.gold import VaultIndex, check_support, gold_findings, shared_words
from extras.audit.passages import Place
from records.cases import GoldSupport, TestCase

LOANS = "# Rules\n\n## Loan of books\n\nA book is lent for four weeks, never longer.\n"
FEES = "# Costs\n\n## Fees at the desk\n\nA reminder costs two euros and a stamp.\n"
NOTES = [Note("v", "loans.md", LOANS), Note("v", "fees.md", FEES)]


def check(notes: list[Note], **support: Any) -> tuple[str, Place | None] | None:
    return check_support(GoldSupport(**support), VaultIndex(notes))


@each_row(
    "support",
    [
        {"rel_path": "loans.md", "heading_path": "Rules > Loan of books"},
        {"rel_path": "./loans.md", "heading_path": "# Rules"},
        {"rel_path": "loans.md", "heading_path": "Rules", "snippets": ["lent for four weeks"]},
        {"rel_path": "loans.md", "snippets": ["book is *lent* for four\nweeks"]},
        {"rel_path": "loans.md"},
    ],
)
def test_a_label_whose_place_is_there_is_sound(support: dict[str, Any]) -> None:
    assert check(NOTES, **support) is None


def test_a_quote_says_where_the_text_has_gone() -> None:
    place = Place("fees.md", "Costs > Fees at the desk")
    quote = ["A reminder costs two euros"]
    for path, heading in (("gone.md", ""), ("loans.md", "Rules > Fees"), ("loans.md", "Rules")):
        finding = check(NOTES, rel_path=path, heading_path=heading, snippets=quote)
        assert finding is not None
        assert finding[1] == place


TWICE = "its quote is in fees.md > Costs > Fees at the desk; copy.md > Costs > Fees at the desk"
PAGES = Note("v", "a.pdf", "", [Sheet("One"), Sheet("Two")])
RECURRING = Note("v", "a.md", "# A\n\nx\n\n# B\n\ny\n\n# A\n\nz\n")
NOWHERE = {"rel_path": "a.txt", "heading_path": "Costs", "snippets": ["Films cost nothing"]}


@each_row(
    ("support", "why"),
    [
        (
            {"rel_path": "gone.md", "snippets": ["A reminder costs two"]},
            f"the file is gone; {TWICE}",
        ),
        (NOWHERE, "the file is gone, and its quote is nowhere"),  # the heading does not decide
        ({"rel_path": "a.md", "heading_path": "A"}, "ambiguous: 2 sections have this heading"),
        ({"rel_path": "a.pdf", "page": 3}, "the page is gone"),
    ],
)
def test_a_label_without_one_certain_place_has_no_new_one(support: Any, why: str) -> None:
    notes = [*NOTES, Note("v", "copy.md", FEES), PAGES, RECURRING]
    assert check(notes, **support) == (why, None)
    assert check(notes, rel_path="a.pdf", page=2) is None


def test_without_a_quote_the_same_headings_in_one_other_file_are_the_place() -> None:
    heading = "Rules > Loan of books"
    assert check(NOTES, rel_path="old.md", heading_path=heading) == (
        "the file is gone; moved to loans.md > Rules > Loan of books",
        Place("loans.md", heading),
    )
    twice = [*NOTES, Note("v", "b.md", LOANS)]
    finding = check(twice, rel_path="old.md", heading_path=heading)
    assert finding is not None
    assert finding[1] is None
    assert "candidates: loans.md" in finding[0]


def test_without_a_quote_half_of_the_headings_words_are_enough() -> None:
    """`Fees at our desk` has fee and desk, as `Fees at the desk`: 2 of 2. `Opening` has none."""
    finding = check(NOTES, rel_path="fees.md", heading_path="Costs > Fees at our desk")
    assert finding is not None
    assert finding[1] == Place("fees.md", "Costs > Fees at the desk")
    finding = check(NOTES, rel_path="fees.md", heading_path="Costs > Opening hours")
    assert finding == ("the heading is gone", None)
    assert shared_words("Fees at the desk", "Fees of members") == pytest.approx(1 / 3)


def test_a_file_that_is_no_document_is_not_gone(tmp_path: Path) -> None:
    (tmp_path / "loans.docx").write_text("x")
    finding = check_support(GoldSupport("loans.docx", "Rules"), VaultIndex(NOTES, tmp_path))
    assert finding == ("the file is there, and its text cannot be read", None)


def test_a_quote_over_the_border_of_two_pages_or_sections_is_there() -> None:
    sheets = [Sheet("A book is lent for four weeks,"), Sheet("never longer, for any reader.")]
    notes = [Note("v", "a.pdf", "", sheets)]
    quote = ["lent for four weeks, never longer, for any"]
    assert check(notes, rel_path="a.pdf", page=1, snippets=quote) is None
    notes = [Note("v", "a.md", "# A\n\nBooks are lent.\n\n## Films\n\nThey cost nothing.\n")]
    quote = ["Books are lent. Films They cost nothing."]
    assert check(notes, rel_path="a.md", heading_path="A", snippets=quote) is None


def test_of_two_places_with_the_quote_the_one_below_the_labels_heading_is_new() -> None:
    own = "# All\n\n## Fees at the desk\n\nA reminder costs two euros and a stamp.\n"
    notes = [Note("v", "all.md", own), Note("v", "copy.md", own.replace("Fees at the desk", "X"))]
    quote = ["A reminder costs two euros"]
    heading = "Costs > Fees at the desk"
    finding = check(notes, rel_path="fees.md", heading_path=heading, snippets=quote)
    assert finding is not None
    assert finding[1] == Place("all.md", "All > Fees at the desk")


def in_two_commits(folder: Path, first: dict[str, str], second: dict[str, str]) -> VaultIndex:
    """The vault of the second commit; the files of the first one are gone in it."""
    git = ["git", "-C", str(folder), "-c", "user.name=a", "-c", "user.email=a@b"]
    subprocess.run([*git, "init", "-q"], check=True)
    for files in (first, second):
        for path in folder.glob("*.md"):
            path.unlink()
        for name, text in files.items():
            (folder / name).write_text(text)
        subprocess.run([*git, "add", "-A"], check=True)
        subprocess.run([*git, "-c", "commit.gpgsign=false", "commit", "-qm", "x"], check=True)
    return VaultIndex([Note("v", name, text) for name, text in second.items()], folder)


def test_the_history_of_the_vault_says_where_a_section_went(tmp_path: Path) -> None:
    moved = {"all.md": "# All\n\n## Lending\n\nA book is lent for four weeks, never longer.\n"}
    index = in_two_commits(tmp_path, {"loans.md": LOANS}, moved)
    support = GoldSupport("loans.md", "Rules > Loan of books")
    finding = check_support(support, index)
    assert finding is not None
    assert finding[1] == Place("all.md", "All > Lending")
    assert check_support(support, VaultIndex(index.notes)) == ("the file is gone", None)


def test_a_place_that_had_the_text_before_is_not_where_it_went(tmp_path: Path) -> None:
    """twin.md always had the text: with a quote the new place is all.md; once that is gone too, a
    label without a quote has none."""
    twin = {"twin.md": LOANS.replace("Loan of books", "Lending")}
    moved = {"all.md": "# All\n\n## Lending\n\nA book is lent for four weeks, never longer.\n"}
    index = in_two_commits(tmp_path, {"loans.md": LOANS} | twin, twin | moved)
    quote = ["A book is lent for four weeks"]
    finding = check_support(GoldSupport("loans.md", "Rules > Loan of books", quote), index)
    assert finding is not None
    assert finding[1] == Place("all.md", "All > Lending")
    rest = VaultIndex([note for note in index.notes if note.rel_path != "all.md"], tmp_path)
    support = GoldSupport("loans.md", "Rules > Loan of books")
    assert check_support(support, rest) == ("the file is gone", None)


def test_a_finding_names_label_and_case() -> None:
    case = TestCase("fee", "q", gold_supports=[GoldSupport("gone.md", "A", ["never written"])])
    (finding,) = gold_findings([case], VaultIndex(NOTES))
    assert (finding.kind, finding.cases) == ("gold", ("fee",))
    assert finding.quotes[0].place == Place("gone.md", "A")


def test_a_labelled_document_that_is_gone_is_found_and_an_id_is_none() -> None:
    cases = [
        TestCase("a", "q", relevant_docs=["loans.md", "gone.md"]),
        TestCase("b", "q", relevant_docs=["./fees.md"]),
    ]
    (finding,) = gold_findings(cases, VaultIndex(NOTES))
    assert (finding.why, finding.cases) == ("the file is gone", ("a",))
    assert not list(gold_findings([TestCase("c", "q", relevant_docs=["17"])], VaultIndex(NOTES)))
