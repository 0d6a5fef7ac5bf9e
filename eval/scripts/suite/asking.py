"""Making the run that a suite scores: run_eval.py as a child, so that its rules hold here too."""

from __future__ import annotations

import glob
import subprocess
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

import click

from storage import ROOT

RUN_EVAL = ROOT / "eval" / "scripts" / "run_eval.py"


class AskingFailed(click.ClickException):
    """run_eval has said what is wrong; its exit code is passed on."""

    def __init__(self, code: int) -> None:
        super().__init__("no run was made; nothing was scored.")
        setattr(self, "exit_code", code)  # noqa: B010 - click declares it a class variable


def ask(words: Sequence[str], ids: Iterable[str] = ()) -> Path:
    """Run run_eval.py with these options for all cases, or those with ``ids``; the run's folder.

    Its talk goes to our stderr. Raises AskingFailed with its exit code when it fails.
    """
    chosen = [word for one in ids for word in ("--filter", f"id={glob.escape(one)}")]
    command = [sys.executable, str(RUN_EVAL), *words, *chosen]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
        try:
            out, _ = child.communicate()
        except BaseException:
            child.terminate()  # not killed: it has to say how the run goes on
            child.wait()
            raise
    if child.returncode != 0:
        raise AskingFailed(child.returncode if child.returncode > 0 else 130)
    return Path(out.strip())
