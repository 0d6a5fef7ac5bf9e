"""The calibration report on the terminal, from the same data that --json prints."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from decisions.judge_calibration import (
    RATES,
    figure_names,
    judge_name,
    labelled,
    people_say,
    share_names,
    verdict_tables,
    words_of,
)
from ragmetrics.stats.calibration import LEAST_INFORMATION, MIN_CLASS
from terminal.tables import number, plain, print_rows
from validation.judge import LEAST_FOR_MEAN

if TYPE_CHECKING:
    from rich.console import Console


LEFT_OUT = {
    "cannot_tell": "cannot tell",
    "disputed": "disputed",
    "stale": "of texts that have changed",
    "unknown": "not in this run",
    "after_verdict": "given after seeing the verdict",
}
"""What labels.COUNTS are called."""

SLICE_FIGURES, ONE_FIGURE = 43, 27
"""Columns that the figures of a table take: on a narrow terminal names are cut, never figures."""


def _cut(console: Console, words: str) -> str:
    return plain(words, max(10, console.width - ONE_FIGURE))


def _interval(bounds: Sequence[float] | None) -> str:
    """``0.512 – 0.740``, an en dash where there is none."""
    return "–" if bounds is None else f"{number(bounds[0])} – {number(bounds[1])}"


def print_report(console: Console, report: Mapping[str, Any]) -> None:
    """Everything, the worst news first."""
    prompt = report["prompt"]
    named = f", prompt {prompt.get('name')}@{prompt.get('version')}" if prompt else ""
    console.print(f"{report['metric']}: {judge_name(report['judge'])}{plain(named)} against people")
    _print_labels(console, report)
    if report["figures"] is None:
        console.print(
            f"\nToo few to calibrate: {labelled(report)} are labelled; {MIN_CLASS} of each are "
            f"needed. {_remedy(report)}"
        )
    else:
        _print_figures(console, report)
        _print_slices(console, report)
    _print_rates(console, report)
    _print_attack(console, report["attack"])
    _print_worst(console, report)


def _remedy(report: Mapping[str, Any]) -> str:
    """What would give enough labels of each class."""
    items = words_of(report)["items"]
    if report["n"] < report["judged_claims"]:
        return f"Label more with --label, which draws {items} the judge doubts first."
    return (
        f"All {items} are labelled: judge more runs with the same judge and add each with "
        "--run RUN,OTHER."
    )


def _print_labels(console: Console, report: Mapping[str, Any]) -> None:
    labels, words = report["labels"], words_of(report)
    items = words["items"]
    who = ", ".join(f"{plain(name, 40)} {n}" for name, n in labels["annotators"].items())
    console.print(
        f"{report['n']} of {report['judged_claims']} judged {items} are labelled, from "
        f"{report['cases']} {'case' if report['cases'] == 1 else 'cases'} ({who or 'nobody'})."
    )
    if report["also_runs"]:
        console.print(
            f"They are of this run and of {', '.join(map(plain, report['also_runs']))}; the shares "
            "at the end are of this run alone."
        )
    if report["weighted"]:
        console.print(
            f"The labels were drawn by strata: all figures but the counts are weighted by how many "
            f"{items} each stands for."
        )
    left_out = [f"{labels[name]} {words}" for name, words in LEFT_OUT.items() if labels.get(name)]
    if left_out:
        console.print(f"Labels: {', '.join(left_out)}.")
    if labels["alpha"] is not None:
        console.print(
            f"Annotators among themselves: Krippendorff's alpha {number(labels['alpha'])}."
        )
    if report["failed_answers"]:
        console.print(f"The judge failed on {report['failed_answers']} answers: they do not count.")
    if report["claims_by_code"]:
        console.print(
            f"{report['claims_by_code']} {items} needed no judge: they do not count here."
        )


def _print_figures(console: Console, report: Mapping[str, Any]) -> None:
    words = words_of(report)
    for head, counts in verdict_tables(report):
        console.print()
        print_rows(console, head, counts)
    console.print()
    rows = [
        (
            _cut(console, figure_name),
            number(row["value"]),
            _interval(row["ci95"]),
        )
        for name, figure_name in figure_names(report).items()
        if (row := report["figures"][name])["value"] is not None
    ]
    rows.append(
        (
            _cut(console, f"{words['good']}, say people (prevalence)"),
            number(report["prevalence"]),
            "",
        )
    )
    answers = report["answers"]
    if answers and not answers["too_few"]:
        kappa_name = f"weighted kappa of {answers['n']} answers, 0 to 5"
        rows.append(
            (
                _cut(console, kappa_name),
                number(answers["weighted_kappa"]),
                _interval(answers["ci95"]),
            )
        )
    print_rows(console, ("figure", "value", "95 % interval"), rows)
    advice = report["threshold"]
    if advice is not None:
        console.print(
            f"\nThreshold: {number(advice['cut'])} fits best on {advice['fit_n']} "
            f"{words['items']}; on the other {advice['test_n']} it has balanced accuracy "
            f"{number(advice['test_balanced_accuracy'])}, the present verdicts "
            f"{number(advice['present_balanced_accuracy'])}."
        )


def _print_slices(console: Console, report: Mapping[str, Any]) -> None:
    rows = [
        (
            plain(f"{name}: {value}", max(10, console.width - SLICE_FIGURES)),
            str(part["n"]),
            str(part["unsupported"]),
            str(part["agree"]),
            number(part["specificity"]),
            number(part["sensitivity"]),
            number(part["kappa"]),
        )
        for name, values in report["by"].items()
        for value, part in values.items()
    ]
    if rows:
        console.print()
        bad = "absent" if words_of(report)["bad"] == "absent" else "unsup."
        head = ("slice", "n", bad, "agree", "spec.", "sens.", "kappa")
        print_rows(console, head, rows)


def _print_rates(console: Console, report: Mapping[str, Any]) -> None:
    rates = report["corrected"]
    rows = []
    for name, share_name in share_names(report).items():
        rate = rates[name]
        if isinstance(rate, Mapping):
            rows.append((_cut(console, share_name), number(rate["mean"]), _interval(rate["ci95"])))
        elif name not in RATES:
            rows.append((_cut(console, share_name), number(rate), ""))
    console.print()
    print_rows(console, (f"share {words_of(report)['good']}", "mean", "95 % interval"), rows)
    if rates["labels_only"] is None:
        console.print(f"Below {LEAST_FOR_MEAN} labels no mean is corrected.")
    elif rates["ppi"] is not None and not report["labels"]["random_sample"]:
        console.print("The corrected means hold only if the labels are a random sample.")
    if rates["stratified"] is not None:
        console.print(
            "The mean of this run has the interval that labels shrink; those below it also allow "
            "for other questions."
        )
    if rates["rogan_gladen"] is None and report["figures"] is not None:
        console.print(
            f"No Rogan-Gladen rate: sensitivity + specificity is not above {LEAST_INFORMATION}."
        )


def _print_attack(console: Console, attack: Mapping[str, Any] | None) -> None:
    if attack is None:
        return
    mark = {None: "not measured", True: "kept", False: "BROKEN"}[attack["passed"]]
    console.print(
        f"\nAttacks in {attack['answers']} answers move the score of unsupported claims by "
        f"{number(attack['shift_unsupported'])} (limit {attack['limit_unsupported']:g} of 5), of "
        f"supported ones by {number(attack['shift_supported'])} (limit "
        f"{attack['limit_supported']:g}): {mark}."
    )
    if attack["failed"]:
        console.print(f"{attack['failed']} of {attack['opinions']} opinions could not be had.")


def _print_worst(console: Console, report: Mapping[str, Any]) -> None:
    if report["worst"]:
        console.print("\nWorst disagreements:")
    for row in report["worst"]:
        people = people_say(report, row["human"]).replace("not ", "NOT ")
        console.print(
            f"- {plain(row['case_id'], 40)} [{row['claim_id']}] people: {people}, judge: "
            f"{plain(row['verdict'], 30)}",
            soft_wrap=True,
        )
        console.print(f"  {plain(row['claim'])}", soft_wrap=True)
        if row["reason"]:
            console.print(f"  judge's reason: {plain(row['reason'])}", soft_wrap=True)
