"""Columns of score lines hold what the lines say, read once, whatever the lines look like."""

from __future__ import annotations

import json
import random
from collections import deque
from pathlib import Path
from typing import Any

import pytest
from tests.rows import each_row
from tests.score_lines import write_lines

from records.errors import Problem, StorageError
from records.run import Run
from records.scores import encode_evidence, encode_head, encode_lines, encode_scores
from records.section_table import LineKind, SectionTable

NAMES = ("mrr", "ndcg", "late")


def drawn(cases: int, seed: int) -> list[dict[str, Any]]:
    """Lines of which some have repeats, lack scores, failed, or have a metric that others lack."""
    rng = random.Random(seed)
    lines: list[dict[str, Any]] = []
    for case in range(cases):
        for repeat in range(rng.choice((1, 1, 1, 3))):
            scores = {"mrr": rng.choice((0.0, 0.5, 1.0, None)), "ndcg": rng.random()}
            if case > cases // 2 and rng.random() < 0.5:
                scores["late"] = rng.choice((0.25, None))
            status = "failed" if rng.random() < 0.2 else "scored"
            line = {"case_id": f"c{case}", "repeat": repeat, "status": status, "scores": scores}
            lines.append(line | {"cluster": f"group: {case % 7}"})
    return lines


def mean_of(lines: list[dict[str, Any]], name: str) -> float | None:
    values = [v for line in lines if (v := line["scores"].get(name)) is not None]
    return sum(values) / len(values) if values else None


def test_columns_are_the_means_of_each_case(tmp_path: Path) -> None:
    """Beside plain dictionaries of the same lines."""
    lines = drawn(700, seed=5)
    write_lines(tmp_path, "context", lines)
    table = Run(tmp_path).section("context")
    by_case: dict[str, list[dict[str, Any]]] = {}
    for line in lines:
        by_case.setdefault(line["case_id"], []).append(line)
    assert list(table.case_ids().values()) == list(by_case)
    assert table.names == tuple(table.metrics) == NAMES
    for name in NAMES:
        means = [None if value != value else value for value in table.column(name).tolist()]
        assert means == [mean_of(own, name) for own in by_case.values()]
        values = [None if value != value else value for value in table.values(name).tolist()]
        assert values == [line["scores"].get(name) for line in lines]
    assert table.repeats.tolist() == [line["repeat"] for line in lines]
    assert table.failed_lines.tolist() == [line["status"] == "failed" for line in lines]
    chosen = ["c699", "c3", "c300", "nobody"]
    found = table.lines_of(chosen)
    scores = {case_id: [line.scores for line in own] for case_id, own in found.items()}
    assert scores == {name: [line["scores"] for line in by_case[name]] for name in chosen[:3]}


def test_a_call_that_failed_is_not_answered_and_not_passed(tmp_path: Path) -> None:
    evidence = {"latency_ms": {"total": 120.0}, "usage": {"total_tokens": 7}, "cost_usd": None}
    line = {"case_id": "a", "repeat": 0, "status": "scored", "scores": {"pass": 1.0, "other": None}}
    failed = line | {"case_id": "b", "status": "failed"}
    write_lines(tmp_path, "pipeline", [line | {"evidence": evidence}, failed])
    table = Run(tmp_path).section("pipeline")
    assert table.names == ("pass", "other", "answered", "latency_ms", "cost_usd", "total_tokens")
    assert table.column("pass").tolist() == [1.0, 0.0], "the same scores, another status"
    assert table.column("answered").tolist() == [1.0, 0.0]
    assert table.column("latency_ms").tolist()[:1] == [120.0]
    assert table.column("total_tokens").tolist()[:1] == [7.0]


def test_scores_that_are_none_are_told_with_their_line(tmp_path: Path) -> None:
    good = {"case_id": "a", "repeat": 0, "status": "scored", "scores": {"mrr": 1}}
    write_lines(tmp_path, "retrieval", [good, good | {"case_id": "b", "scores": {"mrr": "high"}}])
    with pytest.raises(StorageError, match=r"retrieval\.jsonl:2: is not a score line .*scores"):
        Run(tmp_path).section("retrieval")


@each_row("in_order", [True, False])
def test_results_are_found_by_the_place_of_their_score_line(tmp_path: Path, in_order: bool) -> None:
    write_lines(tmp_path, "context", drawn(40, seed=2))
    ids = [line["case_id"] for line in drawn(40, seed=2)]
    ids = ids if in_order else ids[::-1]
    text = [json.dumps({"test_case_id": name, "answer": f"of {name}"}) + "\n" for name in ids]
    (tmp_path / "results.jsonl").write_text("".join(text))
    table = Run(tmp_path)
    table.section("context")
    for wanted in (["c7", "c39"], ["c7", "c39", "nobody"]):
        found = {result.test_case_id: result.answer for result in table.answers_of(wanted)}
        assert found == {"c7": "of c7", "c39": "of c39"}


def test_lines_without_scores_move_no_others(tmp_path: Path) -> None:
    """In a file of schema 1 a line may say less than the next one."""
    scores: tuple[dict[str, float], ...] = ({}, {}, {"mrr": 0.25}, {}, {"mrr": 0.5, "ndcg": 1.0})
    lines = [{"case_id": f"c{number}", "scores": own} for number, own in enumerate(scores)]
    write_lines(tmp_path, "context", lines)
    table = Run(tmp_path).section("context")
    for name in ("mrr", "ndcg"):
        values = [None if value != value else value for value in table.column(name).tolist()]
        assert values == [own.get(name) for own in scores]


def test_faulty_lines_are_reported_and_the_others_found(tmp_path: Path) -> None:
    """Of 1,200 lines each 37th is damaged, some of them by a score that is none."""
    lines = [{"case_id": f"c{n}", "scores": {"mrr": n / 1200}} for n in range(1200)]
    path = write_lines(tmp_path, "context", lines)
    text = path.read_bytes().splitlines(keepends=True)
    for n in range(0, 1200, 37):
        text[n] = b'{"case_id"\n' if n % 2 else text[n].replace(b'"mrr":', b'"mrr":"high",')
    path.write_bytes(b"".join(text))
    problems: list[Problem] = []
    table = SectionTable(tmp_path, "context", problems.append)
    seen = [line.case_id for line in table.read()]
    sound = [n for n in range(1200) if n % 37]
    assert [problem.line for problem in problems] == [n + 1 for n in range(0, 1200, 37)]
    assert seen == [f"c{n}" for n in sound]
    assert table.column("mrr").tolist() == [n / 1200 for n in sound]
    assert list(table.keys()) == [(f"c{n}", 0) for n in sound]
    found = table.lines_of([f"c{n}" for n in sound])
    scores = {case_id: line.scores for case_id, (line,) in found.items()}
    assert scores == {f"c{n}": {"mrr": n / 1200} for n in sound}
    path.write_bytes(b"".join(text))
    with pytest.raises(StorageError, match=r"context\.jsonl:1: is not a score line"):
        Run(tmp_path).section("context")


def kinds_of(run: Path, section: str, *, explained: bool = False) -> list[LineKind]:
    """The kind of each line."""
    table = SectionTable(run, section, explained=explained)
    deque(table.read(), maxlen=0)
    kinds = [table.kinds[number] for number in table.line_kinds.tolist()]
    assert kinds == [list(table.of_codes(lambda kind: kind))[code] for code in table.codes]
    assert table.failed_lines.tolist() == [kind.failed for kind in kinds]
    return kinds


FACTS: dict[str, list[tuple[dict[str, Any] | None, Any]]] = {
    "retrieval": [(None, None), ({"hits": None}, None), ({"hits": []}, 0), ({"hits": [3, 7]}, 3)],
    "abstention": [
        *((None, None), ({"cell": "abstained_unanswerable"}, True)),
        *(({"cell": "answered_answerable"}, False), ({}, False)),
    ],
    "pipeline": [
        *((None, None), ({"outcome": "uncertain"}, ("uncertain", None))),
        *(
            ({"outcome": "success", "expected": "refusal"}, ("success", "refusal")),
            ({}, (None,) * 2),
        ),
    ],
    "context": [({"facts": []}, None)] * 4,
}


@each_row("section", FACTS)
def test_lines_that_score_alike_are_told_apart_by_what_else_they_say(
    tmp_path: Path, section: str
) -> None:
    """All eight lines of a section have the same score."""
    lines, wanted = [], []
    for n, (evidence, fact) in enumerate(FACTS[section] * 2):
        line = {"case_id": f"c{n}", "scores": {"a": 1.0, "b": None}, "evidence": evidence}
        line |= {"reasons": {"b": "why not"}} if n % 2 else {}
        lines.append(line | {"status": "failed" if n == 6 else "scored"})
        wanted.append(LineKind(n == 6, fact, (("b", "why not"),) if n % 2 else ()))
    write_lines(tmp_path, section, lines)
    assert kinds_of(tmp_path, section, explained=True) == wanted
    bare = [kind._replace(reasons=()) for kind in wanted]
    if section != "pipeline":
        bare = [kind._replace(fact=None) for kind in bare]
    assert kinds_of(tmp_path, section) == bare


def test_reasons_that_lines_leave_out_are_those_of_the_head(tmp_path: Path) -> None:
    left_out = (("b", "no labels"), ("c@*", "no snippets"))
    names = ("a", "b", "c@1", "c@3")
    given: dict[str, Any] = {"usual": left_out, "other": (("b", "no answer"), left_out[1])}
    given |= {"none": (("*", "call failed"),)}
    ends = [
        encode_scores("scored", names, [1.0 * (why[0][0] != "*") or None, None, None, None], why,
                      left_out) + encode_evidence({})
        for why in given.values()
    ]  # fmt: skip
    head = encode_head(names, left_out)
    text = encode_lines(given, [0] * 3, [None] * 3, ["0" * 16] * 3, ends, head)
    (tmp_path / "scores").mkdir()
    (tmp_path / "scores/context.jsonl").write_bytes(text)
    told = [dict(kind.reasons) for kind in kinds_of(tmp_path, "context", explained=True)]
    assert told == [dict(why) for why in given.values()]
    # as the lines themselves say it when they are read whole
    table = Run(tmp_path).section("context")
    assert [line.reasons for line in table.lines(range(3))] == told


def test_a_reason_that_is_no_text_is_told_with_its_line(tmp_path: Path) -> None:
    line = {"case_id": "a", "repeat": 0, "status": "scored", "scores": {"mrr": None}}
    path = write_lines(tmp_path, "context", [line, line | {"case_id": "b"}])
    path.write_bytes(path.read_bytes()[:-2] + b',"reasons":{"mrr":3}}\n')
    Run(tmp_path).section("context")  # which does not look at reasons
    with pytest.raises(StorageError, match=r"context\.jsonl:2: is not a score line .*reasons"):
        Run(tmp_path, explained=True).section("context")


def test_a_line_that_was_replaced_is_told_with_its_number(tmp_path: Path) -> None:
    lines = [{"case_id": f"c{n}", "scores": {"mrr": n / 300}} for n in range(300)]
    path = write_lines(tmp_path, "context", lines)
    table = Run(tmp_path).section("context")
    places = [0, 255, 256, 299]
    assert [line.case_id for line in table.lines(places)] == [f"c{n}" for n in places]
    text = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([*text[:257], b"?" * (len(text[257]) - 1) + b"\n", *text[258:]]))
    with pytest.raises(StorageError, match=r"context\.jsonl:258: is not a score line"):
        list(table.lines([256, 257]))
