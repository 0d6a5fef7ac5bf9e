"""Needs and ways: the same thing said in two forms, and read back from either; with keys alone."""

from __future__ import annotations

import itertools
import json
import random
import time
from pathlib import Path
from typing import Any

import pytest

from labeller import marks
from labeller.passages import Chunk
from labeller.session import Session
from labeller.store import LabelStore
from labeller.supports import (
    Needs,
    choices,
    formula,
    minimal,
    needs_of,
    new_part,
    opened,
    read_supports,
    sentence,
    turned,
    ways_of,
    with_groups,
)
from terminal.actions import ActionRefused

SET = Path(__file__).parents[2] / "eval_set.jsonl"


def shipped() -> list[dict[str, Any]]:
    """The cases of the shipped set that have several groups."""
    cases = [json.loads(line) for line in SET.read_text("utf-8").splitlines() if line.strip()]
    return [case for case in cases if len(case.get("required_support_groups") or ()) > 1]


def brute(parts: list[list[int]], universe: int) -> set[frozenset[int]]:
    """Minimal hitting sets by trying every subset: the independent reference."""
    hitting = [
        frozenset(subset)
        for size in range(universe + 1)
        for subset in itertools.combinations(range(universe), size)
        if all(set(part) & set(subset) for part in parts)
    ]
    return {s for s in hitting if not any(other < s for other in hitting)}


def test_choices_are_those_that_trying_every_subset_finds() -> None:
    chance = random.Random(3)
    for _ in range(200):
        universe = chance.randrange(1, 7)
        parts = [
            chance.sample(range(universe), chance.randrange(1, universe + 1))
            for _ in range(chance.randrange(1, 6))
        ]
        found = choices(tuple(tuple(sorted(part)) for part in parts))
        assert found is not None
        assert {frozenset(choice) for choice in found} == brute(parts, universe)
        # Choosing twice leads back to the parts that contain no other one.
        assert choices(found) == minimal(parts)


def test_one_of_these_and_one_of_those_is_written_as_all_pairs() -> None:
    """{0, 3} and {1}: the ways are 0 with 1, and 3 with 1; support 2 is in none."""
    case: dict[str, Any] = {"gold_supports": [{}, {}, {}, {}]}
    written = with_groups(case, Needs(((0, 3), (1,))))
    assert written["required_support_groups"] == [[0, 1], [1, 3]]
    assert needs_of(written) == Needs(((0, 3), (1,)))


def test_needs_that_overlap_become_the_ways_that_contain_no_other() -> None:
    """{0, 1} and {1, 2}: 1 alone is enough, or 0 with 2; 0 with 1 contains the first."""
    assert ways_of(Needs(((0, 1), (1, 2)))) == ((0, 2), (1,))
    assert needs_of({"gold_supports": [{}] * 3, "required_support_groups": [[1], [0, 2]]}) == Needs(
        ((0, 1), (1, 2))
    )


def test_ways_are_shown_where_needs_would_be_more_and_overlap() -> None:
    """(0 and 1) or (2 and 3) are four needs, each with two of the four supports."""
    case = {"gold_supports": [{}] * 4, "required_support_groups": [[0, 1], [2, 3]]}
    assert needs_of(case) == Needs(((0, 1), (2, 3)), ways=True)
    assert sentence(needs_of(case), ["1", "2", "3", "4"]) == (
        "Shown as ways: (1 and 2) or (3 and 4). Marks join the open way."
    )
    assert turned(needs_of(case)).parts == ((0, 2), (0, 3), (1, 2), (1, 3))
    assert with_groups(case, needs_of(case)) is case, "nothing was changed"


def test_a_case_without_groups_needs_each_of_its_supports() -> None:
    needs = needs_of({"gold_supports": [{}, {}]})
    assert needs.parts == ((0,), (1,))
    assert with_groups({"gold_supports": [{}, {}]}, needs) == {"gold_supports": [{}, {}]}
    assert needs_of({}) == Needs(((),))


def test_a_need_in_words_names_what_is_not_required() -> None:
    needs = Needs(((0, 3), (1,)), open=2)
    pieces = formula(needs, [f"{i} a.md" for i in range(1, 6)])
    text = "".join(piece for piece, _ in pieces)
    assert text == "(1 a.md or 4 a.md) AND (2 a.md); not required: 3 a.md, 5 a.md"
    assert [piece for piece, is_open in pieces if is_open] == ["(2 a.md)"]


def test_any_number_of_needs_can_be_opened_one_after_the_other() -> None:
    needs = Needs(((0,),))
    with pytest.raises(ActionRefused, match="There is no need 3; '' starts need 2"):
        opened(needs, 3)
    needs = new_part(needs)
    assert (needs.parts, needs.open) == (((0,), ()), 2)
    with pytest.raises(ActionRefused, match="Need 2 has no passage yet"):
        new_part(needs)
    assert opened(needs, 1) == Needs(((0,),)), "an empty need goes when it is left"
    assert opened(needs, 0).open == 0


def test_too_many_ways_are_refused() -> None:
    """Seven needs of two passages have 2 ** 7 = 128 ways."""
    needs = Needs(tuple((2 * n, 2 * n + 1) for n in range(7)))
    with pytest.raises(ActionRefused, match="more than 64 ways"):
        ways_of(needs)


def test_all_shipped_cases_with_several_groups_come_back_the_same() -> None:
    """Of 41 questions 36 are products of disjoint needs, in 5 a passage meets two needs.

    29 turns of conversations have one need each.
    """
    cases = shipped()
    assert len(cases) == 41 + 29
    apart = 0
    for case in cases:
        needs = needs_of(case)
        assert ways_of(needs) == minimal(case["required_support_groups"])
        held = [index for part in needs.parts for index in part]
        apart += not needs.ways and len(held) == len(set(held))
    assert apart == 36 + 29


Record = dict[str, Any]
Ways = set[frozenset[tuple[str, str]]]


def bare(case: Record) -> Record:
    """The case before anybody labelled it."""
    labels = ("gold_supports", "required_support_groups", "answerable")
    return {name: value for name, value in case.items() if name not in labels}


def passages(case: Record) -> list[Chunk]:
    """A passage for each support, so that row n shows support n."""
    return [
        Chunk(s["rel_path"], s.get("heading_path", ""), f"Passage {n}.", rank=n)
        for n, s in enumerate(case["gold_supports"], 1)
    ]


def ways(case: Record) -> Ways:
    """The minimal groups of a case, by the anchors of their supports, in no order."""
    anchors = [support.anchor for support in read_supports(case)]
    return {frozenset(anchors[index] for index in way) for way in ways_of(needs_of(case))}


def mark(index: int) -> list[str]:
    """The keys that mark the row of a support: a digit, or a comma and a digit."""
    number = index + 1
    return [str(number % 10)] if number <= 10 else ["comma", str(number % 10)]


def keys_of(case: Record) -> list[str]:
    """What a person presses: need after need, then what is not required, then Enter."""
    needs = needs_of(case)
    needs = turned(needs) if needs.ways else needs
    keys: list[str] = []
    marked: set[int] = set()
    for number, part in enumerate(needs.parts, 1):
        fresh = [index for index in part if index not in marked]
        shared = [index for index in part if index in marked]
        if number > 1:
            keys += ["apostrophe", "apostrophe"]
        for index in fresh:
            keys += mark(index)
        for index in shared:
            keys += ["semicolon", *str(index + 1), "enter", "ampersand", "ampersand"]
        marked |= set(part)
    related = [index for index in range(len(case["gold_supports"])) if index not in marked]
    if related:
        keys += ["apostrophe", "0"]
        for index in related:
            keys += mark(index)
    return [*keys, "enter"]


def press(session: Session, keys: list[str]) -> None:
    """Do what the screen does with these keys, by the calls that it makes."""
    left = iter(keys)
    row = 1
    for key in left:
        if key == "apostrophe":
            number = next(left)
            session.open_need(None if number == "apostrophe" else int(number))
        elif key == "comma":
            session.on_row(session.view.row_by_label(f",{next(left)}").number, marks.toggle)
        elif key == "semicolon":
            label = ""
            while (digit := next(left)) != "enter":
                label += digit
            row = session.view.row_by_label(label).number
        elif key == "ampersand":
            assert next(left) == "ampersand"
            session.on_row(row, marks.share, session.layout.open)
        elif key == "enter":
            session.confirm()
        else:
            session.on_row(session.view.row_by_label(key).number, marks.toggle)


def test_all_shipped_cases_with_several_groups_are_built_with_keys(tmp_path: Path) -> None:
    cases = shipped()
    assert len(cases) == 41 + 29
    path = tmp_path / "set.jsonl"
    path.write_text("".join(json.dumps(bare(case)) + "\n" for case in cases), "utf-8")

    def opened() -> tuple[LabelStore, Session]:
        store = LabelStore(path, tmp_path / "judgements", now=time.time)
        session = Session(store.records, store.judgements, **store.session_options(), blind=False)
        store.attach(session.ledger)
        return store, session

    store, session = opened()
    for case in cases:
        session.queue.goto(case["id"])
        session.pool.put(case["id"], passages(case))
        press(session, keys_of(case))
    store.close()
    store, session = opened()
    shown_as_ways = 0
    for case in cases:
        again = session.ledger.case_of(case["id"])
        assert ways(again) == ways(case), case["id"]
        anchors = {support.anchor for support in read_supports(again)}
        assert anchors == {support.anchor for support in read_supports(case)}
        session.queue.goto(case["id"])
        session.pool.put(case["id"], passages(case))
        shown_as_ways += session.view.needs_words().startswith("Shown as ways")
    store.close()
    assert shown_as_ways == sum(needs_of(case).ways for case in cases)
