"""The judged metrics of one answer from its verdict lines: which verdicts go into which number."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ragmetrics import judged
from ragmetrics.catalogue.judged import CALLS_BY_METRIC
from ragmetrics.facts import nugget_recall
from ragmetrics.stats.tally import FAILED, Value
from records.judgements import Calls, Judgement, blame_claims

Line = Mapping[str, Any]

NOT_JUDGED = "not judged"

DIFFER = "its judgements are about different claims or facts; judge again"


Cosine = Callable[[str, str], float]


@dataclass(frozen=True)
class Texts:
    """What the cosines of two metrics compare, and what the labels say of the nuggets.

    ``cosine`` None: ``no_model`` says why. ``vital``: of each gold fact, in the order of the case.
    """

    question: str
    answer: str
    reference: str
    cosine: Cosine | None = None
    no_model: str = ""
    vital: Sequence[bool] = ()
    weight: float = judged.CORRECTNESS_WEIGHT


def score(name: str, calls: Calls, texts: Texts) -> tuple[Value, str]:
    """The value of one metric and, without a score, the reason.

    A failed judgement among those that the metric needs makes it FAILED, never a number.
    """
    judgements = [calls.get(call) for call in CALLS_BY_METRIC[name]]
    for judgement in judgements:
        if judgement is not None and judgement.status == "failed":
            return FAILED, f"judge failed: {judgement.reason}"
    for call, judgement in zip(CALLS_BY_METRIC[name], judgements, strict=True):
        # Contexts that were not judged one by one blame nothing when there are none.
        if (
            judgement is not None
            and judgement.status == "not_applicable"
            and not _no_chunks(name, call, judgement)
        ):
            return None, judgement.reason
    if None in judgements:
        return None, NOT_JUDGED
    value, reason = _VALUES[name](name, calls, texts)
    return (None, reason) if value is None else (float(value), "")


def _no_chunks(name: str, call: str, judgement: Judgement) -> bool:
    return name != call and call == "context_precision" and judgement.reason == "no contexts"


def _groundedness(name: str, calls: Calls, texts: Texts) -> tuple[float | None, str]:
    return judged.groundedness(calls["groundedness"].verdicts), "no claims"


def _correctness(name: str, calls: Calls, texts: Texts) -> tuple[float | None, str]:
    judgement = calls["correctness"]
    # A long list of facts is asked about in parts; one part that sees the question is enough.
    return judged.correctness(
        judgement.verdicts, any(judgement.extra("addresses_question"))
    ), "no facts"


def _share(name: str, calls: Calls, texts: Texts) -> tuple[float | None, str]:
    verdict_by_metric = {
        "faithfulness": judged.SUPPORTED,
        "fact_recall": judged.PRESENT,
        "context_precision": judged.USEFUL,
        "context_recall": judged.ATTRIBUTED,
    }
    return judged.share(
        calls[CALLS_BY_METRIC[name][0]].verdicts, verdict_by_metric[name]
    ), "nothing was asked"


def _ranked(name: str, calls: Calls, texts: Texts) -> tuple[float | None, str]:
    useful = [verdict == judged.USEFUL for verdict in calls["context_precision"].verdicts]
    return judged.precision_ranked(useful), "no contexts"


def _relevancy(name: str, calls: Calls, texts: Texts) -> tuple[float | None, str]:
    relevancy = calls["answer_relevancy"]
    if any(relevancy.extra("noncommittal")):
        return judged.answer_relevancy((), True), ""
    if texts.cosine is None:
        return None, texts.no_model
    questions = [question for part in relevancy.extra("questions") for question in part]
    cosines = [texts.cosine(texts.question, question) for question in questions]
    return judged.answer_relevancy(cosines, False), "no questions"


def _answer_correctness(name: str, calls: Calls, texts: Texts) -> tuple[float | None, str]:
    f1 = judged.fact_f1(calls["correctness"].verdicts, calls["answer_correctness"].verdicts)
    if f1 is None:
        return None, "neither facts nor claims"
    if not texts.answer.strip():
        return judged.answer_correctness(f1, 0.0, texts.weight), ""
    if texts.weight == 1:
        return f1, ""
    if texts.cosine is None:
        return None, texts.no_model
    cosine = texts.cosine(texts.answer, texts.reference)
    return judged.answer_correctness(f1, cosine, texts.weight), ""


def _claim_rate(name: str, calls: Calls, texts: Texts) -> tuple[float | None, str]:
    blames = blame_claims(calls, judged.blame_claim)
    return judged.claim_rates(list(blames.values()))[name], DIFFER


def _fact_rate(name: str, calls: Calls, texts: Texts) -> tuple[float | None, str]:
    if calls["correctness"].items("facts") != calls["context_recall"].items("facts"):
        return None, DIFFER
    held = {entry["id"]: entry["verdict"] for entry in calls["context_recall"].entries}
    present = calls["correctness"].entries
    pairs = [entry["verdict"] for entry in present], [held[entry["id"]] for entry in present]
    return judged.fact_rates(*pairs)[name], "no fact is in a context"


def _nugget_recall(name: str, calls: Calls, texts: Texts) -> tuple[float | None, str]:
    strict = name.endswith("_strict")
    worth = judged.nugget_credits(calls["nuggets"].verdicts, strict=strict)
    which = "vital" if "_vital" in name else "all"
    return nugget_recall(worth, texts.vital)[which], "no vital gold_facts"


def _abstained(name: str, calls: Calls, texts: Texts) -> tuple[float | None, str]:
    verdict = calls["abstained_judged"].verdicts[0]
    return judged.ABSTAINED[verdict], verdict


_VALUES: Mapping[str, Callable[[str, Calls, Texts], tuple[float | None, str]]] = {
    "groundedness": _groundedness,
    "faithfulness": _share,
    "correctness": _correctness,
    "fact_recall": _share,
    "context_precision": _share,
    "context_precision_ranked": _ranked,
    "context_recall": _share,
    "answer_relevancy": _relevancy,
    "answer_correctness_judged": _answer_correctness,
    "claim_hallucination": _claim_rate,
    "claim_noise": _claim_rate,
    "claim_self_knowledge": _claim_rate,
    "claim_evidence_ignored": _fact_rate,
    "claim_retriever_miss": _fact_rate,
    "nugget_recall_vital_judged": _nugget_recall,
    "nugget_recall_all_judged": _nugget_recall,
    "nugget_recall_vital_strict": _nugget_recall,
    "nugget_recall_all_strict": _nugget_recall,
    "claim_noise_relevant": _claim_rate,
    "context_utilisation": _fact_rate,
    "abstained_judged": _abstained,
}
