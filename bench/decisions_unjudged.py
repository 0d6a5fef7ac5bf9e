"""What numbers say when a part of the judgements is missing, on six systems of TREC 2003.

    RAG_EVAL_DATA=FOLDER python bench/decisions_unjudged.py      # some seconds
    python bench/decisions_unjudged.py --tiny                    # on made-up judgements

FOLDER holds trec_robust03. Of each query's judgements 10, 30 and 50 % are hidden, relevant and
irrelevant ones alike, by a fixed seed; one relevant passage stays. How far does a query's value
move from the one with all judgements: plain NDCG@10, NDCG@10 of the condensed list, bpref? Are the
systems still in the same order (Kendall's tau)? Does the range of precision at each cut-off hold
the value with all judgements? Ends with 1 when a range does not, or when bpref or the condensed
NDCG differs by more than 1e-9 from trec_eval's (pytrec_eval; the condensed list is cut by hand).
"""

from __future__ import annotations

import argparse
import gzip
import os
import random
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

from measuring import SCRIPTS, print_table, say

sys.path.insert(0, str(SCRIPTS))

from records.cases import TestCase
from records.results import TestResult
from scorers.retrieval import RetrievalScorer

SHARES = (0.1, 0.3, 0.5)
KS = (1, 3, 5, 10)
METRICS = ("ndcg@10", "condensed_ndcg@10", "bpref")
TOLERANCE = 1e-9

Qrels = Mapping[str, Mapping[str, int]]
Runs = Mapping[str, Mapping[str, Sequence[str]]]
"""By system and query, the documents in order."""


class Outcome(NamedTuple):
    """Of one share: values by metric, system and query; ranges that hold, of how many; the largest
    difference from trec_eval."""

    values: Mapping[str, Mapping[str, Mapping[str, float]]]
    held: int
    ranges: int
    off: float


def read(folder: Path, depth: int) -> tuple[Qrels, Runs]:
    """The judgements and the six runs, each list cut at a depth."""
    qrels: dict[str, dict[str, int]] = defaultdict(dict)
    for query, _, doc, grade in lines(folder / "qrels.txt.gz"):
        qrels[query][doc] = int(grade)
    runs: dict[str, dict[str, list[str]]] = {}
    for path in sorted(folder.glob("run.*.txt.gz")):
        scored: dict[str, list[tuple[float, str]]] = defaultdict(list)
        for query, _, doc, _, score, *_ in lines(path):
            scored[query].append((float(score), doc))
        # trec_eval's order: by score, of equal ones the later id first
        runs[path.name.split(".")[1]] = {
            query: [doc for _, doc in sorted(docs, reverse=True)[:depth]]
            for query, docs in scored.items()
        }
    return qrels, runs


def lines(path: Path) -> Iterator[list[str]]:
    with gzip.open(path, "rt", encoding="utf-8") as file:
        yield from (line.split() for line in file)


def made_up(queries: int = 6, documents: int = 40, systems: int = 3) -> tuple[Qrels, Runs]:
    """Judgements and runs of the same form, with nothing behind them."""
    rng = random.Random(1)
    names = [f"d{n}" for n in range(documents)]
    qrels = {
        f"q{n}": {doc: int(rng.random() < 0.2) for doc in rng.sample(names, documents // 2)}
        | {names[n]: 1}
        for n in range(queries)
    }
    runs = {
        f"system {n}": {query: rng.sample(names, documents // 2) for query in qrels}
        for n in range(systems)
    }
    return qrels, runs


def hide(judged: Mapping[str, int], share: float, rng: random.Random) -> dict[str, int]:
    """The judgements that are left; one relevant document always is."""
    stays = rng.choice([doc for doc, grade in judged.items() if grade > 0])
    return {d: g for d, g in judged.items() if d == stays or rng.random() >= share}


def score(judged: Mapping[str, int], ids: Sequence[str]) -> dict[str, float | None]:
    """All metrics of one query, as score_retrieval.py has them."""
    scorer = RetrievalScorer(ks=KS, match="chunk")
    case = TestCase("q", "?", chunk_relevance_grades={d: float(g) for d, g in judged.items()})
    row, _ = scorer.score(case, TestResult("q", retrieved=list(ids)))
    names = [metric.name for metric in scorer.metrics]
    return dict(zip(names, row.values, strict=True))  # type: ignore[arg-type]


def trec(judged: Mapping[str, int], ids: Sequence[str]) -> dict[str, float]:
    """trec_eval's bpref of the list, and ndcg_cut_10 of the list without unjudged documents."""
    import pytrec_eval

    listed = {"q": {doc: float(-rank) for rank, doc in enumerate(ids)}}
    known = {"q": {doc: score for doc, score in listed["q"].items() if doc in judged}}
    qrels = {"q": dict(judged)}
    values = {"bpref": 0.0, "condensed_ndcg@10": 0.0}
    if ids:
        evaluated = pytrec_eval.RelevanceEvaluator(qrels, {"bpref"}).evaluate(listed)
        values["bpref"] = evaluated["q"]["bpref"]
    if known["q"]:
        evaluated = pytrec_eval.RelevanceEvaluator(qrels, {"ndcg_cut.10"}).evaluate(known)
        values["condensed_ndcg@10"] = evaluated["q"]["ndcg_cut_10"]
    return values


def measure(qrels: Qrels, runs: Runs, share: float, seed: int) -> Outcome:
    values: dict[str, dict[str, dict[str, float]]] = {}
    held = ranges = 0
    off = 0.0
    for system, lists in runs.items():
        rng = random.Random(seed)  # the same judgements are hidden for every system
        for query in sorted(qrels):
            whole = qrels[query]
            if not any(grade > 0 for grade in whole.values()):
                continue
            left = hide(whole, share, rng) if share else dict(whole)
            ids = lists.get(query, ())
            scores = score(left, ids)
            for name in METRICS:
                if (value := scores[name]) is not None:
                    values.setdefault(name, {}).setdefault(system, {})[query] = value
            for name, value in trec(left, ids).items():
                if (mine := scores[name]) is not None:
                    off = max(off, abs(mine - value))
            for k in KS:
                low, unjudged = scores[f"precision@{k}"], scores[f"unjudged@{k}"]
                if low is None or unjudged is None:
                    continue
                truth = sum(whole.get(doc, 0) > 0 for doc in ids[:k]) / k
                ranges += 1
                held += low - TOLERANCE <= truth <= low + unjudged + TOLERANCE
    return Outcome(values, held, ranges, off)


def tau(first: Sequence[float], other: Sequence[float]) -> float:
    """Kendall's tau over pairs of systems; a tie in either counts as 0."""
    pairs = list(combinations(range(len(first)), 2))
    signs = ((first[a] - first[b]) * (other[a] - other[b]) for a, b in pairs)
    return sum((sign > 0) - (sign < 0) for sign in signs) / len(pairs)


def table(qrels: Qrels, runs: Runs, seed: int) -> tuple[list[tuple[Any, ...]], bool]:
    """A row a share and metric, and whether all that must hold does."""
    whole = measure(qrels, runs, 0.0, seed)
    rows: list[tuple[Any, ...]] = []
    sound = whole.off <= TOLERANCE
    for share in SHARES:
        part = measure(qrels, runs, share, seed)
        sound &= part.off <= TOLERANCE and part.held == part.ranges
        for name in METRICS:
            moved, means = [], []
            for system in runs:
                old, new = whole.values[name][system], part.values[name][system]
                both = old.keys() & new.keys()
                moved += [new[query] - old[query] for query in both]
                means.append((fmean(old[q] for q in both), fmean(new[q] for q in both)))
            order = tau(*zip(*means, strict=True)) if len(means) > 1 else 1.0
            rows.append(
                (
                    f"{share:.0%} hidden, {name}",
                    f"{fmean(map(abs, moved)):.4f}",
                    f"{fmean(moved):+.4f}",
                    f"{order:.2f}",
                    f"{part.off:.0e}",
                    f"{part.held} of {part.ranges}",
                )
            )
    return rows, sound


HEAD = (
    "judgements",
    "mean |change| a query",
    "mean change",
    "tau of systems",
    "off trec_eval",
    "ranges of precision that hold",
)


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--depth", type=int, default=100, help="documents of each list")
    parser.add_argument("--tiny", action="store_true", help="made-up judgements")
    options = parser.parse_args(words)
    data = os.environ.get("RAG_EVAL_DATA")
    if options.tiny:
        qrels, runs = made_up()
    elif not data:
        parser.error("set RAG_EVAL_DATA to the folder that holds trec_robust03 (or use --tiny)")
    else:
        qrels, runs = read(Path(data) / "trec_robust03", options.depth)
    say(f"{len(qrels)} queries, {len(runs)} systems, seed {options.seed}")
    rows, sound = table(qrels, runs, options.seed)
    print_table(HEAD, rows)
    return 0 if sound else 1


if __name__ == "__main__":
    sys.exit(main())
