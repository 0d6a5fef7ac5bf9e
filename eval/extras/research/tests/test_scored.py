"""What was imported from TREC is scored by the scripts as trec_eval scores it."""

from __future__ import annotations

import gzip
import json
import random
import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest
from tests.score_lines import read_lines
from tests.scripts.test_convert_data import open_data, scored, script

PAIRS = {"recall@5": "recall_5", "recall@10": "recall_10", "precision@5": "P_5"}
PAIRS |= {f"ndcg@{k}": f"ndcg_cut_{k}" for k in (5, 10)}
PAIRS |= {"map@10": "map_cut_10", "mrr": "recip_rank"}


def pytrec(qrels: Path, run: Path) -> dict[str, dict[str, float]]:
    """pytrec_eval on the original files."""
    import pytrec_eval

    with open(qrels) as file:
        judged = pytrec_eval.parse_qrel(file)
    with open(run) as file:
        ranked = pytrec_eval.parse_run(file)
    measures = {"recall.5,10", "P.5", "ndcg_cut.5,10", "map_cut.10", "recip_rank"}
    evaluator = pytrec_eval.RelevanceEvaluator(judged, measures)
    found: dict[str, dict[str, float]] = evaluator.evaluate(ranked)
    return found


def assert_equal_to_pytrec(folder: Path, name: str, qrels: Path, run: Path) -> None:
    """Every query, every measure."""
    scored("score_retrieval", folder, name, "--match", "doc", "--k", "5,10")
    lines = read_lines(folder / "results" / name, "retrieval")
    ours = {line["case_id"]: line["scores"] for line in lines}
    theirs = pytrec(qrels, run)
    assert len(theirs) > 1
    for query, measures in theirs.items():
        for mine, other in PAIRS.items():
            assert ours[query][mine] == pytest.approx(measures[other], abs=1e-9), (query, mine)


def made_up(folder: Path) -> tuple[Path, Path]:
    """Twenty topics with graded judgements, and a run with ties and unjudged documents."""
    chance = random.Random(7)
    qrels, ranked = [], []
    for topic in range(20):
        names = [f"doc-{n}" for n in range(30)]
        grades = {name: chance.choice([0, 0, 1, 2, 3]) for name in chance.sample(names, 12)}
        grades[names[0]] = 2
        qrels += [f"{topic} 0 {name} {grade}" for name, grade in grades.items()]
        for rank, name in enumerate(chance.sample(names, 15), 1):
            score = chance.choice([1, 2.5, 2.5000000001, 7])
            ranked.append(f"{topic} Q0 {name} {rank} {score} own")
    for name, lines in (("qrels.txt", qrels), ("run.txt", ranked)):
        (folder / name).write_text("\n".join(lines) + "\n")
    return folder / "qrels.txt", folder / "run.txt"


def test_a_converted_run_scores_as_pytrec_eval_scores_the_original(tmp_path: Path) -> None:
    qrels, run = made_up(tmp_path)
    folder = tmp_path / "set"
    script("convert_data", "import", "trec", str(qrels), str(run), "-o", str(folder), "-q")
    assert_equal_to_pytrec(folder, "own", qrels, run)


def test_an_exported_run_scores_as_before(tmp_path: Path) -> None:
    """Our own run of chunks without usable scores: trec_eval sees the order that we saw."""
    qrels, run = made_up(tmp_path)
    folder, back = tmp_path / "set", tmp_path / "back"
    script("convert_data", "import", "trec", str(qrels), str(run), "-o", str(folder), "-q")
    results = folder / "results/own/results.jsonl"
    rows = [json.loads(line) for line in results.read_text().splitlines()]
    for row in rows:
        for chunk in row["retrieved"]:
            chunk["score_final"] = None
    results.write_text("".join(json.dumps(row) + "\n" for row in rows))
    words = ["--eval-set", str(folder / "eval_set.jsonl"), "--results-dir", str(folder / "results")]
    script("convert_data", "export", "trec", *words, "--run", "own", "-o", str(back), "-q")
    assert_equal_to_pytrec(folder, "own", back / "qrels.txt", back / "run.txt")
    cases = folder / "eval_set.jsonl"
    text = cases.read_text()
    cases.write_text(text.replace('"id"', '"case_id"').replace('"question"', '"query"'))
    again = tmp_path / "again"
    script("convert_data", "export", "trec", *words, "--run", "own", "-o", str(again), "-q")
    for name in ("qrels.txt", "run.txt"):
        assert (again / name).read_bytes() == (back / name).read_bytes()


def plain(packed: Path, folder: Path) -> Path:
    target = folder / packed.stem
    with gzip.open(packed) as source, open(target, "wb") as file:
        shutil.copyfileobj(source, file)
    return target


SYSTEMS: Sequence[str] = ("uic0301", "pircRBa1", "aplrob03a", "rutcor03100")


@pytest.mark.thorough
def test_real_trec_runs_score_as_pytrec_eval_scores_them(tmp_path: Path) -> None:
    packed = [open_data("trec_robust03", "qrels.txt.gz")]
    packed += [open_data("trec_robust03", f"run.{name}.txt.gz") for name in SYSTEMS]
    folder = tmp_path / "set"
    script("convert_data", "import", "trec", *map(str, packed), "-o", str(folder), "-q")
    qrels, *runs = [plain(path, tmp_path) for path in packed]
    for name, run in zip(SYSTEMS, runs, strict=True):
        assert_equal_to_pytrec(folder, name, qrels, run)
    back = tmp_path / "back"
    words = ["--eval-set", str(folder / "eval_set.jsonl"), "--results-dir", str(folder / "results")]
    script("convert_data", "export", "trec", *words, "--run", SYSTEMS[0], "-o", str(back), "-q")
    lines = sorted((back / "qrels.txt").read_text().splitlines())
    assert lines == sorted(qrels.read_text().splitlines())
    assert pytrec(back / "qrels.txt", back / "run.txt") == pytrec(qrels, runs[0])


def test_trec_evals_own_test_files(tmp_path: Path) -> None:
    qrels, run = open_data("trec_eval", "qrels.test"), open_data("trec_eval", "results.test")
    folder = tmp_path / "set"
    script("convert_data", "import", "trec", str(qrels), str(run), "-o", str(folder), "-q")
    (name,) = [path.name for path in (folder / "results").iterdir()]
    assert_equal_to_pytrec(folder, name, qrels, run)


@pytest.mark.thorough
def test_real_answers_with_human_spans(tmp_path: Path) -> None:
    source = open_data("ragtruth", "data.jsonl.gz")
    folder = tmp_path / "set"
    words = ("-o", str(folder), "-q", "--json")
    told = json.loads(script("convert_data", "import", "ragtruth", str(source), *words))
    with gzip.open(source) as file:
        rows = [json.loads(line) for line in file]
    assert told["rows"]["answers"] == len(rows)
    assert told["rows"]["spans"] == sum(len(row["spans"]) for row in rows)
    runs = sorted(path.name for path in (folder / "results").iterdir())
    assert len(runs) == len({row["system"] for row in rows}) == 6
    marked = 0
    for run in runs:
        lines = (folder / "results" / run / "human_spans.jsonl").read_text().splitlines()
        marked += sum(bool(json.loads(line)["spans"]) for line in lines)
    assert marked == sum(row["hallucinated"] for row in rows)
    assert scored("score_groundedness", folder, runs[0])["n"]["claim_support_rate"] > 200
