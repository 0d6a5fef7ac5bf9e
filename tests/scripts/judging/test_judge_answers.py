"""judge_answers.py as a user runs it, with the local judge."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.pages import Blocks, page_of
from tests.processes import refused

import compare_runs
import eval_suite
import gate_run
import report_run
import score_pipeline
import storage
from clients.embedder import Embedder
from records.metrics import load_metrics


def test_the_local_judge_end_to_end(run: Any) -> None:
    run.write()
    # without cosines: no model is loaded
    found = run.judge("--metrics", "all", "--claim-level", "--set", "correctness_weight=1")
    # good: 1 of 1 claims; bad: 1 of 2, for 31 stands nowhere; shy abstains; broken failed
    assert found["mean"]["faithfulness"] == 0.75
    assert found["mean"]["groundedness"] == 3.75
    counts = [found[name]["faithfulness"] for name in ("n", "not_applicable", "failed")]
    assert counts == [2, 1, 1]
    assert found["mean"]["fact_recall"] == 1.0
    assert found["mean"]["context_recall"] == 1.0
    assert found["mean"]["abstained_judged"] == pytest.approx(1 / 3, abs=1e-6)
    assert found["mean"]["answer_relevancy"] is None
    assert found["not_applicable"]["answer_relevancy"] == 3
    assert found["by"]["category"]["reasoning"]["mean"]["faithfulness"] == 0.5
    rows = run.finished.rows("judged")
    assert "cannot write questions" in rows["good"]["reasons"]["answer_relevancy"]
    assert rows["broken"]["reasons"] == {"*": "call failed: timeout"}
    config = json.loads((run.finished.run / "config.json").read_text("utf-8"))
    assert config["judge"]["identity"]["provider"] == "local"
    assert config["judge"]["prompts"]["groundedness"]["version"] == 2
    assert found["options"]["judge"] == config["judge"]
    assert config["config_hash"] == storage.config_hash(storage.read_config(run.finished.run))


def test_scoring_again_keeps_the_options_that_the_run_was_judged_with(
    run: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """By the suite and by --rescore; an option that is named is meant."""
    monkeypatch.setattr(Embedder, "encode", same_vectors)
    run.write()
    unjudged = suite(run)["perspectives"]["judged"]
    assert unjudged["status"] == "cannot run"
    assert "run judge_answers.py" in unjudged["reason"]
    metrics = ("--metrics", "correctness,answer_correctness_judged")
    run.judge(*metrics, "--set", "correctness_weight=0.5")
    judged = metrics_of(run)
    assert judged["options"]["correctness_weight"] == 0.5
    assert suite(run)["perspectives"]["judged"]["status"] == "scored"
    assert metrics_of(run) == judged
    run.judge("--rescore")
    assert metrics_of(run) == judged
    run.judge("--rescore", "--set", "correctness_weight=0.25")
    assert metrics_of(run)["options"]["correctness_weight"] == 0.25
    run.judge("--rescore", "--set", "correctness_weight=0.5")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "config.json").write_text("{}")
    run.judge("--rescore", "--set", f"embedding_model={tmp_path}/mine")
    assert metrics_of(run)["mean"] == judged["mean"], "all vectors are the same here"


def test_cosines_of_a_model_that_is_gone_are_not_counted_with_another(
    run: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(Embedder, "encode", same_vectors)
    run.write()
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "config.json").write_text("{}")
    metrics = ("--metrics", "answer_correctness_judged")
    run.judge(*metrics, "--set", f"embedding_model={tmp_path}/mine")
    judged = metrics_of(run)
    told = suite(run)["perspectives"]["judged"]
    assert told["status"] == "cannot run"
    assert "judged with the embedding model 'mine " in told["reason"]
    done = run.call("--rescore")
    assert done.exit_code == 2, done.output
    assert metrics_of(run) == judged
    run.judge("--rescore", "--set", f"embedding_model={tmp_path}/mine")
    assert metrics_of(run) == judged
    found = suite(run, "--set", f"embedding_model={tmp_path / 'mine'}")
    assert found["perspectives"]["judged"]["status"] == "scored"
    assert metrics_of(run) == judged


def test_runs_judged_with_other_weights_are_compared_without_the_judged_section(run: Any) -> None:
    """By compare_runs, report_run, eval_suite and gate_run, in one sentence."""
    run.write()
    words = ("--metrics", "correctness", "--set")
    run.judge(*words, "correctness_weight=1")
    run.finished.section(score_pipeline.main)
    shutil.copytree(run.finished.run, run.finished.folder / "results" / "old")
    run.judge(*words, "correctness_weight=0.5")
    said = (
        "judged is left out, because it was scored differently (base → new): "
        "judged.options.correctness_weight: 1.0 → 0.5; score one of the runs again like the other "
        "(judge_answers.py)"
    )
    old = str(run.finished.folder / "results" / "old")
    compared = shown(run, compare_runs.main, old, str(run.finished.run))
    assert f"{said}; --ignore-invariants compares it anyway." in compared
    base = ("--baseline", old)
    assert said in shown(run, eval_suite.main, "--sections", "judged,pipeline", *base, code=1)
    assert said in shown(run, gate_run.main, *base, code=1)
    page = reported(run, *base)
    assert said in page.text
    assert "correctness" not in compared_metrics(page)
    page = reported(run, *base, "--ignore-invariants")
    assert {"correctness", "pass"} <= compared_metrics(page)
    assert "judged.options.correctness_weight: 1.0 → 0.5" in page.texts


def reported(run: Any, *options: str) -> Blocks:
    """What changed since the baseline, in the report."""
    done = run.finished.score(report_run.main, "--json", *options)
    assert done.exit_code == 0, done.output
    return page_of(json.loads(done.stdout)).section("What changed since")


def compared_metrics(page: Blocks) -> set[str]:
    return {row[0].split()[0] for table in page.of("table") for row in table["rows"]}


def shown(run: Any, command: Any, *words: str, code: int = 0) -> str:
    done = run.finished.score(command, *words, columns=500)
    assert done.exit_code == code, done.output
    return " ".join(done.output.split())


def suite(run: Any, *words: str) -> dict[str, Any]:
    cache = str(run.finished.folder / "cache")
    words = ("--sections", "judged", "--json", "--cache-dir", cache, *words)
    done = run.finished.score(eval_suite.main, *words)
    assert done.exit_code == 0, done.output
    report: dict[str, Any] = json.loads(done.stdout)
    return report


def same_vectors(self: Any, texts: list[str]) -> Any:
    return np.ones((len(texts), 1), dtype=np.float32)


def metrics_of(run: Any) -> Any:
    return load_metrics(run.finished.run / "metrics.json")["sections"]["judged"]


def test_metrics_judged_one_after_the_other_stand_side_by_side(run: Any) -> None:
    run.write()
    assert "fact_recall" not in run.judge("--metrics", "groundedness")["mean"]
    found = run.judge("--metrics", "correctness")
    assert {"faithfulness", "fact_recall"} <= found["mean"].keys()


def test_repeats_give_agreement_and_only_for_the_sample(run: Any) -> None:
    run.write()
    found = run.judge("--metrics", "groundedness", "--repeats", "3")
    assert found["mean"]["judge_self_agreement"] == 1.0
    spread = {"faithfulness": 0.0, "groundedness": 0.0}
    counts = {"opinions": 3, "items": 3, "flipped": 0, "flip_rate": 0.0}
    assert found["repeats"] == counts | {"mean_spread": spread}
    assert {line["judge_repeat"] for line in run.lines()} == {0, 1, 2}
    (run.finished.run / "verdicts.jsonl").unlink()
    run.judge("--metrics", "groundedness", "--repeats", "3:0")
    assert {line["judge_repeat"] for line in run.lines()} == {0}


def test_only_the_first_chunks_are_judged(run: Any) -> None:
    run.write()
    words = ("--metrics", "groundedness,context_precision")
    found = run.judge(*words, "--k", "1")
    # the claim about noon stands in the second chunk only
    rows = run.finished.rows("judged")
    assert rows["bad"]["scores"]["faithfulness"] == 0.0
    assert found["options"]["judge"]["k"] == 1
    assert [len(rows[name]["evidence"]["chunks"]) for name in ("good", "bad")] == [1, 1]
    assert run.judge(*words)["mean"]["faithfulness"] == 0.75


def test_cut_texts_do_not_apply_and_the_advice_is_given(run: Any) -> None:
    run.write(full=False)
    done = run.call()
    assert done.exit_code == 0, done.output
    assert "--store-full-text" in done.stderr
    assert run.finished.rows("judged")["good"]["reasons"]["groundedness"] == "text was truncated"


def test_the_worst_case_shows_claims_and_quotes_and_runs_no_markup(run: Any) -> None:
    run.write()
    done = run.call("--worst", "1")
    assert done.exit_code == 0, done.output
    assert "[bold]31[/]" in done.stdout
    assert "\x1b" not in done.stdout
    assert "number in no passage: 31" in done.stdout
    assert '"The tour begins at noon' in done.stdout
    assert "local/support@" in done.stdout
    assert "A model sees more" in done.stderr


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--metrics", "truth"], "'truth' is not judged"),
        (["--metrics", ","], "name at least one"),
        (["--worst-by", "truth"], "'truth' is not computed here"),
        (["--rescore"], "run judge_answers.py first"),
        (["--judge", "http://127.0.0.1:9", "--max-cost", "1"], "--max-cost: needs prices"),
        (["--judge", "http://h", "--set", "api_key=NO_SUCH_KEY"], "NO_SUCH_KEY is not set"),
        (["--judge", "http://127.0.0.1:9", "--offline"], "no verdicts of any judge"),
        (["--offline"], "no verdicts of any judge"),
        (["--offline", "--model", "m-2025-01-01"], "no verdicts of m-2025-01-01"),
        (["--model", "m-2025-01-01"], "--model m-2025-01-01: name its server"),
        (["--model", "m-2025-01-01", "--dry-run"], "name its server with --judge"),
        (["--judge", "nonsense"], "--judge nonsense: no such name in"),
        (["--judge", "http://"], "is not a URL"),
    ],
)
def test_faulty_requests_are_one_sentence(run: Any, words: list[str], message: str) -> None:
    run.write()
    assert message in refused(run.call(*words))
    assert not (run.finished.run / "metrics.json").exists()


def test_offline_counts_the_rules_only_where_they_are_named(run: Any) -> None:
    run.write()
    run.judge("--judge", "local", "--offline", "--metrics", "groundedness")
    assert {line["judge"]["provider"] for line in run.lines()} == {"local"}


def test_results_of_another_set_are_refused_before_anything_is_paid(run: Any) -> None:
    run.write()
    run.finished._lines("set.jsonl", [{"id": "other", "question": "?"}])
    assert "use the set that the run was asked" in refused(run.call())
    assert not (run.finished.run / "verdicts.jsonl").exists()


def test_what_is_sent_about_a_case_is_shown_and_nothing_is_asked(run: Any) -> None:
    run.write()
    words = ("--metrics", "groundedness,correctness", "--show-prompt")
    found = json.loads(run.call(*words, "good", "--json").stdout)
    assert [(one["repeat"], one["metric"]) for one in found] == [
        (0, "groundedness"),
        (0, "correctness"),
    ]
    assert [message["role"] for message in found[0]["messages"]] == ["system", "user"]
    assert not (run.finished.run / "verdicts.jsonl").exists()
    assert "has no answer to case 'nobody' that can be judged" in refused(
        run.call(*words, "nobody")
    )
