"""One table of keys for all screens: no key stands in two rows, no action hangs in the air."""

from __future__ import annotations

from collections import Counter

from textual.binding import Binding

from terminal.keys import KEYS, keys_on


def test_a_key_stands_in_one_row_only() -> None:
    """Under the name that Textual gives it: `?` and `question_mark` are the same key."""
    keys = [
        binding.key
        for row in KEYS
        for key in row.keys.split()
        for binding in Binding.make_bindings([Binding(key, "")])
    ]
    assert {key: count for key, count in Counter(keys).items() if count > 1} == {}


def test_an_action_gets_its_keys_in_the_order_of_the_table() -> None:
    assert keys_on("label")["mark-row"] == tuple("1234567890")
    assert keys_on("claims")["label-2"] == ("2", "x", "n")
    assert keys_on("lists")["down"] == ("j", "down")


def test_what_all_screens_have_is_on_the_same_keys_everywhere() -> None:
    screens = [keys_on(name) for name in ("label", "lists", "pages", "claims")]
    for action in ("help", "palette", "suspend", "undo", "redo", "redraw", "quit"):
        assert len({keys[action] for keys in screens}) == 1, action
