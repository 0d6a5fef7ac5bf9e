"""What the options do: whose labels a session gives, how far annotators agree, a browser."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import Any

import options
from extras.annotators.agreement import agreement, labels_by_annotator, print_agreement
from extras.annotators.labels import RECHECK, OwnLabels, sample
from labeller.case_state import GOLD, LabelTarget, read_judgements
from labeller.jobs import cases_of
from labeller.label_options import LabelOptions
from records.errors import StorageError
from records.journal import ANNOTATOR_NAME
from records.runs import ROOT

SCRIPT = ROOT / "eval" / "scripts" / "label_eval.py"


def run(
    own: Mapping[str, Any],
    values: Mapping[str, Any],
    *,
    asked: LabelOptions,
    talk: Callable[[str], None],
    show: Callable[..., None],
) -> int | dict[str, Any]:
    """Compare the annotators, serve a browser, or return what changes of a session.

    ``own``: the values of the extra's options. ``asked``: those of the script. ``show`` prints
    figures as a table or as JSON.
    """
    _check_names(own["annotator"], own["recheck"])
    if own["agreement"] or own["serve"]:
        _check_alone(own, asked)
    if own["agreement"]:
        show(_agreement(asked), print_agreement, as_json=asked.as_json)
        return options.Exit.DONE
    if own["serve"]:
        _serve(own, asked, talk)
        return options.Exit.INTERRUPTED  # it ends by a signal alone, and keeps that to itself
    changes: dict[str, Any] = {}
    if own["annotator"] is not None or own["recheck"] is not None:
        changes["labels"] = _labels(own["annotator"], own["recheck"], asked)
    if own["disagreements_first"]:
        if "order" in asked.typed:
            raise StorageError("--disagreements-first is an order of its own; leave --order out.")
        changes["order"] = "disagreement"
    return changes


def _check_names(annotator: str | None, recheck: int | None) -> None:
    """Raises StorageError for a name that cannot be the name of an annotator's file."""
    if annotator is None:
        return
    if recheck is not None:
        raise StorageError("--recheck repeats the set's own labels; leave out --annotator.")
    if not ANNOTATOR_NAME.fullmatch(annotator):
        raise StorageError(
            f"--annotator {annotator!r}: use up to 64 letters, digits, '.', '_' and '-'."
        )
    if annotator == GOLD:
        raise StorageError(f"--annotator {GOLD}: this is the set itself; leave the option out.")
    if annotator == RECHECK:
        raise StorageError(f"--annotator {RECHECK}: this name belongs to --recheck PERCENT.")


def _check_alone(own: Mapping[str, Any], asked: LabelOptions) -> None:
    """Raises StorageError for several jobs, and for what does not go with the one."""
    jobs = [f"--{name}" for name in ("agreement", "serve") if own[name]] + asked.jobs
    if len(jobs) > 1:
        raise StorageError(f"choose one of {', '.join(jobs[:-1])} and {jobs[-1]}.")
    if own["agreement"] and asked.case is not None:
        raise StorageError("--case is for labelling; leave it out.")


def _agreement(asked: LabelOptions) -> dict[str, Any]:
    """How far the annotators agree, and where they do not."""
    labels = labels_by_annotator(cases_of(asked), read_judgements(asked.judgements_dir))
    if len(labels) < 2:
        raise StorageError(
            f"{asked.judgements_dir}: agreement needs two annotators; label again with "
            "--annotator NAME."
        )
    return agreement(labels, asked.seed)


def _serve(own: Mapping[str, Any], asked: LabelOptions, talk: Callable[[str], None]) -> None:
    if asked.plain:
        raise StorageError("--serve shows the full screen; leave --plain out.")
    asked.check(on_screen=False)
    try:
        from extras.annotators.serving import serve
    except ModuleNotFoundError:
        raise StorageError(
            "--serve needs the package textual-serve, which is not installed; install it with "
            f"{sys.executable} -m pip install textual-serve."
        ) from None
    words = [word for word in sys.argv[1:] if word != "--serve"]
    serve(SCRIPT, words, own["host"], own["port"], talk)


def _labels(annotator: str | None, recheck: int | None, asked: LabelOptions) -> LabelTarget:
    """The labels of another annotator, or those that are given a second time."""
    if annotator is None:
        assert recheck is not None
        judgements: Mapping[str, Mapping[str, Any]] = read_judgements(asked.judgements_dir)
        cases = sample(cases_of(asked), judgements.get(GOLD, {}), recheck, asked.seed)
        if not cases:
            raise StorageError(
                f"{asked.eval_set}: no case is labelled, so there is nothing to recheck."
            )
        return OwnLabels(RECHECK, only=frozenset(cases))
    return OwnLabels(annotator)
