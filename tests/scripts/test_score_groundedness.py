"""score_groundedness.py as a user runs it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from score_groundedness import main
from storage import ErrorInfo, RetrievedChunk, TestResult

LEAVE = "Staff get 15 days of paid vacation each year. Vacation accrues monthly."
HOSTILE = "The [bold]kitchen[/] opens at 31 \x1b[Howned\x07 in the morning for everybody."


def result(name: str, answer: str, **fields: Any) -> TestResult:
    chunk = RetrievedChunk("c1", "leave.md", "leave.md", text=LEAVE + " " * 200, rank=1)
    return TestResult(name, answer=answer, **({"retrieved": [chunk]} | fields))


CASES = [
    {"id": "good", "category": "factual"},
    {"id": "bad", "category": "reasoning", "question": "What [red]opens[/]?"},
    {"id": "shy"},
    {"id": "broken"},
]
RESULTS = [
    result("good", "Staff get 15 days of paid vacation each year [1]."),
    result("bad", f"Vacation accrues monthly [1]. {HOSTILE} [7]"),
    result("shy", "I cannot find this in the documents."),
    TestResult("broken", status="error", error=ErrorInfo("timeout")),
]


def test_numbers_states_and_evidence(finished: Any) -> None:
    labels = [{"case_id": "good", "expected_claims": ["15 days vacation", "sick pay"]}]
    finished.write(CASES, RESULTS, groundedness_labels=labels)
    found = finished.section(main)
    # good: 1 of 1; bad: 1 of 2, the other has 31, which stands nowhere
    assert found["mean"]["claim_support_rate"] == 0.75
    assert found["mean"]["numeric_fabrications"] == 0.5
    assert found["mean"]["citation_validity_form"] == 0.75
    assert found["mean"]["expected_claim_recall"] == 0.5
    counts = [found[name]["claim_support_rate"] for name in ("n", "not_applicable", "failed")]
    assert counts == [2, 1, 1]
    assert found["by"]["category"]["reasoning"]["mean"]["claim_support_rate"] == 0.5
    rows = finished.rows("groundedness")
    assert rows["shy"]["reasons"]["claim_support_rate"] == "abstention"
    assert rows["broken"]["reasons"] == {"*": "call failed: timeout"}
    claims = rows["bad"]["evidence"]["claims"]
    assert [claim["supported"] for claim in claims] == [True, False]
    assert rows["good"]["evidence"]["claims"][0]["chunk_id"] == "c1"


def test_the_worst_case_shows_what_failed_and_runs_no_markup(finished: Any) -> None:
    finished.write(CASES, RESULTS)
    done = finished.score(main, "--by", "category", "--worst", "1")
    assert done.exit_code == 0, done.output
    shown = done.stdout
    assert "claim_support_rate" in shown
    assert "> 0.85" in shown
    assert "bad  mean_claim_support" in shown
    assert "What [red]opens[/]?" in shown
    assert "The [bold]kitchen[/] opens at 31" in shown
    assert "found nowhere: 31" in shown
    assert "citation [7] names no retrieved chunk" in shown
    assert "best in leave.md:" in shown
    assert "\x1b" not in shown


def test_cut_texts_are_not_applicable_and_the_remedy_is_told(finished: Any) -> None:
    finished.write(CASES, RESULTS, full=False)
    done = finished.score(main)
    assert done.exit_code == 0, done.output
    assert "--store-full-text" in done.stderr
    rows = finished.rows("groundedness")
    assert rows["good"]["reasons"]["claim_support_rate"] == "text was truncated"
    assert rows["good"]["scores"]["citation_validity_form"] == 1.0
    assert finished.section(main)["mean"]["claim_support_rate"] is None
    assert "--store-full-text" not in finished.score(main, "-q").stderr


def test_neither_order_of_work_nor_repetition_changes_a_byte(
    finished: Any, same_bytes: Callable[..., None]
) -> None:
    finished.write(CASES, RESULTS)
    same_bytes(finished, main, "groundedness")


def test_an_unknown_metric_for_the_worst_cases_is_refused(finished: Any) -> None:
    finished.write(CASES, RESULTS)
    done = finished.score(main, "--worst", "1", "--worst-by", "nothing")
    assert done.exit_code == 2
    assert "choose from: claim_support_rate" in done.stderr


def test_unsure_claims_are_shown_and_texts_of_an_unknown_kind_warned_of(finished: Any) -> None:
    # 100 claims of which no passage has a word: strength 0 each. Of every training set at least
    # .79 of the claims have a strength of .10 or more: far more than .30 away.
    cases = [{"id": f"c{n}"} for n in range(100)]
    finished.write(cases, [result(case["id"], "The moon has green cheese.") for case in cases])
    shown = " ".join(finished.score(main).stdout.split())
    assert "Unsure claims (strength .40 to .55): 0% of an answer's claims" in shown
    assert "is between 0.000 and 0.000 if all of these failed or held" in shown
    assert "the threshold is not known to hold for such texts" in shown
    found = finished.section(main)
    assert found["mean"]["strength_distance"] > 0.7
    assert (found["english_claims"], found["n"]["strength_distance"]) == (100, 100)


def test_fewer_than_100_claims_are_not_compared(finished: Any) -> None:
    cases = [{"id": f"c{n}"} for n in range(99)]
    finished.write(cases, [result(case["id"], "The moon has green cheese.") for case in cases])
    assert finished.section(main)["mean"]["strength_distance"] is None
    assert "not known to hold" not in finished.score(main).stdout


@pytest.fixture(scope="module")
def always_supports(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cross-encoder of one tiny layer whose last bias alone decides: "entailment", always."""
    transformers = pytest.importorskip("transformers")
    torch = pytest.importorskip("torch")
    folder = tmp_path_factory.mktemp("nli")
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "staff", "kitchen"]
    (folder / "vocab.txt").write_text("\n".join(words))
    config = transformers.BertConfig(
        vocab_size=len(words), hidden_size=8, num_hidden_layers=1, num_attention_heads=1,
        intermediate_size=8, max_position_embeddings=64, num_labels=3,
        id2label={0: "contradiction", 1: "entailment", 2: "neutral"},
        label2id={"contradiction": 0, "entailment": 1, "neutral": 2},
    )  # fmt: skip
    model = transformers.BertForSequenceClassification(config)
    with torch.no_grad():
        model.classifier.weight.zero_()
        # softmax of (0, log 8, 0) is (0.1, 0.8, 0.1)
        model.classifier.bias.copy_(torch.tensor([0.0, 8.0, 0.0]).clamp(min=1).log())
    model.save_pretrained(folder)
    transformers.BertTokenizer(str(folder / "vocab.txt")).save_pretrained(folder)
    return folder


def test_a_support_model_decides_about_claims_and_is_recorded(
    finished: Any, always_supports: Path
) -> None:
    unsaid = "The kitchen is painted in a friendly yellow."
    finished.write(CASES[:2], [RESULTS[0], result("bad", f"{unsaid} {HOSTILE}")])
    by_words = finished.section(main)
    assert by_words["mean"]["claim_support_rate"] == 0.5  # good 1 of 1, bad 0 of 2
    assert by_words["options"]["support_model"] == "word features"
    by_model = finished.section(main, "--support-model", str(always_supports), "--jobs", "1")
    # All claims are borne out, but one has a number that stands nowhere: good 1 of 1, bad 1 of 2.
    assert by_model["mean"]["claim_support_rate"] == 0.75
    assert by_model["mean"]["mean_claim_support"] == by_words["mean"]["mean_claim_support"]
    assert by_model["options"]["support_model"].startswith(f"{always_supports.name}@")
    claims = finished.rows("groundedness")["bad"]["evidence"]["claims"]
    strengths = [(claim["supported"], round(claim["strength"], 3)) for claim in claims]
    assert strengths == [(True, 0.8), (False, 0.0)]


def test_a_support_model_that_cannot_be_used_is_told_in_one_sentence(
    finished: Any, tmp_path: Path, always_supports: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    finished.write(CASES, RESULTS)

    def refused(folder: Path) -> str:
        done = finished.score(main, "--support-model", str(folder))
        assert done.exit_code == 2, done.output
        assert len(done.stderr.strip().splitlines()) == 1
        return str(done.stderr)

    assert "has no config.json" in refused(tmp_path / "nowhere")
    nameless = tmp_path / "nameless"
    nameless.mkdir()
    for file in always_supports.iterdir():
        (nameless / file.name).write_bytes(file.read_bytes())
    config = json.loads((nameless / "config.json").read_text())
    config["id2label"] = {"0": "a", "1": "b", "2": "c"}
    (nameless / "config.json").write_text(json.dumps(config))
    assert "(architectures 'BertForSequenceClassification', labels a, b, c)" in refused(nameless)
    config["support_form"] = "nli"
    (nameless / "config.json").write_text(json.dumps(config))
    assert "none of its labels (a, b, c) is called entailment" in refused(nameless)
    config["id2label"] = {"0": "contradiction", "1": "entailment", "2": "neutral"}
    (nameless / "config.json").write_text(json.dumps(config))
    (nameless / "model.safetensors").unlink()
    assert "cannot be loaded as a support model" in refused(nameless)
    monkeypatch.setitem(__import__("sys").modules, "transformers", None)
    (tmp_path / "config.json").write_text(json.dumps(config))
    assert "needs torch and transformers" in refused(tmp_path)
