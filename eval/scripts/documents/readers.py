"""Reads HTML and PDF in a process of its own: a damaged or hostile file ends that process alone.

The libraries (pyproject's extra ``documents``) are imported when such a file is met.
"""

from __future__ import annotations

import importlib.util
import logging
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from documents.sections import Sheet, clean_pages
from records.errors import StorageError
from records.file_access import read_whole

if TYPE_CHECKING:
    from multiprocessing.connection import Connection
    from multiprocessing.process import BaseProcess

    from bs4 import Tag

SECONDS = 30
"""Time that a file may take."""
MEMORY = 1 << 30
"""Bytes that the reading process may use."""
LARGEST = 200 << 20
"""Bytes of the largest file that is read."""

Content = str | list[Sheet]
"""What a file holds: Markdown, or pages."""

UNUSED = "nav", "script", "style", "template", "noscript", "svg", "form", "button", "iframe"
AROUND = "header", "footer", "aside"
"""Parts of a page around its text, where no <main> says which part that is."""
HEADER_LINKS = "a.headerlink, a.anchor:empty, a.header-anchor"
LINKED_HEADINGS = ", ".join(f"h{level} a" for level in range(1, 7))


class UnreadableFile(ValueError):
    """A file whose text cannot be read; the message says why."""


def read_html(data: bytes) -> str:
    """The text of an HTML page as Markdown, without navigation."""
    from bs4 import BeautifulSoup
    from markdownify import MarkdownConverter

    soup = BeautifulSoup(data, "html.parser")
    main = soup.select_one("main, [role=main]")
    body = main or soup.body or soup
    around = [] if main else [part for part in body.find_all(AROUND) if not _is_title(part)]
    for part in (*body.find_all(UNUSED), *around):
        part.decompose()
    for link in body.select(HEADER_LINKS):
        link.decompose()
    for link in body.select(LINKED_HEADINGS):
        link.unwrap()
    for part in body.find_all("p"):
        if part.get_text().lstrip().startswith("#"):
            part.insert(0, "\\")  # else it would become a heading
    converter = MarkdownConverter(
        heading_style="atx", strip=["img"], escape_misc=False, escape_underscores=False,
        escape_asterisks=False,
    )  # fmt: skip
    text: str = converter.convert_soup(body)
    return text.strip() + "\n"


def _is_title(part: Tag) -> bool:
    """Whether it is the header of an article, which holds its title, not that of the page."""
    return part.name == "header" and part.find_parent("article") is not None


def read_pdf(data: bytes) -> list[Sheet]:
    """The sheets of a PDF, with the titles of its outline. Tables are lines of words.

    Raises UnreadableFile for one that is encrypted or holds no text.
    """
    import io

    from pypdf import PdfReader

    reader = PdfReader(io.BytesIO(data))
    if reader.is_encrypted and not reader.decrypt(""):
        raise UnreadableFile("is encrypted")
    texts = clean_pages([page.extract_text() for page in reader.pages])
    if not any(texts):
        raise UnreadableFile("has no text; its pages may be pictures")
    labels = reader.page_labels
    headings: dict[int, list[tuple[int, str]]] = {}
    for level, entry in _outline(reader.outline, 1):
        number = reader.get_destination_page_number(entry)
        if number is not None and entry.title:
            headings.setdefault(number, []).append((level, " ".join(entry.title.split())))
    return [
        Sheet(text, label, headings.get(number, ()))
        for number, (text, label) in enumerate(zip(texts, labels, strict=True))
    ]


def _outline(entries: Sequence[Any], level: int) -> Iterator[tuple[int, Any]]:
    for entry in entries:
        if isinstance(entry, list):
            yield from _outline(entry, level + 1)
        else:
            yield level, entry


READERS: dict[str, tuple[Callable[[bytes], Content], tuple[str, ...]]] = {
    ".html": (read_html, ("bs4", "markdownify")),
    ".htm": (read_html, ("bs4", "markdownify")),
    ".xhtml": (read_html, ("bs4", "markdownify")),
    ".pdf": (read_pdf, ("pypdf",)),
}
"""The reader of each kind of file, and the libraries that it needs."""


def read_apart(
    files: Sequence[Path], seconds: float = SECONDS
) -> Iterator[Content | UnreadableFile]:
    """The content of each file in order, or why it cannot be read.

    A file gets ``seconds`` and a gigabyte. Raises StorageError when a library is missing.
    """
    for file in files:
        missing = [name for name in READERS[file.suffix.lower()][1] if not _is_there(name)]
        if missing:
            raise StorageError(
                f"{file}: this kind of file needs {' and '.join(missing)}; install "
                "beautifulsoup4, markdownify and pypdf (pip install '.[documents]')."
            )
    worker = _Worker(seconds)
    try:
        for file in files:
            yield worker.read(file)
    finally:
        worker.end()


def _is_there(library: str) -> bool:
    return importlib.util.find_spec(library) is not None


class _Worker:
    """The process that reads, begun when it is first needed and after each file that ended it."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._process: BaseProcess | None = None
        self._pipe: Connection

    def read(self, file: Path) -> Content | UnreadableFile:
        if self._process is None:
            self._begin()
        try:
            self._pipe.send(file)
            if self._pipe.poll(self._seconds):
                content: Content | UnreadableFile = self._pipe.recv()
                return content
            reason = f"takes more than {self._seconds:g} seconds"
        except (EOFError, OSError):
            reason = "ended the process that reads it"
        self.end()
        return UnreadableFile(reason)

    def _begin(self) -> None:
        import multiprocessing

        context = multiprocessing.get_context("spawn")
        self._pipe, other = context.Pipe()
        self._process = context.Process(target=_serve, args=(other,), daemon=True)
        self._process.start()
        other.close()  # its end of the process closes the pipe

    def end(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.join()
            self._pipe.close()
            self._process = None


def _serve(pipe: Connection) -> None:
    """Read the files that are named, until the pipe is closed."""
    logging.disable()  # libraries complain about files that they do not name
    _limit_memory()
    while True:
        try:
            file = pipe.recv()
        except (EOFError, KeyboardInterrupt):
            return
        pipe.send(_content_of(file))


def _content_of(file: Path) -> Content | UnreadableFile:
    try:
        return READERS[file.suffix.lower()][0](read_whole(file, LARGEST))
    except UnreadableFile as error:
        return error
    except OSError as error:
        return UnreadableFile(error.strerror or str(error))
    except MemoryError:
        return UnreadableFile("needs more than 1 GB of memory")
    except RecursionError:
        return UnreadableFile("is nested too deeply")
    except Exception as error:  # what a damaged file makes of a library
        return UnreadableFile(f"is damaged ({type(error).__name__}: {error})"[:200])


def _limit_memory() -> None:
    try:
        import resource
    except ImportError:  # Windows
        return
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
