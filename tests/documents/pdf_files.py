"""Small PDF files for tests: pages of lines, with an outline, as pypdf writes them."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Any

from pypdf import PdfWriter
from pypdf.generic import DecodedStreamObject, DictionaryObject, NameObject


def pdf(
    pages: Sequence[Sequence[str]], outline: Sequence[tuple[str, int, str]] = (), password: str = ""
) -> bytes:
    """A PDF with a line of text for each line. ``outline``: title, page from 0, title above it."""
    writer = PdfWriter()
    for lines in pages:
        page = writer.add_blank_page(400, 600)
        moves = " ".join(f"({_escaped(line)}) Tj T*" for line in lines)
        stream = DecodedStreamObject()
        stream.set_data(f"BT /F1 10 Tf 14 TL 20 570 Td {moves} ET".encode("latin-1"))
        page[NameObject("/Contents")] = writer._add_object(stream)
        font = {"/Type": "/Font", "/Subtype": "/Type1", "/BaseFont": "/Helvetica"}
        font["/Encoding"] = "/WinAnsiEncoding"
        entry = DictionaryObject({NameObject(k): NameObject(v) for k, v in font.items()})
        fonts = DictionaryObject({NameObject("/F1"): writer._add_object(entry)})
        page[NameObject("/Resources")] = DictionaryObject({NameObject("/Font"): fonts})
    entries: dict[str, Any] = {}
    for title, number, above in outline:
        above_it = entries.get(above)
        entries[title] = writer.add_outline_item(title=title, page_number=number, parent=above_it)
    if password:
        writer.encrypt(password, algorithm="RC4-128")
    data = io.BytesIO()
    writer.write(data)
    return data.getvalue()


def _escaped(line: str) -> str:
    return line.replace("\\", "\\\\").replace("(", "\\(").replace(")", "\\)")
