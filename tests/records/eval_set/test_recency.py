"""Recency cases of the eval set: dates, rules, and key facts that an honest answer can hold."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.rows import each_row

EVAL_SET = Path(__file__).parents[3] / "eval_set.jsonl"
RELEASED = {
    "3.5": "2015-09-13",
    "3.6": "2016-12-23",
    "3.7": "2018-06-27",
    "3.8": "2019-10-14",
    "3.9": "2020-10-05",
    "3.10": "2021-10-04",
    "3.11": "2022-10-24",
    "3.12": "2023-10-02",
}
"""The day each version came out: the date of a support whose text speaks of that version."""

Case = dict[str, Any]
Judge = Callable[[Case, list[str]], None]
Vault = Any  # the class of conftest.py

CASES: list[Case] = [json.loads(line) for line in EVAL_SET.read_text("utf-8").splitlines()]
RECENCY = [case for case in CASES if case["recency_conflict_rule"] is not None]


def not_in(case: Case, text: str, place: str) -> Iterator[str]:
    """Key facts that the text does not hold word for word, case and white space aside."""
    held = " ".join(text.split()).casefold()
    for fact in case["expected_key_facts"]:
        if " ".join(fact.split()).casefold() not in held:
            yield f"not in {place}: {fact}"


def recency_problems(case: Case) -> Iterator[str]:
    """What the case's recency rule needs and its labels lack.

    ``cite_newer`` and ``cite_both`` ask for supports that differ; copies of one passage do not.
    ``acknowledge_both`` may rest on one passage that tells both states, so its key facts must be
    words that an honest answer holds as they stand: the reference answer is the least of those.
    """
    rule, golds = case["recency_conflict_rule"], case["gold_supports"]
    dates = [gold.get("date") for gold in golds]
    if rule == "cite_newer" and None in dates:
        yield "cite_newer: a support without a date"
    elif rule == "cite_newer" and len(set(dates)) < 2:
        yield "cite_newer: no support is older than another"
    if rule == "cite_both" and len({tuple(gold["snippets"]) for gold in golds}) < 2:
        yield "cite_both: fewer than two different supports"
    if rule == "acknowledge_both":
        if len(case["expected_key_facts"]) < 2:
            yield "acknowledge_both: fewer than two key facts"
        yield from not_in(case, case["reference_answer"], "the reference answer")
    latest = max(date or "" for date in dates)
    grades = {gold["grade"] for gold in golds if (gold.get("date") or "") == latest}
    if 3 not in grades or (rule == "cite_newer" and grades != {3}):
        yield "the newest support is not of grade 3"


def date_problems(case: Case, vault: Vault) -> Iterator[str]:
    """Dates that are no release, or of a release that the section does not speak of."""
    version_of = {date: version for version, date in RELEASED.items()}
    for gold in case["gold_supports"]:
        if (date := gold.get("date")) is None:
            continue
        place = f"{gold['rel_path']} # {gold['heading_path']}"
        text = vault.under(gold["rel_path"], gold["heading_path"])
        if date not in version_of:
            yield f"{place}: no release came out on {date}"
        elif not re.search(rf"(version|Python) {re.escape(version_of[date])}(?!\d)", text):
            yield f"{place}: does not speak of {version_of[date]}"


@each_row("case", RECENCY)
def test_a_recency_case_has_what_its_rule_needs(case: Case) -> None:
    assert list(recency_problems(case)) == []


@each_row("case", CASES)
def test_a_date_is_that_of_a_version_in_the_text(judge: Judge, case: Case, vault: Vault) -> None:
    judge(case, list(date_problems(case, vault)))


@each_row("case", RECENCY)
def test_an_answer_in_the_words_of_the_vault_tells_both_states(
    judge: Judge, case: Case, vault: Vault
) -> None:
    if case["recency_conflict_rule"] != "acknowledge_both":
        pytest.skip("the rule goes by citations alone")
    golds = [gold for gold in case["gold_supports"] if gold["grade"] == 3]
    texts = [vault.under(gold["rel_path"], gold["heading_path"]) for gold in golds]
    judge(case, list(not_in(case, " ".join(texts), "the gold sections")))
