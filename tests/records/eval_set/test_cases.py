"""The eval set of the demo: complete, well formed, and true to the vault of this very Python."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import groupby, pairwise
from pathlib import Path
from typing import Any

from tests.rows import each_row

from demo.vault import python_reference
from documents.sections import HEADING_SEPARATOR
from records.cases import case_from_dict

EVAL_SET = Path(__file__).parents[3] / "eval_set.jsonl"
MUST_HOLD_ANYWHERE = 0.75
FIELDS = ["id", "question", "conversation", "turn", "standalone", "question_alone"]
FIELDS += ["answerable", "category", "difficulty", "query_type"]
FIELDS += ["expected_key_facts", "reference_answer", "gold_supports", "required_support_groups"]
FIELDS += ["recency_conflict_rule", "tags", "vaults", "folders", "python_versions"]
TURN_FIELDS = {"conversation", "turn", "standalone", "question_alone"}
OPTIONAL_FIELDS = {"query_type", "python_versions"} | TURN_FIELDS

Case = dict[str, Any]
Judge = Callable[[Case, list[str]], None]
Vault = Any  # the class of conftest.py

CASES: list[Case] = [json.loads(line) for line in EVAL_SET.read_text("utf-8").splitlines()]
IDS = [str(case["id"]) for case in CASES]
TURNS = [case for case in CASES if "conversation" in case]
ASKED_ON = {
    before["id"]
    for before, after in pairwise(TURNS)
    if before["conversation"] == after["conversation"]
}
"""Turns that have a later one."""


def anchor_problems(case: Case, vault: Vault) -> Iterator[str]:
    """What a label claims and the vault does not hold."""
    for gold in case["gold_supports"]:
        place = f"{gold['rel_path']} # {gold['heading_path']}"
        text = vault.under(gold["rel_path"], gold["heading_path"])
        if not text:
            yield f"{place}: no such section"
        elif not gold["snippets"]:
            yield f"{place}: no snippet"
        else:
            missing = [s for s in gold["snippets"] if vault.collapse(s) not in text]
            yield from (f"{place}: snippet not found: {snippet}" for snippet in missing)


def unlabelled_copies(case: Case, vault: Vault) -> Iterator[str]:
    """Sections that hold a snippet word for word but are not among the gold supports."""
    golds = case["gold_supports"]
    for snippet in {vault.collapse(s) for gold in golds for s in gold["snippets"]}:
        for (path, head), text in vault.sections.items():
            labelled = any(
                g["rel_path"] == path and vault.is_under(head, g["heading_path"]) for g in golds
            )
            if snippet in text and not labelled:
                yield f"{path} # {head}: also holds: {snippet}"


def test_ids_are_unique_and_lines_are_plain() -> None:
    assert [name for name, count in Counter(IDS).items() if count > 1] == []
    assert all(re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", name) for name in IDS)
    assert EVAL_SET.read_bytes().endswith(b"}\n")


def test_the_set_has_enough_cases_of_every_kind() -> None:
    count = Counter(case["category"] for case in CASES)
    least = {
        "factual": 24,
        "reasoning": 10,
        "multi_hop": 12,
        "recency/conflict": 5,
        "general": 12,
        "adversarial": 8,
    }
    assert 70 <= sum("conversation" not in case for case in CASES) <= 90
    assert {name: count[name] for name in least if count[name] < least[name]} == {}
    assert sum(not case["answerable"] for case in CASES) >= 12


def test_there_are_conversations_of_every_kind() -> None:
    talks = [list(turns) for _, turns in groupby(TURNS, lambda case: case["conversation"])]
    assert len({turns[0]["conversation"] for turns in talks}) == len(talks) >= 12
    for turns in talks:
        assert 3 <= len(turns) <= 5
        assert [case["turn"] for case in turns] == list(range(1, len(turns) + 1))
        assert "standalone" not in turns[0]
        assert all(case["reference_answer"] for case in turns[:-1]), "replayed as history"
    assert all(("question_alone" in case) == ("standalone" in case) for case in TURNS)
    later = [case for case in TURNS if case["turn"] > 1]
    assert sum(case.get("standalone") is False for case in later) >= 30
    assert sum(case.get("standalone", True) for case in later) >= 2
    assert sum(not case["answerable"] for case in later) >= 5
    assert {case["id"] for case in later if not case["answerable"]} & ASKED_ON


@each_row("case", CASES)
def test_a_case_is_well_formed(case: Case) -> None:
    assert case_from_dict(case)[1] == []
    assert list(case) == [name for name in FIELDS if name in case]
    assert set(FIELDS) - set(case) <= OPTIONAL_FIELDS
    assert case["difficulty"] in {"easy", "medium", "hard"}
    assert case.get("query_type", "faq") in {"faq", "comparison", "research"}
    assert case["vaults"] == ["python"]
    assert case["tags"]
    assert (case["recency_conflict_rule"] is not None) == (case["category"] == "recency/conflict")
    assert all(gold["grade"] in {1, 2, 3} for gold in case["gold_supports"])
    if case["answerable"]:
        assert case["gold_supports"]
        assert case["expected_key_facts"]
        assert case["reference_answer"]
    else:
        assert case["gold_supports"] == []
        assert case["expected_key_facts"] == []
        assert case["reference_answer"] is None or case["id"] in ASKED_ON
        assert case["required_support_groups"] is None


@each_row("case", [c for c in CASES if c["category"] == "multi_hop"])
def test_a_multi_hop_case_needs_several_sections(case: Case) -> None:
    groups = case["required_support_groups"]
    assert any(len(group) > 1 for group in groups)


@each_row("case", [c for c in CASES if c["required_support_groups"]])
def test_groups_are_real_alternatives(case: Case) -> None:
    groups = [frozenset(group) for group in case["required_support_groups"]]
    assert len(set(groups)) == len(groups)
    assert not any(one < other for one in groups for other in groups)


def test_general_cases_are_the_ones_that_the_vault_cannot_answer() -> None:
    assert all(not case["answerable"] for case in CASES if case["category"] == "general")
    unanswerable = {case["category"] for case in CASES if not case["answerable"]}
    assert unanswerable <= {"general", "adversarial"}


def test_gold_stands_at_several_depths_and_in_every_folder() -> None:
    golds = [gold for case in CASES for gold in case["gold_supports"]]
    depths = {
        gold["heading_path"].count(HEADING_SEPARATOR) for gold in golds if gold["heading_path"]
    }
    assert depths >= {0, 1, 2}
    assert {gold["rel_path"].split("/")[0] for gold in golds} == {
        note.rel_path.split("/")[0] for note in python_reference()
    } - {"other"}


@each_row("case", CASES)
def test_every_anchor_and_snippet_stands_in_the_vault(
    judge: Judge, case: Case, vault: Vault
) -> None:
    judge(case, list(anchor_problems(case, vault)))


@each_row("case", CASES)
def test_no_word_for_word_copy_of_a_snippet_was_left_out(
    judge: Judge, case: Case, vault: Vault
) -> None:
    judge(case, list(unlabelled_copies(case, vault)))


def test_most_labels_hold_on_any_python(vault: Vault) -> None:
    answerable = [case for case in CASES if case["answerable"]]
    holding = [case for case in answerable if not any(anchor_problems(case, vault))]
    assert len(holding) >= MUST_HOLD_ANYWHERE * len(answerable)
