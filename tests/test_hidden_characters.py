"""Characters without a width: shown where they hide, left where a script or an emoji needs them."""

from __future__ import annotations

from collections.abc import Callable

from tests.rows import each_row

from terminal.hidden import mark_hidden
from terminal.page import Heading, Page, Prose, Quoted
from terminal.safe_text import display
from terminal.tables import harmless_lines, plain
from views.page import markdown
from views.report.page import PageBlocks
from views.text import visible

NEEDED = [
    "می\u200cخواهم",  # Persian: "I want", two parts of one word that are not joined
    "ه\u200d",  # Persian: the letter heh in its initial form, as for the Hijri year
    "क्\u200dष, क्\u200cष",  # Hindi: half form and visible virama
    "👨\u200d👩\u200d👧",  # a family
    "❤\ufe0f\u200d🔥 🏳\ufe0f\u200d🌈",  # behind a variation selector
    "🧑🏽\u200d⚕\ufe0f 🐻\u200d❄\ufe0f",  # a skin tone before, a symbol behind
]
HIDDEN = {
    "pass\u200cword": "pass�word",
    "pass\u200dword": "pass�word",
    "\u200dx\u200c": "�x�",
    "x \u200d y": "x � y",
    "漢\u200d字": "漢�字",  # no script that joins
    "👨\u200d and 👨\u200c👩": "👨� and 👨�👩",  # one emoji alone; a non-joiner between two
    "a\u200d👩": "a�👩",
    "می\u200c\u200c\u200c\u200cخواهم": "می\u200c��\u200cخواهم",  # the middle ones join nothing
    "👨\u200d\u200d👩": "👨��👩",
}
ALWAYS = "\u200b\u2060\ufeff"


@each_row("shown", [plain, harmless_lines, display])
@each_row("text", NEEDED)
def test_what_a_script_or_an_emoji_needs_stays(shown: object, text: str) -> None:
    assert callable(shown)
    assert shown(text) == text


@each_row("shown", [plain, harmless_lines, display])
@each_row(("text", "marked"), HIDDEN.items())
def test_what_joins_nothing_is_shown(shown: object, text: str, marked: str) -> None:
    assert callable(shown)
    assert shown(text) == marked
    assert shown(marked) == marked


@each_row("shown", [plain, harmless_lines, display])
def test_these_are_always_shown(shown: object) -> None:
    """Also beside letters of Persian, where a joiner would stay."""
    assert callable(shown)
    assert shown(f"pass{ALWAYS}word") == "pass���word"
    assert shown("می\u200bخواهم") == "می�خواهم"


def test_another_mark() -> None:
    assert mark_hidden("a\u200db\u202e", lambda char: f"<{ord(char):x}>") == "a<200d>b<202e>"


INVISIBLE = """
    0000 007F 009B              controls: NUL, DEL, CSI
    00AD 034F 061C              soft hyphen, grapheme joiner, Arabic letter mark
    115F 1160 3164 FFA0         fillers of Hangul, which are letters without a shape
    17B4 17B5 180E              vowels of Khmer and a separator of Mongolian, without a shape
    200B 200E 200F              zero width space, left-to-right mark, right-to-left mark
    2028 2029                   line and paragraph separator
    202A 202B 202C 202D 202E    embeddings and overrides of direction
    2060 2061 2064 2065         word joiner, invisible operators, not assigned
    2066 2067 2068 2069         isolates of direction
    206A 206F FEFF              deprecated format characters, byte order mark
    FFF0 FFF9 FFFA FFFB         not assigned, interlinear annotation
    1BCA0 1D173 1D17A           format controls of shorthand and of music
    E0001 E0041 E0061 E007F     tags: a hidden copy of ASCII
    E0100 E01EF E0FFF           variation selectors of ideographs, not assigned
    D800 DFFF                   halves of a character
"""
"""By hand from the Unicode tables: Default_Ignorable_Code_Point, Bidi_Control, Cc, Zl, Zp, Cs."""

CHARACTERS = [chr(int(word, 16)) for line in INVISIBLE.split("\n") for word in line[:32].split()]


def drawn(draw: Callable[[Page], str]) -> Callable[[str], str]:
    """A renderer of documents: foreign text in its title, in its prose and as a code span."""

    def shown(text: str) -> str:
        page = Page(text, [Heading(text), Prose(("It is ", Quoted(text), text))])
        return draw(page)

    return shown


RENDERERS: dict[str, Callable[[str], str]] = {
    "table": plain,
    "diff.md": harmless_lines,
    "screen": display,
    "report": visible,
    "Markdown": drawn(lambda page: markdown([page])),
    "HTML": drawn(lambda page: str(PageBlocks().write(page.blocks))),
}


def test_there_are_forty() -> None:
    assert len(CHARACTERS) == len({*CHARACTERS}) >= 40


@each_row("shown", RENDERERS.values())
def test_every_renderer_takes_the_same_characters_out(shown: Callable[[str], str]) -> None:
    left = [
        f"{ord(char):04X}"
        for char in CHARACTERS
        if char in shown(f"pay{char}ment") or shown(f"pay{char}ment") == shown("payment")
    ]
    assert left == []


@each_row("shown", RENDERERS.values())
def test_selectors_in_a_row_hide_nothing(shown: Callable[[str], str]) -> None:
    """Sixteen selectors are four bits each: behind one emoji there is room for a message. The first
    one chooses a form; what is behind it chooses nothing."""
    text = shown("❤\ufe0f\ufe01\ufe0e x")
    assert "❤\ufe0f" in text
    assert not {"\ufe01", "\ufe0e"} & {*text}
