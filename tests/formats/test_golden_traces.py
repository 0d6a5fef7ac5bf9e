"""Real traces of real frameworks: what a person reads in them is what an import makes of them.

`bench/interop/traces` makes the traces with a scripted model; `golden_traces/expect.json` says what
was asked, searched, seen and answered, written by hand. No framework is installed for these tests.
"""

from __future__ import annotations

import gzip
import json
import re
import socket
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.rows import each_row

from records.results import TestResult

FOLDER = Path(__file__).resolve().parents[1] / "golden_traces"
EXPECT: dict[str, Any] = json.loads((FOLDER / "expect.json").read_text(encoding="utf-8"))
CELLS: dict[str, dict[str, Any]] = EXPECT["cells"]
UNKNOWN = "unknown"
LARGEST_CELL, LARGEST_FOLDER = 40_000, 1_500_000


def expected_turns(cell: str) -> dict[str, dict[str, Any]]:
    """What is to be read from each turn of a cell, with passages and tools written out."""
    spec = CELLS[cell]
    layers = [EXPECT["apps"][spec["app"]], spec.get("turns", {})]
    while "like" in layers[0]:
        layers.insert(0, EXPECT["apps"][layers[0]["like"]])
    without = {name for layer in (*layers, spec) for name in layer.get("without", ())}
    tool_name = next((layer["tool"] for layer in layers if "tool" in layer), "search")
    turns = {}
    for name, words in EXPECT["turns"].items():
        if name in without:
            continue
        turn: dict[str, Any] = {"seen_tools": [], "turn": None} | words
        for layer in layers:
            turn |= layer.get(name, {})
        tools = list(turn["tools"])
        also = spec.get("also_called")
        if also == "finish":  # its "Completed." is in the prompt that the answer is written from
            tools.append("finish")
            turn["seen_tools"] = [*turn["seen_tools"], "finish"]
        elif also:
            tools.append(f"{also} {name}")
        rows = [EXPECT["tools"][tool] for tool in tools]
        turn["tools"] = [
            row | {"name": tool_name} if row["name"] == "search" else row for row in rows
        ]
        turn["seen_tools"] = sorted(EXPECT["tools"][tool]["result"] for tool in turn["seen_tools"])
        for field in ("question", "tokens", "rel_path"):
            verdict = spec.get(field, turn.get(field))
            known = turn.get(field)
            turn[field] = {"either": [UNKNOWN, known]} if verdict == "either" else verdict
        if spec.get("thread") == UNKNOWN:
            turn["turn"] = None
        turns[name] = turn
    return turns


def text_of(chunk_id: str) -> str:
    return str(EXPECT["passages"][chunk_id]["text"])


def fits(read: Any, expected: Any) -> bool:
    """Whether a value is right; UNKNOWN is right only where a person cannot tell either."""
    if isinstance(expected, dict) and "either" in expected:
        return any(fits(read, value) for value in expected["either"])
    return bool(read == expected)


class Turn:
    """A line of results with its case, as a cell's expectation names the parts.

    ``results``: what the results of its tools are, where that is no text.
    """

    def __init__(self, line: str, cases: dict[str, dict[str, Any]], results: str = "") -> None:
        self._results = results
        self.raw: dict[str, Any] = json.loads(line)
        self.result = msgspec.json.decode(line, type=TestResult)
        self.case = cases[self.result.test_case_id]
        self.question = self.case["question"]
        self.answer = self.result.answer or UNKNOWN
        self.conversation = self.case.get("conversation")

    def searches(self) -> list[list[Any]]:
        searched = self.result.searched()
        if not searched and self.result.chunks():  # one search has no list of its own
            query = self.raw.get("rewritten_query") or self.question
            return [[query, [chunk.text for chunk in self.result.chunks()]]]
        return [[search.query, [chunk.text for chunk in chunks]] for search, chunks in searched]

    def tokens(self) -> Any:
        pair = [self.result.usage.get(name) for name in ("input_tokens", "output_tokens")]
        return UNKNOWN if pair == [None, None] else pair

    def tools(self) -> list[dict[str, Any]]:
        calls = self.result.tools or []  # a line leaves out arguments that are empty
        return [
            {"name": c.name, "arguments": c.arguments, "result": self._text(c.result)}
            for c in calls
        ]

    def _text(self, result: str | None) -> str | None:
        """A tool's result; of documents in JSON their texts."""
        if result is None or self._results != "documents in JSON":
            return result
        return "\n\n".join(row["content"] for row in json.loads(result)["documents"])


def wrong_fields(turn: Turn, expected: dict[str, Any]) -> dict[str, list[Any]]:
    """The parts of a turn that were read wrongly: what was read, and what is right."""
    searches = [[query, [text_of(name) for name in names]] for query, names in expected["searches"]]
    pairs: dict[str, list[Any]] = {
        "question": [turn.question, expected["question"]],
        "answer": [turn.answer, expected["answer"]],
        "searches": [turn.searches(), searches],
        "tools": [turn.tools(), expected["tools"]],
        "seen_tools": [sorted(turn.raw.get("seen_tools") or []), expected["seen_tools"]],
        "tokens": [turn.tokens(), expected["tokens"]],
        "turn": [turn.case.get("turn"), expected["turn"]],
    }
    seen = [chunk.text for chunk in turn.result.chunks()]
    either = (
        expected["seen"]["either"] if isinstance(expected["seen"], dict) else [expected["seen"]]
    )
    lists = [[text_of(name) for name in names] for names in either]
    if len(searches) == 1 and lists == [searches[0][1]]:
        pairs["seen"] = [seen, lists[0]]  # one ranking: its order counts
    else:
        pairs["seen"] = [sorted(map(str, seen)), {"either": [sorted(texts) for texts in lists]}]
    if expected["rel_path"] != UNKNOWN:
        places = {row["text"]: row["rel_path"] for row in EXPECT["passages"].values()}
        paths = [chunk.rel_path for chunk in turn.result.chunks()]
        pairs["rel_path"] = [paths, [places.get(str(text)) for text in seen]]
    return {name: pair for name, pair in pairs.items() if not fits(*pair)}


def imported(desk: Any, cell: str) -> tuple[Any, list[Turn]]:
    """What convert_data.py says and writes of a cell."""
    source = desk.file(f"{cell}.jsonl", gzip.decompress((FOLDER / f"{cell}.jsonl.gz").read_bytes()))
    out = desk.folder / "out"
    words = ("import", CELLS[cell]["format"], source, "--output", str(out), "--json")
    done = desk.convert(*words, ok=False)
    if not (out / "eval_set.jsonl").exists():
        return done, []
    rows = map(json.loads, (out / "eval_set.jsonl").read_text(encoding="utf-8").splitlines())
    cases = {row["id"]: row for row in rows}
    lines = [
        line
        for path in sorted(out.glob("results/*/results.jsonl"))
        for line in path.read_text(encoding="utf-8").splitlines()
    ]
    return done, [Turn(line, cases, CELLS[cell].get("results", "")) for line in lines]


WITHOUT_CONTENT = [cell for cell in CELLS if "no_content" in CELLS[cell]]
NOT_READ = [cell for cell in CELLS if "not_read" in CELLS[cell]]
READ = [cell for cell in CELLS if cell not in (*WITHOUT_CONTENT, *NOT_READ)]


@pytest.mark.parametrize("cell", READ)
def test_what_a_person_reads_in_a_trace_is_what_the_import_makes(desk: Any, cell: str) -> None:
    done, turns = imported(desk, cell)
    assert done.exit_code == 0, done.output
    expected = expected_turns(cell)
    by_answer = {turn.answer: turn for turn in turns} | {turn.question: turn for turn in turns}
    wrong: dict[str, Any] = {}
    matched: dict[str, Turn] = {}
    for name, right in expected.items():
        words = (EXPECT["turns"][name]["question"], right["answer"])
        turn = next((by_answer[word] for word in words if word in by_answer), None)
        if turn is None:
            wrong[name] = "is not there"
            continue
        matched[name] = turn
        if fields := wrong_fields(turn, right):
            wrong[name] = {part: pair[0] for part, pair in fields.items()}
    names = {id(turn): name for name, turn in matched.items()}
    others = [turn for turn in turns if id(turn) not in names]
    unasked = {"questions that no one asked": [turn.question for turn in others]} if others else {}
    assert wrong | unasked == {}, json.dumps(wrong | unasked, indent=1, ensure_ascii=False)
    groups: dict[Any, set[str]] = {}
    for name, turn in matched.items():
        groups.setdefault(turn.conversation or turn.case["id"], set()).add(name)
    together = {name for name, right in expected.items() if right["turn"]}
    assert all(group <= together or len(group) == 1 for group in groups.values()), groups
    assert not together or together in groups.values(), groups


@pytest.mark.parametrize("cell", [*WITHOUT_CONTENT, *NOT_READ])
def test_without_readable_content_nothing_is_made_up_but_told_why(desk: Any, cell: str) -> None:
    done, turns = imported(desk, cell)
    assert done.exit_code == 2 or all(turn.answer == UNKNOWN for turn in turns)
    assert not any(turn.result.chunks() for turn in turns)
    said = done.output.replace(str(desk.folder), "")  # a folder has the name of this test
    assert CELLS[cell]["says"] in said, done.output


def test_every_cell_has_a_trace_and_every_trace_an_expectation() -> None:
    files = {path.name.removesuffix(".jsonl.gz") for path in FOLDER.glob("*.jsonl.gz")}
    assert files == set(CELLS)
    assert len(CELLS) >= 20
    assert all(reason for reason in EXPECT["not possible"].values())
    for cell in (*READ, *NOT_READ):
        assert expected_turns(cell), cell


THREAD = "thread-of-two-turns"
TOKENS = re.compile(r"(?:token_count\.|tokens\W{1,30})\d|token_count\.(?:prompt|completion)")


def flat(text: str) -> str:
    """A text without the marks and spaces that quoting a text within a text adds."""
    return re.sub(r"\\+n|\\+[\"']?|[\"'\s]", "", text)


@each_row("cell", CELLS)
def test_a_person_finds_in_the_trace_what_is_expected_and_not_what_is_unknown(cell: str) -> None:
    raw = gzip.decompress((FOLDER / f"{cell}.jsonl.gz").read_bytes()).decode()
    text = flat(raw)
    if cell in WITHOUT_CONTENT:
        words = [row[part] for row in EXPECT["turns"].values() for part in ("question", "answer")]
        assert [word for word in words if flat(word) in text] == []
        return
    for turn in expected_turns(cell).values():
        words = [turn["answer"], *(query for query, _ in turn["searches"]), *turn["seen_tools"]]
        words += [text_of(name) for _, names in turn["searches"] for name in names]
        words += [call["result"] for call in turn["tools"]]
        words += [value for call in turn["tools"] for value in call["arguments"].values()]
        words += [turn["question"]] if isinstance(turn["question"], str) else []
        assert [word for word in words if flat(word) not in text] == []
    assert (THREAD in raw) == (CELLS[cell].get("thread") != UNKNOWN and _has_thread(cell))
    if CELLS[cell].get("tokens") == UNKNOWN:
        assert TOKENS.findall(raw) == []


def _has_thread(cell: str) -> bool:
    return any(turn["turn"] for turn in expected_turns(cell).values())


def test_the_traces_are_small() -> None:
    sizes = {path.name: path.stat().st_size for path in FOLDER.glob("*.jsonl.gz")}
    assert {name: size for name, size in sizes.items() if size > LARGEST_CELL} == {}
    assert sum(sizes.values()) <= LARGEST_FOLDER


NAMES_OF_MACHINES = re.compile(
    r"/(?:root|home|Users|tmp|work|opt|private)/"  # a path of whoever made them
    r"|C:\\\\Users"
    r"|(?:127\.0\.0\.1|localhost):(?!8080\b)\d+"  # a port that was free that day
    r"|\"(?:host|process|os)\.[a-z_.]+\""
)


@each_row("cell", CELLS)
def test_no_trace_names_the_machine_or_the_home_that_made_it(cell: str) -> None:
    data = (FOLDER / f"{cell}.jsonl.gz").read_bytes()
    assert data[3] == 0  # the gzip header has neither a file name
    assert data[4:8] == b"\0\0\0\0"  # nor a time
    text = gzip.decompress(data).decode()
    assert NAMES_OF_MACHINES.findall(text) == []
    host = socket.gethostname()
    assert len(host) < 4 or re.search(rf"\b{re.escape(host)}\b", text) is None
    years = set(re.findall(r"\b(20\d\d)-\d\d-\d\d[T ]", text))
    assert years <= {"2026"}
    assert not re.search(r"\b2026-(?!01-01)\d\d-\d\d[T ]", text)


def test_a_wrong_reading_is_seen() -> None:
    expected = expected_turns("langgraph_prebuilt.openinference")["one"]
    passages = [
        {"text": text_of(name), "rel_path": "shop/returns.md", "rank": rank, "chunk_id": name}
        for rank, name in enumerate(("returns-1", "returns-2"), 1)
    ]
    line: dict[str, Any] = {
        "test_case_id": "a",
        "answer": expected["answer"],
        "retrieved": passages,
        "searches": [{"query": "return shoes", "retrieved": passages}],
        "tools": expected["tools"],
        "usage": {"input_tokens": 303, "output_tokens": 33},
    }
    cases = {"a": {"id": "a", "question": expected["question"]}}
    assert wrong_fields(Turn(json.dumps(line), cases), expected) == {}
    changed = {
        "answer": {"answer": "__end__"},
        "seen": {"retrieved": passages[::-1], "searches": line["searches"]},
        "tools": {"tools": []},
        "tokens": {"usage": {"input_tokens": 101, "output_tokens": 11}},
        "searches": {"searches": [{"query": "shoes", "retrieved": passages}]},
        "seen_tools": {"seen_tools": ["a text"]},
    }
    for name, change in changed.items():
        ranked = [
            chunk | {"rank": rank} for rank, chunk in enumerate(change.get("retrieved", []), 1)
        ]
        if ranked:
            change["retrieved"] = ranked
        assert set(wrong_fields(Turn(json.dumps(line | change), cases), expected)) == {name}
