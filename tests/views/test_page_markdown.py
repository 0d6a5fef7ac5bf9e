"""Blocks as Markdown, in which foreign text stays text."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markupsafe import Markup

from terminal.page import (
    Block,
    CaseLinks,
    CaseRef,
    CasesColumn,
    Conclusion,
    DataColumn,
    DataTable,
    Heading,
    Page,
    Prose,
    Quotation,
    Quoted,
    Section,
    items,
)
from views.html import HtmlWriter
from views.page import markdown
from views.text import anchor

COLUMNS = (
    DataColumn[tuple[str, str]]("case", lambda row: row[0], words=True, foreign=True),
    DataColumn[tuple[str, str]]("n", lambda row: row[1]),
)


def test_a_document_begins_with_its_title_and_its_verdict() -> None:
    blocks: list[Block] = [
        Prose("Changed:"),
        *items(["k: 3", "p < .001"]),
        Heading("Cases"),
        DataTable(COLUMNS, [("a|b", "2")], "All"),
        Heading(("Broke: ", Quoted("c1")), 3),
        Quotation("Q", "```why"),
        Conclusion("WORSE.", "bad", (Prose(Quoted("▼ recall")),)),
    ]
    assert markdown([Page((Quoted("old"), " → ", Quoted("new")), blocks)]).split("\n") == [
        "# `old` → `new`", "",
        "**❌ WORSE.**", "", "- `▼ recall`", "",
        "Changed:", "",
        "- k: 3", "- p \\< .001", "",
        "## Cases", "",
        "## All", "",
        "| case | n |", "|---|--:|", "| `a\\|b` | 2 |", "",
        "### Broke: `c1`", "",
        "Q:", "", "````text", "```why", "````", "",
    ]  # fmt: skip


def test_a_page_without_a_title_has_its_verdict_for_a_heading() -> None:
    page = Page("", [Prose("text"), Conclusion("passed", "good")])
    assert markdown([page], head="<!-- mark -->") == "<!-- mark -->\n## ✅ passed\n\ntext\n"


def test_what_is_folded_goes_first_where_there_is_too_much() -> None:
    folded = DataTable(COLUMNS, [("x" * 200, "1")], folded="All of them")
    page = Page("", [Prose("kept"), folded])
    assert "<details><summary>All of them</summary>" in markdown([page], most=400)
    assert markdown([page], most=100, rest="see the file") == "kept\n\n… cut here; see the file.\n"
    lines = Page("", list(items(["word"] * 100)))
    assert len(markdown([lines], most=100, rest="see the file")) <= 100


def test_the_words_over_what_is_folded_are_no_markup() -> None:
    page = Page("", [Section("<b>x</b>\n\n# y", [Prose("z")], level=0)])
    head = "<details><summary>&lt;b&gt;x&lt;/b&gt; # y</summary>"
    assert markdown([page]) == f"{head}\n\nz\n\n</details>\n"


@given(st.text(max_size=80))
def test_foreign_text_is_a_code_span_in_prose_and_in_cells(text: str) -> None:
    page = Page("", [Prose(("before ", Quoted(text), " after")), DataTable(COLUMNS, [(text, "1")])])
    tokens = MarkdownIt("commonmark", {"html": True}).enable("table").parse(markdown([page]))
    inside = [token.children or [] for token in tokens if token.type == "inline"]
    assert [part.type for part in inside[0]] == ["text", "code_inline", "text"]
    assert [part.type for part in inside[3]] == ["code_inline"]


@given(st.text("a1#@<*_`[]()|\\. -+>", min_size=1, max_size=30))
def test_own_words_are_no_markup(text: str) -> None:
    tokens = MarkdownIt("commonmark", {"html": True}).parse(markdown([Page("", [Prose(text)])]))
    kinds = {part.type for token in tokens for part in token.children or ()}
    assert kinds <= {"text", "text_special"}


def test_a_table_of_a_page_shows_foreign_text_and_links_to_cases() -> None:
    bad = "<script>alert(1)</script>\u202e"
    links = CaseLinks(2, [("c<1>", 2)])
    cases = CasesColumn[tuple[str, str]]("cases", lambda row: links)
    table = DataTable([*COLUMNS, cases], [(bad, "1")], caption="All of <them>")
    html = HtmlWriter(
        {anchor("c<1>", 2)}, lambda chart: Markup(""), lambda whisker: Markup("")
    ).write([table, Prose((CaseRef("c<1>", 2), " broke"))])
    link = f'<a href="#{anchor("c<1>", 2)}">c&lt;1&gt; r2</a>'
    assert f"<p>{link} broke</p>" in html
    assert "<script" not in html
    assert "&lt;script&gt;" in html
    assert "⟨U+202E⟩" in html
    assert "All of &lt;them&gt;" in html
    assert f"<summary>2 answers</summary>{link} and 1 more</details>" in html
    assert "cases" not in markdown([Page("", [table])])


def test_the_head_of_a_page_s_column_hides_nothing() -> None:
    from terminal.page import plain_table
    from views.report.page import PageBlocks

    table = plain_table(("case", "x\x1b[2J<b>\u202e"), [("c", "d")], caption="k")
    html = str(PageBlocks().write([table]))
    assert "x⟨U+001B⟩[2J&lt;b&gt;⟨U+202E⟩" in html
    assert not {"\x1b", "\u202e"} & set(html)
