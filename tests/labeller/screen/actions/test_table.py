"""The table of actions itself: sound, every key bound, and a test for every action."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from tests.key_names import textual_name
from tests.labeller.screen.actions.test_moving import MOVES

from labeller.actions import ACTIONS, actions_of, all_actions, keymap_problems
from terminal.action_screen import _keys_for
from terminal.actions import keymap_id

CHECK = re.compile(r'async with action\("([a-z-]+)"\)')


def test_every_action_has_a_test_beside_this_one() -> None:
    tested = [
        name
        for path in Path(__file__).parent.glob("test_*.py")
        for name in CHECK.findall(path.read_text("utf-8"))
    ]
    assert sorted([*tested, *MOVES]) == sorted(one.id for one in ACTIONS if one.where == "main")


def test_the_table_is_sound() -> None:
    names = [keymap_id(action) for action in all_actions()]
    assert len(names) == len(set(names))
    assert keymap_problems({}) == []
    assert all(action.label and action.help.endswith(".") for action in all_actions())


async def test_every_action_of_the_main_screen_has_a_function(bench: Any) -> None:
    b = bench()
    async with b.app.run_test(size=(80, 24)):
        assert sorted(b.main.acts()) == sorted(action.id for action in actions_of("main"))


def test_every_key_of_the_table_is_bound() -> None:
    for where in ("main", "snippet"):
        actions = [action for action in ACTIONS if action.where == where]
        keys = _keys_for(actions)
        for action in actions:
            for index, key in enumerate(action.keys):
                assert keys[textual_name(key)] == (action, index)
