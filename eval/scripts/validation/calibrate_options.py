"""The options of a calibration: verdicts, labels, output and gate."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from judging.choice import JudgeChoice
from records import opt
from records.errors import StorageError

if TYPE_CHECKING:
    from judging.connect import JudgeOptions

METRIC = "groundedness"
"""The metric whose verdicts are compared where none is named."""


@dataclass(frozen=True, kw_only=True)
class CalibrateOptions(JudgeChoice, opt.Output):
    """The judge and the labels to compare, and the way to do it.

    ``runs``: the judged run, and others by the same judge whose claims are labelled and compared
    with its; ``labels_file`` names files of labels, or one of the known sets below the folder that
    RAG_EVAL_DATA names; ``judge_options`` is the judge that is asked about those, and that is
    attacked. ``screen``: what ``pairs`` and config.toml change of it.
    """

    runs: tuple[str, ...] = opt.value(
        "Run id, path of a run folder, or 'latest'. Separate several runs by the same judge with "
        "commas.",
        names="--run --run-id",
        default=("latest",),
        shown="latest",
        metavar="RUN,…",
    )
    results_dir: Path = opt.results_dir()
    eval_set: Path = opt.eval_set()
    labels_dir: Path = opt.labels_dir()
    metric: str = opt.value(
        "Whose verdicts: claims of groundedness, facts of correctness, or rubrics.NAME.",
        default=METRIC,
    )
    labels_file: tuple[Path, ...] = opt.repeated(
        "Read labels from this file (repeatable), or from a known set in the folder RAG_EVAL_DATA, "
        "such as ragtruth_qa.",
        path="file",
    )
    limit: int | None = opt.setting(
        "judge at most N claims of a set or file, drawn at random", low=1
    )
    label: bool = opt.flag("Label on the screen first; ? shows the keys.")
    plain: bool = opt.flag("With --label: read lines and print lines, without a full screen.")
    annotator: str | None = opt.value(
        "Whose labels they are.  [default: your user]", metavar="NAME"
    )
    sample: int = opt.setting(
        "how many claims or facts to label, half of them doubted by the judge; a larger "
        "number adds more",
        default=100,
        low=1,
        high=100_000,
    )
    within: float = opt.setting(
        "with --label: print how many more labels bring the run's mean to ± so many points",
        default=5.0,
        low=0.1,
        high=50,
    )
    gate: bool = opt.flag(
        "Exit 1 when the judge is not calibrated, not good enough, or has changed."
    )
    calibration: Path | None = opt.value(
        "With --gate: check the run's judge against this stored calibration.", path="file"
    )
    output: Path | None = opt.value(
        "Also store the calibration here, without texts, so that you can commit it.", path="file"
    )
    worst: int = opt.setting("disagreements to show", default=5, low=0, high=1000)
    attack: bool = opt.flag(
        "Append attacks on the judge to labelled answers, and see whether scores move."
    )
    seed: int = opt.seed()
    screen: Mapping[str, Any] = field(default_factory=dict)
    judge_options: JudgeOptions | None = None

    @property
    def run(self) -> str:
        """The run whose verdicts are compared."""
        return self.runs[0] if self.runs else "latest"

    @property
    def also_run(self) -> tuple[str, ...]:
        """Further runs by the same judge."""
        return self.runs[1:]

    @property
    def asked_judge(self) -> JudgeOptions:
        """The judge of ``judge_options``, which the script fills in."""
        assert self.judge_options is not None
        return self.judge_options

    @property
    def judge_is_named(self) -> bool:
        """The user named the judge, so the run's verdicts by it are looked at, though another judge
        was asked later."""
        return "judge" in self.typed

    def check(self) -> None:
        """Raise StorageError for options that contradict each other."""
        if self.set_name is not None and len(self.labels_file) > 1:
            raise StorageError(
                f"--labels-file {self.set_name}: a known set cannot be combined with other files."
            )
        if self.calibration is not None and not self.gate:
            raise StorageError("--calibration needs --gate.")
        if self.calibration is not None and (self.label or self.labels_file):
            raise StorageError(
                "--calibration names a finished calibration; leave out --label and --labels-file."
            )
        if self.also_run and (self.calibration is not None or self.set_name or self.attack):
            raise StorageError(
                "--run: further runs add claims to label and compare; leave out --calibration, "
                "--attack and a known set."
            )
        if self.attack and (self.calibration is not None or self.set_name):
            raise StorageError(
                "--attack needs a run with labels; leave out --calibration and a known set."
            )
        if self.metric != METRIC and (self.set_name or self.attack):
            raise StorageError(
                f"--metric {self.metric}: --attack and known sets work only for {METRIC}; leave "
                "them out."
            )
        if self.plain and (not self.label or self.as_json):
            raise StorageError("--plain needs --label and excludes --json: both print on stdout.")
        if self.label and self.labels_file:
            raise StorageError("--label writes eval/labels/verdicts; leave out --labels-file.")

    @property
    def set_name(self) -> str | None:
        """The known set among ``labels_file``."""
        return next((str(path) for path in self.labels_file if _names_a_set(path)), None)

    @property
    def annotator_name(self) -> str:
        """The annotator's name: the option, else the user's."""
        return self.annotator or re.sub(r"[^A-Za-z0-9._-]", "", _user()) or "me"

    @property
    def folder(self) -> Path:
        from records.runs import find_run

        return find_run(self.results_dir, self.run)

    @property
    def workers(self) -> int:
        """Number of threads, which wait for a server; they only slow the local judge."""
        return 1 if self.asked_judge.by_rules else self.asked_judge.concurrency


def _names_a_set(path: Path) -> bool:
    from validation.judge import SETS

    return str(path) in SETS and not path.exists()


def _user() -> str:
    import getpass  # slow to load

    try:
        return getpass.getuser().lstrip("._-")
    except (OSError, KeyError):  # a user id without a name
        return ""
