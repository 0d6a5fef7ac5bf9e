"""The main screen, put together: drawing, keys, moving, marking, windows."""

from __future__ import annotations

from labeller.mark_actions import MarkActions
from labeller.open_actions import OpenActions


class MainScreen(OpenActions, MarkActions, inherit_bindings=False):
    """The screen that the labelling happens on; a method `do_<id>` for each action of the table."""
