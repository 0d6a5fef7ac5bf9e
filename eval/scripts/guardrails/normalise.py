"""Undoes the tricks that hide a text from a pattern, keeping a map back to the original.

`views(text)` gives the ways a text can be read: folded (case, accents, look-alike letters,
full-width forms, zero-width and tag characters), with leetspeak read as letters, with spaced-out
letters joined, and with what is packed inside decoded (base64, hex, percent and HTML escapes,
rot13, reversed). Every character of a view knows the span of the original it stands for, so
evidence can be shown where the user will find it.

Everything is linear in the length of the text: an unbounded run is looked at from its beginning
only, and can be split in one way. Pure: the same text gives the same views.
"""

from __future__ import annotations

import base64
import binascii
import codecs
import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import unquote_to_bytes

# Letters of other scripts that look like Latin ones, keyed by the letter they imitate. Casefolded
# forms suffice, because folding runs first. Digits and signs are left to the leetspeak view.
_LOOKALIKES = {
    "a": "аɑαａ⍺ᴀ",
    "b": "ьʙв",
    "c": "сϲⅽᴄ",
    "d": "ԁⅾɗᴅ",
    "e": "еєεҽ℮ᴇ",
    "f": "ғƒꜰ",
    "g": "ɡցɢ",
    "h": "һհнʜ",
    "i": "іıιɩɪӏ",
    "j": "јϳᴊ",
    "k": "кκᴋ",
    "l": "ⅼʟ",
    "m": "мⅿᴍ",
    "n": "ոпηɴ",
    "o": "оοօᴏσ",
    "p": "рρᴘ",
    "q": "ԛգ",
    "r": "гᴦʀ",
    "s": "ѕꜱ",
    "t": "тτᴛ",
    "u": "υսᴜ",
    "v": "ѵνᴠ",
    "w": "ԝωѡᴡ",
    "x": "хχ×",
    "y": "уүγʏ",
    "z": "ᴢ",
}
_TO_LATIN = {ord(look): letter for letter, looks in _LOOKALIKES.items() for look in looks}
_LEET = str.maketrans("013457@$!|", "oieastasil")
# "1" stands for both i and l in leetspeak, so the view is made twice.
_LEET_L = str.maketrans("013457@$!|", "oleastasll")

_WORD = re.compile(r"[^\W_]+")
_LEET_TOKEN = re.compile(r"(?<![a-z013457@$!|])[013457@$!|]*[a-z][a-z013457@$!|]*")
_SPACED = re.compile(r"(?<![^\W_])[a-z0-9](?:[ .\-_*|~]{1,3}[a-z0-9](?![^\W_])){3,}")
_BASE64 = re.compile(r"(?<![A-Za-z0-9+/_-])[A-Za-z0-9+/_-]{16,}={0,2}")
_HEX = re.compile(r"(?<![0-9A-Za-z])(?:(?:0x|\\x)?[0-9A-Fa-f]{2}[ ,:]?){10,}(?![0-9A-Za-z])")
_PERCENT = re.compile(r"(?:%[0-9A-Fa-f]{2}|[A-Za-z0-9_.+-]){12,}")
_ENTITY = re.compile(r"&#(x[0-9a-fA-F]{1,6}|[0-9]{1,7});|\\u([0-9a-fA-F]{4})|\\x([0-9a-fA-F]{2})")
_ROT13_HINT = re.compile(r"\b(?:vtaber|qvfertneq|sbetrg|vafgehpgvbaf?|cebzcg|flfgrz|cerivbhf)\b")
_REVERSED_HINT = re.compile(
    r"\b(?:erongi|drageridsid|tegrof|snoitcurtsni|tpmorp|metsys|suoiverp)\b"
)
_MAX_PACKED = 20_000  # characters of one packed run that are decoded; longer ones are data files


@dataclass(frozen=True)
class TextReading:
    """One reading of a text.

    `text` is what patterns look at. `starts[i]` and `ends[i]` are the half-open span of the
    original that produced `text[i]`.
    """

    name: str
    text: str
    starts: tuple[int, ...] | range
    ends: tuple[int, ...] | range

    def original_span(self, start: int, end: int) -> tuple[int, int]:
        """The span of the original text behind `text[start:end]` (which must not be empty)."""
        return min(self.starts[start:end]), max(self.ends[start:end])


class _FoldTable(dict[str, str]):
    """Character to folded string, filled on first use."""

    def __missing__(self, char: str) -> str:
        folded = _fold_character(char)
        self[char] = folded
        return folded


def _fold_character(char: str) -> str:
    code = ord(char)
    if 0xE0020 <= code <= 0xE007E:  # Unicode tags: invisible copies of ASCII
        return chr(code - 0xE0000).casefold()
    if char in "\n\t":
        return char
    category = unicodedata.category(char)
    if category in {"Cf", "Cc", "Cs", "Co", "Cn"}:
        return " " if char in "\r\x0b\x0c\x85" else ""
    plain = unicodedata.normalize("NFKC", char).casefold()
    if code < 0x600 or 0x1D00 <= code < 0x2E80:  # Latin, Greek, Cyrillic: accents do not matter
        decomposed = unicodedata.normalize("NFKD", plain)
        plain = "".join(c for c in decomposed if not unicodedata.combining(c))
    return plain if plain.isascii() else plain.translate(_TO_LATIN)


_FOLD = _FoldTable()


def fold(text: str) -> TextReading:
    """Fold case, accents, look-alikes, full-width forms and invisible characters away."""
    if text.isascii() and text.isprintable():
        span = range(len(text))
        return TextReading("folded", text.lower(), span, range(1, len(text) + 1))
    pieces: list[str] = []
    starts: list[int] = []
    for index, char in enumerate(text):
        folded = _FOLD[char]
        if folded:
            pieces.append(folded)
            starts.extend([index] * len(folded))
    return TextReading("folded", "".join(pieces), tuple(starts), tuple(s + 1 for s in starts))


def _leet_views(folded: TextReading) -> Iterator[TextReading]:
    mixed = [m for m in _LEET_TOKEN.finditer(folded.text) if not m.group().isalpha()]
    if not mixed:
        return
    for name, table in (("leetspeak", _LEET), ("leetspeak-l", _LEET_L)):
        yield TextReading(name, folded.text.translate(table), folded.starts, folded.ends)


def _spaced_views(folded: TextReading) -> Iterator[TextReading]:
    """Runs of single letters joined; a wider gap or a blank among other marks ends a word."""
    for run in _SPACED.finditer(folded.text):
        chars: list[str] = []
        positions: list[int] = []
        marks = re.findall(r"[ .\-_*|~]{1,3}", run.group())
        usual = min(marks, key=len)
        position = run.start()
        for mark in [*marks, None]:
            chars.append(folded.text[position])
            positions.append(position)
            if mark is None:
                break
            if mark != usual:
                chars.append(" ")
                positions.append(position)
            position += 1 + len(mark)
        yield TextReading(
            "spaced letters",
            "".join(chars),
            tuple(folded.starts[p] for p in positions),
            tuple(folded.ends[p] for p in positions),
        )


def _looks_like_text(raw: bytes) -> str | None:
    """The bytes as words, or None when they are not readable text."""
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError:
        return None
    readable = sum(c.isalpha() or c == " " for c in text)
    return text if len(text) >= 8 and readable >= 0.75 * len(text) and " " in text else None


def _unpack_base64(packed: str) -> str | None:
    body = packed.rstrip("=").replace("-", "+").replace("_", "/")
    body = body[: len(body) - (len(body) % 4 == 1)]
    try:
        return _looks_like_text(base64.b64decode(body + "=" * (-len(body) % 4)))
    except (binascii.Error, ValueError):
        return None


def _unpack_hex(packed: str) -> str | None:
    digits = re.sub(r"0x|\\x|[ ,:]", "", packed)
    try:
        return _looks_like_text(bytes.fromhex(digits))
    except ValueError:
        return None


def _unpack_percent(packed: str) -> str | None:
    if packed.count("%") < 2:
        return None
    return _looks_like_text(unquote_to_bytes(packed))


def _packed_views(text: str) -> Iterator[TextReading]:
    for name, pattern, unpack in (
        ("base64", _BASE64, _unpack_base64),
        ("hex", _HEX, _unpack_hex),
        ("percent-encoded", _PERCENT, _unpack_percent),
    ):
        for run in pattern.finditer(text):
            if len(run.group()) > _MAX_PACKED:
                continue
            plain = unpack(run.group())
            if plain is not None:
                inner = fold(plain).text
                size = len(inner)
                yield TextReading(name, inner, (run.start(),) * size, (run.end(),) * size)


def _entity_view(text: str) -> TextReading | None:
    """HTML character references and backslash escapes read as the characters they name."""
    if len(_ENTITY.findall(text[:100_000])) < 4:
        return None
    chars: list[str] = []
    starts: list[int] = []
    ends: list[int] = []
    done = 0
    for match in _ENTITY.finditer(text):
        for index in range(done, match.start()):
            chars.append(text[index])
            starts.append(index)
            ends.append(index + 1)
        reference, *escaped = match.groups()
        if reference:
            code = int(reference[1:], 16) if reference[0] == "x" else int(reference)
        else:
            code = int(next(e for e in escaped if e), 16)
        done = match.end()
        if code <= 0x10FFFF:
            chars.append(chr(code))
            starts.append(match.start())
            ends.append(match.end())
    inner = fold("".join(chars) + text[done:])
    starts.extend(range(done, len(text)))
    ends.extend(range(done + 1, len(text) + 1))
    return TextReading(
        "character references",
        inner.text,
        tuple(starts[i] for i in inner.starts),
        tuple(ends[i] for i in inner.starts),
    )


def views(text: str) -> list[TextReading]:
    """Return all readings of `text`, the folded one first; any that adds nothing is left out."""
    folded = fold(text)
    readings = [folded, *_leet_views(folded), *_spaced_views(folded), *_packed_views(text)]
    entities = _entity_view(text)
    if entities is not None:
        readings.append(entities)
    if _ROT13_HINT.search(folded.text):
        turned = codecs.encode(folded.text, "rot13")
        readings.append(TextReading("rot13", turned, folded.starts, folded.ends))
    if _REVERSED_HINT.search(folded.text):
        readings.append(
            TextReading("reversed", folded.text[::-1], folded.starts[::-1], folded.ends[::-1])
        )
    return readings


def words(text: str) -> Iterator[re.Match[str]]:
    """Runs of letters and digits, in order."""
    return _WORD.finditer(text)
