"""Reads our TREC files with the real ir_measures and ranx, and writes them anew."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from facts import FACTS


def make(folder: Path) -> None:
    """The facts as TREC files: qrels and run by ranx, topics by hand (neither has topics)."""
    from ranx import Qrels, Run

    ids = [f"t{number}" for number, _ in enumerate(FACTS, 1)]
    qrels = Qrels({name: fact["relevant"] for name, fact in zip(ids, FACTS, strict=True)})
    ranked = {
        name: {passage["id"]: passage["score"] for passage in fact["passages"]}
        for name, fact in zip(ids, FACTS, strict=True)
    }
    qrels.save(str(folder / "qrels.txt"), kind="trec")
    Run(ranked, name="ranx-run").save(str(folder / "run.txt"), kind="trec")
    lines = [f"{name}\t{fact['question']}\n" for name, fact in zip(ids, FACTS, strict=True)]
    (folder / "topics.tsv").write_text("".join(lines), encoding="utf-8")


def check(folder: Path) -> None:
    """Means over our export, by each of the two."""
    import ir_measures
    from ir_measures import AP, RR, R, nDCG
    from ranx import Qrels, Run, evaluate

    qrels, run = str(folder / "export" / "qrels.txt"), str(folder / "export" / "run.txt")
    measures = {"recall@3": R @ 3, "ndcg@3": nDCG @ 3, "mrr": RR, "map": AP}
    means = ir_measures.calc_aggregate(
        measures.values(), ir_measures.read_trec_qrels(qrels), ir_measures.read_trec_run(run)
    )
    theirs = {name: means[measure] for name, measure in measures.items()}
    names = ["recall@3", "ndcg@3", "mrr", "map"]
    values = evaluate(Qrels.from_file(qrels, kind="trec"), Run.from_file(run, kind="trec"), names)
    print(json.dumps({"ir_measures": theirs, "ranx": {k: float(values[k]) for k in names}}))


if __name__ == "__main__":
    {"make": make, "check": check}[sys.argv[1]](Path(sys.argv[2]))
