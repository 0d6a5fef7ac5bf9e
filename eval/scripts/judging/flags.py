"""The options of judge_answers.py, in groups: which judge, what is judged, how it is counted."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

import options
from judging.replies import MODES
from records.runs import CACHE_DIR

F = TypeVar("F", bound=Callable[..., Any])
DAY_S = 86_400.0
MOST_REPEATS = 100


class ModelAlias(click.ParamType[tuple[str, str]]):
    """Two names of a model, ``ASKED=ANSWERED``."""

    name = "asked=answered"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, str]:
        asked, _, answered = str(value).partition("=")
        if not asked.strip() or not answered.strip():
            self.fail(f"{value!r}: write ASKED=ANSWERED, two names of models.", param, ctx)
        return asked.strip(), answered.strip()


def _all(given: tuple[Callable[[F], F], ...]) -> Callable[[F], F]:
    def decorate(function: F) -> F:
        for option in reversed(given):
            function = option(function)
        return function

    return decorate


def judge_options(function: F) -> F:
    """Which judge, how it is reached, what it may cost."""
    found: F = _all(
        (
            click.option(
                "--judge",
                default="local",
                show_default=True,
                help="Address of an OpenAI-compatible server, or 'local' for the embedded rules.",
            ),
            click.option("--model", help="The model's name on that server."),
            click.option(
                "--api-key",
                metavar="VARIABLE",
                help="Environment variable that holds the key. Its value is written nowhere.",
            ),
            click.option(
                "--judge-revision", help="Which weights the server has, if it cannot say."
            ),
            click.option(
                "--judge-file",
                type=click.Path(path_type=Path, dir_okay=False, exists=True),
                help="The weights as a local file: its sha256 pins the judge.",
            ),
            click.option(
                "--allow-unpinned", is_flag=True, help="Accept a model whose name may move."
            ),
            click.option(
                "--allow-alias",
                type=ModelAlias(),
                multiple=True,
                help="Accept that the server answers a request for ASKED as ANSWERED.",
            ),
            click.option(
                "--temperature",
                type=options.FiniteRange(0, 2),
                default=0.0,
                show_default=True,
                help="Sampling temperature of the judge.",
            ),
            click.option(
                "--mode",
                type=click.Choice(MODES),
                help="How JSON is asked for.  [default: the best that works]",
            ),
            click.option(
                "--thinking-tokens",
                type=click.IntRange(0, 1_000_000),
                default=0,
                show_default=True,
                help="Further tokens for each reply: for models that think before they answer.",
            ),
            click.option(
                "--concurrency",
                type=click.IntRange(1, 512),
                default=8,
                show_default=True,
                help="Calls at once.",
            ),
            click.option(
                "--timeout",
                type=options.FiniteRange(0, DAY_S, min_open=True),
                default=120.0,
                show_default=True,
                help="Seconds for one try.",
            ),
            click.option(
                "--retries",
                type=click.IntRange(0, 1000),
                default=3,
                show_default=True,
                help="Further tries of a call.",
            ),
            click.option(
                "--prices",
                type=click.Path(path_type=Path, dir_okay=False),
                help="TOML file: a table a model with dollars per million tokens.",
            ),
            click.option(
                "--max-cost",
                type=options.FiniteRange(0),
                help="Stop asking at this many dollars (needs --prices).",
            ),
            click.option(
                "--offline", is_flag=True, help="Ask nobody: a verdict not in the cache fails."
            ),
            click.option(
                "--cache-dir",
                type=click.Path(path_type=Path, file_okay=False),
                default=CACHE_DIR,
                show_default="eval/cache",
                help="Where verdicts, facts and vectors are kept.",
            ),
        )
    )(function)
    return found


def plan_options(function: F) -> F:
    """What is judged and how often."""
    found: F = _all(
        (
            click.option(
                "--metrics",
                default="groundedness,correctness",
                show_default=True,
                help="Metrics to judge, with commas; 'all' for every one.",
            ),
            click.option(
                "--claim-level", is_flag=True, help="Blame each claim and fact: the claim_* rates."
            ),
            click.option(
                "--claims",
                type=click.Choice(["sentence", "atomic"]),
                default="sentence",
                show_default=True,
                help="Claims by our sentence rules, or atomic ones by the judge.",
            ),
            click.option(
                "--repeats",
                type=click.IntRange(1, MOST_REPEATS),
                default=1,
                show_default=True,
                help="Opinions on each answer: gives spread and flip rate.",
            ),
            click.option(
                "--repeats-share",
                type=options.FiniteRange(0, 1),
                default=1.0,
                show_default=True,
                help="Share of the cases that get --repeats opinions; the others get one.",
            ),
            click.option(
                "--k",
                type=click.IntRange(min=1),
                help="Judge only the first K chunks of each answer.  [default: all]",
            ),
            click.option(
                "--max-error-rate",
                type=options.FiniteRange(0, 1),
                default=0.2,
                show_default=True,
                help="End with exit code 3 when more than this share of the judgements failed.",
            ),
            click.option("--dry-run", is_flag=True, help="Say what it would take; ask nothing."),
            click.option(
                "--rescore", is_flag=True, help="Count the verdicts that are there; ask nothing."
            ),
            click.option(
                "--self-test",
                is_flag=True,
                help="Try attacks, repeats and claim orders on known answers; judge no run.",
            ),
            click.option(
                "--correctness-weight",
                type=options.FiniteRange(0, 1),
                default=0.75,
                show_default=True,
                help="Weight of facts against cosine in answer_correctness_judged.",
            ),
            click.option(
                "--embedding-model",
                help=options.EMBEDDING_MODEL,
            ),
        )
    )(function)
    return found


def calls_of(metrics: str, claim_level: bool) -> tuple[str, ...]:
    """The calls behind a list of metrics. Raises click.BadParameter listing the names there are."""
    from judging.calls import CALLS
    from ragmetrics.catalogue.judged import CALLS_BY_METRIC

    wanted = [name for part in metrics.split(",") if (name := part.strip())]
    names = list(CALLS_BY_METRIC) if wanted == ["all"] else wanted
    names += [name for name in CALLS_BY_METRIC if claim_level and name.startswith("claim_")]
    for name in names:
        if name not in CALLS_BY_METRIC:
            known = ", ".join(CALLS_BY_METRIC)
            raise click.BadParameter(f"{name!r} is not judged; choose of: all, {known}.")
    if not names:
        raise click.BadParameter("--metrics: name at least one, or 'all'.")
    needed = {call for name in names for call in CALLS_BY_METRIC[name]}
    return tuple(call for call in CALLS if call in needed)
