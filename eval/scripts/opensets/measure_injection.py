"""The injection detector measured on the open prompt sets.

Three ways to look, from optimistic to pessimistic:

- `shipped`: the detector as it ships. Rows that it was trained on flatter it; `trained` says how
  many there are, so on data kept back this is the honest own-distribution figure.
- `cross_validated`: the model trained anew on four fifths of the groups, five times, and asked
  about the rest: its own distribution.
- `leave_one_set_out`: the model trained anew without the set that it is asked about: what to
  expect on a kind of text that nobody thought of.

The rules do not change between the ways; they were written after reading samples of these sets.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from guardrails import fitting
from guardrails.injection import (
    InjectionReport,
    combined,
    only_talked_about,
    score_injection,
    trained_on,
)
from guardrails.linear import sigmoid
from opensets.prompts import Prompt, fingerprint, trainable_sets
from ragmetrics import safety

FOLDS = 5
# the sets made for this purpose, without the everyday questions and pages, which are easier
_PROMPT_SETS = ("injection", "jailbreak", "benign")
Split = tuple[list[int], list[int]]


def measure(prompts: Sequence[Prompt], *, retrain: bool = True) -> dict[str, Any]:
    """Pooled and per-set numbers for each way of looking; {} without prompts."""
    if not prompts:
        return {}
    reports = [score_injection(prompt.text) for prompt in prompts]
    known = trained_on()
    found: dict[str, Any] = {
        "trained": sum(fingerprint(prompt) in known for prompt in prompts),
        "prompts": len(prompts),
        "shipped": _numbers(prompts, [report.score for report in reports]),
        "rules_only": _numbers(prompts, [report.rule_score for report in reports]),
    }
    if retrain and {prompt.label for prompt in prompts} == {0, 1}:
        features = fitting.featurize([prompt.text for prompt in prompts])
        for name, splits in (
            ("cross_validated", _folds(prompts)),
            ("leave_one_set_out", _left_out(prompts)),
        ):
            scores = _retrained(prompts, reports, features, splits)
            found[name] = _numbers(prompts, scores)
    return found


def _retrained(
    prompts: Sequence[Prompt],
    reports: Sequence[InjectionReport],
    features: Sequence[dict[int, float]],
    splits: Iterable[Split],
) -> list[float]:
    allowed = trainable_sets()
    scores = [0.0] * len(prompts)
    for train, test in splits:
        train = [i for i in train if prompts[i].set in allowed]
        model = fitting.fit([features[i] for i in train], [prompts[i].label for i in train])
        for i in test:
            guess = sigmoid(model.logit(features[i])) if features[i] else 0.0
            about = only_talked_about(reports[i].evidence)
            scores[i] = combined(reports[i].rule_score, guess, talked_about=about)
    return scores


def _folds(prompts: Sequence[Prompt]) -> Iterator[Split]:
    """Groups dealt out to folds, largest first to the smallest fold."""
    sizes: dict[str, list[int]] = {}
    for place, prompt in enumerate(prompts):
        sizes.setdefault(prompt.group, []).append(place)
    folds: list[list[int]] = [[] for _ in range(FOLDS)]
    for group in sorted(sizes, key=lambda name: (-len(sizes[name]), name)):
        min(folds, key=len).extend(sizes[group])
    yield from _splits(folds)


def _left_out(prompts: Sequence[Prompt]) -> Iterator[Split]:
    names = list(dict.fromkeys(prompt.set for prompt in prompts))
    yield from _splits([[i for i, p in enumerate(prompts) if p.set == name] for name in names])


def _splits(parts: Sequence[list[int]]) -> Iterator[Split]:
    for part in parts:
        yield [i for other in parts if other is not part for i in other], part


def _numbers(prompts: Sequence[Prompt], scores: Sequence[float]) -> dict[str, Any]:
    def side(label: int, wanted: Callable[[Prompt], bool]) -> list[float]:
        return [
            score
            for prompt, score in zip(prompts, scores, strict=True)
            if prompt.label == label and wanted(prompt)
        ]

    def numbers(wanted: Callable[[Prompt], bool]) -> dict[str, Any]:
        attacks = [("", score) for score in side(1, wanted)]
        found = safety.input_guardrail(attacks, side(0, wanted))
        del found["categories"]
        return found

    names = list(dict.fromkeys(prompt.set for prompt in prompts))
    return {
        "all": numbers(lambda prompt: True),
        "trainable_sets": numbers(lambda prompt: prompt.set in trainable_sets()),
        "prompt_sets": numbers(lambda prompt: prompt.set.startswith(_PROMPT_SETS)),
        "sets": {name: numbers(lambda prompt, own=name: prompt.set == own) for name in names},  # type: ignore[misc]
    }
