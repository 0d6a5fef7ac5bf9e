"""The options of a run: which cases, which bot, how it is asked, and where answers go."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from records.option import (
    SENT_HEADER,
    Output,
    api_url_option,
    error_rate_option,
    eval_set_option,
    flag,
    header_option,
    labels_option,
    option,
    profile_option,
    repeated,
    results_dir_option,
    seed_option,
    set_option,
    setting,
)

MOST = 1_000_000
"""More passages, cases or repeats than any run has; every number fits into JSON."""

LIMITS = (
    "Change a limit of the profile, such as timeout=90 (repeatable). Limits: concurrency, rpm, "
    "tpm, timeout, retries, backoff, max_mb; with --api-url demo also a setting of demo_api.py."
)
"""The help of an option that changes how fast a bot is asked."""

HISTORIES = ("live", "replay", "alone", "none")


@dataclass(frozen=True, kw_only=True)
class AskOptions(Output):
    """The options of run_eval.py. ``pace``: how an extra asks in portions, a
    ``run_plan.Pace``.

    ``set_by_user``: names of those that did not come from the built-in defaults.
    """

    eval_set: Path = eval_set_option()
    results_dir: Path = results_dir_option()
    api_url: str | None = api_url_option()
    profile: str = profile_option()
    header: tuple[str, ...] = header_option(SENT_HEADER)
    pairs: tuple[str, ...] = set_option(f"{LIMITS} Settings:")
    from_jsonl: Path | None = option(
        "Take answers from this file. A line: {id or question, answer, contexts}.", path="file"
    )
    k: int = option("Passages to ask for.", default=10, low=1, high=MOST)
    folder_mode: str | None = setting("the bot's folder mode, in its own words")
    retrieval_only: bool = flag("Record retrieval only; ask for no answer.")
    history: str = setting(
        "what later turns send: live (the bot's own answers), replay (the reference answers; with "
        "--retrieval-only), alone (question_alone, no history), none (the question, no history)",
        default="live",
        choices=HISTORIES,
    )
    store_full_text: bool = flag("Store whole chunk texts, not 200 characters.")
    filters: tuple[str, ...] = repeated(
        "Only cases with this id, category, tag … (* and ? match anything). Names: id, category, "
        "difficulty, tag, answerable, query_type. Same name twice: or; different names: and.",
        names="--filter",
        metavar="NAME=VALUE …",
    )
    limit: int | None = option("Only the first N cases.", low=1, high=MOST)
    repeat: int = option("Ask each case N times.", default=1, low=1, high=MOST)
    run_id: str | None = option("Name of the run folder.  [default: time and profile]")
    resume: bool = flag("Continue the run --run-id: ask the missing questions.")
    proof: bool = setting(
        "false continues without a known path or answer in the first 10 cases", default=True
    )
    retry_errors: bool = flag("With --resume: ask failed cases again.")
    max_error_rate: float = error_rate_option("Exit 3 above this share of errors.")
    labels: bool = flag(
        "Also ask the prompts of safety_labels.jsonl. Then score_safety judges the bot's own "
        "guardrail."
    )
    labels_dir: Path = labels_option()
    seed: int = seed_option()
    set_by_user: frozenset[str] = frozenset()
    pace: Any = None
