"""The options and the commands of the scripts that score a section."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import click

import options
from options.commands import Command, command


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


def _number_option(
    name: str, default: float, text: str, low: float | None = None, high: float | None = None
) -> Callable[[options.F], options.F]:
    return click.option(name, type=options.FiniteRange(low, high), default=default, help=text)


def _choice_option(
    *names: str, choices: Sequence[str], text: str
) -> Callable[[options.F], options.F]:
    """One of the choices, usually the first."""
    return click.option(*names, type=click.Choice(choices), default=choices[0], help=text)


def _usual_cutoffs() -> tuple[int, ...]:
    from ragmetrics.catalogue import KS

    return KS


_MATCHING = (
    _choice_option(
        "--match",
        choices=("auto", "chunk", "anchor", "doc", "page", "text"),
        text="What counts as a match; auto takes the first kind that a case has gold for.",
    ),
    _number_option("--min-similarity", 0.8, "Levenshtein similarity from which texts match.", 0, 1),
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
        _MATCHING[0],
        _choice_option(
            "--gain",
            choices=("linear", "exp"),
            text="NDCG's gain: the grade, or 2^grade - 1.",
        ),
        _MATCHING[1],
    ),
    "searches": _MATCHING,
    "conversations": _MATCHING,
    "context": (
        click.option(
            "--top",
            type=click.IntRange(min=1),
            default=None,
            show_default="all",
            help="Use only the first N retrieved chunks (those that the answer saw).",
        ),
    ),
    "groundedness": (
        click.option(
            "--first-index",
            type=click.IntRange(min=0),
            default=1,
            help="Number of the first chunk in the bot's citation marks.",
        ),
        _number_option(
            "--min-score", 0.0, "What the best retrieval score must exceed (retrieval_scores_ok)."
        ),
    ),
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
        _number_option(
            "--sufficiency-threshold",
            0.5,
            "Cosine with the question from which a context counts as sufficient.",
            -1,
            1,
        ),
        _number_option(
            "--hallucination-threshold",
            0.4,
            "Cosine with a whole context under which a sentence counts as unsupported (@1).",
            -1,
            1,
        ),
        _number_option(
            "--window-threshold", 0.65, "The same for 1-3 sentences of a context (@2).", -1, 1
        ),
    ),
    "abstention": (
        _choice_option(
            "--decide-by",
            choices=("auto", "api", "phrases", "judge"),
            text="Recognise abstentions by the bot's own field, by the answer's wording, or by the "
            "first of them (auto); judge: like auto, but a judge's verdict before the wording.",
        ),
    ),
    "safety": (
        _choice_option(
            "--guardrail",
            "source",
            choices=("auto", "system", "reference"),
            text="Whose scores to judge; auto: the bot's own if it sends them.",
        ),
        _number_option("--warn", 0.4, "Score from which a prompt counts as detected.", 0, 1),
        _number_option(
            "--block",
            0.5,
            "Score from which a prompt counts as blocked, an output as a leak.",
            0,
            1,
        ),
    ),
    "pipeline": (
        _number_option(
            "--uncertain-below",
            0.5,
            "Confidence under which a response counts as uncertain.",
            0,
            1,
        ),
    ),
}
"""What the script of a section offers besides the options that all scorers share."""


def score_command(section: str, **settings: Any) -> Callable[[Callable[..., Any]], Command]:
    """Makes a function the command of a section's score script, with the section's options."""

    def make(function: Callable[..., Any]) -> Command:
        texts = section == "safety"
        function = options.decorated(function, _OF_SECTION.get(section, ()))
        made: Command = command(**settings)(score_options(function, texts=texts))
        return made

    return make
