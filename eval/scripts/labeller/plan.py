"""What the command line of label_eval.py asked for."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import NamedTuple

import click
from click.core import ParameterSource

from labeller.case_state import GOLD
from records.errors import StorageError
from records.journal import ANNOTATOR_NAME
from records.runs import CACHE_DIR, ROOT

RECHECK = "recheck"
"""The file of labels that were given a second time by the same person."""

PROFILES = ROOT / "eval" / "profiles"

KEYMAP = ROOT / "eval" / "keymap.toml"

CHUNK_CACHE = CACHE_DIR / "label_chunks"


class Plan(NamedTuple):
    """The options of label_eval.py, as they are on the command line."""

    eval_set: Path
    labels_dir: Path
    results_dir: Path
    api_url: str | None
    profile: str
    k: int
    from_run: str | None
    annotator: str | None
    recheck: int | None
    order: str
    case: str | None
    run: str
    seed: int
    no_blind: bool
    inspect: bool
    plain: bool
    serve: bool
    host: str
    port: int
    ascii_only: bool
    no_mouse: bool
    theme: str | None
    keymap: Path | None
    validate: bool
    stats: bool
    agreement: bool
    export_qrels: str | None
    as_json: bool
    verbose: bool
    quiet: bool

    def check(self) -> None:
        """Raises StorageError for options that contradict each other, or a full screen nowhere."""
        jobs = [self.validate, self.stats, self.agreement, bool(self.export_qrels), self.serve]
        if sum(jobs) > 1:
            raise StorageError(
                "choose one of --validate, --stats, --agreement, --export-qrels and --serve."
            )
        if self.as_json and not (self.stats or self.agreement):
            raise StorageError("--json goes with --stats or --agreement.")
        if self.annotator is not None and not ANNOTATOR_NAME.fullmatch(self.annotator):
            raise StorageError(
                f"--annotator {self.annotator!r}: use up to 64 letters, digits, '.', '_' and '-'."
            )
        if self.annotator == GOLD:
            raise StorageError(f"--annotator {GOLD}: that is the set itself; leave the option out.")
        if self.annotator == RECHECK:
            raise StorageError(f"--annotator {RECHECK}: that is what --recheck PERCENT writes.")
        if self.annotator is not None and self.recheck is not None:
            raise StorageError("--recheck is for the set's own labels; leave --annotator out.")
        if self.from_run is not None and self.api_url is not None and _typed("api_url"):
            raise StorageError(
                "choose one of --from-run and --api-url: the passages come from one."
            )
        if self.serve and self.plain:
            raise StorageError("--serve shows the full screen; leave --plain out.")
        if self.case is not None and any(jobs[:-1]):
            raise StorageError("--case is for labelling; leave it out.")
        if not any(jobs) and not self.lines:
            _check_terminal()

    @property
    def judgements_dir(self) -> Path:
        """Where a file an annotator lies."""
        from labeller.cases import judgements_dir

        return judgements_dir(self.eval_set, self.labels_dir)

    @property
    def order_typed(self) -> bool:
        """Was the order asked for on the command line? Else that of the last session counts."""
        return _typed("order")

    @property
    def resuming(self) -> bool:
        """Does a person look at it? A script's lines shall not depend on what others looked at."""
        return not self.lines or sys.stdin.isatty()

    @property
    def who(self) -> str:
        """The name of this session's annotator; ``gold`` for the set itself."""
        return self.annotator or (GOLD if self.recheck is None else RECHECK)

    @property
    def lines(self) -> bool:
        """Line mode: asked for, or the only thing that a dumb terminal can show."""
        dumb = os.environ.get("TERM") == "dumb" and "TEXTUAL_DRIVER" not in os.environ
        return self.plain or (dumb and sys.stdin.isatty())

    def keys(self) -> dict[str, str]:
        """The keymap: action names and keys. Raises StorageError when the file cannot be used."""
        import tomllib

        path = self.keymap or KEYMAP
        try:
            raw = tomllib.loads(path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            if self.keymap is None:
                return {}
            raise StorageError(f"{path}: no such file.") from None
        except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
            raise StorageError(f"{path}: cannot be used ({error}).") from None
        bad = [name for name, key in raw.items() if not isinstance(key, str)]
        if bad:
            raise StorageError(f'{path}: {bad[0]}: write the key as text, such as "x" or "f2".')
        return dict(raw)


def _typed(option: str) -> bool:
    """Was the option given on the command line, and not by the environment or the config file?"""
    context = click.get_current_context(silent=True)
    return (
        context is not None and context.get_parameter_source(option) is ParameterSource.COMMANDLINE
    )


def _check_terminal() -> None:
    """The full screen reads keys from stdin and draws on stderr; both must be a terminal.

    Behind --serve neither is: there a browser takes their place.
    """
    if "TEXTUAL_DRIVER" in os.environ:
        return
    for stream, name in ((sys.stdin, "stdin"), (sys.stderr, "stderr")):
        if not stream.isatty():
            raise StorageError(
                f"{name} is not a terminal, so the full-screen view cannot start. Use --plain."
            )
