"""One peer, one process: read the files, compute the metrics, print their means as JSON.

    python bench/peers.py pytrec_eval FOLDER

FOLDER holds qrels.jsonl and run.jsonl (make_retrieval_data.py). ``pytrec_eval_job`` does what a
run of ours does: it reads our files and writes the scores of each case. ``parse`` only parses a
file line by line with orjson: the floor of whatever reads JSON.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

KS = (1, 3, 5, 10)
Qrels = dict[str, dict[str, int]]
Run = dict[str, dict[str, float]]
Scores = dict[str, dict[str, float]]
NAMES = {"recall": "recall", "precision": "P", "ndcg": "ndcg_cut", "map": "map_cut"}
NAMES |= {"recall_any": "success"}
"""Our metrics that trec_eval has, under its names."""


def rows_of(path: Path) -> Iterator[dict[str, Any]]:
    import orjson

    return map(orjson.loads, open(path, "rb"))  # closed when the process ends


def read(folder: Path) -> tuple[Qrels, Run]:
    """The judgements, and the rankings as falling scores."""
    qrels = {row["id"]: row["relevant"] for row in rows_of(folder / "qrels.jsonl")}
    run = {row["id"]: falling(row["retrieved"]) for row in rows_of(folder / "run.jsonl")}
    return qrels, run


def read_ours(folder: Path) -> tuple[Qrels, Run]:
    """The same from the eval set and the run folder that score_retrieval reads."""
    cases, results = rows_of(folder / "eval_set.jsonl"), rows_of(folder / "ids" / "results.jsonl")
    qrels = {row["id"]: row["chunk_relevance_grades"] for row in cases}
    return qrels, {row["test_case_id"]: falling(row["retrieved"]) for row in results}


def falling(ids: list[str]) -> dict[str, float]:
    return {name: float(len(ids) - place) for place, name in enumerate(ids)}


def pytrec_eval(folder: Path) -> dict[str, float]:
    return _means(_evaluated(*read(folder)))


def pytrec_eval_job(folder: Path) -> dict[str, float]:
    import orjson

    scores = _evaluated(*read_ours(folder))
    with open(folder / "pytrec_eval.jsonl", "wb") as file:
        for case_id, values in scores.items():
            file.write(orjson.dumps({"case_id": case_id, "scores": values}) + b"\n")
    return _means(scores)


def _evaluated(qrels: Qrels, run: Run) -> Scores:
    import pytrec_eval

    cuts = ",".join(map(str, KS))
    wanted = {f"{name}.{cuts}" for name in NAMES.values()} | {"recip_rank"}
    scores: Scores = pytrec_eval.RelevanceEvaluator(qrels, wanted).evaluate(run)
    return scores


def _means(scores: Scores) -> dict[str, float]:
    import pytrec_eval

    names = next(iter(scores.values()))
    means = {
        name: pytrec_eval.compute_aggregated_measure(name, [row[name] for row in scores.values()])
        for name in names
    }
    ours = {f"{our}@{k}": means[f"{name}_{k}"] for our, name in NAMES.items() for k in KS}
    return ours | {"mrr": means["recip_rank"]}


def ir_measures(folder: Path) -> dict[str, float]:
    import ir_measures
    from ir_measures import AP, RR, P, R, Success, nDCG

    qrels, run = read(folder)
    measures = {"recall": R, "precision": P, "ndcg": nDCG, "map": AP, "recall_any": Success}
    named = {f"{name}@{k}": measure @ k for name, measure in measures.items() for k in KS}
    named["mrr"] = RR
    means = ir_measures.calc_aggregate(list(named.values()), qrels, run)
    return {name: float(means[measure]) for name, measure in named.items()}


def ranx(folder: Path) -> dict[str, float]:
    from ranx import Qrels, Run, evaluate

    qrels, run = read(folder)
    names = {"recall": "recall", "precision": "precision", "ndcg": "ndcg", "map": "map"}
    names["recall_any"] = "hit_rate"
    named = {f"{our}@{k}": f"{name}@{k}" for our, name in names.items() for k in KS}
    named["mrr"] = "mrr"
    means = evaluate(Qrels(qrels), Run(run), list(named.values()))
    return {name: float(means[measure]) for name, measure in named.items()}


def parse(path: Path) -> dict[str, float]:
    return {"lines": float(sum(1 for row in rows_of(path) if row))}


PEERS: dict[str, Callable[[Path], dict[str, float]]] = {
    "pytrec_eval": pytrec_eval,
    "pytrec_eval_job": pytrec_eval_job,
    "ir_measures": ir_measures,
    "ranx": ranx,
    "parse": parse,
}

if __name__ == "__main__":
    means = PEERS[sys.argv[1]](Path(sys.argv[2]))
    import json

    print(json.dumps(means))
