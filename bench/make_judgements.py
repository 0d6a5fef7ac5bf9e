"""Write eval/labels/judgements/pool.jsonl: what a rule says of passages that the demo retrieves.

    for part in vector_weight=0.67 lexical_only=true vector_weight=1; do
      python eval/scripts/run_eval.py --api-url demo --store-full-text --k 20 --set $part
    done
    python bench/make_judgements.py RUN RUN RUN

The pool of a case is the ten best passages of each run (words and vectors, words alone, vectors
alone). Nobody read them for this: each is held against the set's supports, which people labelled
with all their copies. A passage that matches a support has its grade; one that holds neither a
snippet nor a key fact of the case has 0; one that holds any is left open (null), since it may be
evidence in another place. Cases without supports have no line.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from measuring import SCRIPTS, say

sys.path.insert(0, str(SCRIPTS))

from ragmetrics.gold import place_of, quotes_of, whole_text
from ragmetrics.matching import DEFAULT_GRADE, Passage, anchor, holds, matches_place
from records.cases import TestCase
from records.judged import heading, key_of_passage
from records.labels import read_cases
from records.results import RetrievedChunk, TestResult, iter_results
from records.runs import EVAL_SET, RESULTS, ROOT

DEPTH = 10
POOL = ROOT / "eval" / "labels" / "judgements" / "pool.jsonl"


def grade(case: TestCase, chunk: RetrievedChunk) -> float | None:
    """What the rule says of a passage; None where it says nothing."""
    place, text = place_of(chunk), whole_text(chunk)
    if place is None or text is None:
        return None
    grades = [
        support.grade or DEFAULT_GRADE
        for support in case.gold_supports
        if matches_place(
            anchor(support.rel_path, support.heading_path),
            quotes_of(support),
            Passage(place, text),
        )
    ]
    if grades:
        return max(grades)
    snippets = [snippet for support in case.gold_supports for snippet in support.snippets]
    evidence = [*snippets, *case.expected_key_facts]
    return None if any(holds(text, words) for words in evidence) else 0.0


def pool_of(case: TestCase, results: Sequence[TestResult]) -> list[dict[str, Any]]:
    rows: dict[str, dict[str, Any]] = {}
    for result in results:
        for chunk in result.chunks()[:DEPTH]:
            value = grade(case, chunk)
            rows.setdefault(
                key_of_passage(chunk),
                {
                    "key": key_of_passage(chunk),
                    "rel_path": chunk.rel_path,
                    "heading_path": heading(chunk.heading_path),
                    "grade": int(value) if value is not None and value == int(value) else value,
                },
            )
    return [rows[key] for key in sorted(rows)]


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("runs", type=Path, nargs="+", help="run folders with whole texts")
    parser.add_argument("--output", type=Path, default=POOL)
    options = parser.parse_args()
    by_case: dict[str, list[TestResult]] = {}
    for folder in options.runs:
        for result in iter_results(folder / RESULTS):
            if result.status == "ok":
                by_case.setdefault(result.test_case_id, []).append(result)
    lines: list[Mapping[str, Any]] = [
        {"case_id": case.id, "by": "rule", "rows": rows}
        for case in read_cases(EVAL_SET)
        if case.gold_supports and (rows := pool_of(case, by_case.get(case.id, ())))
    ]
    options.output.parent.mkdir(parents=True, exist_ok=True)
    text = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)
    options.output.write_text(text, encoding="utf-8")
    counts = [row["grade"] for line in lines for row in line["rows"]]
    open_ones = sum(value is None for value in counts)
    irrelevant = sum(value == 0 for value in counts)
    say(f"{len(lines)} cases, {len(counts)} passages: {irrelevant} irrelevant, {open_ones} open")
    return 0


if __name__ == "__main__":
    sys.exit(main())
