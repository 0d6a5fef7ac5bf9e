"""Guesses the fields in an unknown bot's answer: paths proposed by names, types and shapes; pure.

    proposal = propose(payloads, questions)
    proposal.tables["chunk"]["text"]        # "node.text"

A proposal is a guess for a person to look at, and every one can be changed. What is not found is
left out: a profile without a path is honest, one with a wrong path is not.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from typing import Any

from clients.expressions import compile_path
from clients.field_names import GROUPS, NAMES, RANKED, name_rank, name_words, plain_name
from clients.mapping import MILLISECONDS
from clients.proposal import Proposal
from clients.reply_form import (
    ReplyColumn,
    bare,
    columns_of,
    columns_of_items,
    mean_words,
    strings_of,
    texts_within,
    varying_lists,
)
from clients.tool_paths import (
    find_last_message,
    find_searches,
    find_step_searches,
    find_tools,
)
from ragmetrics.matching import same_form
from ragmetrics.paths import HEADER_LEVEL, looks_like_path
from records.tool_passages import items_in

_SOURCES = re.compile(
    r"\n[ \t]*((?:#+ |\*\*)?(?:sources?|references?|citations?|quellen)(?:\*\*)?:?(?:\*\*)?)"
    r"[ \t]*\n",
    re.IGNORECASE,
)
_OURS = ("text", "rel_path", "heading_path", "chunk_id", "page", "score")
_SOURCE_LINE = re.compile(
    r"(?P<lead>\[\d+\]:? |\d+[.):] |[-*•] )?(?P<path>[^\s#]+\.\w{1,5})(?P<rest>.*)"
)


def propose(
    payloads: Sequence[Any],
    questions: Sequence[str],
    *,
    seconds: Sequence[float] = (),
    gold_paths: Iterable[str] = (),
    gold_ids: Iterable[str] = (),
    settings: Mapping[str, str] | None = None,
) -> Proposal:
    """The profile's paths for answers of one bot.

    ``seconds``: how long each call took, which tells the unit of a time. ``gold_paths``: paths of
    the labels, which tell a path from other names; ``gold_ids``: their ids of passages, which tell
    a list of ids. ``settings``: how a stream is read.
    """
    proposal = Proposal(settings=dict(settings or {}))
    streamed = "stream" in proposal.settings
    columns = columns_of(payloads, streamed=streamed)
    gold_files = frozenset(map(_last_part, gold_paths))
    lists_of_passages = _passages(columns, gold_files, set(gold_ids))
    passages = lists_of_passages[0] if lists_of_passages else None
    if passages and not name_rank(passages.name, "passages"):
        proposal.notes += _other_lists(passages, lists_of_passages[1:])
    if passages and passages.path.startswith("unique("):
        passages = _of_lists_alone(passages, payloads, proposal)
    inside = passages.path if passages else None
    outer = [column for column in columns if not is_under(column.path, inside)]
    response, notes = proposal.tables["response"], proposal.notes
    answer = _answer(outer, questions, proposal.settings, passages)
    if path := answer.path if answer else find_last_message(payloads, outer):
        response["answer"] = path
    lists: Sequence[Any] = passages.values if passages else ()
    if passages and (steps := find_step_searches(payloads, passages.path, gold_files)):
        response["searches"], lists = steps
    elif passages:
        response["retrieved"] = passages.path
        if passages.path.startswith("unique("):
            notes.append(
                f"The passages of all lists at {passages.path} are joined, in their order."
            )
    elif answer:
        _sources_in_text(answer, proposal)
    _references(outer, proposal)
    if found := find_tools(payloads, outer, streamed=streamed):
        response["tools"], proposal.tables["tool"] = found
        path, called, about = find_searches(payloads, found.tools, gold_files)
        notes += about
        if path and (passages is None or _are_of_searches(passages, called)):
            response.pop("retrieved", None)
            response["searches"], lists = path, _by_our_names(called) if "', '" in path else called
    if lists:
        proposal.tables["chunk"] = _chunk(lists, gold_files)
    _rest(outer, proposal, seconds)
    if not (answer and passages) and "searches" not in response:
        taken = " ".join(response.values())
        notes += [
            f"? {path} has {least} to {most} items in these answers, so no single one is taken. "
            f"Name a list in it with --set, such as retrieved={path}[].NAME[]."
            for path, least, most in varying_lists(payloads)
            if path not in taken
        ]
    return proposal


def _of_lists_alone(
    passages: ReplyColumn, payloads: Sequence[Any], proposal: Proposal
) -> ReplyColumn | None:
    """Joined lists by a path that leaves out what other items have in their place: an object; None
    where that is a text with passages, which no path reads."""

    def others(path: str) -> list[Any]:
        pairs = zip(map(compile_path(path), payloads), passages.values, strict=True)
        return [item for found, joined in pairs for item in found or () if item not in joined]

    beside = others(passages.path)
    if any(isinstance(value, str) and items_in(value) for value in beside):
        proposal.notes.append(
            f"? {passages.path} leaves out passages that come as one text, so it is not taken: "
            "nothing is proposed."
        )
        return None
    path = re.sub(
        r"\((.+?)\[\]\.([^\[\]]+)\[\]\)$", r"(\1[?type(\2) == 'array'].\2[])", passages.path
    )
    return replace(passages, path=path) if beside and not others(path) else passages


def longer_list(payloads: Sequence[Any], passages_path: str) -> str | None:
    """The path of another list with all passages of each answer and, in some, more; None without.

    Each passage is an item of its own there, so a list of messages or steps is none.
    """
    get = compile_path(passages_path)
    own = [_texts_of_items(get(payload)) for payload in payloads]
    if not all(texts for items in own for texts in items) or not any(own):
        return None
    for column in columns_of(payloads, streamed=_are_streams(payloads)):
        other = [_texts_of_items(value) for value in column.values]
        pairs = list(zip(own, other, strict=True))
        has_all = all(any(item <= more for more in theirs) for items, theirs in pairs
                      for item in items)  # fmt: skip
        is_longer = any(
            items and len(set(filter(None, theirs))) > len(set(items)) for items, theirs in pairs
        )
        if has_all and is_longer and column.path != passages_path:
            return column.path
    return None


def _are_streams(payloads: Sequence[Any]) -> bool:
    return all(isinstance(payload, dict) and "events" in payload for payload in payloads)


def _texts_of_items(value: Any) -> list[frozenset[str]]:
    return [_long_texts(item) for item in value] if isinstance(value, list) else []


def _long_texts(item: Any) -> frozenset[str]:
    """The texts of some words in an item, without those in lists within it."""
    values = item.values() if isinstance(item, dict) else [item]
    inner = [_long_texts(value) for value in values if isinstance(value, dict)]
    own = {bare(value) for value in values if isinstance(value, str) and len(value.split()) >= 4}
    return frozenset(own).union(*inner)


def _are_of_searches(passages: ReplyColumn, lists: Sequence[Sequence[Any]]) -> bool:
    """Whether the list of passages is just what the calls of tools returned."""
    pairs = zip(passages.values, lists, strict=True)
    return all(
        len(value or ()) == len(listed) and texts_within(value) <= texts_within(listed)
        for value, listed in pairs
    )


def _by_our_names(lists: Sequence[Sequence[Any]]) -> list[list[Any]]:
    """The passages of several tools, which may name their fields differently, by our names."""
    return [[{name: item[name] for name in _OURS if name in item} for item in items]
            for items in lists]  # fmt: skip


def is_under(path: str, parent: str | None) -> bool:
    """Whether a path is another one or begins with it."""
    if parent is None:
        return False
    outer = parent.removeprefix("unique(").removesuffix(")").removesuffix("[]")
    outer = outer.replace("[]", "[0]").replace(" | [0]", "")
    path = path.replace(" | [0]", "")
    return path in (parent, outer) or path.startswith((f"{outer}.", f"{outer}["))


def _answer(
    columns: Sequence[ReplyColumn],
    questions: Sequence[str],
    settings: Mapping[str, str],
    passages: ReplyColumn | None,
) -> ReplyColumn | None:
    """The column of answers; one that repeats passages only where nothing else can be it.

    Where no name says it, the only text that differs between questions and is no passage; of those
    in lists only where there is no other. None where a field that is named as an answer is empty:
    then the bot gave none.
    """
    if "stream_delta" in settings:
        return next((column for column in columns if column.path == "text"), None)
    ranked = _ranked_answers(columns, questions)
    others = [pair for pair in ranked if not _repeats(pair[1], passages)]
    named = [pair for pair in ranked if pair[0] > 5.5 and _answer_name(pair[1])]
    wholes = [column for _, column in named]
    own = [pair for pair in named if pair in others and not _is_part(pair[1], wholes)]
    if named:
        return max(own or named, key=lambda pair: pair[0])[1]
    is_empty = any(name_rank(each.name, "answer") and not any(each.values) for each in columns)
    able = [each for _, each in others if each.words >= 3 and each.varies]
    able = [column for column in able if "[" not in column.path] or able
    return able[0] if len(able) == 1 and len(set(questions)) > 1 and not is_empty else None


def _is_part(column: ReplyColumn, others: Sequence[ReplyColumn]) -> bool:
    """Whether a text of one item of a list is only a part of another text, in every answer."""
    pairs = [zip(column.values, other.values, strict=True) for other in others]
    return "[" in column.path and any(
        all(
            isinstance(whole, str) and part != whole and part in whole
            for part, whole in each
            if isinstance(part, str)
        )
        for each in pairs
    )


def _answer_name(column: ReplyColumn) -> float:
    """How well the name of a column, or half that of what holds it, fits an answer."""
    parent = "".join(column.names[-2:-1]).removesuffix("s")
    of_parent = name_rank(parent, "answer") / 2
    return name_rank(column.name, "answer") or of_parent


def _ranked_answers(
    columns: Sequence[ReplyColumn], questions: Sequence[str]
) -> list[tuple[float, ReplyColumn]]:
    ranked = []
    for column in columns:
        other = set(name_words(column.name)) & NAMES["no_answer"]
        is_other = bool(other) and column.name.lower() not in RANKED["answer"]
        if not column.texts or set(column.texts) & set(questions) or is_other:
            continue
        weight = _answer_name(column) + (4 if column.words >= 3 else -4)
        weight += 2 if column.varies else 0
        ranked.append((weight - 0.3 * len(column.names), column))
    return ranked


def has_text(payload: Any, question: str) -> bool:
    """Whether a reply has any text that can be the answer, whatever its name."""
    ranked = _ranked_answers(columns_of([payload], streamed=False), [question])
    return any(column.words >= 3 for _, column in ranked)


def _repeats(column: ReplyColumn, passages: ReplyColumn | None) -> bool:
    """Whether the values are strings of the passages, in every answer that has any."""
    pairs = zip(column.values, passages.values, strict=True) if passages else ()
    both = [(value, items) for value, items in pairs if isinstance(value, str) and items]
    return bool(both) and all(bare(value) in texts_within(items) for value, items in both)


def another_answer(
    payloads: Sequence[Any], questions: Sequence[str], answer_path: str, passages: Sequence[Any]
) -> str | None:
    """The path of a text that is no passage and differs between questions; None without any.

    ``answer_path``: what is taken for the answer; ``passages``: the list of each answer.
    """
    lists = ReplyColumn("", (), tuple(passages))
    answer = ReplyColumn(answer_path, (), tuple(map(compile_path(answer_path), payloads)))
    able = [
        column
        for column in columns_of(payloads, streamed=_are_streams(payloads))
        if column.path != answer_path
        and not _is_part(column, [answer])
        and not _repeats(column, lists)
        and column.varies
        and column.words > 1
    ]
    ranked = _ranked_answers(able, questions)
    weight, column = max(ranked, key=lambda pair: pair[0], default=(0.0, None))
    return column.path if column and weight > 0 else None


def _last_part(path: str) -> str:
    """The name of a file, in the form in which names are compared."""
    return re.split(r"[/\\]", same_form(path).partition("#")[0])[-1]


def _names_gold(column: ReplyColumn, gold_files: AbstractSet[str]) -> bool:
    return any(_last_part(text) in gold_files for text in column.texts)


def _passages(
    columns: Sequence[ReplyColumn], gold_files: AbstractSet[str], gold_ids: AbstractSet[str]
) -> list[ReplyColumn]:
    """The columns that can be passages, the likeliest first: by the names in them, or by files and
    ids of the labels."""
    able = []
    for column in columns:
        items, weight = column.items, name_rank(column.name, "passages")
        if items and all(isinstance(item, str) for item in items):
            weight += 3 if mean_words(items) > 5 else 1 if all(map(looks_like_path, items)) else -3
            weight += 12 * any(item in gold_ids for item in items)
        elif items and all(isinstance(item, dict) for item in items):
            inner = columns_of_items(items)
            gold = any(_names_gold(each, gold_files) for each in inner)
            texts = [
                each for each in inner if each.words >= 4 and (gold or name_rank(each.name, "text"))
            ]
            ranks = [(name_rank(each.name, "file"), each) for each in inner if each.texts]
            files = [each for rank, each in ranks if rank >= 4]
            if _are_of_inner_lists(texts, files):
                continue
            are_paths = any(
                rank >= 6 and all(map(looks_like_path, each.texts)) for rank, each in ranks
            )
            has_place = bool(files) or gold
            weight += 4 * (gold and not files) + 5 * bool(texts) + 3 * has_place
            weight += 1.5 * any(name_rank(each.name, "score") for each in inner)
            weight -= 6 * (not texts and not has_place)
            # a text and its place are enough
            weight += bool(texts) and has_place and (are_paths or gold)
        else:
            continue
        if weight > 8:
            able.append((weight, column))
    return [column for _, column in sorted(able, key=lambda pair: -pair[0])]


def _other_lists(passages: ReplyColumn, others: Sequence[ReplyColumn]) -> list[str]:
    """A doubt that names other lists which the passages may be, since no name tells."""
    apart = [
        each.path
        for each in others
        if not is_under(each.path, passages.path) and not is_under(passages.path, each.path)
        if "(" not in each.path
    ]
    return apart and [
        f"? {', '.join(apart)} can be the passages as well as {passages.path}, and no name tells. "
        "If so, say --set retrieved=PATH."
    ]


def _are_of_inner_lists(texts: Sequence[ReplyColumn], files: Sequence[ReplyColumn]) -> bool:
    """Whether texts with their places stand in lists within the items: those are the passages."""
    inner = {each.path.rpartition("[0].")[0] for each in texts}
    return bool(inner) and all(
        held and any(each.path.startswith(f"{held}[0].") for each in files) for held in inner
    )


Fits = Callable[[ReplyColumn], float]
"""Weights that the values of a column add to the weight of its name; below -50: not this field."""

_NEVER = -100.0

_NUMBER = re.compile(r"-?\d+(\.\d+)?%?")


def _all(holds: Callable[[Any], object]) -> Callable[[ReplyColumn], bool]:
    return lambda column: bool(column.present) and all(map(holds, column.present))


_ids = _all(lambda value: isinstance(value, (str, int)))
_ranks = _all(lambda value: type(value) is int and value >= 1)
_counts = _all(lambda v: type(v) is int or (isinstance(v, str) and v.isdecimal()))
_numbers = _all(lambda v: type(v) in (int, float) or (isinstance(v, str) and _NUMBER.fullmatch(v)))
_are_pages = _all(  # such as 12, "iv" or "A-3"
    lambda v: type(v) is int or (isinstance(v, str) and 0 < len(v) <= 12 and " " not in v)
)


def _best(
    columns: Sequence[ReplyColumn], table: str, fits: Fits, least: float = 4.0
) -> ReplyColumn | None:
    ranked = [(name_rank(each.name, table), each) for each in columns]
    weighted = [(rank + fits(each) - 0.1 * len(each.names), each) for rank, each in ranked if rank]
    weight, column = max(weighted, key=lambda pair: pair[0], default=(0.0, None))
    return column if weight >= least else None


def _only(holds: Callable[[ReplyColumn], bool]) -> Fits:
    """Fits by name alone where the values are of a kind, else never."""
    return lambda column: 0.0 if holds(column) else _NEVER


def chunk_paths(lists: Sequence[Any], gold_paths: Iterable[str]) -> dict[str, str]:
    """The paths inside a passage, for the list of passages of each answer."""
    return _chunk(lists, frozenset(map(_last_part, gold_paths))) if any(lists) else {}


def _chunk(lists: Sequence[Any], gold_files: AbstractSet[str]) -> dict[str, str]:
    items = ReplyColumn("", (), tuple(lists)).items
    if all(isinstance(item, str) for item in items):  # texts, paths, or ids, which need no path
        is_path = all(map(looks_like_path, items))
        return {"text": "@"} if mean_words(items) > 5 else {"rel_path": "@"} if is_path else {}
    free = columns_of_items(items)
    most = max(len(value) for value in lists if isinstance(value, list))

    def is_text(column: ReplyColumn) -> float:
        return min(4.0, column.words / 3) if column.texts else _NEVER

    def is_file(column: ReplyColumn) -> float:
        texts = column.texts
        if not texts or column.words > 8:
            return _NEVER
        shaped = sum(map(looks_like_path, texts)) / len(texts)
        folders = sum("/" in text for text in texts) / len(texts)
        return 5 * shaped + folders + 4 * _names_gold(column, gold_files) - 2

    def is_heading(column: ReplyColumn) -> bool:
        texts = strings_of(column.items) or column.texts
        return bool(texts) and mean_words(texts) <= 25

    def is_id(column: ReplyColumn) -> bool:
        values = [value for value in column.present if isinstance(value, (str, int))]
        is_document = plain_name(column.name) in RANKED["doc_id"]
        unique = len(set(map(str, values))) >= most
        return not is_document and len(values) == len(items) and unique

    chunk: dict[str, str] = {}

    def take(name: str, fits: Fits, *, least: float = 4.0, table: str = "") -> None:
        column = _best(free, table or name, fits, least)
        if column is not None:
            chunk[name] = _expression(column)
            free.remove(column)

    take("text", is_text, least=5.0)
    levels: dict[int, str] = {}
    for column in free:
        if column.texts and (match := HEADER_LEVEL.fullmatch(column.name)):
            levels.setdefault(int(match[1]), column.path)
    if levels:
        chunk["heading_path"] = (
            f"join(' > ', [{', '.join(path for _, path in sorted(levels.items()))}])"
        )
    take("rel_path", is_file, table="file")
    named = next((column for column in free if _names_gold(column, gold_files)), None)
    if named is not None and "rel_path" not in chunk:
        chunk["rel_path"] = named.path
        free.remove(named)
        longest = max(free, key=lambda each: each.words, default=None)
        if longest is not None and longest.words >= 4 and "text" not in chunk:
            chunk["text"] = longest.path
            free.remove(longest)
    if not levels:
        take("heading_path", _only(is_heading), least=3.0, table="heading")
        heading = chunk.get("heading_path", "").rpartition(".")[2]
        if heading.lower() == "title" and not _are_headings(items, chunk):
            del chunk["heading_path"]
    take("score_vector", _only(_numbers))
    take("score_lexical", _only(_numbers))
    take("score_final", _only(_numbers), table="score")
    take("chunk_id", _only(is_id))
    take("doc_id", _only(_ids))
    take("rank", _only(_ranks))
    take("page", _only(_are_pages))
    order = ("chunk_id", "doc_id", "rel_path", "heading_path", "text")
    return {name: chunk[name] for name in (*order, *chunk) if name in chunk}


def _are_headings(items: Sequence[Any], chunk: Mapping[str, str]) -> bool:
    """Whether titles are headings and no names of pages: a file has several, or none is known."""
    if "rel_path" not in chunk:
        return True
    path, title = compile_path(chunk["rel_path"]), compile_path(chunk["heading_path"])
    titles: dict[str, set[str]] = {}
    for item in items:
        titles.setdefault(str(path(item)), set()).add(str(title(item)))
    return any(len(of_file) > 1 for of_file in titles.values())


def _expression(column: ReplyColumn) -> str:
    """The path, with what turns its values into what our field holds."""
    values, path = column.present, column.path
    if any(isinstance(value, list) for value in values):
        return f"join(' > ', {path})"
    if name_rank(column.name, "score") and len(column.texts) == len(values):
        return _as_number(column)
    is_id = name_rank(column.name, "chunk_id") or name_rank(column.name, "doc_id")
    if is_id and any(type(value) is int for value in values):
        return f"{path} && to_string({path})"
    return path


def _as_number(column: ReplyColumn) -> str:
    """The path of a number, which may come as a text."""
    return f"number({column.path})" if column.texts else column.path


def _sources_in_text(answer: ReplyColumn, proposal: Proposal) -> None:
    """Sources that stand as lines under the answer's text."""
    match = next((match for text in answer.texts if (match := _SOURCES.search(text))), None)
    if match is None:
        return
    text, path, response = match.string, answer.path, proposal.tables["response"]
    head, mark = text[len(text[: match.start()].rstrip("\n")) : match.end(1)], match[1]
    lines = [line.strip() for line in text[match.end() :].splitlines() if line.strip()]
    parsed = [parts for line in lines if (parts := _SOURCE_LINE.fullmatch(line))]
    if "'" in head or not lines or len(parsed) < len(lines):
        return
    response["answer"] = f"before({path}, '{head}')"
    response["retrieved"] = f"lines(after({path}, '{mark}') || '')"
    proposal.tables["chunk"] = _line_paths(parsed)
    proposal.notes.append("The passages are read from the lines after the answer's text.")


def _line_paths(lines: Sequence[re.Match[str]]) -> dict[str, str]:
    """Where a line such as ``[1] a.md - Intro`` has its path and its heading."""
    lead = (lines[0]["lead"] or "").lstrip("[0123456789")
    behind = f"after(@, '{lead}')" if lead else "@"
    rests = [line["rest"] for line in lines if line["rest"].strip()]
    between = Counter(match[0] for rest in rests if (match := re.match(r"\W+", rest)))
    glue = between.most_common(1)[0][0] if between else " "
    if not rests or "'" in glue:
        return {"rel_path": behind}
    paths = {"rel_path": f"before({behind}, '{glue}')"}
    if glue.strip() not in ("(", "["):
        paths["heading_path"] = f"after(@, '{glue}')"
    return paths


def _references(columns: Sequence[ReplyColumn], proposal: Proposal) -> None:
    response = proposal.tables["response"]
    able = [(name_rank(each.name, "cited"), each) for each in columns if each.items]
    weight, best = max(able, key=lambda pair: pair[0], default=(0.0, None))
    if best is None or weight <= 5:
        return
    items, path = best.items, best.path
    if all(type(item) is int for item in items):
        if 0 not in items:
            response["references"] = path
        else:
            proposal.notes.append(f"{path} counts from 0: [n] marks count from 1; left out.")
    elif all(isinstance(item, str) for item in items):
        response["references"] = f"{path}[].number(@)" if all(map(str.isdigit, items)) else path
    elif all(isinstance(item, dict) for item in items):
        found = _chunk(best.values, frozenset())
        index = _best(columns_of_items(items), "index", _only(_ranks))
        paths = {"index": index.path} if index else {}
        for name in ("chunk_id", "doc_id", "rel_path", "heading_path"):
            if name in found and not (index and index.path in found[name]):
                paths[name] = found[name]
        if paths:
            response["references"], proposal.tables["reference"] = path, paths


def _rest(columns: Sequence[ReplyColumn], proposal: Proposal, seconds: Sequence[float]) -> None:
    response = proposal.tables["response"]
    for column in columns:
        words, values, path = name_words(column.name), column.present, column.path
        name = plain_name(column.name)
        truths = bool(values) and all(isinstance(value, bool) for value in values)
        if truths and name in NAMES["abstained"]:
            response.setdefault("abstained", path)
        elif truths and name in NAMES["answered"]:
            response.setdefault("abstained", f"{path} == `false`")
        elif name in ("confidence", "certainty") and _numbers(column):
            if all("%" not in str(value) and 0 <= float(value) <= 1 for value in values):
                response.setdefault("confidence", _as_number(column))
        elif name in NAMES["flags"] and all(isinstance(value, list) for value in values):
            if all(isinstance(item, str) for item in column.items):
                response.setdefault("policy_flags", path)
        elif {"cost", "price"} & set(words) and _numbers(column):
            is_dollars = not NAMES["other_money"] & set(words)
            if is_dollars and ("cost_usd" not in response or "total" in words):
                response["cost_usd"] = _as_number(column)
        elif name in ("model", "model_name") and len(set(column.texts)) == 1:
            proposal.tables["facts"].setdefault("answerer", f"{{model: {path}}}")
        elif path == "error" and not any(values):
            response["error"] = path
    _times(columns, proposal, seconds)
    _usage(columns, response)


def _times(columns: Sequence[ReplyColumn], proposal: Proposal, seconds: Sequence[float]) -> None:
    by_unit: dict[str, dict[str, str]] = {unit: {} for unit in MILLISECONDS}
    for column in columns:
        words = [word for name in column.names for word in name_words(name)]
        last = name_words(column.name)
        in_ms = bool(last) and GROUPS["units"].get(last[-1]) == "ms"
        timed = bool(NAMES["time_words"] & set(words)) or in_ms
        if not timed or not _numbers(column) or "created" in words:
            continue
        units = _groups(words, GROUPS["units"]) or fitting_units(column.values, seconds)
        whole = bool(NAMES["time_words"] & set(last)) or len(last) == 1
        stage = _groups(words, GROUPS["stages"]) or ["total"] * whole
        if stage and len(units) == 1 and units[0] in by_unit:
            by_unit[units[0]].setdefault(stage[0], _as_number(column))
    unit, stages = max(by_unit.items(), key=lambda pair: len(pair[1]))
    if stages:
        proposal.tables["response"]["latency_ms"] = _object(stages)
        if unit != "ms":
            proposal.settings["latency_unit"] = unit


def _object(paths: Mapping[str, str]) -> str:
    """An expression for an object with these fields."""
    return "{" + ", ".join(f"{name}: {path}" for name, path in paths.items()) + "}"


def _groups(words: Sequence[str], table: Mapping[str, str]) -> list[str]:
    """What the last word that a table knows means; [] where it knows none."""
    return [table[word] for word in reversed(words) if word in table][:1]


def fitting_units(values: Sequence[Any], seconds: Sequence[float]) -> list[str]:
    """The units in which all of a bot's times can be those of the whole calls.

    From a fiftieth of what was measured to a little more than it.
    """
    pairs = [
        (float(value), 1000 * total)
        for value, total in zip(values, seconds, strict=False)
        if type(value) in (int, float) and value > 0
    ]
    return [
        unit
        for unit, factor in MILLISECONDS.items()
        if pairs and all(ms / 50 <= value * factor <= 1.05 * ms + 5 for value, ms in pairs)
    ]


def _usage(columns: Sequence[ReplyColumn], response: dict[str, str]) -> None:
    counts: dict[str, str] = {}
    for column in columns:
        words = [word for name in column.names for word in name_words(name)]
        if column.name == "usage" and _counts_tokens(column.present):
            response["usage"] = column.path
            return
        if not {"token", "tokens"} & set(words) or not _counts(column):
            continue
        for kind in _groups(words, GROUPS["tokens"]):
            counts.setdefault(kind, _as_number(column))
    if counts:
        response["usage"] = _object(counts)


def _counts_tokens(values: Sequence[Any]) -> bool:
    return all(isinstance(value, dict) for value in values) and any(
        "tokens" in name_words(key) and type(count) is int
        for value in values
        for key, count in value.items()
    )
