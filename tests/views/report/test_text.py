"""Foreign text on a page and in Markdown."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from tests.rows import each_row

from terminal.page import Prose, Quotation
from views.page import _fence
from views.report.cases import BLOCK_BYTES, size_of
from views.report.figures import coefficient
from views.text import markdown_escape, one_line, shortened, visible


def test_control_and_direction_signs_become_visible() -> None:
    assert visible("a\x1b[31mb\x07\x7f\x85") == "a⟨U+001B⟩[31mb⟨U+0007⟩⟨U+007F⟩⟨U+0085⟩"
    assert visible("\u202eabc\u2066\ufeff\u200b") == "⟨U+202E⟩abc⟨U+2066⟩⟨U+FEFF⟩⟨U+200B⟩"
    assert visible("a\r\nb\rc\td") == "a\nb⟨U+000D⟩c\td"


def test_joiners_of_emoji_and_scripts_stay() -> None:
    assert visible("👩\u200d💻 می\u200cخواهم é") == "👩\u200d💻 می\u200cخواهم é"
    assert visible("pass\u200cword\u200d") == "pass⟨U+200C⟩word⟨U+200D⟩"


@given(st.text())
def test_nothing_that_is_left_controls_or_formats(text: str) -> None:
    left = set(visible(text)) - set("\n\t\u200c\u200d")
    assert [one for one in left if unicodedata.category(one) == "Cc"] == []
    assert (
        left & set("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
        == set()
    )
    visible(text).encode()  # no lone surrogate is left


@given(st.text(), st.integers(1, 50))
def test_one_line_is_one_line(text: str, limit: int) -> None:
    assert len(one_line(text, limit).splitlines()) <= 1
    assert not one_line("a" * (limit + 1), limit).endswith("a")


def test_a_cut_says_how_much_is_left_out() -> None:
    assert shortened("abcdef", 4) == ("abcd", 2)
    assert shortened("abc", 4) == ("abc", 0)


def test_bytes_on_the_page_count_what_escaping_adds() -> None:
    assert size_of([["<", "é"], Prose("x")]) == len("&lt;") + 2 + 1 + BLOCK_BYTES
    assert size_of("\u202e") == len("⟨U+202E⟩".encode())
    long = Quotation("", "y" * 9000)
    assert size_of(long) == 6000 + BLOCK_BYTES, "a page shows its beginning"


@given(st.text(alphabet="`~ab\n", max_size=40))
def test_a_text_cannot_leave_its_fence(text: str) -> None:
    lines = _fence(text, 100)
    fence = lines[0].removesuffix("text")
    assert set(fence) == {"`"}
    inner = lines[1:-1]
    assert lines[-1] == fence
    closing = re.compile(rf" {{0,3}}`{{{len(fence)},}}\s*$")
    assert [line for line in inner if closing.match(line)] == []


@each_row(
    ("text", "shown"),
    [
        ("a | b", r"a \| b"),
        ("<b>&amp; [x](y) `z`", r"\<b>\&amp; \[x\](y) \`z\`"),
        ("recall_all@5", "recall_all@5"),
        ("@someone _soft_ *hard*", r"\@someone \_soft\_ \*hard\*"),
        ("# head", r"\# head"),
        ("see https://example.org", r"see https\://example.org"),
        ("two\nlines", "two lines"),
        ("back\\slash", r"back\\slash"),
    ],
)
def test_signs_of_markdown_are_escaped(text: str, shown: str) -> None:
    assert markdown_escape(one_line(text)) == shown


def test_a_correlation_has_no_minus_zero() -> None:
    shown: Sequence[str] = [coefficient(r) for r in (-0.004, -0.5, None, 1.0)]
    assert shown == ["0.00", "-0.50", "–", "1.00"]


def test_hostile_markdown_is_read_as_text(made: Any) -> None:
    """A real reader of Markdown finds tables, lists and code in it, but no tag, link or picture."""
    tokens = MarkdownIt("commonmark", {"html": True}).enable("table").parse(made.text("md"))
    kinds = {one.type for token in tokens for one in (token, *(token.children or ()))}
    assert {"table_open", "fence", "heading_open"} <= kinds
    assert kinds & {"html_inline", "link_open", "image", "code_block"} == set()
    html = [line for one in tokens if one.type == "html_block" for line in one.content.split("\n")]
    own = re.compile(r"(<details><summary>[^<>]*</summary>|</details>)?")
    assert [line for line in html if not own.fullmatch(line)] == []
    columns = [t.content for t in tokens if t.type == "inline" and t.level == 4]
    assert "metric" in columns
    rows = [token.map for token in tokens if token.type == "tr_open" and token.map]
    assert len(rows) > 150
