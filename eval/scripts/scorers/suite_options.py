"""The options of the suite: a run or a bot, sections, gates and a baseline."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from records import opt

if TYPE_CHECKING:
    from decisions.slices import Embed
    from ragmetrics.support import SupportModel


@dataclass(frozen=True, kw_only=True)
class SuiteOptions(opt.Output):
    """The options of eval_suite.py. ``support_model``: of an extra."""

    run: str = opt.run(names="--run")
    api_url: str | None = opt.value("Ask this bot first, or 'demo' for the embedded one.")
    profile: str | None = opt.value("With --api-url: how to ask the bot.")
    header: tuple[str, ...] = opt.header("With --api-url: see run_eval.py.")
    folder_mode: str | None = opt.setting("with --api-url: how the bot chooses folders")
    run_id: str | None = opt.value("With --api-url: name of the run folder; else like --run.")
    eval_set: Path = opt.eval_set()
    labels_dir: Path = opt.labels_dir()
    results_dir: Path = opt.results_dir()
    sections: tuple[str, ...] | None = opt.value(
        "Only these: retrieval, searches, tools, context, groundedness, embedding, abstention, "
        "safety, pipeline, judged, rubrics, conversations, custom.",
        names="--sections --perspective",
        metavar="NAME,…",
    )
    suite: str = opt.value(
        "smoke: a small fixed part of the set, in seconds.",
        default="full",
        choices=("smoke", "full"),
    )
    embedding_model: str | None = opt.setting(
        "embedding model, a hub's name or a folder (bundled all-MiniLM-L6-v2)"
    )
    cache_dir: Path = opt.cache_dir("Where vectors are kept.")
    plugins: tuple[Path, ...] = opt.plugin("Metrics of your own (docs/examples/custom_metric.py).")
    targets_file: Path | None = opt.targets()
    gates_file: Path | None = opt.value(
        "Exit 1 when a gate of this file is missed; it has the form of targets.toml.",
        names="--gates",
        path="file",
        exists=True,
    )
    allow_missing: int = opt.setting(
        "this many cases without a result pass, in gates and in a comparison", default=0, low=0
    )
    baseline: Path | None = opt.value(
        "Run or metrics.json to compare with; exit 1 on a regression, if the comparison is "
        "INCOMPLETE, if too few cases of a set that changed are left, or if it was measured with "
        "another judge, other labels or another set."
    )
    max_drop: float | None = opt.setting(
        "with --baseline: a larger fall is a regression, whatever its interval", low=0
    )
    save_trace: bool = opt.flag("Write traces/ of the failed cases.")
    output: Path | None = opt.value("Write OUTPUT.json.  [default: suite in the run folder]")
    seed: int = opt.seed()
    embed: Embed | None = None
    support_model: Callable[[], SupportModel] | None = None

    @property
    def smoke(self) -> bool:
        return self.suite == "smoke"

    def asking(self, sections: Sequence[str]) -> list[str]:
        """The options for run_eval.py; labelled prompts are asked where safety is to be scored."""
        from ragmetrics import catalogue
        from records.labels import labelled_texts

        words = ["--store-full-text", "--seed", str(self.seed)]
        prompts = any("labelled texts" in catalogue.SECTIONS[name].needs for name in sections)
        if prompts and labelled_texts(self.labels_dir, self.eval_set):
            words.append("--labels")
        for name in ("api_url", "profile", "run_id"):
            if (value := getattr(self, name)) is not None:
                words += [f"--{name.replace('_', '-')}", value]
        for name in ("eval_set", "labels_dir", "results_dir"):
            words += [f"--{name.replace('_', '-')}", str(getattr(self, name))]
        if self.folder_mode is not None:
            words += ["--set", f"folder_mode={self.folder_mode}"]
        for text in self.header:
            words += ["--header", text]
        return words + (["--quiet"] if self.quiet else [])
