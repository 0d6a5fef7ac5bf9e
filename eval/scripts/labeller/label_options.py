"""The options of a labelling session: passages, order of the questions, screen."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

from records import opt
from records.errors import StorageError
from records.home import own_file

if TYPE_CHECKING:
    from labeller.case_state import LabelTarget

KEYMAP = own_file("keymap.toml")

ORDERS: Final = ("file", "random", "failing", "uncertain")


@dataclass(frozen=True, kw_only=True)
class LabelOptions(opt.Output):
    """The options of label_eval.py; ``typed`` names those on the command line.

    An option that is not typed comes from the environment, the config file or its default.
    ``screen``: what ``pairs`` and config.toml change of it. ``labels``: whose they are; None: the
    set's own.
    """

    eval_set: Path = opt.eval_set()
    labels_dir: Path = opt.labels_dir()
    results_dir: Path = opt.results_dir()
    api_url: str | None = opt.api_url()
    profile: str = opt.profile()
    k: int = opt.value("Passages to show for a question.", default=20, low=1, high=200)
    from_run: str | None = opt.value("Show the passages stored in this run instead.", metavar="RUN")
    order: str = opt.value(
        "Order of the questions. failing: cases that fail in --run, the most harmful first; "
        "uncertain: by the results of --run.",
        default="file",
        choices=ORDERS,
    )
    case: str | None = opt.value("Open this case first.", metavar="ID")
    run: str = opt.run()
    seed: int = opt.seed()
    blind: bool = opt.setting(
        "false shows rank and scores; each judgement notes that you saw them", default=True
    )
    inspect: bool = opt.setting("true shows rank and scores, and writes nothing", default=False)
    plain: bool = opt.flag("Read lines and print lines, without a full screen.")
    pairs: tuple[str, ...] = opt.screen()
    validate: bool = opt.flag("Check the set and all label files; exit 2 on faults.")
    stats: bool = opt.flag("Print counts of the set.")
    screen: Mapping[str, Any] = field(default_factory=dict)
    typed: frozenset[str] = frozenset()
    labels: LabelTarget | None = None

    @property
    def jobs(self) -> list[str]:
        """The options that ask for something else than labelling."""
        jobs = {"--validate": self.validate, "--stats": self.stats}
        return [option for option, value in jobs.items() if value]

    def check(self, *, on_screen: bool = True) -> None:
        """Raises StorageError for options that contradict each other, or a full screen nowhere.

        Not `on_screen`, the labelling is not shown in this terminal.
        """
        if len(self.jobs) > 1:
            raise StorageError("choose one of --validate and --stats.")
        if self.as_json and not self.stats:
            raise StorageError("--json goes with --stats.")
        if self.from_run is not None and self.api_url is not None and "api_url" in self.typed:
            why = "the passages come from one of them"
            raise StorageError(f"choose --from-run or --api-url: {why}.")
        if self.case is not None and self.jobs:
            raise StorageError("--case is for labelling; leave it out.")
        if on_screen and not self.jobs and not self.lines:
            _check_terminal()

    @property
    def judgements_dir(self) -> Path:
        """The folder with a file for each person who labels."""
        from records.judged import judgements_dir

        return judgements_dir(self.eval_set, self.labels_dir)

    @property
    def resuming(self) -> bool:
        """Does a person look at it? A script's lines shall not depend on what others looked at."""
        return not self.lines or sys.stdin.isatty()

    @property
    def lines(self) -> bool:
        """Line mode: asked for, or the only thing that a dumb terminal can show."""
        dumb = os.environ.get("TERM") == "dumb" and "TEXTUAL_DRIVER" not in os.environ
        return self.plain or (dumb and sys.stdin.isatty())

    def keys(self) -> dict[str, str]:
        """The keymap: action names and keys. Raises StorageError when the file cannot be used."""
        from msgspec import Meta

        from records.toml_files import read_file

        path = self.screen.get("keymap", KEYMAP)
        if "keymap" not in self.screen and not path.exists():
            return {}
        key = Annotated[str, Meta(description='write the key as text, such as "x" or "f2"')]
        keys: dict[str, str] = read_file(path, dict[str, key])
        return keys


def _check_terminal() -> None:
    """The full screen reads keys from stdin and draws on stderr; both must be a terminal.

    Neither is one where the environment names another driver, such as that of a browser.
    """
    if "TEXTUAL_DRIVER" in os.environ:
        return
    for stream, name in ((sys.stdin, "stdin"), (sys.stderr, "stderr")):
        if not stream.isatty():
            why = "is not a terminal, so the full-screen view cannot start"
            raise StorageError(f"{name} {why}. Use --plain.")
