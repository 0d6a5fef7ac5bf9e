"""The same two runs get the same verdict from everyone who is asked: compare, gate, suite, history,
and the report.

Two hundred made pairs: cases of one to three in a document, calls that fail, metrics that do not
apply, true falls and rises of every size, and none.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.metrics_files import write_metrics
from tests.rows import each_row
from tests.score_lines import write_lines

from decisions import compare_words
from decisions.alerts import compare_points
from decisions.compare import CompareOptions, compare
from decisions.comparison import Comparison
from decisions.conditions import baseline_of, measured_run
from decisions.gate import evaluate
from decisions.gate_checks import GateEvidence
from decisions.gate_rules import GateRules
from decisions.history import _read_point
from decisions.primary import clusters_of_run, read_primary
from decisions.regressions import Regressions, is_worse, regressions
from records.files import sha256_file
from records.metrics import update_primary
from records.run import Run
from views.report.compared import compare_with, sentences

NAMES = ("retrieval.recall@5", "pipeline.pass", "pipeline.answered")
ALPHA = 0.05


@pytest.fixture(scope="module")
def targets(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("one-voice") / "targets.toml"
    path.write_text(f"[decide]\nprimary = {json.dumps(NAMES)}\n")
    return path


def write_set(path: Path, gold: Sequence[dict[str, Any]]) -> Path:
    """A case for each gold passage."""
    path.parent.mkdir(parents=True, exist_ok=True)
    case = {"question": "?", "answerable": True}
    rows = [{"id": f"q{n}"} | case | {"gold_supports": [own]} for n, own in enumerate(gold)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def make_set(folder: Path, cases: int, rng: np.random.Generator) -> Path:
    """A set in which some cases share their document."""
    documents = np.repeat(np.arange(cases), rng.integers(1, 4, cases))[:cases]
    gold = [{"rel_path": f"{d}.md", "heading_path": "", "snippets": []} for d in documents]
    return write_set(folder / "set.jsonl", gold)


def make_run(folder: Path, eval_set: Path, recall: Any, passed: Any, failed: Any) -> None:
    """A scored run; recall that is not a number does not apply."""
    sha = sha256_file(eval_set)
    sections: dict[str, Any] = {}
    for section, metric, values in (
        ("retrieval", "recall@5", recall),
        ("pipeline", "pass", passed),
    ):
        rows = []
        for i, value in enumerate(values):
            status = "failed" if failed[i] else "scored"
            score = None if failed[i] or np.isnan(value) else float(value)
            scores = {metric: score} | ({"answered": 1.0} if section == "pipeline" else {})
            rows.append({"case_id": f"q{i}", "repeat": 0, "status": status, "scores": scores})
            if failed[i]:
                rows[-1]["scores"] = dict.fromkeys(scores)
        write_lines(folder, section, rows)
        names = [metric, *(["answered"] if section == "pipeline" else [])]
        scored = values[~np.isnan(values) & ~failed]
        part = {
            "definitions": {name: f"x/{name}@1" for name in names},
            "options": {},
            "mean": dict.fromkeys(names, float(scored.mean()) if len(scored) else None),
            "ci95": dict.fromkeys(names),
            "n": dict.fromkeys(names, len(scored)),
            "not_applicable": dict.fromkeys(names, 0),
            "failed": dict.fromkeys(names, int(failed.sum())),
            "by": {},
        }
        sections[section] = part
    head: dict[str, Any] = {"run_id": folder.name, "eval_set_sha256": sha, "labels_sha256": None}
    head |= {"asked": len(recall), "cases": len(recall), "missing": 0, "errors": 0}
    write_metrics(folder / "metrics.json", head | {"sections": sections})
    config = {"schema": 1, "run_id": folder.name, "dataset": {"sha256": sha}}
    (folder / "config.json").write_text(json.dumps(config))


def make_pair(folder: Path, seed: int) -> tuple[Path, Path, Path]:
    rng = np.random.default_rng(seed)
    cases = int(rng.integers(8, 40))
    eval_set = make_set(folder, cases, rng)
    usual = rng.choice([0.0, 0.5, 1 / 3, 1.0], cases), rng.choice([0.0, 1.0], cases)
    effect = rng.choice([-0.5, -0.25, 0.0, 0.0, 0.25])
    for name, shift in (("base", 0.0), ("new", effect)):
        recall, passed = (values.copy() for values in usual)
        for values in (recall, passed):
            again = rng.random(cases) < 0.15
            values[again] = rng.choice([0.0, 0.5, 1.0], int(again.sum()))
            moved = rng.random(cases) < abs(shift)
            values[moved] = 1.0 if shift > 0 else 0.0
        recall[rng.random(cases) < 0.1] = np.nan
        failed = rng.random(cases) < (0.2 if seed % 5 == 0 and name == "new" else 0.02)
        make_run(folder / name, eval_set, recall, (passed > 0.4).astype(float), failed)
    return eval_set, folder / "base", folder / "new"


def said_by_compare(comparison: Comparison) -> dict[str, bool]:
    """Of each metric that could be tested, whether the one-sided test says that it is worse."""
    rows = [row for row in comparison.rows if row.primary and row.p_worse is not None]
    return {row.name: (row.p_worse or 0.0) <= ALPHA for row in rows}


def said_by_gate(result: Regressions) -> dict[str, bool]:
    return {change.name: is_worse(change) for change in result.tested}


@pytest.mark.parametrize(
    "seeds", [range(20), pytest.param(range(20, 200), marks=pytest.mark.thorough)], ids=str
)
def test_two_hundred_pairs(seeds: range, targets: Path, tmp_path: Path) -> None:
    seen = set()
    for seed in seeds:
        eval_set, base, new = make_pair(tmp_path / str(seed), seed)
        clusters, _ = clusters_of_run(eval_set, sha256_file(eval_set), "new")
        options = CompareOptions(targets=targets, eval_set=eval_set)
        found = compare(base, new, options, clusters=clusters)
        seen.add(found.headline)
        by_compare = said_by_compare(found)

        # gate_run and eval_suite --baseline: the run folders, then committed files alone
        evidence = GateEvidence(measured_run(new), measured_run(base), eval_set, targets=targets)
        result = regressions(evidence, NAMES)
        assert said_by_gate(result) == by_compare, seed
        assert (result.headline, result.says[0]) == (found.headline, found.says[0]), seed
        assert evaluate(GateRules(None), evidence).says[0] == found.says[0], seed
        committed = []
        for run in (base, new):
            scores = read_primary(run, NAMES)
            assert scores is not None
            rows = [[None if v != v else v for v in row] for row in scores.values.tolist()]
            update_primary(run, scores.names, dict(zip(scores.case_ids, rows, strict=True)))
            file = tmp_path / str(seed) / "git" / f"{run.name}.json"
            file.parent.mkdir(exist_ok=True)
            file.write_bytes((run / "metrics.json").read_bytes())
            committed.append(baseline_of(tmp_path, str(file)))
        evidence = GateEvidence(committed[1], committed[0], eval_set, targets=targets)
        result = regressions(evidence, NAMES)
        assert said_by_gate(result) == by_compare, seed
        assert (result.headline, result.says[0]) == (found.headline, found.says[0]), seed

        # track_metrics: neighbouring points of the history
        points = [
            _read_point(
                (run / "metrics.json").read_bytes(), sha=None, date="", subject="", path=run.name
            )
            for run in (base, new)
        ]
        labels = {sha256_file(eval_set): clusters.labels} if clusters else {}
        tracked = compare_points(points[0], points[1], NAMES, labels)
        assert tracked is not None
        assert tracked.says[0] == found.says[0], seed
        for row in tracked.rows:
            other = found.row(row.name)
            assert other is not None
            assert (row.verdict, row.delta) == (other.verdict, other.delta), (seed, row.name)

        # report_run --baseline: verdicts, p and headline
        report = compare_with(base, Run(new), eval_set, targets).comparison
        told = {row.name: row for row in compare_words.row_groups(report)[0]}
        texts = sentences(report)
        measured = [row for row in found.rows if row.primary and row.name in told]
        assert len(measured) == len(told), seed
        for row in measured:
            mine = told[row.name]
            assert (mine.verdict, mine.look) == (row.verdict, row.look), seed
            assert (mine.p_joint, mine.p_worse) == (row.p_joint, row.p_worse), seed
            for word in ("better", "worse"):
                assert texts[row.name][0].endswith(f": {word}.") == (row.verdict == word), seed
        assert report.headline == found.headline, seed
        assert (*report.says,) == found.says, seed
        as_json = json.loads(json.dumps(found.to_dict()))
        assert (as_json["headline"], (*as_json["says"],)) == (found.headline, found.says), seed
        assert report.says[0].startswith(found.headline), seed

        # a gate fails where compare says worse or suspects it, and only there
        failed = any(by_compare.values())
        assert failed or found.headline not in ("WORSE", "MIXED")
        assert not failed or any(row.look or row.bad for row in found.rows)
    assert {"WORSE", "BETTER", "NO CLEAR DIFFERENCE"} <= seen


@each_row("where", ["new alone", "base alone", "no case in common"])
def test_a_primary_metric_that_cannot_be_compared_fails_the_gate(
    where: str, targets: Path, tmp_path: Path
) -> None:
    """Declared, and scored in one run alone, or of other cases in each."""
    eval_set = make_set(tmp_path, 30, np.random.default_rng(0))
    ones, half = np.ones(30), np.arange(30) < 15
    nowhere = np.full(30, np.nan)
    recalls = {
        "new alone": (nowhere, ones),
        "base alone": (ones, nowhere),
        "no case in common": (np.where(half, 1.0, np.nan), np.where(half, np.nan, 1.0)),
    }[where]
    base, new = tmp_path / "base", tmp_path / "new"
    for folder, recall in zip((base, new), recalls, strict=True):
        make_run(folder, eval_set, recall, ones, np.zeros(30, bool))
    evidence = GateEvidence(measured_run(new), measured_run(base), eval_set, targets=targets)
    failed = {
        check.name: check.reason for check in evaluate(GateRules(None), evidence).of("failed")
    }
    name, reason = {
        "new alone": ("retrieval.recall@5:measured", "targets.toml declares it, and the baseline"),
        "base alone": ("retrieval.recall@5:measured", "was "),
        "no case in common": ("retrieval.recall@5", "no verdict: no case has a score in both"),
    }[where]
    assert failed[name].startswith(reason)
    rules = GateRules(None, allow_untested=True)
    assert evaluate(rules, evidence).passed == (where != "base alone")
    found = compare(base, new, CompareOptions(targets=targets, eval_set=eval_set))
    assert found.headline == "INCOMPLETE"
    if where == "no case in common":
        said = "INCOMPLETE: retrieval.recall@5 has no case that both runs scored; in the others no "
        assert found.says[0].startswith(said)
