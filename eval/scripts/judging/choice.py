"""The options that choose a judge and limit its cost."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from records import opt


def judge_option(*, own_rules: bool = True) -> Any:
    """Who judges. ``own_rules``: the embedded rules can, and do where no one is named."""
    rules = ", or 'local' (own rules)" if own_rules else ""
    return opt.value(
        f"A judge of eval/judges, a file or an address{rules}.",
        default="",
        metavar="NAME|FILE|URL",
        shown="local" if own_rules else "none",
    )


@dataclass(frozen=True, kw_only=True)
class JudgeChoice:
    """The options of scripts that ask a judge. ``typed``: names of those on the command line."""

    judge: str = judge_option()
    model: str | None = opt.value("The model's name on that server; with --offline, in the cache.")
    pairs: tuple[str, ...] = opt.pairs(
        "Change a key of the judge, such as temperature=0.2 (repeatable)."
    )
    max_cost: float | None = opt.value(
        "Stop at this many dollars (needs the judge's prices).", low=0
    )
    offline: bool = opt.flag("Ask no judge: a verdict not in the cache fails.")
    cache_dir: Path = opt.cache_dir("Folder of verdicts, facts and vectors.")
    typed: frozenset[str] = frozenset()

    def words(self) -> dict[str, Any]:
        """These options in the form of ``judge_files.judge_settings``."""
        return {
            "judge": self.judge,
            "model": self.model,
            "pairs": self.pairs,
            "model_is_default": "model" not in self.typed,
        }
