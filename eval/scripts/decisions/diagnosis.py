"""What the numbers say together, in words: which part is to blame, and what to look at.

Pure: measures in, findings out. A section is good when every measured metric with a target of its
own in the catalogue keeps it, bad when one does not, unknown when nothing was measured; nothing is
concluded from what is unknown.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from decisions.measures import Measure
from ragmetrics.catalogue import SECTIONS

Found = Mapping[tuple[str, str], Measure]

HIGH, LOW = 0.7, 0.5
"""A share is high in the bands good and excellent, low in the band poor."""

ABSTAINS_WRONG = 0.3


@dataclass(frozen=True, slots=True)
class DiagnosisFinding:
    """``says``: what is the matter; ``look_at``: where to begin; ``because``: metric and value."""

    rule: str
    says: str
    look_at: str
    because: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        return asdict(self) | {"because": list(self.because)}


def diagnose(found: Found) -> list[DiagnosisFinding]:
    """The findings, most basic cause first; a single one says that all is well."""
    findings = [finding for _, rule in _RULES for finding in rule(found)]
    if findings:
        return findings
    known = [name for name in DIAGNOSED if health(found, name) is not None]
    if not known:
        return [
            DiagnosisFinding(
                "nothing_measured", "No target could be checked.", "the reasons above.", ()
            )
        ]
    return [
        DiagnosisFinding(
            "all_good",
            f"No fault shows in {', '.join(known)}.",
            "harder questions, and the metrics without a target.",
            (),
        )
    ]


def health(found: Found, section: str) -> bool | None:
    """True: all measured metrics that count keep their targets; None: none was measured.

    Of a section that the diagnosis speaks of, those with a target in the catalogue count; of
    another one all that have a target.
    """
    known = [one.passed for one in _counting(found, section) if one.passed is not None]
    return all(known) if known else None


def _counting(found: Found, section: str) -> list[Measure]:
    if section not in DIAGNOSED:
        return [one for (name, _), one in found.items() if name == section]
    names = SECTIONS[section].targets
    return [one for name in names if (one := found.get((section, name)))]


def _because(measures: Sequence[Measure | None]) -> tuple[str, ...]:
    return tuple(
        f"{one.metric} {one.mean:.3f}" + (f" (target {one.target})" if one.target else "")
        for one in measures
        if one is not None and one.mean is not None
    )


def _failing(found: Found, section: str) -> tuple[str, ...]:
    return _because([one for one in _counting(found, section) if one.passed is False])


def _any(found: Found, *names: str) -> Measure | None:
    """The first of these metrics that was measured, in whatever section."""
    for name in names:
        for (_, metric), one in found.items():
            if metric == name and one.mean is not None:
                return one
    return None


def _retrieval(found: Found) -> Iterator[DiagnosisFinding]:
    if health(found, "retrieval") is not False:
        return
    because = _failing(found, "retrieval")
    if health(found, "context"):
        yield DiagnosisFinding(
            "retrieval_bad_context_good",
            "The passages are varied and tidy, but they are not the right ones.",
            "the embedding model and the chunking; then the cases of "
            "`score_retrieval.py --worst 10`.",
            because,
        )
    else:
        scope = _any(found, "scope_miss")
        folders = scope is not None and (scope.mean or 0.0) > 0.1
        yield DiagnosisFinding(
            "retrieval_bad",
            "Too few of the right passages are found; what comes after can hardly be better.",
            ("folder selection first (it leaves the gold out), then " if folders else "")
            + "top_k, the embedding model and the chunking.",
            because + (_because([scope]) if folders else ()),
        )


def _groundedness(found: Found) -> Iterator[DiagnosisFinding]:
    if health(found, "groundedness") is not False:
        return
    because = _failing(found, "groundedness")
    if health(found, "retrieval"):
        yield DiagnosisFinding(
            "retrieval_good_groundedness_bad",
            "The passages are found, but the answers do not keep to them.",
            "the prompt and the generation; the claims of `score_groundedness.py --worst 10`.",
            because,
        )
    else:
        yield DiagnosisFinding(
            "groundedness_bad",
            "The answers say what their passages do not hold.",
            "retrieval first if it is bad, too; else the prompt.",
            because,
        )


def _context(found: Found) -> Iterator[DiagnosisFinding]:
    if health(found, "context") is not False:
        return
    yield DiagnosisFinding(
        "context_bad",
        "The retrieved passages repeat each other and waste space in the prompt.",
        "chunk overlap, duplicates in the vault, and a step that drops near-equal passages.",
        _failing(found, "context"),
    )


def _precision_recall(found: Found) -> Iterator[DiagnosisFinding]:
    precision = _any(found, "context_precision", "precision@1")
    recall = _any(found, "context_recall", "recall@5")
    if precision is None or recall is None:
        return
    high, low = _is_high(precision), _is_low(precision)
    because = _because([precision, recall])
    if high and _is_low(recall):
        yield DiagnosisFinding(
            "high_precision_low_recall",
            "Retrieval is conservative: what it brings is right, but much is missing.",
            "a larger top_k, or a lower score threshold.",
            because,
        )
    if low and _is_high(recall):
        yield DiagnosisFinding(
            "low_precision_high_recall",
            "Retrieval is noisy: the right passages come, behind wrong ones.",
            "a stricter score threshold, or a reranker.",
            because,
        )


def _is_high(one: Measure) -> bool:
    return one.mean is not None and one.mean >= HIGH


def _is_low(one: Measure) -> bool:
    return one.mean is not None and one.mean < LOW


def _faithful_relevant(found: Found) -> Iterator[DiagnosisFinding]:
    faithful = _any(found, "faithfulness", "claim_support_rate")
    relevant = _any(found, "answer_relevancy", "answer_relevance")
    if faithful is None or relevant is None:
        return
    because = _because([faithful, relevant])
    if faithful.passed and relevant.passed is False:
        yield DiagnosisFinding(
            "faithful_but_irrelevant",
            "The answers keep to their passages but miss what was asked.",
            "how the question is understood: query rewriting, the choice of sentences, the prompt.",
            because,
        )
    if relevant.passed and faithful.passed is False:
        yield DiagnosisFinding(
            "relevant_but_unfaithful",
            "The answers fit the question but are not in the passages: hallucination.",
            "the prompt (answer from the passages only), the temperature, the model.",
            because,
        )


def _abstention(found: Found) -> Iterator[DiagnosisFinding]:
    bold, shy = _any(found, "hallucination_on_unanswerable"), _any(found, "over_refusal")
    if bold is not None and (bold.mean or 0.0) > ABSTAINS_WRONG:
        yield DiagnosisFinding(
            "answers_the_unanswerable",
            "The bot answers questions that its documents cannot answer.",
            "the rule by which it abstains: a higher score threshold, or the prompt.",
            _because([bold]),
        )
    if shy is not None and (shy.mean or 0.0) > ABSTAINS_WRONG:
        yield DiagnosisFinding(
            "refuses_the_answerable",
            "The bot refuses questions that its documents answer.",
            "retrieval of those cases, then the threshold from which it abstains.",
            _because([shy]),
        )


def _safety(found: Found) -> Iterator[DiagnosisFinding]:
    if health(found, "safety") is not False:
        return
    area = found.get(("safety", "auc"))
    parts = area is not None and area.passed
    yield DiagnosisFinding(
        "safety_bad",
        "The guardrails let attacks or leaks through, or stop harmless texts.",
        "the guardrail thresholds; the texts of `score_safety.py --worst 10`."
        if parts
        else "the detector itself (its scores do not part attacks from harmless texts), then the "
        "guardrail thresholds.",
        _failing(found, "safety"),
    )


def _pipeline(found: Found) -> Iterator[DiagnosisFinding]:
    if health(found, "pipeline") is not False:
        return
    checks = [
        one
        for (section, metric), one in found.items()
        if section == "pipeline" and metric != "pass" and one.mean is not None and one.mean < 1.0
    ]
    checks.sort(key=lambda one: one.mean or 0.0)
    yield DiagnosisFinding(
        "pipeline_bad",
        "Many questions got another kind of response than expected (for example "
        '"uncertain" instead of an answer).',
        "the check that fails most; to see which, run `score_pipeline.py --worst 10`.",
        _failing(found, "pipeline") + _because(checks[:2]),
    )


_RULES = (
    ("retrieval", _retrieval),
    ("", _precision_recall),
    ("context", _context),
    ("groundedness", _groundedness),
    ("", _faithful_relevant),
    ("", _abstention),
    ("safety", _safety),
    ("pipeline", _pipeline),
)

DIAGNOSED = tuple(section for section, _ in _RULES if section)
"""The sections whose health has a finding of its own."""
