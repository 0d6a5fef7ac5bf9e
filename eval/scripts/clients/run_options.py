"""The options of a run: which cases, which bot, how it is asked, and where answers go."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

from records import opt

MOST = 1_000_000
"""More passages, cases or repeats than any run has; every number fits into JSON."""

LIMITS = (
    "Change a limit of the profile, such as timeout=90 (repeatable): concurrency, rpm, tpm, "
    "timeout, retries, backoff, max_mb; with --api-url demo also a setting of demo_api.py."
)
"""The help of an option that changes how fast a bot is asked."""

History = Literal["live", "replay", "alone", "none"]

HISTORIES: tuple[History, ...] = get_args(History)


@dataclass(frozen=True, kw_only=True)
class AskOptions(opt.Output):
    """The options of run_eval.py. ``pace``: how an extra asks in portions, a
    ``run_plan.Pace``.

    ``set_by_user``: names of those that did not come from the built-in defaults.
    """

    eval_set: Path = opt.eval_set()
    results_dir: Path = opt.results_dir()
    api_url: str | None = opt.api_url()
    profile: str = opt.profile()
    header: tuple[str, ...] = opt.header(opt.SENT_HEADER)
    pairs: tuple[str, ...] = opt.pairs(LIMITS)
    from_jsonl: Path | None = opt.value(
        "Take answers from this file. A line: {id or question, answer, contexts}.", path="file"
    )
    k: int = opt.value("Passages to ask for.", default=10, low=1, high=MOST)
    folder_mode: str | None = opt.setting("the bot's folder mode, in its own words")
    retrieval_only: bool = opt.flag("Record retrieval only; ask for no answer.")
    history: str = opt.setting(
        "what later turns send: live (the bot's own answers), replay (the reference answers; with "
        "--retrieval-only), alone (question_alone, no history), none (the question, no history)",
        default="live",
        choices=HISTORIES,
    )
    store_full_text: bool = opt.flag("Store whole chunk texts, not 200 characters.")
    filters: tuple[str, ...] = opt.repeated(
        "Only cases with this id, category, tag … (* and ? match anything). Names: id, category, "
        "difficulty, tag, answerable, query_type. Same name twice: or; different names: and.",
        names="--filter",
        metavar="NAME=VALUE …",
    )
    limit: int | None = opt.value("Only the first N cases.", low=1, high=MOST)
    repeat: int = opt.value("Ask each case N times.", default=1, low=1, high=MOST)
    run_id: str | None = opt.value("Name of the run folder.  [default: time and profile]")
    resume: bool = opt.flag("Continue the run --run-id: ask the missing questions.")
    proof: bool = opt.setting(
        "false continues without a known path or answer in the first 10 cases", default=True
    )
    retry_errors: bool = opt.flag("With --resume: ask failed cases again.")
    max_error_rate: float = opt.error_rate("Exit 3 above this share of errors.")
    labels: bool = opt.flag(
        "Also ask the prompts of safety_labels.jsonl. Then score_safety judges the bot's own "
        "guardrail."
    )
    labels_dir: Path = opt.labels_dir()
    seed: int = opt.seed()
    set_by_user: frozenset[str] = frozenset()
    pace: Any = None
