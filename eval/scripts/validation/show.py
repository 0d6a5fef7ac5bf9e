"""The calibration report as a page, from the same data that --json prints."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from decisions.judge_calibration import (
    figure_names,
    judge_name,
    labelled,
    needed,
    people_say,
    share_names,
    verdict_tables,
    words_of,
)
from terminal.page import Block, Heading, Page, Prose, Quoted, Words, between, number, plain_table
from terminal.tables import counted, plain
from validation.judge import LEAST_FOR_MEAN
from validation.rubrics import scale_blocks
from validation.thumbs import thumbs_blocks

LEFT_OUT = {
    "cannot_tell": "cannot tell",
    "disputed": "disputed",
    "stale": "of texts that have changed",
    "unknown": "not in this run",
    "after_verdict": "given after seeing the verdict",
}
"""The names of labels.COUNTS for people."""

_LONGEST = 40
"""Characters of a name that a slice has from the set."""


def calibration_page(report: Mapping[str, Any]) -> Page:
    """Return the page of the whole report, the worst news first."""
    prompt = report["prompt"]
    named = f", prompt {prompt.get('name')}@{prompt.get('version')}" if prompt else ""
    title = f"{report['metric']}: {judge_name(report['judge'])}{plain(named)} against people"
    blocks: list[Block] = [Prose(title), *_labels(report)]
    if report["figures"] is None:
        blocks.append(
            Heading(
                f"Too few to calibrate: {labelled(report)} are labelled; {needed(report)} are "
                f"needed. {_remedy(report)}"
            )
        )
    else:
        blocks += [*_figures(report), *_slices(report)]
    blocks += [*_rates(report), *thumbs_blocks(report.get("thumbs")), *_attack(report["attack"])]
    return Page("", [*blocks, *_worst(report)])


def _remedy(report: Mapping[str, Any]) -> str:
    """What would give enough labels of each class."""
    items = words_of(report)["items"]
    if report["n"] < report["judged_claims"]:
        return f"Label more with --label, which draws {items} the judge doubts first."
    return (
        f"All {items} are labelled: judge more runs with the same judge and add each with "
        "--run RUN,OTHER."
    )


def _labels(report: Mapping[str, Any]) -> Iterator[Prose]:
    labels, words = report["labels"], words_of(report)
    items = words["items"]
    who = ", ".join(f"{plain(name, 40)} {n}" for name, n in labels["annotators"].items())
    yield Prose(
        f"{report['n']} of {report['judged_claims']} judged {items} are labelled, from "
        f"{counted(report['cases'], 'case')} ({who or 'no annotator'})."
    )
    if report["also_runs"]:
        yield Prose(
            f"They come from this run and from {', '.join(map(plain, report['also_runs']))}; the "
            "shares at the end cover only this run."
        )
    if report["weighted"]:
        yield Prose(
            f"The labels were drawn by strata: all figures except the counts are weighted by the "
            f"number of {items} that each represents."
        )
    left_out = [f"{labels[name]} {words}" for name, words in LEFT_OUT.items() if labels.get(name)]
    if left_out:
        yield Prose(f"Labels: {', '.join(left_out)}.")
    if labels["alpha"] is not None:
        yield Prose(
            f"Agreement between annotators: Krippendorff's alpha {number(labels['alpha'])}."
        )
    if report["failed_answers"]:
        yield Prose(f"The judge failed on {report['failed_answers']} answers, which are left out.")
    if report["claims_by_code"]:
        yield Prose(f"{report['claims_by_code']} {items} needed no judge and are left out here.")


def _figures(report: Mapping[str, Any]) -> Iterator[Block]:
    words = words_of(report)
    for head, counts in verdict_tables(report):
        yield from (Prose(""), plain_table(head, counts))
    if "scale" in report:
        yield from scale_blocks(report["scale"])
    rows = [
        (figure_name, number(row["value"]), between(row["ci95"]))
        for name, figure_name in figure_names(report).items()
        if (row := report["figures"][name])["value"] is not None
    ]
    rows.append((f"{words['good']}, by people (prevalence)", number(report["prevalence"]), ""))
    answers = report["answers"]
    if answers and not answers["too_few"]:
        kappa_name = f"weighted kappa of {answers['n']} answers, 0 to 5"
        rows.append((kappa_name, number(answers["weighted_kappa"]), between(answers["ci95"])))
    yield from (Prose(""), plain_table(("figure", "value", "95 % interval"), rows))
    advice = report["threshold"]
    if advice is not None:
        yield Heading(
            f"Threshold: {number(advice['cut'])} fits best on {advice['fit_n']} "
            f"{words['items']}; on the other {advice['test_n']} it has balanced accuracy "
            f"{number(advice['test_balanced_accuracy'])}, the present verdicts "
            f"{number(advice['present_balanced_accuracy'])}."
        )


def _slices(report: Mapping[str, Any]) -> Iterator[Block]:
    rows = [
        (
            plain(f"{name}: {value}", _LONGEST),
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
        bad = "absent" if words_of(report)["bad"] == "absent" else "unsup."
        head = ("slice", "n", bad, "agree", "spec.", "sens.", "kappa")
        yield from (Prose(""), plain_table(head, rows))


def _rates(report: Mapping[str, Any]) -> Iterator[Block]:
    rates = report["corrected"]
    rows = []
    for name, share_name in share_names(report).items():
        rate = rates[name]
        if isinstance(rate, Mapping):
            rows.append((share_name, number(rate["mean"]), between(rate["ci95"])))
        else:
            rows.append((share_name, number(rate), ""))
    head = (f"share {words_of(report)['good']}", "mean", "95 % interval")
    yield from (Prose(""), plain_table(head, rows))
    if rates["labels_only"] is None and report["sources"] == 1 and report["n"] >= LEAST_FOR_MEAN:
        one = words_of(report)["sources"].removesuffix("s")
        yield Prose(f"All labels are of one {one}, and others may differ: no mean is corrected.")
    elif rates["labels_only"] is None:
        yield Prose(f"Below {LEAST_FOR_MEAN} labels no mean is corrected.")
    elif rates["ppi"] is not None and not report["labels"]["random_sample"]:
        yield Prose("The corrected mean holds only if the labels are a random sample.")
    if rates["stratified"] is not None:
        yield Prose(
            "More labels make the interval of this run's mean smaller. It does not allow for other "
            "questions; --json also has wider intervals that do."
        )


def _attack(attack: Mapping[str, Any] | None) -> Iterator[Block]:
    if attack is None:
        return
    mark = {None: "not measured", True: "kept", False: "BROKEN"}[attack["passed"]]
    yield Heading(
        f"Attacks in {attack['answers']} answers move the score of unsupported claims by "
        f"{number(attack['shift_unsupported'])} (limit {attack['limit_unsupported']:g} of 5), of "
        f"supported ones by {number(attack['shift_supported'])} (limit "
        f"{attack['limit_supported']:g}): {mark}."
    )
    if attack["failed"]:
        yield Prose(f"{attack['failed']} of {attack['opinions']} opinions failed.")


def _worst(report: Mapping[str, Any]) -> Iterator[Block]:
    if report["worst"]:
        yield Heading("Worst disagreements:")
    for row in report["worst"]:
        people = people_say(report, row["human"]).replace("not ", "NOT ")
        words: Words = (
            Quoted(plain(row["case_id"], 40)),
            f" [{row['claim_id']}] people: {people}, judge: {plain(row['verdict'], 30)}",
        )
        yield Prose(words, item=1)
        yield Prose(Quoted(plain(row["claim"])), item=2)
        if row["reason"]:
            yield Prose(("judge's reason: ", Quoted(plain(row["reason"]))), item=2)
