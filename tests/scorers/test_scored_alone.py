"""Which scores of a case depend on the other cases of its run: those that the catalogue says."""

from __future__ import annotations

from pathlib import Path

from ragmetrics import catalogue
from records.cases import TestCase
from records.labels import read_cases
from records.results import Reference, RetrievedChunk, RunConfig, TestResult
from records.scores import read_whole_scores
from scorers.contract import ScoringJob
from scorers.copies import copy_of_part
from scorers.sections import try_section
from storage import ResultsWriter

ROOT = Path(__file__).parents[2]
SET, LABELS = ROOT / "eval_set.jsonl", ROOT / "eval/labels"


def answer_to(case: TestCase, other: TestCase) -> TestResult:
    """The evidence of the case and of another one, twice, and its facts as the answer."""
    supports = [*(case.gold_supports or ()), *(other.gold_supports or ())]
    chunks: list[RetrievedChunk] = []
    for rank, own in enumerate([*supports, *supports[:1]], 1):
        text = " ".join([*own.snippets, f"This is said of {case.question}"])
        place = {"rel_path": own.rel_path, "heading_path": own.heading_path}
        chunks.append(
            RetrievedChunk(f"c{rank}", text=text, text_length=len(text), rank=rank, **place)
        )
    facts = [str(fact) for fact in case.expected_key_facts or ()]
    return TestResult(
        case.id,
        case.question,
        answer=" ".join([case.reference_answer or "I do not know.", *facts]),
        references=[Reference(1, rel_path=supports[0].rel_path)] if supports else [],
        retrieved=list(chunks),
        asked_with="live" if case.conversation else None,
    )


def test_a_case_scores_the_same_alone_but_for_metrics_of_the_run(tmp_path: Path) -> None:
    """A run and half of its cases, conversations whole, are scored by every section that needs no
    model: what the half scores otherwise must be ``of_run``."""
    cases = read_cases(SET, LABELS)
    writer = ResultsWriter(tmp_path, "whole")
    writer.write_config(RunConfig("whole", dataset={"cases": len(cases)}))
    for case, other in zip(cases, [*cases[1:], cases[0]], strict=True):
        writer.write_result(answer_to(case, other))
    writer.finish(case.id for case in cases)
    half = {name for name in {case.conversation or case.id for case in cases} if ord(name[0]) % 2}
    own = [case.id for case in cases if (case.conversation or case.id) in half]
    folders = tmp_path / "whole", copy_of_part(tmp_path / "whole", own, tmp_path / "half")
    moved, compared = set(), set()
    for section in catalogue.SECTIONS:
        jobs = [ScoringJob(folder, SET, LABELS, case_lines=False) for folder in folders]
        if not all(try_section(section, job, {"cached_only": True}).section for job in jobs):
            continue
        whole = {line.case_id: line for line in read_whole_scores(folders[0], section)}
        for line in read_whole_scores(folders[1], section):
            for name, score in line.scores.items():
                compared.add((section, name))
                if score != whole[line.case_id].scores.get(name):
                    moved.add((section, name))
    assert {section for section, _ in compared} >= {
        "retrieval", "context", "groundedness", "abstention", "pipeline", "conversations",
    }  # fmt: skip
    assert {("context", "redundancy_tfidf"), ("conversations", "evidence_in_history")} <= compared
    assert ("context", "redundancy_tfidf") in moved
    assert [pair for pair in sorted(moved) if not catalogue.depends_on_run(*pair)] == []
