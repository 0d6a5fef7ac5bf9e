"""The results folder: its runs, opening one, and the command that labels a case of it."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path

import storage
from browse_store.opened import Opened
from browse_store.runs import Signature, run_info, signature
from browser.model import RunInfo
from storage import Labels, StorageError

LABEL_SCRIPT = Path(__file__).resolve().parents[1] / "label_eval.py"


class RunLibrary:
    """A results folder, as `browser.model.Library` says it. ``extra``: runs given by path."""

    def __init__(
        self,
        results_dir: Path,
        eval_set: Path,
        labels_dir: Path | None,
        *,
        wanted: Sequence[str] = (),
        extra: Sequence[Path] = (),
    ) -> None:
        self._results_dir, self._eval_set, self._labels_dir = results_dir, eval_set, labels_dir
        self._wanted = wanted
        self._paths = {path.name: path for path in extra if path.parent != results_dir}
        self._known: dict[Path, tuple[Signature, RunInfo]] = {}

    @property
    def folder(self) -> str:
        return str(self._results_dir)

    def refresh(self) -> Sequence[RunInfo]:
        """The runs, newest first. Reads those whose files changed, and those in progress."""
        folders = [*self._paths.values()]
        if self._results_dir.is_dir():
            folders += [path for path in self._results_dir.iterdir() if _is_run(path)]
        self._known = {path: self._look(path) for path in folders}
        found = [info for _, info in self._known.values()]
        return sorted(found, key=lambda info: (info.started, info.run_id), reverse=True)

    def _look(self, path: Path) -> tuple[Signature, RunInfo]:
        now = signature(path)
        known = self._known.get(path)
        if known is not None and known[0] == now and known[1].state != "running":
            return known
        return now, run_info(path)

    def path_of(self, run_id: str) -> Path:
        """The folder of a run that this library lists."""
        return self._paths.get(run_id, self._results_dir / run_id)

    def open(self, run_id: str) -> Opened:
        """Open a run; its first rows are there at once. Raises ValueError, in words."""
        folder = self.path_of(run_id)
        if not folder.is_dir():
            raise ValueError(f"{folder}: no such folder any more")
        return Opened(folder, self._eval_set, lambda: self._labels, self._wanted)

    @cached_property
    def _labels(self) -> Labels:
        """Label files of the set; what is wrong in them label_eval.py --validate tells."""
        try:
            return storage.read_labels(self._labels_dir, lambda problem: None)[0]
        except StorageError:
            return {}

    def label_command(self, run_id: str, case_id: str) -> Sequence[str] | str:
        """label_eval.py on this case, with the chunks of this run; or why it cannot be started."""
        folder = self.path_of(run_id)
        if not (folder / storage.RESULTS).exists():
            return "this run is not complete yet: labelling takes its chunks from results.jsonl"
        if not self._eval_set.exists():
            return f"{self._eval_set} is not there; give the set with --eval-set"
        command = [sys.executable, str(LABEL_SCRIPT), "--eval-set", str(self._eval_set)]
        if self._labels_dir is not None:
            command += ["--labels-dir", str(self._labels_dir)]
        return [*command, "--from-run", str(folder), "--no-blind", f"--case={case_id}"]


def _is_run(path: Path) -> bool:
    names = ("config.json", storage.RESULTS, storage.PARTIAL)
    return path.is_dir() and any((path / name).exists() for name in names)
