"""Tests a judge with known answers or pairs, and prints how it did against its limits."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import click
from rich.console import Console

import options
from extras.research.self_test import LIMITS, is_within, self_test, self_test_by_rubric, test_pairs
from judging.connect import JudgeOptions, connect
from judging.types import Judge
from records.files import json_bytes
from records.metrics import rounded
from records.rubrics import PREFIX, find
from terminal.page import number
from terminal.tables import plain, print_rows


def run(
    own: Mapping[str, Any], values: Mapping[str, Any], *, judge_options: JudgeOptions, plans: object
) -> int:
    """Test a judge with known answers, or by the examples of the one rubric that is named.

    Returns 0 when it keeps all limits, 1 when not, 3 when nothing came back. Raises
    click.BadParameter for several rubrics.
    """
    names = [name.strip() for name in click.get_current_context().params["metrics"].split(",")]
    rubrics = list(dict.fromkeys(name for name in names if name.startswith(PREFIX)))
    if len(rubrics) > 1:
        raise click.BadParameter("--self-test tries one rubric; name one in --metrics.")
    rubric = find(rubrics[0].removeprefix(PREFIX))[0] if rubrics else None
    times = max(3, values["repeats"][0])

    def report(judge: Judge, salt: bytes) -> dict[str, Any]:
        if rubric is not None:
            return self_test_by_rubric(judge, rubric, salt, times)
        return self_test(judge, salt, times)

    return _tested(report, values, judge_options)


def run_pairs(
    own: Mapping[str, Any], values: Mapping[str, Any], *, judge_options: JudgeOptions, plans: object
) -> int:
    """Test a judge with known pairs. Returns what ``run`` returns."""
    return _tested(test_pairs, values, judge_options)


def _tested(
    report_of: Callable[[Judge, bytes], dict[str, Any]],
    values: Mapping[str, Any],
    judge_options: JudgeOptions,
) -> int:
    with connect(judge_options) as connection:
        report = report_of(connection.judge, connection.salt)
        for note in () if values["quiet"] else connection.notes():
            options.say(f"Note: {note}")
    if values["as_json"]:
        click.echo(json_bytes(rounded(report)), nl=False)
    else:
        print_self_test(options.stdout_console(), report)
    if report["passed"] is None:
        return options.Exit.UNREACHABLE
    return options.Exit.DONE if report["passed"] else options.Exit.GATE_FAILED


def print_self_test(console: Console, report: dict[str, Any]) -> None:
    """The report of a self-test with its limits."""
    judge = report["judge"]
    console.print(f"Self-test of {plain(judge['provider'])}/{plain(judge['model'])}:")
    meanings = {
        "right": "verdicts on known claims that are right",
        "obeyed": "false claims that an attack made the judge call supported",
        "got_through": "of these, with a quote that exists",
        "shift_false_claims": "points that false claims gained under attack",
        "shift_true_claims": "points that true claims moved under attack",
        "attacks_reported": "attacks that the judge reported",
        "self_agreement": "verdicts that stayed the same when asked again",
        "flips_under_order": "verdicts that changed with the order of the claims",
        "pairs_right": "known pairs in which the better answer won in both orders",
        "pairs_obeyed": "attacks that made the worse answer win in any order",
        "pairs_by_order": "pairs in which the order decided",
    }
    if "rubric" in report:
        console.print(f"By the examples of rubrics.{report['rubric']}, as answers to be judged:")
        named = {"known claims": "examples", "false claims": "bad examples"}
        named |= {"true claims": "good examples", "call supported": "call better"}
        for old, new in named.items():
            meanings = {name: text.replace(old, new) for name, text in meanings.items()}
        del meanings["flips_under_order"]
    rows = []
    for name, meaning in ((name, meanings[name]) for name in meanings if name in report):
        limit = f"{LIMITS[name][0]} {LIMITS[name][1]:g}" if name in LIMITS else ""
        mark = {None: "", True: "✓", False: "✗"}[is_within(report, name)]
        rows.append((meaning, number(report[name]), limit, mark))
    print_rows(console, ("what", "value", "limit", ""), rows)
    if report["failed"]:
        console.print(f"{report['failed']} of {report['opinions']} opinions failed.")
