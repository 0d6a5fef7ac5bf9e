"""Passages in the result of a tool: a tool that returns texts with their places is a search; pure.

    passages_in('[{"path": "a.md", "text": "Water is allowed."}]')
    passages_in("[a.md # Food]\\nWater is allowed.")     # [{"rel_path": "a.md", "text": …}]

A place is a file, a page or a URL; ids, titles and names are none. Read are lists of objects, also
in JSON, in printed Python objects, in XML and in what agents' frameworks put around them, and texts
of nothing but blocks, each below a line with its place alone.
"""

from __future__ import annotations

import ast
import json
import math
import re
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import partial
from typing import Annotated, Any

import msgspec

from records.passage_fields import FILE, HEADINGS, IDS, PAGES, PLACES, SCORES, TEXTS
from records.toml_files import KeyPath, Parsed, TomlReader

Getter = Callable[[Any], Any]
Row = dict[str, Any]

_MOST_DEPTH = 5
_MOST_TEXT = 1_000_000
_LEAST_WORDS = 3
"""Words of a field, on average, by which it may be a text."""
SHORT = 200
"""Characters of a message such as "No note was found", which is no list and none was expected."""

_NO_PLACES = frozenset({"id", "title", "name", "location"})
_EMPTY = ("results", "passages", "documents", "hits", "result", "data", "items", "matches")

_WORD = re.compile(r"[^\W\d_]{2,}")
_FENCED = re.compile(r"[^`]{0,400}```(?:json)?\s*\n([^`]*)\n\s*```")
"""A block of JSON below a sentence or two."""
_URL = re.compile(r"[a-z][a-z0-9+.-]*://[^\s<>\"]+", re.IGNORECASE)
_FILE = re.compile(rf"{FILE}(?:#\S*)?")
QUERIES = (
    *("query", "q", "question", "search", "search_query", "queries", "input", "text"),
    *("term", "terms", "keyword", "keywords", "topic"),
)


@dataclass(frozen=True)
class ToolForm:
    """How the user says that a tool's results are read (``[tools.NAME]``).

    ``passages``: the list in a result, and inside of it ``text``, ``rel_path``, ``heading_path``.
    Of a text instead ``split``: what is between two passages; ``place``: finds in each of them the
    groups ``rel_path`` (or ``path``) and ``heading_path`` (or ``heading``), and ``text``, else the
    text is the rest.
    """

    passages: Getter | None = None
    text: Getter | None = None
    rel_path: Getter | None = None
    heading_path: Getter | None = None
    split: re.Pattern[str] | None = None
    place: re.Pattern[str] | None = None


def tool_forms(
    tables: Mapping[str, Any], compiled: Callable[[str], Getter], reader: TomlReader, key: KeyPath
) -> dict[str, ToolForm]:
    """The forms of tables by the names of tools; the reader notes each fault under ``key``."""
    path: Any = Annotated[Any, Parsed(partial(_made, "JMESPath", compiled))]
    pattern: Any = Annotated[Any, Parsed(partial(_made, "regular", _multiline))]
    kinds = {"split": pattern, "place": pattern}
    rows = [(row.name, kinds.get(row.name, path), None) for row in fields(ToolForm)]
    table = msgspec.defstruct("ToolTable", rows)
    read = {tool: reader.read(raw, table, (*key, tool)) for tool, raw in tables.items()}
    return {tool: ToolForm(**msgspec.structs.asdict(own)) for tool, own in read.items() if own}


def _multiline(text: str) -> re.Pattern[str]:
    return re.compile(text, re.MULTILINE)


def _made(kind: str, make: Callable[[str], Any], text: Any) -> Any:
    if not isinstance(text, str):
        raise ValueError("must be a text")
    try:
        return make(text)
    except (ValueError, re.error) as error:
        reason = " ".join(str(error).split())
        raise ValueError(f"is not a {kind} expression ({reason})") from None


def passages_in(result: Any, form: ToolForm | None = None) -> list[Row] | None:
    """The passages of a tool's result: their text, place and heading.

    None where the result is no list of passages; an empty list has none. By a ``form`` a passage
    may also lack its place.
    """
    if form is not None and form != ToolForm():
        return _by_form(result, form)
    items = items_in(result)
    return None if items is None else _rows(items)


def items_in(result: Any) -> list[Row] | None:
    """The objects with a text and a place in a result, as they came; those of blocks as
    ``passages_in`` gives them. None where it is no list of them."""
    found = _items(result, 0)
    return found if not found or _rows(found) is not None else None


def query_of(arguments: Any) -> str | None:
    """The query of a search: the argument of a usual name, else the only text."""
    fields = opened(arguments)
    if not isinstance(fields, Mapping):
        return fields if isinstance(fields, str) and fields.strip() else None
    named = next((fields[name] for name in QUERIES if fields.get(name) is not None), None)
    if isinstance(named, list) and named and all(isinstance(text, str) for text in named):
        named = "; ".join(named)
    if isinstance(named, str):
        return named
    texts = [text for text in fields.values() if isinstance(text, str)]
    return texts[0] if len(texts) == 1 else None


def shown_text(result: Any) -> str:
    if result is None or isinstance(result, str):
        return result or ""
    return json.dumps(result, default=str)


def opened(value: Any) -> Any:
    """A JSON text, also in a fence below prose, or a printed Python list, as its value; any other
    value unchanged."""
    if not isinstance(value, str) or len(value) > _MOST_TEXT:
        return value
    text = value.strip()
    if fenced := _FENCED.fullmatch(text):
        text = fenced[1].strip()
    if text[:1] in ("[", "{"):
        try:
            return json.loads(text)
        except (ValueError, RecursionError):
            pass
    if text[-1:] in ("]", "}", ")") and ("=" in text or "': " in text):
        printed = _printed(text)
        return value if printed is None else printed
    return value


def _printed(text: str) -> Any:
    """The value of printed Python objects, each with its named arguments; None for other texts."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of escapes in foreign texts
            return _value(ast.parse(text, mode="eval").body)
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return None


def _value(node: ast.AST) -> Any:
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, ast.List | ast.Tuple):
        return [_value(item) for item in node.elts]
    if isinstance(node, ast.Dict):
        pairs = zip(node.keys, node.values, strict=True)
        return {str(_value(key)): _value(item) for key, item in pairs if key is not None}
    if isinstance(node, ast.Call) and node.keywords and not node.args:
        return {word.arg: _value(word.value) for word in node.keywords if word.arg}
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        number = _value(node.operand)
        if isinstance(number, int | float):
            return -number
    raise ValueError("no value")


def _items(value: Any, depth: int) -> list[Row] | None:
    """The list of objects in a value, whatever is around it; None without one or with several."""
    if depth > _MOST_DEPTH:
        return None
    value = opened(value)
    if isinstance(value, str):
        return _xml_items(value) or _blocks(value) or _numbered(value)
    if isinstance(value, list):
        if (inner := _content(value)) is not None:
            return inner if isinstance(inner, list) else _items(inner, depth + 1)
        if len(value) == 1 and isinstance(value[0], list):
            return _items(value[0], depth + 1)
        are_objects = all(isinstance(item, Mapping) for item in value)
        return list(value) if are_objects else None
    if not isinstance(value, Mapping):
        return None
    if columns := _columns(value):
        return columns
    lists = {name: items for name, item in value.items() if (items := _items(item, depth + 1))}
    lists = {name: items for name, items in lists.items() if _rows(items) is not None}
    for name in ("artifact", "structuredContent", "structured_content"):  # says it again, whole
        if name in lists:
            return lists[name]
    first = next(iter(lists.values()), None)
    if first is not None and all(each == first for each in lists.values()):
        return first
    is_empty = not lists and any(value.get(name) == [] for name in _EMPTY)
    return [] if is_empty else None


def _columns(value: Mapping[str, Any]) -> list[Row] | None:
    """The objects of Chroma's columns, of one query: its documents with the metadata of each."""
    texts, metadata = (
        listed[0] if isinstance(listed, list) and len(listed) == 1 else listed
        for listed in (value.get("documents"), value.get("metadatas"))
    )
    if not (isinstance(texts, list) and isinstance(metadata, list)):
        return None
    if len(texts) != len(metadata) or not all(isinstance(each, Mapping) for each in metadata):
        return None
    return [{**each, "text": text} for text, each in zip(texts, metadata, strict=True)]


def _content(parts: Sequence[Any]) -> str | list[Row] | None:
    """The text of content blocks; of several that are JSON objects these; None for other lists."""
    texts = _content_texts(parts) or ()
    objects = [opened(text) for text in texts]
    if len(objects) > 1 and all(isinstance(item, Mapping) for item in objects):
        return objects
    return "\n\n".join(texts) if texts else None


def _content_texts(parts: Sequence[Any]) -> list[str] | None:
    """The texts of content blocks, as MCP and models' APIs have them, or of a list of texts."""
    texts = []
    for part in parts:
        if isinstance(part, Mapping):
            others = part.keys() - {"type", "text", "annotations", "meta", "_meta", "id"}
            part = part.get("text") if not others and part.get("type", "text") == "text" else None
        if not isinstance(part, str):
            return None
        texts.append(part)
    return texts or None


def _rows(items: Sequence[Row]) -> list[Row] | None:
    """The passages of objects; None where one of them has no text or no place."""
    flat = [_flat(item) for item in items]
    if not flat:
        return []
    names = [name for name in flat[0] if all(name in item for item in flat)]
    place = _named(names, PLACES, flat, is_place) or next(
        (n for n in names if _last(n) not in _NO_PLACES and _all(flat, n, is_place)), None
    )
    if place is None:
        return None
    names.remove(place)
    heading = _named(_any(flat), HEADINGS, flat, _is_heading)
    title = _named(names, ("title",), flat, _is_heading)
    free = [name for name in names if name not in (heading, title)]
    text = _named(free, TEXTS, flat, _is_text)
    if text is None:
        lengths = {n: _words(flat, n) for n in free if _all(flat, n, _is_text)}
        text = max(lengths, key=lambda name: lengths[name], default=None)
        if text is None or lengths[text] < _LEAST_WORDS:
            return None
    columns = {"text": text, "rel_path": place, "heading_path": heading, "title": title}
    columns["score"] = _named(_any(flat), SCORES, flat, _is_number)
    columns["page"] = _named(_any(flat), PAGES, flat, _is_page)
    columns["chunk_id"] = _named(names, IDS, flat, lambda v: isinstance(v, int | str))
    rows = [
        {ours: item[name] for ours, name in columns.items() if name and item.get(name) is not None}
        for item in flat
    ]
    for row in rows:
        if isinstance(row.get("heading_path"), list):
            row["heading_path"] = " > ".join(row["heading_path"])
    return rows if all("text" in row and "rel_path" in row for row in rows) else None


def _flat(item: Mapping[str, Any], depth: int = 0) -> Row:
    """The fields of an object, those of objects within it by dotted names."""
    fields: Row = {}
    for name, value in item.items():
        if isinstance(value, Mapping) and depth < 2:
            fields |= {f"{name}.{inner}": held for inner, held in _flat(value, depth + 1).items()}
        elif isinstance(value, list) and value and all(isinstance(v, Mapping) for v in value):
            fields[str(name)] = "\n".join(_content_texts(value) or ()) or value
        else:
            fields[str(name)] = value
    return fields


def _any(rows: Sequence[Row]) -> list[str]:
    return list(dict.fromkeys(name for row in rows for name in row))


def _last(name: str) -> str:
    return name.rpartition(".")[2].casefold()


def _all(rows: Sequence[Row], name: str, fits: Callable[[Any], bool]) -> bool:
    return all(fits(row[name]) for row in rows if row.get(name) is not None)


def _named(
    names: Iterable[str], usual: Sequence[str], rows: Sequence[Row], fits: Callable[[Any], bool]
) -> str | None:
    """The field with the first of the usual names whose values fit."""
    able = [name for name in names if _last(name) in usual and _all(rows, name, fits)]
    return min(able, key=lambda name: usual.index(_last(name)), default=None)


def is_place(value: Any) -> bool:
    """Whether a value is a file or a URL: nothing with blanks, no bare name."""
    if not isinstance(value, str) or not value or len(value) > 2000:
        return False
    return _URL.fullmatch(value) is not None or _FILE.fullmatch(value) is not None


def _is_heading(value: Any) -> bool:
    if isinstance(value, list):
        return all(isinstance(part, str) for part in value)
    return isinstance(value, str) and len(value) <= SHORT


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and math.isfinite(value) and not isinstance(value, bool)


def _is_page(value: Any) -> bool:
    return isinstance(value, int | str) and not isinstance(value, bool)


def _words(rows: Sequence[Row], name: str) -> float:
    return sum(len(_WORD.findall(str(row.get(name) or ""))) for row in rows) / len(rows)


def _xml_items(text: str) -> list[Row] | None:
    """The elements of a text of nothing but elements of one name, with their attributes and inner
    elements as fields."""
    text = text.strip()
    if not (text.startswith("<") and text.endswith(">")):
        return None
    from xml.etree import ElementTree  # slow to load

    try:
        top = ElementTree.fromstring(f"<all>{text}</all>")
    except ElementTree.ParseError:
        return None
    if len(top) == 1 and len(top[0]) and len({child.tag for child in top[0]}) == 1:
        top = top[0]
    if len({child.tag for child in top}) != 1 or any((c.tail or "").strip() for c in top):
        return None
    items = []
    for child in top:
        fields: Row = dict(child.attrib)
        fields |= {inner.tag: "".join(inner.itertext()).strip() for inner in child}
        if not len(child):
            fields["text"] = (child.text or "").strip()
        items.append(fields)
    return items


_DECOR = re.compile(
    r"^(?:\W*\b(?:source|file|path|url|uri|document|from)\b\s*:\s*|)", re.IGNORECASE
)
_LEAD = re.compile(r"^(?:[-*•=#\s]*)(?:\[\d{1,3}\]|\(?\d{1,3}[.):])?\s*")
_MARKUP = re.compile(r"</?\w+[^>]*>")
_TAG = re.compile(r"<(\w+)>\s*(.+?)\s*</\1>")
_SIGN = re.compile(r"\s+(?:#+|>|§|\||::|—|–|-|›|»|/)\s+")
_TAIL = re.compile(r"\s*\((?:score|relevance|similarity|distance)\W*[\d.]+\)$", re.IGNORECASE)
_BEHIND = re.compile(
    r"(?P<text>.+?)\s*[(\[](?:source|from|file|path|url)\s*:\s*(?P<path>[^\s,;|>)\]]+)"
    r"(?:\s*[,;|>#]\s*(?:(?:section|heading)\s*:\s*)?(?P<heading>[^()\[\]\n]+))?[)\]]\.?",
    re.IGNORECASE | re.DOTALL,
)
_NEXT = re.compile(r"(?:section|heading)\s*:\s*(.+)", re.IGNORECASE)


def _blocks(text: str) -> list[Row] | None:
    """The passages of a text that is nothing but blocks, each below a line with its place."""
    rows: list[Row] = []
    for line in text.strip().splitlines():
        if (opened := _place_line(line)) is not None:
            rows.append(opened | {"text": ""})
        elif not rows:
            return None
        elif not rows[-1]["text"] and (match := _NEXT.fullmatch(line.strip())):
            rows[-1]["heading_path"] = match[1]
        else:
            rows[-1]["text"] += line + "\n"
    for row in rows:
        row["text"] = re.sub(r"(?:\n\s*[-=*_]{3,}\s*)+\Z", "", row["text"]).strip()
    return rows if rows and all(row["text"] for row in rows) else None


def _numbered(text: str) -> list[Row] | None:
    """The passages of a text that is nothing but numbered ones, each with its place at its end."""
    items = re.split(r"^\s*(?:\[\d{1,3}\]|\d{1,3}[.)])\s+", text.strip(), flags=re.MULTILINE)
    rows: list[Row] = []
    for item in items[1:]:
        match = _BEHIND.fullmatch(item.strip())
        if match is None or _BEHIND.search(match["text"]) or not is_place(match["path"]):
            return None
        heading = {"heading_path": match["heading"]} if match["heading"] else {}
        rows.append({"rel_path": match["path"]} | heading | {"text": match["text"]})
    return rows if rows and not items[0] else None


def _place_line(line: str) -> Row | None:
    """The place that a line holds and nothing beside; None for any other line."""
    text = line.strip()
    if len(text) > 400:
        return None
    if tag := _TAG.fullmatch(text):
        text = tag[2]
    text = _LEAD.sub("", text).strip("*`= ")
    text = _TAIL.sub("", _DECOR.sub("", text)).strip("*`= ")
    if text[:1] == "[" and text[-1:] == "]":
        text = text[1:-1].strip()
    path, *heading = _SIGN.split(text, 1)
    if not heading and (parts := re.fullmatch(r"(\S+\.\w+)#(\S.*\s.*)", text)):
        path, heading = parts[1], [parts[2]]
    if not is_place(path):
        return None
    sections = [part for part in _SIGN.split(heading[0]) if part] if heading else []
    return {"rel_path": path} | ({"heading_path": " > ".join(sections)} if sections else {})


def _by_form(result: Any, form: ToolForm) -> list[Row] | None:
    value = own_result(result)
    if form.split is not None or (form.place is not None and form.passages is None):
        whole = value if isinstance(value, str) else shown_text(value)
        pieces: list[Any] = form.split.split(whole) if form.split else _cut_at(form.place, whole)
        items = [piece for piece in pieces if piece and re.search(r"\w", _MARKUP.sub("", piece))]
    else:
        value = opened(value)
        listed = _listed(form.passages, value, opened(result))
        items = [opened(item) for item in listed] if isinstance(listed, list) else []
        if isinstance(listed, Mapping) and "rel_path" in _formed(listed, form):
            items = [listed]  # a list of one, of which a framework made its item
    rows = [row for item in items if (row := _formed(item, form))]
    return rows if rows or len(shown_text(value)) <= SHORT else None


def _listed(passages: Getter | None, *values: Any) -> Any:
    """The list that a form names in a tool's own result, else in the message around it."""
    if passages is not None:
        first = passages(values[0])
        lists = (passages(value) for value in values[1:] if not isinstance(first, list))
        return next((listed for listed in lists if isinstance(listed, list)), first)
    own = values[0]
    are_objects = isinstance(own, list) and all(isinstance(item, Mapping) for item in own)
    return own if are_objects else items_in(own)


def own_result(value: Any, depth: int = 0) -> Any:
    """A tool's own result, out of the message or the content blocks that a framework made of it."""
    own = opened(value)
    inner: Any = None
    if isinstance(own, list):
        inner = _content(own)
    elif isinstance(own, Mapping):
        held = next((own[n] for n in ("data", "kwargs") if _is_message(own.get(n))), own)
        names = ("content",) if _is_message(held) else ("result", "output", "response")
        is_wrapper = held is not own or _is_message(held) or not own.keys() - {*names, "id", "name"}
        inner = next((held[name] for name in names if name in held and is_wrapper), None)
    return value if inner is None or depth > _MOST_DEPTH else own_result(inner, depth + 1)


def _is_message(value: Any) -> bool:
    """Whether an object is the message of a tool's result."""
    marks = {"tool_call_id", "isError", "is_error"}
    return isinstance(value, Mapping) and "content" in value and not marks.isdisjoint(value)


def _cut_at(place: re.Pattern[str] | None, text: str) -> list[str]:
    """The pieces that begin with each place; none where a text before the first is lost, unless it
    announces them."""
    starts = [match.start() for match in place.finditer(text)] if place else []
    before = text[: starts[0]].strip() if starts else ""
    if before and not before.endswith(":"):
        return []
    ends = [*starts[1:], len(text)]
    return [text[start:end] for start, end in zip(starts, ends, strict=False)]


def _formed(item: Any, form: ToolForm) -> Row:
    """One passage by a form; {} without a text."""
    row: Row = {}
    if not isinstance(item, str):
        usual = (_rows([item] if isinstance(item, dict) else []) or [{}])[0]
        row = {name: value for name, value in usual.items() if name != "title"}
        for name in ("text", "rel_path", "heading_path"):
            getter = getattr(form, name)
            if getter is not None:
                row.pop(name, None)
                value = getter(item)
                row |= {} if value is None else {name: value}
        if isinstance(row.get("heading_path"), list):
            row["heading_path"] = " > ".join(map(str, row["heading_path"]))
    text = row.get("text", item)
    if isinstance(text, str):
        match = form.place.search(text) if form.place else None
        if match:
            groups = {name: held for name, held in match.groupdict().items() if held}
            row |= {"rel_path": groups["path"]} if "path" in groups else {}
            row |= {"heading_path": groups["heading"]} if "heading" in groups else {}
            row |= {n: groups[n] for n in ("rel_path", "heading_path") if n in groups}
            text = groups.get("text", text[: match.start()] + text[match.end() :])
        row["text"] = text.strip()
    return row if isinstance(row.get("text"), str) and row["text"] else {}
