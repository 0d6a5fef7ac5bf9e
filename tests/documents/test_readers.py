"""HTML and PDF: what is read of them, and that hostile files are named and left out."""

from __future__ import annotations

import os
import sys
import time
import zlib
from pathlib import Path

import pytest

from documents import readers
from documents.readers import UnreadableFile, read_apart, read_html, read_pdf
from documents.sections import Note, Sheet, clean_pages
from documents.vault import read_vault
from records.errors import StorageError

pytest.importorskip("bs4")
pytest.importorskip("markdownify")
pytest.importorskip("pypdf")

from tests.documents.pdf_files import pdf  # it needs pypdf

PAGE = """<!DOCTYPE html><html><head><title>Rules</title><style>p {}</style></head><body>
<header>Northern Library</header><nav><h2>Menu</h2><a href="x">Home</a></nav>
<main><h1>Rules<a class="headerlink" href="#r">¶</a></h1>
<p>Books are lent for <b>four</b> weeks.</p>
<h2><a href="#fees">Fees</a></h2><pre># not a heading
pay(2)</pre>
<table><tr><th>Item</th><th>Price</th></tr><tr><td>Card</td><td>5 euros</td></tr></table></main>
<footer>Imprint</footer></body></html>"""


def sections(note: Note) -> list[tuple[str, int | None, str]]:
    return [(part.heading_path, part.page, part.text) for part in note.sections() if part.text]


def test_headings_of_html_become_the_path_and_navigation_is_left_out() -> None:
    assert sections(Note("v", "a.html", read_html(PAGE.encode()))) == [
        ("Rules", None, "Books are lent for **four** weeks."),
        (
            "Rules > Fees",
            None,
            "```\n# not a heading\npay(2)\n```\n\n"
            "| Item | Price |\n| --- | --- |\n| Card | 5 euros |",
        ),
    ]


def test_html_without_main_loses_what_is_around_its_text() -> None:
    page = PAGE.replace("<main>", "<div>").replace("</main>", "</div>")
    text = read_html(page.encode())
    assert "four" in text
    assert not [word for word in ("Northern", "Home", "Imprint") if word in text]


def test_a_paragraph_that_begins_with_a_number_sign_is_no_heading() -> None:
    page = "<main><h1>Rules</h1><p># make install</p><p>It takes a minute.</p></main>"
    assert sections(Note("v", "a.html", read_html(page.encode()))) == [
        ("Rules", None, "\\# make install\n\nIt takes a minute.")
    ]


def test_the_header_of_an_article_is_its_title() -> None:
    page = "<body><header>Northern Library</header><article><header><h1>Rules</h1></header>"
    assert read_html(f"{page}<p>Four weeks.</p></article></body>".encode()) == (
        "# Rules\n\nFour weeks.\n"
    )


def test_what_libraries_say_about_a_file_without_its_name_is_not_shown(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a.html").write_bytes(b"")
    read_vault(tmp_path)
    assert capfd.readouterr().err == ""


def test_html_in_another_encoding_is_read_by_what_it_says() -> None:
    page = '<html><meta charset="iso-8859-1"><body><p>Gebühr: 5 Euro</p></body></html>'
    assert read_html(page.encode("latin-1")) == "Gebühr: 5 Euro\n"


def test_pages_are_places_and_the_outline_gives_headings() -> None:
    """The title `Fees` is a line of sheet 2, so the sheet is cut there; `Annex` is no line."""
    data = pdf(
        [["Books are lent."], ["Two weeks more.", "2 Fees", "Five euros."], ["Tables."]],
        [("Loans", 0, ""), ("Fees", 1, "Loans"), ("Annex", 2, "")],
    )
    pages = read_pdf(data)
    assert sections(Note("v", "a.pdf", "", pages)) == [
        ("Loans", 1, "Books are lent."),
        ("Loans", 2, "Two weeks more."),
        ("Loans > Fees", 2, "Five euros."),
        ("Annex", 3, "Tables."),
    ]
    assert [page.label for page in pages] == ["1", "2", "3"]


def test_page_texts_lose_line_end_hyphens_and_running_headers() -> None:
    """`House rules` stands on three of four pages, the number on each; `Only here` on one."""
    texts = [
        "House rules\nReno-\nvation is ﬁne\n1",
        "House rules\nA well-\nknown man\n2",
        "Only here\nThird\n3",
        "House rules\nFourth\n4",
    ]
    expected = ["Renovation is fine", "A wellknown man", "Only here\nThird", "Fourth"]
    assert clean_pages(texts) == expected


def test_a_vault_has_all_kinds_and_says_which_files_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("# A\n\none")
    (tmp_path / "b.txt").write_text("# no heading\n\ntwo")
    (tmp_path / "c.HTML").write_text("<h1>C</h1><p>three")
    (tmp_path / "d.pdf").write_bytes(pdf([["four"]]))
    (tmp_path / "locked.pdf").write_bytes(pdf([["five"]], password="secret"))
    (tmp_path / "torn.pdf").write_bytes(pdf([["six"]])[:200])
    (tmp_path / "picture.pdf").write_bytes(pdf([[]]))
    vault = read_vault(tmp_path)
    assert [(note.rel_path, *sections(note)) for note in vault.notes] == [
        ("a.md", ("A", None, "one")),
        ("b.txt", ("", None, "# no heading\n\ntwo")),
        ("c.HTML", ("C", None, "three")),
        ("d.pdf", ("", 1, "four")),
    ]
    locked, picture, torn = vault.unreadable
    assert str(locked) == f"{tmp_path / 'locked.pdf'}: is encrypted; it is left out."
    assert "has no text; its pages may be pictures" in str(picture)
    assert "is damaged" in str(torn)


def test_files_nested_without_end_are_left_out_and_the_next_is_read(tmp_path: Path) -> None:
    deep = tmp_path / "deep.html"
    deep.write_text("<div>" * 50_000 + "text")
    loop = tmp_path / "loop.pdf"
    loop.write_bytes(pdf([["x"]]).replace(b"/Kids [ 4 0 R ]", b"/Kids [ 1 0 R ]"))
    good = tmp_path / "good.html"
    good.write_text("<p>text")
    start = time.monotonic()
    first, second, third = read_apart([deep, loop, good])
    assert isinstance(first, UnreadableFile)
    assert isinstance(second, UnreadableFile) or second == [Sheet("x", "1")]
    assert third == "text\n"
    assert time.monotonic() - start < 60


@pytest.mark.skipif(sys.platform == "win32", reason="its processes have no limit of memory")
def test_a_file_that_needs_too_much_memory_or_time_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two gigabytes of blanks, packed into two megabytes, as the text of a page."""
    packer = zlib.compressobj(9)
    block = b" " * (1 << 24)
    begun, again = (packer.compress(block) + packer.flush(zlib.Z_FULL_FLUSH) for _ in range(2))
    packed = begun + again * 127 + packer.flush()
    head = b"%PDF-1.4\n1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj\n"
    head += b"2 0 obj<</Type/Pages/Kids[3 0 R]/Count 1>>endobj\n"
    head += b"3 0 obj<</Type/Page/Parent 2 0 R/MediaBox[0 0 9 9]/Contents 4 0 R>>endobj\n"
    head += b"4 0 obj<</Filter/FlateDecode/Length %d>>stream\n" % len(packed)
    bomb = tmp_path / "bomb.pdf"
    bomb.write_bytes(head + packed + b"\nendstream endobj\ntrailer<</Root 1 0 R>>\n")
    (content,) = read_apart([bomb])
    assert isinstance(content, UnreadableFile), content
    fast = tmp_path / "a.pdf"
    fast.write_bytes(pdf([["text"]]))
    huge = tmp_path / "huge.html"
    huge.touch()
    os.truncate(huge, (200 << 20) + 1)  # a sparse file
    (content,) = read_apart([huge])
    assert "has more than 200 MB" in str(content)
    late, _ = read_apart([fast, fast], seconds=0.0001)  # no process begins so fast
    assert str(late) == "takes more than 0.0001 seconds"


def test_a_missing_library_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.md").write_text("# A\n\none")
    monkeypatch.setattr(readers, "_is_there", lambda name: name != "pypdf")
    assert len(read_vault(tmp_path).notes) == 1  # Markdown needs none
    (tmp_path / "d.pdf").write_bytes(b"")
    with pytest.raises(StorageError, match=r"d\.pdf: this kind of file needs pypdf; install"):
        read_vault(tmp_path)
