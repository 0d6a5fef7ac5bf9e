"""Cost of score_embedding beside one bare `model.encode` of the same texts, in CPU seconds.

    python bench/bench_embedding.py --rounds 3 --limit 40
    python bench/bench_embedding.py --run eval/results/RUN --eval-set eval_set.jsonl

Without --run the run is made up (make_retrieval_data.py: ten passages of 200 characters an answer).
Each side runs in a process of its own with an empty cache and one torch thread; the sides take
turns. The texts of the bare side are exactly those that the scorer's side gave to its model, each
once; the bare side is SentenceTransformer.encode with its own sorting by length and batches of 16.
Both load the model; the time of loading is also shown apart. Prints a Markdown table.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from make_retrieval_data import write
from measuring import ROOT, SCRIPTS

BATCH, CHUNKS = 16, 10


def scorer_side(run: Path, eval_set: Path, limit: int, texts: Path | None) -> dict[str, float]:
    """Score the run with an empty cache; optionally write down the texts that were embedded."""
    from clients.embedder import Embedder
    from scorers.embedding import EmbeddingScorer, answered

    began = time.process_time()
    asked: list[str] = []
    with tempfile.TemporaryDirectory() as cache:
        embedder = Embedder(None, Path(cache))
        embedder._load()
        loaded = time.process_time()
        if texts is not None:
            model = embedder._run_model

            def recorded(some: list[str]) -> Any:
                asked.extend(some)
                return model(some)

            embedder._run_model = recorded  # type: ignore[method-assign]
        pairs = list(answered(run, eval_set, eval_set.parent / "labels"))[:limit]
        scorer = EmbeddingScorer(embedder)
        scorer.warm(pairs)
        for pair in pairs:
            scorer.score(*pair)
        done = time.process_time()
    if texts is not None:
        texts.write_text(json.dumps(asked), encoding="utf-8")
    return {"loading": loaded - began, "whole": done - began}


def bare_side(texts: Path) -> dict[str, float]:
    """One call of encode with all texts."""
    began = time.process_time()
    import torch
    from sentence_transformers import SentenceTransformer

    from clients.embedder import _bundled_model

    torch.set_num_threads(1)
    model = SentenceTransformer(str(_bundled_model()), device="cpu")
    loaded = time.process_time()
    wanted = json.loads(texts.read_text(encoding="utf-8"))
    model.encode(wanted, batch_size=BATCH, normalize_embeddings=True, show_progress_bar=False)
    return {"loading": loaded - began, "whole": time.process_time() - began}


def made_run(folder: Path, results: int) -> Path:
    """A run whose passages count as whole texts."""
    write(folder, results, CHUNKS)
    path = folder / "texts" / "results.jsonl"
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    for chunk in (chunk for row in rows for chunk in row["retrieved"]):
        del chunk["text_length"]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path.parent


def child(*words: str) -> dict[str, float]:
    env = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": str(SCRIPTS), "HF_HUB_OFFLINE": "1"}
    line = [sys.executable, __file__, *words]
    done = subprocess.run(line, stdout=subprocess.PIPE, text=True, env=env, check=True)
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--run", type=Path, help="a run with full texts (without it: a made one)")
    parser.add_argument("--eval-set", type=Path, default=ROOT / "eval_set.jsonl", help="of --run")
    parser.add_argument(
        "--rounds", type=int, default=3, help="(%(default)s); 1 counts the run that warms the disk"
    )
    parser.add_argument("--limit", type=int, default=40, help="results to score (%(default)s)")
    parser.add_argument("--side", choices=["scorer", "bare"], help=argparse.SUPPRESS)
    parser.add_argument("--texts", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.side == "scorer":
        scored = scorer_side(options.run, options.eval_set, options.limit, options.texts)
        print(json.dumps(scored))
        return
    if options.side == "bare":
        print(json.dumps(bare_side(options.texts)))
        return
    with tempfile.TemporaryDirectory() as folder:
        run, eval_set = options.run, options.eval_set
        if run is None:
            run = made_run(Path(folder), options.limit)
            eval_set = run.parent / "eval_set.jsonl"
        texts = Path(folder) / "texts.json"
        words = ["--run", str(run), "--eval-set", str(eval_set), "--limit", str(options.limit)]
        first = child("--side", "scorer", *words, "--texts", str(texts))  # also warms the disk
        asked = json.loads(texts.read_text(encoding="utf-8"))
        assert len(asked) == len(set(asked)), "a text was embedded twice"
        ratios, pure = [], []
        for _ in range(options.rounds):
            ours = first if options.rounds == 1 else child("--side", "scorer", *words)
            bare = child("--side", "bare", *words, "--texts", str(texts))
            ratios.append(ours["whole"] / bare["whole"])
            pure.append((ours["whole"] - ours["loading"]) / (bare["whole"] - bare["loading"]))
            print(f"ours {ours}, bare {bare}", file=sys.stderr)
    print("| results | unique texts | scorer / bare encode | without loading the model |")
    print("|---|---|---|---|")
    print(
        f"| {options.limit} | {len(asked)} | {statistics.median(ratios):.3f} "
        f"| {statistics.median(pure):.3f} |"
    )


if __name__ == "__main__":
    main()
