"""The gate: each reason to refuse a judge, and none."""

from __future__ import annotations

from typing import Any

import pytest
from tests.rows import each_row

from decisions.judge_calibration import objections
from records.calibration import read, write
from storage import StorageError
from validation.jobs import _single

JUDGE = {"provider": "ollama", "model": "m", "digest": "sha256:1"}
PROMPT = {"name": "groundedness", "version": 1, "sha256": "aa"}
GOOD: dict[str, Any] = {
    "schema": 1,
    "metric": "groundedness",
    "judge": JUDGE,
    "prompt": PROMPT,
    "too_few": False,
    "figures": {"kappa": {"value": 0.7}, "balanced_accuracy": {"value": 0.85}},
}


def good_but(kappa: float | None, accuracy: float) -> dict[str, Any]:
    figures = {"kappa": {"value": kappa}, "balanced_accuracy": {"value": accuracy}}
    return GOOD | {"figures": figures}


def said(found: dict[str, Any], judges: Any = (JUDGE,), prompts: Any = (PROMPT,)) -> list[str]:
    return objections(found, judges, prompts, min_kappa=0.6, min_balanced_accuracy=0.75)


def test_a_good_and_unchanged_judge_passes() -> None:
    assert said(GOOD) == []


FEW = {"too_few": True, "supported": 9, "unsupported": 8}


@each_row(
    ("found", "judges", "prompts", "words"),
    [
        (GOOD, [JUDGE | {"digest": "sha256:2"}], [PROMPT], "digest sha256:1 → sha256:2"),
        (GOOD, [JUDGE], [PROMPT | {"version": 2}], "another prompt was calibrated"),
        (GOOD, [JUDGE, JUDGE | {"model": "n"}], [PROMPT], "model m → n"),
        (GOOD, [], [], "do not say who judged"),
        (GOOD | FEW, [JUDGE], [PROMPT], "9 supp"),
        (good_but(0.5, 0.9), [JUDGE], [PROMPT], "kappa 0.500 is below 0.6"),
        (good_but(0.7, 0.7), [JUDGE], [PROMPT], "balanced accuracy 0.700 is below 0.75"),
        (good_but(None, 0.9), [JUDGE], [PROMPT], "kappa is undefined"),
    ],
)
def test_every_objection_is_a_sentence(
    found: dict[str, Any], judges: Any, prompts: Any, words: str
) -> None:
    (sentence,) = said(found, judges, prompts)
    assert words in sentence


def test_another_temperature_is_another_judge() -> None:
    known = GOOD | {"parameters": {"temperature": 0.0, "seed": 0}}
    limits: dict[str, Any] = {"min_kappa": 0.6, "min_balanced_accuracy": 0.75}
    for parameters, count in (({"temperature": 0.7, "seed": 0}, 1), (known["parameters"], 0)):
        assert len(objections(known, [JUDGE], [PROMPT], parameters=parameters, **limits)) == count
    # What one side does not know may have changed
    (said,) = objections(GOOD, [JUDGE], [PROMPT], parameters={"temperature": 1}, **limits)
    assert "temperature none → 1" in said
    (said,) = objections(known, [JUDGE], [PROMPT], parameters=None, **limits)
    assert "seed 0 → none, temperature 0.0 → none" in said
    assert objections(GOOD, [JUDGE], [PROMPT], parameters=None, **limits) == []


def test_a_stored_calibration_comes_back_without_texts(tmp_path: Any) -> None:
    path = tmp_path / "eval" / "calibration.json"
    write(path, GOOD | {"worst": [{"claim": "a secret"}]}, texts=False)
    assert "secret" not in path.read_text()
    assert read(path) == GOOD
    path.write_text('{"schema": 1, "judge": []}')
    with pytest.raises(StorageError, match="is not a calibration of a judge"):
        read(path)
    with pytest.raises(StorageError, match="no such file"):
        read(tmp_path / "none.json")


def test_a_run_of_two_judges_is_refused() -> None:
    assert _single([], "judges") == {}
    with pytest.raises(StorageError, match="2 different judges"):
        _single([JUDGE, PROMPT], "judges")
