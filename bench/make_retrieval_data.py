"""Write a made-up evaluation of any size, and the same judgements for the peers.

    python bench/make_retrieval_data.py FOLDER --cases 10000 --chunks 20

FOLDER gets eval_set.jsonl; texts/, ranks/ and ids/, each a run folder (results.jsonl with chunks of
200 characters and all fields, with chunk ids and ranks, or with plain ids); and the same judgements
and rankings in the formats that other evaluation tools read: qrels.jsonl + run.jsonl, qrels.trec +
run.trec. Seeded: the same arguments give the same bytes.
"""

from __future__ import annotations

import argparse
import random
from pathlib import Path
from typing import Any

import orjson

WORDS = [
    "index",
    "query",
    "window",
    "token",
    "vector",
    "cluster",
    "shard",
    "replica",
    "cache",
    "lease",
    "quota",
    "audit",
]
KINDS = ("texts", "ranks", "ids")
CATEGORIES = ("factual", "reasoning", "multi_hop")


def make_case(number: int, rng: random.Random) -> tuple[dict[str, Any], list[str]]:
    """One case with 1-3 graded gold chunks, and the ids that a made-up retriever returned."""
    gold = {
        f"doc{rng.randrange(10**6):06d}#{n}": rng.randint(1, 3) for n in range(rng.randint(1, 3))
    }
    case = {
        "id": f"q{number:07d}",
        "question": " ".join(rng.choices(WORDS, k=9)) + "?",
        "answerable": True,
        "category": rng.choice(CATEGORIES),
        "difficulty": rng.choice(("easy", "medium", "hard")),
        "tags": [rng.choice(("work", "personal"))],
        "chunk_relevance_grades": gold,
    }
    ids = [f"doc{rng.randrange(10**6):06d}#x{n}" for n in range(100)]
    return case, ids


def place_hits(gold: dict[str, int], ids: list[str], chunks: int, rng: random.Random) -> list[str]:
    ids = ids[:chunks]
    for chunk_id in gold:
        if rng.random() < 0.6:
            ids[min(int(rng.expovariate(0.25)), chunks - 1)] = chunk_id
    return ids


def text_of(rng: random.Random) -> str:
    return " ".join(rng.choices(WORDS, k=40))[:200]


def result_line(case: dict[str, Any], ids: list[str], kind: str, texts: list[str]) -> bytes:
    retrieved: list[Any] = list(ids) if kind == "ids" else []
    for rank, chunk_id in enumerate(ids if kind != "ids" else (), start=1):
        if kind == "ranks":
            retrieved.append({"chunk_id": chunk_id, "rank": rank})
            continue
        doc = chunk_id.partition("#")[0]
        retrieved.append(
            {
                "chunk_id": chunk_id,
                "doc_id": doc,
                "rel_path": f"notes/{doc}.md",
                "heading_path": "Guide > Part",
                "score_vector": 0.9 - rank / 50,
                "score_lexical": 20.5 - rank,
                "score_final": 1 / (60 + rank),
                "text": texts[(hash_of(chunk_id) + rank) % len(texts)],
                "text_length": 812,
                "rank": rank,
            }
        )
    record: dict[str, Any] = {
        "schema": 1,
        "test_case_id": case["id"],
        "question": case["question"],
        "status": "ok",
        "retrieved": retrieved,
    }
    if kind == "texts":
        record |= {
            "answer": "The lease is renewed by the shard that holds the audit window [1].",
            "references": [{"index": 1, "chunk_id": ids[0]}],
            "abstained": False,
            "latency_ms": {"retrieve": 12.5, "generate": 431.0, "total": 443.5},
        }
    return orjson.dumps(record)


def hash_of(text: str) -> int:
    return sum(text.encode())


def write(folder: Path, cases: int, chunks: int, seed: int = 1) -> None:
    """Write all files of one size; an existing folder of the same size is kept."""
    rng = random.Random(seed)
    done = folder / "done-3-kinds"
    if done.exists():
        return
    for name in KINDS:
        (folder / name).mkdir(parents=True, exist_ok=True)
    texts = [text_of(rng) for _ in range(997)]
    names = ("eval_set.jsonl", *(f"{kind}/results.jsonl" for kind in KINDS))
    names += ("qrels.jsonl", "run.jsonl", "qrels.trec", "run.trec")
    files = [open(folder / name, "wb") for name in names]  # noqa: SIM115
    for number in range(cases):
        case, ids = make_case(number, rng)
        gold: dict[str, int] = case["chunk_relevance_grades"]
        ids = place_hits(gold, ids, chunks, rng)
        query = case["id"]
        trec_qrels = "".join(f"{query} 0 {doc} {grade}\n" for doc, grade in gold.items())
        trec_run = "".join(
            f"{query} Q0 {doc} {rank} {chunks - rank + 1} made\n" for rank, doc in enumerate(ids, 1)
        )
        rows = (
            orjson.dumps(case) + b"\n",
            *(result_line(case, ids, kind, texts) + b"\n" for kind in KINDS),
            orjson.dumps({"id": query, "relevant": gold}) + b"\n",
            orjson.dumps({"id": query, "retrieved": ids}) + b"\n",
            trec_qrels.encode(),
            trec_run.encode(),
        )
        for file, row in zip(files, rows, strict=True):
            file.write(row)
    for file in files:
        file.close()
    for name in KINDS:
        config = {"schema": 1, "run_id": name}
        (folder / name / "config.json").write_bytes(orjson.dumps(config))
    done.touch()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--cases", type=int, default=10_000)
    parser.add_argument("--chunks", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    write(options.folder, options.cases, options.chunks, options.seed)


if __name__ == "__main__":
    main()
