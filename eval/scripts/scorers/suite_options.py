"""The options of the suite: a run or a bot, sections, gates and a baseline."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from records.option import (
    Output,
    cache_dir_option,
    eval_set_option,
    flag,
    header_option,
    labels_option,
    option,
    plugin_option,
    results_dir_option,
    run_option,
    seed_option,
    setting,
    targets_option,
)

if TYPE_CHECKING:
    from decisions.slices import Embed
    from ragmetrics.support import SupportModel


@dataclass(frozen=True, kw_only=True)
class SuiteOptions(Output):
    """The options of eval_suite.py. ``support_model``: of an extra."""

    run: str = run_option(names="--run")
    api_url: str | None = option("Ask this bot first, or 'demo' for the embedded one.")
    profile: str | None = option("With --api-url: how to ask the bot.")
    header: tuple[str, ...] = header_option("With --api-url: see run_eval.py.")
    folder_mode: str | None = setting("with --api-url: how the bot chooses folders")
    run_id: str | None = option("With --api-url: name of the run folder; else like --run.")
    eval_set: Path = eval_set_option()
    labels_dir: Path = labels_option()
    results_dir: Path = results_dir_option()
    sections: tuple[str, ...] | None = option(
        "Only these: retrieval, searches, tools, context, groundedness, embedding, abstention, "
        "safety, pipeline, judged, conversations.",
        names="--sections --perspective",
        metavar="NAME,…",
    )
    suite: str = option(
        "smoke: a small fixed part of the set, in seconds.",
        default="full",
        choices=("smoke", "full"),
    )
    embedding_model: str | None = setting(
        "embedding model, a hub's name or a folder (bundled all-MiniLM-L6-v2)"
    )
    cache_dir: Path = cache_dir_option("Where vectors are kept.")
    plugins: tuple[Path, ...] = plugin_option(
        "Metrics of your own (docs/examples/custom_metric.py)."
    )
    targets_file: Path | None = targets_option()
    gates_file: Path | None = option(
        "Exit 1 when a gate of this file is missed; it has the form of targets.toml.",
        names="--gates",
        path="file",
        exists=True,
    )
    allow_missing: int = setting(
        "with --gates: this many cases without a result pass (0)", default=0, low=0
    )
    baseline: Path | None = option(
        "Run or metrics.json to compare with; exit 1 on a regression. Exit 1 also if it was "
        "measured with another judge, other labels or another set."
    )
    max_drop: float | None = setting(
        "with --baseline: a larger fall is a regression, whatever its interval", low=0
    )
    save_trace: bool = flag("Write traces/ of the failed cases.")
    brief: bool = flag("Print the primary metrics, the findings and one bad case.")
    output: Path | None = option("Write OUTPUT.json.  [default: suite in the run folder]")
    seed: int = seed_option()
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
