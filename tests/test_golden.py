"""What other programs read, byte for byte: one made-up run and the files that scoring it gives.

``make golden`` writes the expected files anew; a change then shows as a diff that must be
explained. The comments below derive what the numbers must be.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from math import log2
from pathlib import Path

import pytest

from records.metrics import load_metrics

GOLDEN = Path(__file__).parent / "golden" / "tiny"
SCRIPTS = Path(__file__).parents[1] / "eval" / "scripts"
FILES = ("metrics.json", "scores/retrieval.jsonl")


def score(folder: Path) -> None:
    shutil.copytree(GOLDEN / "run", folder / "run")
    command = [sys.executable, str(SCRIPTS / "score_retrieval.py"), "--run", str(folder / "run")]
    command += ["--eval-set", str(GOLDEN / "eval_set.jsonl")]
    subprocess.run([*command, "--quiet"], check=True, stdout=subprocess.DEVNULL)


@pytest.mark.parametrize("name", FILES)
def test_the_files_have_the_expected_bytes(
    tmp_path: Path, name: str, request: pytest.FixtureRequest
) -> None:
    score(tmp_path)
    expected = GOLDEN / "expected" / name
    if request.config.getoption("--golden"):
        shutil.copyfile(tmp_path / "run" / name, expected)
    assert (tmp_path / "run" / name).read_text() == expected.read_text()


def test_the_expected_numbers_are_right() -> None:
    section = load_metrics(GOLDEN / "expected/metrics.json")["sections"]["retrieval"]
    mean, n = section["mean"], section["n"]
    # t1, t2 and t4 are scored; t3 is unanswerable, t5 failed.
    assert n["mrr"] == 3
    assert section["not_applicable"]["mrr"] == section["failed"]["mrr"] == 1
    # First matches at ranks 2, 1 and 1.
    assert mean["mrr"] == round((1 / 2 + 1 + 1) / 3, 6)
    # Supports in the top 3: 1 of 1; 1 of 3 (the owner comes at rank 4); 2 of 2.
    assert mean["recall@3"] == round((1 + 1 / 3 + 1) / 3, 6)
    # Matching chunks in the top 3 places: 1; 2 (a duplicate is still a match); 2.
    assert mean["precision@3"] == round((1 / 3 + 2 / 3 + 2 / 3) / 3, 6)
    # Complete evidence: t1 at 2, t2's first group at 4 (its second never), t4 at 2.
    assert [mean[f"recall_all@{k}"] for k in (1, 3, 5)] == [0.0, round(2 / 3, 6), 1.0]
    # evidence_recall@3: t1 1; t2's groups have 1 of 2 and 0 of 1; t4 1. At 5 t2's first is whole.
    assert mean["evidence_recall@3"] == round((1 + 1 / 2 + 1) / 3, 6)
    assert mean["evidence_recall@5"] == 1.0
    # t1: 1/log2(3). t2: grades 3 at rank 1 and 2 at rank 4, ideal 3, 2, 1. t4: ideal order.
    two = (3 + 2 / log2(5)) / (3 + 2 / log2(3) + 1 / 2)
    assert mean["ndcg@5"] == round((1 / log2(3) + two + 1) / 3, 6)
    # t2: precision 1/1 at rank 1, and 2/4 at rank 4 (the duplicate at 2 brings nothing).
    assert mean["map@5"] == round((1 / 2 + (1 + 2 / 4) / 3 + 1) / 3, 6)
    # All three answers cite a support; t4 cites the older fee first.
    assert (mean["attribution_hit"], mean["recency_rule_ok"]) == (1.0, 0.0)
    assert (n["recency_rule_ok"], n["snippet_recall@5"]) == (1, 1)
