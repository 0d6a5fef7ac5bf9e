"""The shipped cases with several groups, built from nothing with keys alone, saved and reopened."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

from tests.labeller.test_needs import shipped

from labeller import marks
from labeller.needs import needs_of, turned, ways_of
from labeller.passages import Chunk
from labeller.session import Session
from labeller.store import LabelStore
from labeller.supports import read_supports

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
