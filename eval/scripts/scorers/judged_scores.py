"""The judged metrics of one answer from its verdict lines: which verdicts go into which number."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ragmetrics import judged
from ragmetrics.catalogue.judged import CALLS_BY_METRIC
from ragmetrics.judged import Blame
from ragmetrics.stats.tally import FAILED, Value

Line = Mapping[str, Any]

NOT_JUDGED = "not judged"

DIFFER = "its judgements are about different claims or facts; judge again"


@dataclass(frozen=True)
class Judgement:
    """All parts of one call: ``status`` as in a line, ``entries`` of all parts in order."""

    status: str
    reason: str
    lines: Sequence[Line]

    @property
    def entries(self) -> list[dict[str, Any]]:
        return [entry for line in self.lines for entry in line["verdicts"]]

    def items(self, name: str) -> dict[str, str]:
        """The claims or facts that were asked about: text by id."""
        found = (item for line in self.lines for item in line["input"].get(name, ()))
        return {item["id"]: item["text"] for item in found}

    @property
    def verdicts(self) -> list[str]:
        return [entry["verdict"] for entry in self.entries]

    @property
    def asked(self) -> bool:
        """A judge said this, not our own code."""
        return self.status == "ok" and "by_code" not in self.lines[0]["extra"]

    def extra(self, name: str) -> list[Any]:
        """What the parts say of it."""
        return [line["extra"][name] for line in self.lines if name in line["extra"]]


def joined(parts: Mapping[int, Line]) -> Judgement | None:
    """The parts of one call; None when one of them is not there (a run that was stopped)."""
    first = parts.get(0)
    if first is None:
        return None
    mark = first["extra"].get("mark")
    lines = [parts[number] for number in sorted(parts) if number < first["parts"]]
    known = [line for line in lines if line["extra"].get("mark") == mark]
    for status in ("failed", "not_applicable"):
        for line in known:
            if line["status"] == status:
                return Judgement(status, line["failure"] or line["reason"] or "", known)
    return Judgement("ok", "", known) if len(known) == first["parts"] else None


Calls = Mapping[str, Judgement]

Cosine = Callable[[str, str], float]


@dataclass(frozen=True)
class Texts:
    """What the cosines of two metrics compare. ``cosine`` None: ``no_model`` says why."""

    question: str
    answer: str
    reference: str
    cosine: Cosine | None = None
    no_model: str = ""
    weight: float = judged.CORRECTNESS_WEIGHT


def score(name: str, calls: Calls, texts: Texts) -> tuple[Value, str]:
    """The value of one metric and, without a score, the reason.

    A failed judgement among those that the metric needs makes it FAILED, never a number.
    """
    found = [calls.get(call) for call in CALLS_BY_METRIC[name]]
    for one in found:
        if one is not None and one.status == "failed":
            return FAILED, f"judge failed: {one.reason}"
    for call, one in zip(CALLS_BY_METRIC[name], found, strict=True):
        # Contexts that were not judged one by one blame nothing when there are none.
        if one is not None and one.status == "not_applicable" and not _no_chunks(name, call, one):
            return None, one.reason
    if any(one is None for one in found):
        return None, NOT_JUDGED
    value, reason = _VALUES[name](name, calls, texts)
    return (None, reason) if value is None else (float(value), "")


def _no_chunks(name: str, call: str, one: Judgement) -> bool:
    return name != call and call == "context_precision" and one.reason == "no contexts"


def _groundedness(name: str, calls: Calls, texts: Texts) -> tuple[float | None, str]:
    return judged.groundedness(calls["groundedness"].verdicts), "no claims"


def _correctness(name: str, calls: Calls, texts: Texts) -> tuple[float | None, str]:
    one = calls["correctness"]
    # A long list of facts is asked about in parts; one part that sees the question is enough.
    return judged.correctness(one.verdicts, any(one.extra("addresses_question"))), "no facts"


def _share(name: str, calls: Calls, texts: Texts) -> tuple[float | None, str]:
    wanted = {
        "faithfulness": judged.SUPPORTED,
        "fact_recall": judged.PRESENT,
        "context_precision": judged.USEFUL,
        "context_recall": judged.ATTRIBUTED,
    }
    return judged.share(calls[CALLS_BY_METRIC[name][0]].verdicts, wanted[name]), "nothing was asked"


def _ranked(name: str, calls: Calls, texts: Texts) -> tuple[float | None, str]:
    useful = [verdict == judged.USEFUL for verdict in calls["context_precision"].verdicts]
    return judged.precision_ranked(useful), "no contexts"


def _relevancy(name: str, calls: Calls, texts: Texts) -> tuple[float | None, str]:
    one = calls["answer_relevancy"]
    if any(one.extra("noncommittal")):
        return judged.answer_relevancy((), True), ""
    if texts.cosine is None:
        return None, texts.no_model
    questions = [question for found in one.extra("questions") for question in found]
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


def blames(calls: Calls) -> dict[str, Blame]:
    """By claim id, whose fault it is; {} unless the same claims were judged against both sides."""
    grounded, right = calls.get("groundedness"), calls.get("answer_correctness")
    if grounded is None or right is None or grounded.status != "ok" or right.status != "ok":
        return {}
    if right.entries and grounded.items("claims") != right.items("claims"):
        return {}
    chunks = calls.get("context_precision")
    useful = {e["id"]: e["verdict"] == judged.USEFUL for e in chunks.entries} if chunks else {}
    wanted = {entry["id"]: entry["verdict"] for entry in right.entries}
    return {
        entry["id"]: judged.blame_claim(
            entry["verdict"],
            wanted.get(entry["id"], judged.NOT_FOUND),
            useful.get(entry.get("context") or ""),
        )
        for entry in grounded.entries
    }


def _claim_rate(name: str, calls: Calls, texts: Texts) -> tuple[float | None, str]:
    return judged.claim_rates(list(blames(calls).values()))[name], DIFFER


def _fact_rate(name: str, calls: Calls, texts: Texts) -> tuple[float | None, str]:
    if calls["correctness"].items("facts") != calls["context_recall"].items("facts"):
        return None, DIFFER
    held = {entry["id"]: entry["verdict"] for entry in calls["context_recall"].entries}
    present = calls["correctness"].entries
    pairs = [entry["verdict"] for entry in present], [held[entry["id"]] for entry in present]
    return judged.fact_rates(*pairs)[name], "no facts"


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
    "abstained_judged": _abstained,
}
