"""judge_answers.py as a user runs it, with the local judge."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import storage
from judge_answers import main


def test_the_local_judge_end_to_end(run: Any) -> None:
    run.write()
    # without cosines: no model is loaded
    found = run.judge("--metrics", "all", "--claim-level", "--correctness-weight", "1")
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


def test_a_second_time_changes_no_byte_and_rescoring_neither(run: Any) -> None:
    run.write()
    words = ("--metrics", "groundedness,correctness,context_precision")
    run.judge(*words)
    kept = run.finished.bytes_of("judged"), (run.finished.run / "verdicts.jsonl").read_bytes()
    run.judge(*words)
    assert kept == (
        run.finished.bytes_of("judged"),
        (run.finished.run / "verdicts.jsonl").read_bytes(),
    )
    run.judge("--rescore")
    assert kept[0] == run.finished.bytes_of("judged")


def test_metrics_judged_one_after_the_other_stand_side_by_side(run: Any) -> None:
    run.write()
    assert "fact_recall" not in run.judge("--metrics", "groundedness")["mean"]
    found = run.judge("--metrics", "correctness")
    assert {"faithfulness", "fact_recall"} <= found["mean"].keys()


def test_repeats_give_agreement_and_only_for_the_sample(run: Any) -> None:
    run.write()
    found = run.judge("--metrics", "groundedness", "--repeats", "3")
    assert found["mean"]["judge_self_agreement"] == 1.0
    assert found["repeats"] == {
        "opinions": 3,
        "items": 3,
        "flipped": 0,
        "flip_rate": 0.0,
        "mean_spread": {"faithfulness": 0.0, "groundedness": 0.0},
    }
    assert {line["judge_repeat"] for line in run.lines()} == {0, 1, 2}
    (run.finished.run / "verdicts.jsonl").unlink()
    run.judge("--metrics", "groundedness", "--repeats", "3", "--repeats-share", "0")
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
    assert "number found nowhere: 31" in done.stdout
    assert '"The tour begins at noon' in done.stdout
    assert "local/support@" in done.stdout
    assert "weaker than a model" in done.stderr


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--metrics", "truth"], "'truth' is not judged"),
        (["--metrics", ","], "name at least one"),
        (["--worst-by", "truth"], "'truth' is not computed here"),
        (["--rescore"], "run judge_answers.py first"),
        (["--judge", "http://127.0.0.1:9", "--max-cost", "1"], "--max-cost: needs --prices"),
        (["--judge", "http://127.0.0.1:9", "--api-key", "NO_SUCH_KEY"], "NO_SUCH_KEY is not set"),
        (["--judge", "http://127.0.0.1:9", "--offline"], "no verdicts of any judge"),
        (["--judge", "nonsense"], "is no URL"),
    ],
)
def test_faulty_requests_are_one_sentence(run: Any, words: list[str], message: str) -> None:
    run.write()
    done = run.call(*words)
    assert done.exit_code == 2, done.output
    assert message in done.output.replace("\n", " ")
    assert "Traceback" not in done.output


def test_results_of_another_set_are_refused_before_anything_is_paid(run: Any) -> None:
    run.write()
    run.finished._lines("set.jsonl", [{"id": "other", "question": "?"}])
    done = run.call()
    assert done.exit_code == 2
    assert "use the set that was asked" in done.output.replace("\n", " ")
    assert not (run.finished.run / "verdicts.jsonl").exists()


def test_the_self_test_runs_without_a_run(tmp_path: Path) -> None:
    from click.testing import CliRunner

    words = ["--self-test", "--json", "--cache-dir", str(tmp_path)]
    done = CliRunner().invoke(main, words)
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["passed"] is True


def test_the_suite_counts_the_verdicts_of_a_run(run: Any) -> None:
    from eval_suite import main as suite

    run.write()
    words = ("--run", "run", "--json", "-q", "--sections", "groundedness,judged")
    without = json.loads(run.finished.score(suite, *words).stdout)
    assert without["perspectives"]["judged"]["status"] == "cannot run"
    assert "run judge_answers.py" in without["perspectives"]["judged"]["reason"]
    found = run.judge("--metrics", "groundedness")
    counted = json.loads(run.finished.score(suite, *words).stdout)["perspectives"]["judged"]
    assert counted["status"] == "scored"
    kept = json.loads((run.finished.run / "metrics.json").read_text("utf-8"))["sections"]["judged"]
    assert kept["mean"] == found["mean"]
