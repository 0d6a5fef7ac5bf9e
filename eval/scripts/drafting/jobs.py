"""What generate_cases.py does, in its order: read the vault, draft, check, write, say."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import orjson

import storage
from demo.vault import Note, python_reference, read_folder
from drafting import asking, templates
from drafting.casing import Casing
from drafting.sections import Section, sections
from drafting.selecting import Outcome, drafts, turns
from drafting.writing import append, write_new
from judging.connect import LOCAL, Wanted, connect
from judging.progress import say_notes
from options import Exit
from storage import StorageError, TestCase
from tables import plain

DEMO = "demo"


@dataclass(frozen=True, slots=True)
class Plan:
    """The options of the script; ``wanted`` is the judge, ``local`` for rules."""

    vault: str
    vault_name: str | None
    count: int
    output: Path | None
    append_to: Path | None
    seed: int
    as_json: bool
    quiet: bool
    wanted: Wanted

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> Plan:
        """From the command line's values."""
        judge = {
            "revision": given["judge_revision"],
            "file": given["judge_file"],
        } | {name: given[name] for name in Wanted.__dataclass_fields__ if name in given}
        own = {name: given[name] for name in cls.__dataclass_fields__ if name in given}
        return cls(**own, wanted=Wanted(**judge))

    def check(self) -> None:
        """Raises StorageError when there is not exactly one place to write to."""
        if (self.output is None) == (self.append_to is None):
            raise StorageError("name one place for the drafts: --output FILE, or --append-to SET.")
        if self.output is not None and self.output.exists():
            raise StorageError(
                f"{self.output}: exists already, and is not overwritten; choose another name, or "
                "--append-to it."
            )


def run(plan: Plan) -> int:
    """Everything; returns the exit code. Nothing is written when no question could be drafted."""
    plan.check()
    known, cases = _known(plan)
    every = sections(_notes(plan))
    failures: Counter[str] = Counter()
    outcome = _drafted(plan, every, cases, failures)
    if not outcome.cases:
        return _nothing(plan, outcome, failures)
    if plan.output is not None:
        write_new(plan.output, outcome.cases)
    elif plan.append_to is not None:
        append(plan.append_to, outcome.cases, known)
    _say(plan, outcome, failures)
    return Exit.DONE


def _notes(plan: Plan) -> list[Note]:
    if plan.vault == DEMO:
        return python_reference()
    return read_folder(plan.vault, plan.vault_name)


def _known(plan: Plan) -> tuple[bytes, list[TestCase]]:
    """The set that is added to, as bytes and as cases; a faulty one is refused."""
    if plan.append_to is None:
        return b"", []
    cases = storage.read_cases(plan.append_to, None)
    return plan.append_to.read_bytes(), cases


def _drafted(
    plan: Plan, every: list[Section], cases: list[TestCase], failures: Counter[str]
) -> Outcome:
    old = {"questions": [case.question for case in cases], "ids": [case.id for case in cases]}
    order = turns(every, plan.seed)
    if plan.wanted.judge == LOCAL:
        by = f"template@{templates.RULES}"
        found = templates.questions(order, Casing(every))
        return drafts(every, found, plan.count, **old, by=by)
    with connect(plan.wanted) as link:
        written = asking.questions(order, link.judge, link.salt, plan.wanted.concurrency, failures)
        outcome = drafts(every, written, plan.count, **old, by=str(link.judge.identity))
        say_notes(link.notes(), plan.quiet)
        return outcome


def _nothing(plan: Plan, outcome: Outcome, failures: Counter[str]) -> int:
    """Say why there is no draft; a judge that failed every time counts as unreachable."""
    if failures and not outcome.asked_already:
        told = ", ".join(f"{number} {kind}" for kind, number in failures.most_common())
        click.echo(f"The judge failed on every section: {told}. Nothing was written.", err=True)
        return Exit.UNREACHABLE
    raise StorageError(
        f"{plan.vault}: no question could be drafted ({outcome.nothing_to_ask} sections without "
        f"one, {outcome.asked_already} asked already); nothing was written."
    )


def _say(plan: Plan, outcome: Outcome, failures: Counter[str]) -> None:
    target = plan.output or plan.append_to
    number = len(outcome.cases)
    if plan.as_json:
        click.echo(orjson.dumps(outcome.cases, option=orjson.OPT_INDENT_2).decode())
    else:
        for case in outcome.cases:
            click.echo(f"{case['id']}\t{case['category']}\t{plain(case['question'], 500)}")
    if plan.quiet:
        return
    click.echo(
        f"{number} drafts in {target}; {outcome.asked_already} sections asked what is asked "
        f"already, {outcome.nothing_to_ask} gave nothing to ask.",
        err=True,
    )
    if failures:
        told = ", ".join(f"{count} {kind}" for kind, count in failures.most_common())
        click.echo(f"The judge failed on some sections: {told}.", err=True)
    if number < plan.count:
        click.echo(f"Fewer than the {plan.count} that were asked for.", err=True)
    click.echo(
        "Look at each in label_eval.py, where they are open questions: Enter accepts one (the tag "
        "goes), e mends it; Shift+Tab, then / and tag:draft shows the drafts alone.",
        err=True,
    )
