"""Whether a tool is a search, by all of its calls: its results are passages of documents; pure.

    judge_tool("find", [({"query": "late fees"}, [{"path": "loans.md", "text": …}])]).is_search

Live bots and traces ask here. The results of a search are passages with places, found by a query.
Files that a call names, lines of files that hold its words, and pages of the web are none.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple
from urllib.parse import unquote

from records.tool_passages import (
    QUERIES,
    SHORT,
    Row,
    ToolForm,
    is_place,
    items_in,
    opened,
    own_result,
    passages_in,
    query_of,
    shown_text,
)

ToolResult = tuple[Any, Any]
"""The arguments of a call, None for unknown, and what it returned."""

_LINES = frozenset({"line", "lineno", "line_no", "line_number", "linenumber"})
_LEVELS = frozenset({"debug", "info", "notice", "warn", "warning", "error", "critical", "fatal"})
_LEVEL = re.compile("level|severity", re.IGNORECASE)
_ASIDE = frozenset({"reason", "reasoning", "explanation", "thought", "rationale", "purpose"})
"""Arguments in which a model says why it calls a tool."""
_LOG = re.compile(r"\.log(\.\d+)?$", re.IGNORECASE)
_NUMBERED_LINE = re.compile(r"\s*\d+\s*[:|\t→](?!\d)")
_ABSOLUTE = re.compile(r"file://|[A-Za-z]:[\\/]")
_SITE = re.compile(r"https?://([^/?#]+)", re.IGNORECASE)

_REMEDY = (
    "If it is a search, write how it is read: [traces.tools.NAME] in eval/config.toml, or for a "
    "live bot [tools.NAME] in its profile (docs/metrics.md)."
)
_ITS_OWN = (
    "If it searches your documents, write [traces.tools.{name}] in eval/config.toml, or for a live "
    "bot [tools.{name}] in its profile (docs/metrics.md)."
)


class ToolVerdict(NamedTuple):
    """Whether a tool is a search, over all of its results, and a sentence why (not); "" for none.

    ``uses_titles``: of one file it has several titles, which are headings then. ``files``: the
    documents.
    """

    is_search: bool
    about: str = ""
    uses_titles: bool = False
    files: frozenset[str] = frozenset()

    def passages(self, result: Any, form: ToolForm | None) -> list[Row]:
        """The passages of one of its results; an absolute path, which no label has, is the one
        document with which it ends."""
        rows = passages_in(result, form) or []
        if self.uses_titles:
            rows = [r | {"heading_path": r["title"]} if "title" in r else r for r in rows]
        return [
            self._named(row) if _ABSOLUTE.match(row.get("rel_path", "")) else row for row in rows
        ]

    def _named(self, row: Row) -> Row:
        path = unquote(row["rel_path"].partition("#")[0]).replace("\\", "/")
        ends = [file for file in self.files if path.endswith(f"/{file}")]
        return row | {"rel_path": max(ends, key=len)} if ends else row


def judge_tool(
    name: str,
    calls: Sequence[ToolResult],
    form: ToolForm | None = None,
    files: Iterable[str] = (),
    gold: Iterable[str] = (),
    *,
    is_named: bool = True,
) -> ToolVerdict:
    """Whether a tool is a search, by all of its calls that did not fail.

    ``files``: all of the documents, where they are known: half of the places must be among them.
    ``gold``: files of the labels; one of them shows that URLs are of the documents. Who names a
    tool, by an empty ``form`` too, knows it; ``is_named`` is False for a form that is a guess.
    """
    files = frozenset(files)
    results = [result for _, result in calls]
    lists = [passages_in(result, form) for result in results]
    rows = [row for listed in lists for row in listed or ()]
    if form is not None and form != ToolForm():
        unread = sum(listed is None for listed in lists)
        if rows and not unread:
            other = "" if is_named else _no_documents(calls, lists, files, gold)
            if not other:
                return ToolVerdict(True, files=files)
            return _not_a_search(name, other, _ITS_OWN.format(name=json.dumps(name)))
        about = f"its form does not read {unread or 'any'} of {_counted(len(results), 'result')}"
        return _not_a_search(name, about)
    if not rows:
        if not any(len(shown_text(own_result(result))) > SHORT // 4 for result in results):
            return ToolVerdict(False)
        about = f"{_counted(len(results), 'result')} without a file, page or URL as place"
        return _not_a_search(name, about, _REMEDY)
    others = [
        result
        for result, listed in zip(results, lists, strict=True)
        if listed is None and len(shown_text(own_result(result))) > SHORT
    ]
    if others:
        about = f"{len(others)} of {len(results)} results are no list of passages with places"
        return _not_a_search(name, about, _REMEDY)
    if form is None and (about := _no_documents(calls, lists, files, gold)):
        return _not_a_search(name, about, _ITS_OWN.format(name=json.dumps(name)))
    about = f"Tool {name} is read as a search: {_counted(len(rows), 'passage')} in "
    about += f"{_counted(len(results), 'result')}."
    return ToolVerdict(True, about, _titles_are_headings(rows), files)


def _not_a_search(name: str, about: str, remedy: str = "") -> ToolVerdict:
    return ToolVerdict(False, f"Tool {name}: {about}; seen, not retrieved. {remedy}".strip())


def _no_documents(
    calls: Sequence[ToolResult],
    lists: Sequence[Sequence[Row] | None],
    files: Iterable[str],
    gold: Iterable[str],
) -> str:
    if not all("rel_path" in row for listed in lists for row in listed or ()):
        return "its results lack a file, page or URL as place"
    return _other_tool(calls, lists) or _other_places(lists, files, gold)


def _other_tool(calls: Sequence[ToolResult], lists: Sequence[Sequence[Row] | None]) -> str:
    """What a tool with passages and places does instead of searching documents; "" for a search."""
    items = [item for _, result in calls for item in items_in(result) or ()]
    fields = {str(name).casefold() for item in items for name in item}
    rows = [row for listed in lists for row in listed or ()]
    are_lines = all(_NUMBERED_LINE.match(line) for r in rows for line in r["text"].splitlines())
    if are_lines or (fields & _LINES and not any("\n" in row["text"] for row in rows)):
        return "its results are numbered lines of files"
    named = [pair for item in items for pair in item.items() if _LEVEL.search(str(pair[0]))]
    levels = {str(value).casefold() for _, value in named}
    if levels & _LEVELS or all(_LOG.search(row["rel_path"]) for row in rows):
        return "its results are entries of logs"
    told = [(call[0], listed) for call, listed in zip(calls, lists, strict=True) if listed]
    if any(arguments is None for arguments, _ in told):
        return ""
    queries = [(*_query(arguments), listed) for arguments, listed in told]
    has_name = any(is_named for _, is_named, _ in queries)
    if not has_name and all(_names_places(arguments, listed) for arguments, listed in told):
        return "its arguments name the files that it returns"
    if not any(query for query, _, _ in queries):
        return "no call has a query"
    if len(rows) > 2 and all(_holds_each(query, listed) for query, _, listed in queries):
        return "each text has the words of its query in a row, as lines that a pattern finds"
    return ""


def _query(arguments: Any) -> tuple[str, bool]:
    """The words that a call searches, "" for none, and whether their argument has a usual name.

    Without such a name these are the first text of several words; files are no words.
    """
    fields = opened(arguments)
    if not isinstance(fields, Mapping):
        query = query_of(arguments) or ""
        return ("", False) if _are_places(query) else (query, True)
    if any(fields.get(name) is not None for name in QUERIES):
        query = query_of(fields) or ""
        return ("", False) if _are_places(query) else (query, True)
    texts = (text for name, text in fields.items() if str(name).casefold() not in _ASIDE)
    own = (t for t in texts if isinstance(t, str) and " " in t.strip() and not _are_places(t))
    return next(own, ""), False


def _are_places(text: str) -> bool:
    return all(map(is_place, re.split(r"[\s,;]+", text.strip())))


def _names_places(arguments: Any, rows: Sequence[Row]) -> bool:
    """Whether the arguments of a call name the place of each of its rows."""
    words = filter(is_place, re.split(r"[\s\"',;\[\](){}]+", shown_text(arguments)))
    named = [f"/{word.lstrip('./')}" for word in words]
    paths = [f"/{row['rel_path'].lstrip('./')}" for row in rows]
    return all(any(p.endswith(name) or name.endswith(p) for name in named) for p in paths)


def _holds_each(query: str, rows: Sequence[Row]) -> bool:
    words = query.strip().casefold()
    return " " in words and all(words in row["text"].casefold() for row in rows)


def _other_places(
    lists: Sequence[Sequence[Row] | None], files: Iterable[str], gold: Iterable[str]
) -> str:
    """Why the places are of no documents of this set; "" where they are."""
    pages = {row["rel_path"].partition("#")[0] for listed in lists for row in listed or ()}
    names = {_file_name(file) for file in files}
    if names:
        most, count = _most_on_a_site(page for page in pages if _file_name(page) in names)
        if 2 * most >= len(pages):
            return ""
        of_documents = "none" if count == 0 else f"only {count}"
        return f"{_counted(len(pages), 'place')}, {of_documents} in the documents"
    labelled = {_file_name(file) for file in gold}
    if not labelled and all(map(_ABSOLUTE.match, pages)):
        how = 'with documents = "FOLDER" under [traces] they become those of the labels'
        return f"its places are absolute paths; {how}"
    if any(_SITE.match(page) is None for page in pages):
        return ""
    has_gold = any(_file_name(page) in labelled for page in pages)
    most, _ = _most_on_a_site(pages)
    if 2 * most >= len(pages) and (has_gold or any(map(may_be_own, filter(None, lists)))):
        return ""
    return f"{_counted(len(pages), 'URL')}, perhaps of the web"


def _most_on_a_site(pages: Iterable[str]) -> tuple[int, int]:
    """The most pages on one site, files being one, and the number of all."""
    sites = Counter(match[1].casefold() if (match := _SITE.match(p)) else "" for p in pages)
    return max(sites.values(), default=0), sites.total()


def may_be_own(rows: Iterable[Row]) -> bool:
    """Whether a result has a file as place, or several passages of one page of a site.

    A search of the web, of tickets, messages or commits brings each of its pages once.
    """
    pages = [row["rel_path"].partition("#")[0] for row in rows]
    urls = [page for page in pages if _SITE.match(page)]
    return len(urls) < len(pages) or len(set(urls)) < len(urls)


def _titles_are_headings(rows: Sequence[Row]) -> bool:
    titles: dict[str, set[str]] = {}
    for row in rows:
        if "heading_path" in row or "title" not in row:
            return False
        titles.setdefault(row["rel_path"], set()).add(row["title"])
    return any(len(of_file) > 1 for of_file in titles.values())


def _file_name(path: str) -> str:
    name = re.split(r"[?#]", path.replace("\\", "/"))[0].rstrip("/").rpartition("/")[2]
    return name.rpartition(".")[0].casefold() or name.casefold()


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
