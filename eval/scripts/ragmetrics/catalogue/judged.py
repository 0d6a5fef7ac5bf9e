"""Catalogue rows of the judged metrics: what a judge model says, counted by code."""

from __future__ import annotations

from typing import Any

from ragmetrics.catalogue.metric import Metric


def _row(name: str, meaning: str, needs: str, source: str = "this toolkit", **more: Any) -> Metric:
    return Metric(name, "judged", meaning, needs, source, **more)


CLAIMS = "an answer with claims; full chunk texts"

FACTS = "expected_key_facts or reference_answer; answerable"

BLAME = "judge_answers.py --claim-level; claims, contexts, facts"

ROWS: tuple[Metric, ...] = (
    _row(
        "groundedness",
        "5 x claims of the answer that the contexts support, with a quote that is found / claims",
        CLAIMS,
        high=5.0,
        unit="points",
    ),
    _row(
        "faithfulness",
        "claims of the answer that the contexts support / claims asked about",
        CLAIMS,
        "after RAGAS faithfulness (Es et al. 2023), which divides by the verdicts that came back "
        "and believes quotes; DeepEval counts what nothing contradicts as faithful",
    ),
    _row(
        "correctness",
        "5 x facts of the reference that the answer states / facts; at most 2 with a contradicted "
        "fact, at most 1 when the question is not addressed",
        f"{FACTS}; an answer",
        high=5.0,
        unit="points",
    ),
    _row(
        "fact_recall",
        "facts of the reference that the answer states / facts",
        f"{FACTS}; an answer",
        "as RAGChecker recall (Ru et al. 2024); RAGAS factual correctness mixes claims of both "
        "sides",
    ),
    _row(
        "context_precision",
        "retrieved chunks that are useful for the answer / chunks",
        "full chunk texts; answerable",
    ),
    _row(
        "context_precision_ranked",
        "average precision of the usefulness verdicts in rank order",
        "full chunk texts; answerable",
        "RAGAS and DeepEval context precision, without RAGAS' epsilon",
    ),
    _row(
        "context_recall",
        "facts of the reference that a retrieved chunk states, with a quote that is found / facts",
        f"{FACTS}; full chunk texts",
        "after RAGAS and DeepEval context recall, over key facts instead of sentences",
    ),
    _row(
        "answer_relevancy",
        "mean cosine of the question with three different questions written from the answer, "
        "clipped at 0; noncommittal: 0",
        "an answer; a judge that writes; an embedding model",
        "after RAGAS answer relevancy, which asks three times for one question and may be negative",
    ),
    _row(
        "answer_correctness_judged",
        "weight x F1 (present facts, missing facts, claims the reference lacks) + rest x cosine of "
        "answer and reference; weight 0.75",
        f"{FACTS}; reference_answer; an answer; an embedding model",
        "after RAGAS answer correctness, which counts an empty side as 1",
    ),
    _row(
        "claim_hallucination",
        "claims neither in the reference nor in a context / claims",
        BLAME,
        "RAGChecker hallucination (Ru et al. 2024)",
        higher_is_better=False,
    ),
    _row(
        "claim_noise",
        "claims not in the reference that a useless chunk supports / claims",
        BLAME,
        "RAGChecker noise sensitivity in irrelevant chunks",
        higher_is_better=False,
    ),
    _row(
        "claim_self_knowledge",
        "claims in the reference but in no context / claims",
        BLAME,
        "RAGChecker self-knowledge",
        higher_is_better=False,
    ),
    _row(
        "claim_evidence_ignored",
        "facts that a context states and the answer does not / facts",
        BLAME,
        "1 - RAGChecker context utilisation, over all facts",
        higher_is_better=False,
    ),
    _row(
        "claim_retriever_miss",
        "facts that no context states / facts",
        BLAME,
        "1 - RAGChecker claim recall",
        higher_is_better=False,
    ),
    _row(
        "abstained_judged",
        "1 for an abstention or a refusal, 0 for an answer; partial answers and questions back "
        "are counted apart",
        "an answer",
        unit="proportion",  # neither good nor bad by itself: no band
        higher_is_better=False,
        binary=True,
    ),
    _row(
        "judge_self_agreement",
        "identical verdicts of two opinions on the same item / pairs of opinions",
        "judge_answers.py --repeats 2 or more",
    ),
    _row(
        "judge_manipulation_suspected",
        "1 when an answer talks to its judge, by rules or by the judge's word",
        "a judged answer",
        higher_is_better=False,
        binary=True,
    ),
)
