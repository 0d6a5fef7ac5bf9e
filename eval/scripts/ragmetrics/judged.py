"""Scores from a judge's verdicts: arithmetic over what was asked about, nothing else.

``score`` says which verdicts go into a metric of an answer, and which keep it from being a number.
Every other function takes the verdicts of all claims, facts or chunks that the judge was ASKED
about, none of them failed, and returns None where the metric is undefined. A perfect result is
exactly 1.0 (5.0 on the 0-5 scales).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, Literal, Protocol

from ragmetrics.case_scores import NO_QUESTION
from ragmetrics.catalogue.judged import CALLS_BY_METRIC
from ragmetrics.facts import nugget_recall
from ragmetrics.stats.tally import FAILED, Value

SCALE = 5.0
_CONTRADICTED_CAP, _OFF_TOPIC_CAP = 2.0, 1.0
CORRECTNESS_WEIGHT = 0.75
RELIABLE_AGREEMENT = 0.95
"""Self-agreement under which a report warns."""

SUPPORTED, CONTRADICTED, NOT_FOUND = "supported", "contradicted", "not_found"
PRESENT, MISSING = "present", "missing"
USEFUL, ATTRIBUTED = "useful", "attributed"
_CREDITS = {"support": 1.0, "partial": 0.5}
"""What a verdict on a nugget is worth (TREC RAG 2024); any other one is worth nothing."""
Blame = Literal["right", "hallucination", "noise", "beyond_reference", "self_knowledge"]


def share(verdicts: Sequence[str], counted: str) -> float | None:
    """Verdicts equal to ``counted`` / verdicts, in [0, 1]; None without verdicts.

    With ``supported``: faithfulness. With ``present``: fact recall. With ``useful``: context
    precision. With ``attributed``: context recall.
    """
    return sum(verdict == counted for verdict in verdicts) / len(verdicts) if verdicts else None


def groundedness(verdicts: Sequence[str]) -> float | None:
    """5 x supported claims / claims, in [0, 5]; None without claims."""
    part = share(verdicts, SUPPORTED)
    return None if part is None else SCALE * part


def correctness(verdicts: Sequence[str], addresses_question: bool) -> float | None:
    """5 x present facts / facts, in [0, 5]; None without facts.

    Any contradicted fact caps at 2; an answer that does not address the question caps at 1.
    """
    part = share(verdicts, PRESENT)
    if part is None:
        return None
    caps = [SCALE]
    caps += [_CONTRADICTED_CAP] if CONTRADICTED in verdicts else []
    caps += [] if addresses_question else [_OFF_TOPIC_CAP]
    return min(SCALE * part, *caps)


def precision_ranked(useful: Sequence[bool]) -> float | None:
    """Average precision over the chunks in rank order, in [0, 1].

    Mean, over the useful chunks, of the share of useful ones up to their rank: the denominator is
    the number of useful chunks that were retrieved. 0.0 when none is useful, None without chunks.
    """
    if not useful:
        return None
    hits, total = 0, 0.0
    for rank, hit in enumerate(useful, start=1):
        if hit:
            hits += 1
            total += hits / rank
    return total / hits if hits else 0.0


def answer_relevancy(cosines: Sequence[float], noncommittal: bool) -> float | None:
    """Mean cosine of the question with the generated questions, clipped at 0, in [0, 1].

    0.0 for a noncommittal answer; None without cosines. Rounded to 1e-6 so that the same text gives
    1.0 exactly.
    """
    if noncommittal:
        return 0.0
    if not cosines:
        return None
    return min(1.0, max(0.0, round(sum(cosines) / len(cosines), 6)))


def fact_f1(facts: Sequence[str], claims: Sequence[str]) -> float | None:
    """F1 over facts: TP facts present, FN facts not present, FP claims that the reference lacks.

    In [0, 1]. Either side empty, or no fact present: 0.0. None when both are empty.
    """
    if not facts and not claims:
        return None
    hits = sum(verdict == PRESENT for verdict in facts) if claims else 0
    wrong = sum(verdict != SUPPORTED for verdict in claims)
    return 2 * hits / (2 * hits + wrong + len(facts) - hits) if hits else 0.0


def answer_correctness(f1: float, cosine: float, weight: float = CORRECTNESS_WEIGHT) -> float:
    """``weight`` x F1 + the rest x cosine of answer and reference clipped at 0, in [0, 1]."""
    return weight * f1 + (1 - weight) * min(1.0, max(0.0, round(cosine, 6)))


def blame_claim(grounded: str, right: str, chunk_useful: bool | None) -> Blame:
    """Assign blame for a claim, from its verdicts against the contexts and the reference.

    ``chunk_useful``: whether the chunk it rests on was judged useful; None when it rests on none.
    Wrong and in no context: hallucination. Wrong but borne by a useless chunk: noise; by a useful
    one: beyond_reference (the reference is silent or the chunk contradicts it). Right but in no
    context: self_knowledge. A support whose quote stands nowhere is blamed like no support.
    """
    in_context = grounded == SUPPORTED
    if right == SUPPORTED:
        return "right" if in_context else "self_knowledge"
    if not in_context:
        return "hallucination"
    return "beyond_reference" if chunk_useful else "noise"


def blame_claims(calls: _Calls) -> dict[str, Blame]:
    """Return the blame for each claim id; {} unless both sides judged the same claims."""
    grounded, right = calls.get("groundedness"), calls.get("answer_correctness")
    if grounded is None or right is None or grounded.status != "ok" or right.status != "ok":
        return {}
    if right.entries and grounded.items("claims") != right.items("claims"):
        return {}
    chunks = calls.get("context_precision")
    useful = {e["id"]: e["verdict"] == USEFUL for e in chunks.entries} if chunks else {}
    by_reference = {entry["id"]: entry["verdict"] for entry in right.entries}
    return {
        entry["id"]: blame_claim(
            entry["verdict"],
            by_reference.get(entry["id"], NOT_FOUND),
            useful.get(entry.get("context") or ""),
        )
        for entry in grounded.entries
    }


_CLAIM_RATES: Mapping[str, Blame] = {
    "claim_hallucination": "hallucination",
    "claim_noise": "noise",
    "claim_noise_relevant": "beyond_reference",
    "claim_self_knowledge": "self_knowledge",
}


def claim_rates(blames: Sequence[Blame]) -> dict[str, float | None]:
    """Share of the answer's claims with each blame; None without claims."""
    counts = Counter(blames)
    return {
        name: counts[blame] / len(blames) if blames else None
        for name, blame in _CLAIM_RATES.items()
    }


def fact_rates(present: Sequence[str], attributed: Sequence[str]) -> dict[str, float | None]:
    """Return the shares of the reference's facts lost at each step, in [0, 1]; None without facts.

    ``claim_evidence_ignored``: in a context but not in the answer, ``claim_retriever_miss``: in no
    context; both as shares of all facts. ``context_utilisation``: in the answer, as a share of
    those in a context; None when no fact is in a context. Both lists hold a verdict a fact, in the
    same order. Source: RAGChecker (Ru et al. 2024), which gives 0 where these are None.
    """
    pairs = list(zip(present, attributed, strict=True))
    if not pairs:
        return dict.fromkeys(
            ("claim_evidence_ignored", "claim_retriever_miss", "context_utilisation")
        )
    retrieved = [in_answer == PRESENT for in_answer, held in pairs if held == ATTRIBUTED]
    return {
        "claim_evidence_ignored": (len(retrieved) - sum(retrieved)) / len(pairs),
        "claim_retriever_miss": (len(pairs) - len(retrieved)) / len(pairs),
        "context_utilisation": sum(retrieved) / len(retrieved) if retrieved else None,
    }


def nugget_credits(verdicts: Sequence[str], *, strict: bool) -> list[float]:
    """Return each verdict's credit: support 1, partial 1/2 (``strict``: 0), none 0."""
    return [
        float(_CREDITS.get(verdict, 0.0) == 1.0) if strict else _CREDITS.get(verdict, 0.0)
        for verdict in verdicts
    ]


ABSTAINED: Mapping[str, float | None] = {
    "abstained": 1.0,
    "refused_policy": 1.0,
    "answered": 0.0,
    "partial": None,
    "asks_back": None,
}
"""The score of each verdict; partial answers and questions back are counted apart."""


def self_agreement(opinions: Sequence[Sequence[str]]) -> float | None:
    """Share of identical verdicts over repeats: the mean over all pairs of opinions.

    Each opinion lists the verdicts of the same items in the same order. In [0, 1]; None for fewer
    than two opinions or without items.
    """
    pairs = list(combinations(opinions, 2))
    items = len(opinions[0]) if opinions else 0
    if not pairs or not items:
        return None
    same = sum(a == b for first, second in pairs for a, b in zip(first, second, strict=True))
    return same / (len(pairs) * items)


def flips(opinions: Sequence[Sequence[str]]) -> tuple[int, int]:
    """(items whose verdicts are not all the same, items) over two or more opinions; else (0, 0)."""
    if len(opinions) < 2:
        return 0, 0
    items = list(zip(*opinions, strict=True))
    return sum(len(set(item)) > 1 for item in items), len(items)


class JudgedCall(Protocol):
    """A judge's reply to one call on an answer. ``status``: ok, failed or not_applicable."""

    @property
    def status(self) -> str: ...
    @property
    def reason(self) -> str: ...
    @property
    def entries(self) -> Sequence[Mapping[str, Any]]: ...
    @property
    def verdicts(self) -> Sequence[str]: ...
    def items(self, name: str) -> Mapping[str, str]: ...
    def extra(self, name: str) -> Sequence[Any]: ...


_Calls = Mapping[str, JudgedCall]
"""The calls of one opinion on an answer, by kind."""

_NOT_JUDGED = "not judged"
_DIFFER = "its judgements are about different claims or facts; judge again"
_Cosine = Callable[[str, str], float]


@dataclass(frozen=True)
class Texts:
    """The texts that two metrics compare by cosine, and the labels of the nuggets.

    ``question`` None: it cannot be read alone. ``cosine`` None: ``no_model`` says why. ``vital``:
    of each gold fact, in the order of the case.
    """

    question: str | None
    answer: str
    reference: str
    cosine: _Cosine | None = None
    no_model: str = ""
    vital: Sequence[bool] = ()
    weight: float = CORRECTNESS_WEIGHT


def score(name: str, calls: _Calls, texts: Texts) -> tuple[Value, str]:
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
        return None, _NOT_JUDGED
    value, reason = _VALUES[name](name, calls, texts)
    return (None, reason) if value is None else (float(value), "")


def _no_chunks(name: str, call: str, judgement: JudgedCall) -> bool:
    return name != call and call == "context_precision" and judgement.reason == "no contexts"


def _groundedness(name: str, calls: _Calls, texts: Texts) -> tuple[float | None, str]:
    return groundedness(calls["groundedness"].verdicts), "no claims"


def _correctness(name: str, calls: _Calls, texts: Texts) -> tuple[float | None, str]:
    judgement = calls["correctness"]
    # A long list of facts is asked about in parts; one part that sees the question is enough.
    return correctness(judgement.verdicts, any(judgement.extra("addresses_question"))), "no facts"


def _share(name: str, calls: _Calls, texts: Texts) -> tuple[float | None, str]:
    verdict_by_metric = {
        "faithfulness": SUPPORTED,
        "fact_recall": PRESENT,
        "context_precision": USEFUL,
        "context_recall": ATTRIBUTED,
    }
    return share(
        calls[CALLS_BY_METRIC[name][0]].verdicts, verdict_by_metric[name]
    ), "nothing was asked"


def _ranked(name: str, calls: _Calls, texts: Texts) -> tuple[float | None, str]:
    useful = [verdict == USEFUL for verdict in calls["context_precision"].verdicts]
    return precision_ranked(useful), "no contexts"


def _relevancy(name: str, calls: _Calls, texts: Texts) -> tuple[float | None, str]:
    relevancy = calls["answer_relevancy"]
    if any(relevancy.extra("noncommittal")):
        return answer_relevancy((), True), ""
    if texts.cosine is None:
        return None, texts.no_model
    if (asked := texts.question) is None:
        return None, NO_QUESTION
    questions = [question for part in relevancy.extra("questions") for question in part]
    cosines = [texts.cosine(asked, question) for question in questions]
    return answer_relevancy(cosines, False), "no questions"


def _answer_correctness(name: str, calls: _Calls, texts: Texts) -> tuple[float | None, str]:
    f1 = fact_f1(calls["correctness"].verdicts, calls["answer_correctness"].verdicts)
    if f1 is None:
        return None, "neither facts nor claims"
    if not texts.answer.strip():
        return answer_correctness(f1, 0.0, texts.weight), ""
    if texts.weight == 1:
        return f1, ""
    if texts.cosine is None:
        return None, texts.no_model
    cosine = texts.cosine(texts.answer, texts.reference)
    return answer_correctness(f1, cosine, texts.weight), ""


def _claim_rate(name: str, calls: _Calls, texts: Texts) -> tuple[float | None, str]:
    blames = blame_claims(calls)
    return claim_rates(list(blames.values()))[name], _DIFFER


def _fact_rate(name: str, calls: _Calls, texts: Texts) -> tuple[float | None, str]:
    if calls["correctness"].items("facts") != calls["context_recall"].items("facts"):
        return None, _DIFFER
    held = {entry["id"]: entry["verdict"] for entry in calls["context_recall"].entries}
    present = calls["correctness"].entries
    pairs = [entry["verdict"] for entry in present], [held[entry["id"]] for entry in present]
    return fact_rates(*pairs)[name], "no fact is in a context"


def _nugget_recall(name: str, calls: _Calls, texts: Texts) -> tuple[float | None, str]:
    strict = name.endswith("_strict")
    worth = nugget_credits(calls["nuggets"].verdicts, strict=strict)
    which = "vital" if "_vital" in name else "all"
    return nugget_recall(worth, texts.vital)[which], "no vital gold_facts"


def _abstained(name: str, calls: _Calls, texts: Texts) -> tuple[float | None, str]:
    verdict = calls["abstained_judged"].verdicts[0]
    return ABSTAINED[verdict], verdict


_VALUES: Mapping[str, Callable[[str, _Calls, Texts], tuple[float | None, str]]] = {
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
