"""The options and the commands of the scripts that score a section."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import click

import options
from options.commands import Command, command
from records.settings import KeyRule, from_pairs


def score_options(function: options.F, *, texts: bool = False) -> options.F:
    """The options that all scorers share; ``texts``: of labelled texts instead of cases."""
    from ragmetrics.catalogue import DIMENSIONS

    # match: how retrieval found its gold
    slices = ("attack_category", "leak_category", "tag") if texts else (*DIMENSIONS, "match")
    worst = "Show N texts that were judged wrongly, the clearest mistakes first."
    of_cases = (
        click.option("--worst-by", default=None, help="Metric that --worst sorts by."),
        click.option("--jobs", type=click.IntRange(min=1), default=1, help="Number of processes."),
    )
    return options.decorated(
        function,
        (
            options.run_option,
            options.eval_set_option,
            options.labels_option,
            options.results_dir_option,
            click.option(
                "--by",
                type=click.Choice(slices),
                multiple=True,
                metavar="SLICE",
                help=f"Show means by slice: {', '.join(slices)}.",
            ),
            click.option(
                "--worst",
                type=click.IntRange(min=0),
                default=0,
                show_default=False,
                help=worst if texts else "Show the N worst cases.",
            ),
            *(() if texts else of_cases),
            options.seed_option,
            options.json_option,
            options.verbosity_options,
        ),
    )


def _usual_cutoffs() -> tuple[int, ...]:
    from ragmetrics.catalogue import KS

    return KS


_MATCH = click.option(
    "--match",
    type=click.Choice(("auto", "chunk", "anchor", "doc", "page", "text")),
    default="auto",
    help="What counts as a match; auto takes the first kind that a case has gold for.",
)

_OF_SECTION: Mapping[str, Sequence[Callable[[Any], Any]]] = {
    "retrieval": (
        click.option(
            "--k",
            "ks",
            type=options.CutOffs(),
            default=_usual_cutoffs,
            show_default="1,3,5,10",
            help="Cut-offs, separated by commas.",
        ),
        _MATCH,
    ),
    "searches": (_MATCH,),
    "conversations": (_MATCH,),
    "embedding": (
        click.option(
            "--dataset",
            type=options.FILE,
            help="Score this JSON list of {question, reference_answer, answer, contexts}; "
            "no run needed.",
        ),
        options.embedding_model_option("--model"),
        click.option(
            "--allow-download",
            is_flag=True,
            help="Download a missing embedding model from its hub.",
        ),
        options.vectors_option,
    ),
}
"""What the script of a section offers besides the options that all scorers share."""


def _number(about: str, low: float = -math.inf, high: float = math.inf) -> KeyRule:
    return KeyRule("number", about, low, high)


def _choice(about: str, *choices: str) -> KeyRule:
    return KeyRule("choice", about, choices=choices)


_SIMILARITY = _number("Levenshtein similarity from which texts match (0.8)", 0, 1)

_KEYS_OF_SECTION: Mapping[str, Mapping[str, KeyRule]] = {
    "retrieval": {
        "gain": _choice("linear (NDCG's gain is the grade) or exp (2^grade - 1)", "linear", "exp"),
        "min_similarity": _SIMILARITY,
    },
    "searches": {"min_similarity": _SIMILARITY},
    "conversations": {"min_similarity": _SIMILARITY},
    "context": {
        "top": KeyRule("whole", "only the first N chunks (all; those that the answer saw)", 1)
    },
    "groundedness": {
        "first_index": KeyRule("whole", "number of the first chunk in citation marks (1)", 0),
        "min_score": _number("what the best retrieval score must exceed (0)"),
    },
    "embedding": {
        "sufficiency_threshold": _number(
            "cosine with the question from which a context is sufficient (0.5)", -1, 1
        ),
        "hallucination_threshold": _number(
            "cosine with a whole context under which a sentence is unsupported, @1 (0.4)", -1, 1
        ),
        "window_threshold": _number("the same for 1-3 sentences of a context, @2 (0.65)", -1, 1),
    },
    "abstention": {
        "decide_by": _choice(
            "api (the bot's own field), phrases (the answer's wording), auto (the first of them), "
            "or judge (like auto, but a judge's verdict before the wording)",
            *("auto", "api", "phrases", "judge"),
        ),
    },
    "safety": {
        "source": _choice(
            "whose scores: system (the bot's own), reference, or auto (its own if it sends them)",
            *("auto", "system", "reference"),
        ),
        "warn": _number("score from which a prompt is detected (0.4)", 0, 1),
        "block": _number("score from which it is blocked, and an output a leak (0.5)", 0, 1),
    },
    "pipeline": {
        "uncertain_below": _number("confidence under which a response is uncertain (0.5)", 0, 1)
    },
}
"""What few change: the keys that ``--set`` of a section's script takes."""


def _set_option(keys: Mapping[str, KeyRule]) -> Callable[[options.F], options.F]:
    """``--set KEY=VALUE``: each key becomes a value of the script, as if it had an option."""

    def take(ctx: click.Context, param: click.Parameter, pairs: Sequence[str]) -> None:
        ctx.params |= from_pairs(pairs, keys)

    about = "; ".join(f"{key}: {rule.about}" for key, rule in keys.items())
    return click.option(
        "--set",
        multiple=True,
        metavar="KEY=VALUE",
        callback=take,
        expose_value=False,
        help=f"Change a setting (repeatable). {about}.",
    )


def score_command(section: str, **settings: Any) -> Callable[[Callable[..., Any]], Command]:
    """Makes a function the command of a section's score script, with the section's options."""

    def make(function: Callable[..., Any]) -> Command:
        texts = section == "safety"
        keys = _KEYS_OF_SECTION.get(section)
        own = (*_OF_SECTION.get(section, ()), *([_set_option(keys)] if keys else []))
        function = options.decorated(function, own)
        made: Command = command(**settings)(score_options(function, texts=texts))
        return made

    return make
