"""What other programs read, byte for byte: one made-up run and the files that scoring it gives.

``make golden`` writes the expected files anew; a change then shows as a diff that must be
explained. The comments below derive what the numbers must be.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from math import log2
from pathlib import Path
from typing import Any

import pytest
from tests.rows import each_row

from records.metrics import load_metrics

GOLDEN = Path(__file__).parent / "golden" / "tiny"
SCRIPTS = Path(__file__).parents[1] / "eval" / "scripts"
FILES = ("metrics.json", "scores/retrieval.jsonl")


def score(folder: Path) -> None:
    shutil.copytree(GOLDEN / "run", folder / "run")
    command = [sys.executable, str(SCRIPTS / "score_retrieval.py"), "--run", str(folder / "run")]
    command += ["--eval-set", str(GOLDEN / "eval_set.jsonl")]
    subprocess.run([*command, "--quiet"], check=True, stdout=subprocess.DEVNULL)


@each_row("name", FILES)
def test_the_files_have_the_expected_bytes(
    tmp_path: Path, name: str, request: pytest.FixtureRequest
) -> None:
    score(tmp_path)
    expected = GOLDEN / "expected" / name
    if request.config.getoption("--golden"):
        shutil.copyfile(tmp_path / "run" / name, expected)
    changed = differences(expected.read_text(), (tmp_path / "run" / name).read_text())
    assert not changed, f"{name} differs:\n" + "\n".join(changed)


MOST = 12


def differences(expected: str, found: str) -> list[str]:
    """What differs between two JSON or JSONL files, each value with its place; a dozen at most."""
    before, after = parts(expected), parts(found)
    places = [place for place in before | after if before.get(place) != after.get(place)]
    shown = [f"{at}: {before.get(at, 'none')} -> {after.get(at, 'none')}" for at in places[:MOST]]
    if len(places) > MOST:
        shown.append(f"... and {len(places) - MOST} more")
    if not shown and expected != found:
        lines = zip(expected.splitlines(), found.splitlines(), strict=False)
        number = next((at for at, (one, two) in enumerate(lines, 1) if one != two), 0)
        shown = [f"the same values, written in another way (first in line {number})"]
    return shown


def parts(text: str) -> dict[str, str]:
    """Each value of a JSON or JSONL file by its place, such as sections.retrieval.metrics.mrr.n."""
    try:
        return dict(leaves(json.loads(text)))
    except json.JSONDecodeError:
        lines = map(json.loads, text.splitlines())
        return dict(leaves({line.get("case_id", str(at)): line for at, line in enumerate(lines)}))


def leaves(value: Any, place: str = "") -> Iterator[tuple[str, str]]:
    inner = value.items() if isinstance(value, dict) else ()
    for key, part in inner:
        yield from leaves(part, f"{place}.{key}" if place else str(key))
    if not inner:
        yield place, json.dumps(value)


def test_what_differs_is_named_in_a_short_list() -> None:
    metrics = (GOLDEN / "expected/metrics.json").read_text()
    changed = json.loads(metrics)
    values = changed["sections"]["retrieval"]["metrics"]
    mean, count = values["mrr"]["mean"], values["mrr"]["n"]
    values["mrr"]["mean"] = 0.25
    del values["mrr"]["n"]
    assert differences(metrics, json.dumps(changed)) == [
        f"sections.retrieval.metrics.mrr.mean: {mean} -> 0.25",
        f"sections.retrieval.metrics.mrr.n: {count} -> none",
    ]
    lines = (GOLDEN / "expected/scores/retrieval.jsonl").read_text()
    assert differences(lines, lines.replace('"mrr":0.5', '"mrr":0.25')) == [
        "t1.scores.mrr: 0.5 -> 0.25"
    ]
    assert len(differences(lines, "{}")) == MOST + 1
    same = differences(metrics, json.dumps(json.loads(metrics)))
    assert same == ["the same values, written in another way (first in line 1)"]
    assert differences(metrics, metrics) == []


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
