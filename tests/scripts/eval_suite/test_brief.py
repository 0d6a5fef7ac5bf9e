"""eval_suite.py --brief: primary metrics in words, the first findings, nothing else."""

from __future__ import annotations

from typing import Any

from click.testing import Result

import eval_suite
import score_retrieval


def test_the_brief_form_tells_what_a_newcomer_asks(write: Any, finished: Any) -> None:
    write(3, 1)
    shown = finished.score(eval_suite.main, "--brief", columns=100).stdout
    # 3 of 4 answers saw their file first
    assert "Needed evidence in the first 5 passages" in shown
    row = next(line for line in shown.splitlines() if "retrieval.evidence_recall@5" in line)
    assert " 0.750 " in row
    assert "redundancy_tfidf" not in shown.partition("What stands out:")[0]
    findings = shown.partition("What stands out:\n")[2]
    assert findings.startswith("1. ")
    assert "\n4. " not in findings
    assert findings.count("Look at ") == findings.count("\n  Look at ") <= 3


def test_a_long_table_shrinks_to_the_main_metrics(write: Any, finished: Any) -> None:
    write(3, 1)
    short: Result = finished.score(score_retrieval.main, columns=100)
    whole: Result = finished.score(score_retrieval.main, "-v", columns=100)
    names = set(finished.section(score_retrieval.main)["mean"])

    def shown(done: Result) -> set[str]:
        return {line.partition(" ")[0] for line in done.stdout.splitlines()} & names

    assert shown(whole) == names
    assert "evidence_recall@5" in shown(short)
    assert "recall_any@1" not in shown(short)
    assert f"{len(names - shown(short))} more metrics: -v shows them" in short.stdout
    assert "more metrics" not in whole.stdout
