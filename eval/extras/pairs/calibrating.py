"""Lets people label the pairs of two runs, and measures how far the judge agrees with them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

import options
from extras.pairs.labelling import agreement, agreement_page, label_pairs, read_judged_pairs
from judging.kinds import PAIRS
from records.claim_labels import label_files, read_labels
from records.errors import StorageError
from records.files import json_bytes
from records.metrics import rounded
from records.runs import find_run
from terminal.print_page import print_page
from validation.calibrate_options import METRIC, CalibrateOptions


def calibrate(
    own: Mapping[str, Any], values: Mapping[str, Any], *, asked: CalibrateOptions
) -> int | None:
    """Label and compare where --pairs-with is given; None where it is not.

    Raises UsageError for options that mean nothing for pairs, and StorageError where nothing is
    judged or labelled.
    """
    if own["pairs_with"] is None:
        raise click.UsageError("--rubric needs --pairs-with BASE.")
    others = (asked.also_run, asked.labels_file, asked.gate, asked.attack, asked.calibration)
    if any(others) or asked.output or asked.metric != METRIC:
        raise click.UsageError(
            "--pairs-with compares the pairs of one --run; leave out --metric, --labels-file, "
            "--gate, --calibration, --attack and --output."
        )
    asked.check()
    rubric = (own["rubric"] or "").removeprefix("rubrics.")
    metric = f"{PAIRS}.{rubric}" if rubric else PAIRS
    base = find_run(asked.results_dir, own["pairs_with"])
    judged = read_judged_pairs(asked.folder, base, metric, asked.eval_set)
    if asked.label:
        code = label_pairs(
            judged,
            asked.labels_dir,
            asked.annotator_name,
            sample=asked.sample,
            seed=asked.seed,
            plain=asked.plain,
            ascii_only=asked.screen.get("ascii", False),
            theme=asked.screen.get("theme"),
        )
        if code:
            return code
    labels = read_labels(label_files(asked.labels_dir, []))
    report = agreement(judged, labels, seed=asked.seed)
    if not report["n"]:
        sentence = "people have decided no pair of these runs yet; label some with --label."
        if not asked.label:
            raise StorageError(f"{asked.folder.name}: {sentence}")
        options.say(f"{asked.folder.name}: {sentence}")
    elif asked.as_json:
        click.echo(json_bytes(rounded(report)), nl=False)
    else:
        print_page(options.stdout_console(), agreement_page(report))
    return options.Exit.DONE
