"""Catalogue rows of the judged metrics: what a judge model says, counted by code."""

from __future__ import annotations

from typing import Any

from ragmetrics.catalogue.metric import Metric, MetricSection


def _row(name: str, meaning: str, needs: str, source: str = "this toolkit", **more: Any) -> Metric:
    return Metric(name, "judged", meaning, needs, source, **more)


CLAIMS = "an answer with claims; full chunk texts"

FACTS = "expected_key_facts or reference_answer; answerable"

BLAME = "judge_answers.py --claim-level; claims, contexts, facts"

CLAIM_CALLS = ("groundedness", "answer_correctness", "context_precision")

FACT_CALLS = ("correctness", "context_recall")

NUGGETS = "gold_facts; answerable; an answer"

TREC_RAG = "TREC RAG 2024 (Pradeep et al. 2024), its three levels with a quote that is found"

ROWS: tuple[Metric, ...] = (
    _row(
        "groundedness",
        "5 x claims of the answer that the contexts support, with a quote that is found / claims",
        CLAIMS,
        high=5.0,
        unit="points",
        headline=1,
        calls=("groundedness",),
        words="Claims that passages support, by a judge, of 5",
    ),
    _row(
        "faithfulness",
        "claims of the answer that the contexts support / claims asked about",
        CLAIMS,
        "after RAGAS faithfulness (Es et al. 2023), which divides by the verdicts that came back "
        "and believes quotes; DeepEval counts what nothing contradicts as faithful",
        headline=2,
        overview=5,
        short="faithful",
        target="faithfulness",
        calls=("groundedness",),
        words="Claims that passages support, by a judge",
    ),
    _row(
        "correctness",
        "5 x facts of the reference that the answer states / facts; at most 2 with a contradicted "
        "fact, at most 1 when the question is not addressed",
        f"{FACTS}; an answer",
        high=5.0,
        unit="points",
        headline=3,
        overview=6,
        short="judge of 5",
        primary=True,
        tells_right=1,
        calls=("correctness",),
        words="Reference facts stated, by a judge, of 5",
        says="gets {value} of 5 points for correctness from the judge",
    ),
    _row(
        "fact_recall",
        "facts of the reference that the answer states / facts",
        f"{FACTS}; an answer",
        "as RAGChecker recall (Ru et al. 2024); RAGAS factual correctness mixes claims of both "
        "sides",
        calls=("correctness",),
        words="Reference facts that the answer states",
    ),
    _row(
        "context_precision",
        "retrieved chunks that are useful for the answer / chunks",
        "full chunk texts; answerable",
        headline=4,
        target="context_precision",
        calls=("context_precision",),
        words="Useful passages",
    ),
    _row(
        "context_precision_ranked",
        "average precision of the usefulness verdicts in rank order",
        "full chunk texts; answerable",
        "RAGAS and DeepEval context precision, without RAGAS' epsilon",
        calls=("context_precision",),
        words="Useful passages before useless ones",
        counted="number",
    ),
    _row(
        "context_recall",
        "facts of the reference that a retrieved chunk states, with a quote that is found / facts",
        f"{FACTS}; full chunk texts",
        "after RAGAS and DeepEval context recall, over key facts instead of sentences",
        headline=5,
        target="context_recall",
        calls=("context_recall",),
        words="Reference facts that passages state",
    ),
    _row(
        "answer_relevancy",
        "mean cosine of the question with three different questions written from the answer, "
        "clipped at 0; noncommittal: 0",
        "an answer; a judge that writes; an embedding model",
        "after RAGAS answer relevancy, which asks three times for one question and may be negative",
        headline=6,
        target="answer_relevancy",
        calls=("answer_relevancy",),
        words="Answers that fit their question",
        counted="number",
    ),
    _row(
        "answer_correctness_judged",
        "weight x F1 (present facts, missing facts, claims the reference lacks) + rest x cosine of "
        "answer and reference; weight 0.75",
        f"{FACTS}; reference_answer; an answer; an embedding model",
        "after RAGAS answer correctness, which counts an empty side as 1",
        headline=7,
        target="answer_correctness_judged",
        calls=("correctness", "answer_correctness"),
        words="Answers that agree with the reference",
        counted="number",
    ),
    _row(
        "claim_hallucination",
        "claims neither in the reference nor in a context / claims",
        BLAME,
        "RAGChecker hallucination (Ru et al. 2024)",
        higher_is_better=False,
        calls=CLAIM_CALLS,
        words="Claims in neither reference nor passages",
    ),
    _row(
        "claim_noise",
        "claims not in the reference that a useless chunk supports / claims",
        BLAME,
        "RAGChecker noise sensitivity in irrelevant chunks; claim_noise_relevant is the other half",
        higher_is_better=False,
        calls=CLAIM_CALLS,
        words="Wrong claims taken from useless passages",
    ),
    _row(
        "claim_self_knowledge",
        "claims in the reference but in no context / claims",
        BLAME,
        "RAGChecker self-knowledge",
        higher_is_better=False,
        calls=CLAIM_CALLS,
        words="Right claims in no passage",
    ),
    _row(
        "claim_evidence_ignored",
        "facts that a context states and the answer does not / facts",
        BLAME,
        "this toolkit; RAGChecker's context utilisation is context_utilisation",
        higher_is_better=False,
        calls=FACT_CALLS,
        words="Facts in the passages that the answer leaves out",
    ),
    _row(
        "claim_retriever_miss",
        "facts that no context states / facts",
        BLAME,
        "1 - RAGChecker claim recall",
        higher_is_better=False,
        calls=FACT_CALLS,
        words="Facts that no passage states",
    ),
    _row(
        "claim_noise_relevant",
        "claims not in the reference that a useful chunk supports / claims",
        BLAME,
        "RAGChecker noise sensitivity in relevant chunks; a claim counts by the one chunk that it "
        "quotes, and a chunk by its usefulness",
        higher_is_better=False,
        calls=CLAIM_CALLS,
        words="Wrong claims taken from useful passages",
    ),
    _row(
        "context_utilisation",
        "facts that a context and the answer state / facts that a context states",
        "judge_answers.py --claim-level; facts, one of them in a context",
        "RAGChecker context utilisation, which gives 0 when no fact is in a context",
        calls=FACT_CALLS,
        words="Facts in the passages that the answer uses",
    ),
    _row(
        "nugget_recall_vital_judged",
        "vital gold facts in the answer / vital gold facts; a partial one counts half",
        NUGGETS,
        TREC_RAG,
        calls=("nuggets",),
        words="Vital facts in the answer (a partial one counts half)",
    ),
    _row(
        "nugget_recall_all_judged",
        "gold facts in the answer, vital or not / gold facts; a partial one counts half",
        NUGGETS,
        TREC_RAG,
        calls=("nuggets",),
        words="Facts in the answer (a partial one counts half)",
    ),
    _row(
        "nugget_recall_vital_strict",
        "vital gold facts that are wholly in the answer / vital gold facts",
        NUGGETS,
        f"{TREC_RAG}; its main figure",
        calls=("nuggets",),
        words="Vital facts wholly in the answer",
    ),
    _row(
        "nugget_recall_all_strict",
        "gold facts, vital or not, that are wholly in the answer / gold facts",
        NUGGETS,
        TREC_RAG,
        calls=("nuggets",),
        words="Facts wholly in the answer",
    ),
    _row(
        "abstained_judged",
        "1 for an abstention or a refusal, 0 for an answer; partial answers and questions back "
        "are counted apart",
        "an answer",
        unit="proportion",  # neither good nor bad by itself: no band
        higher_is_better=False,
        binary=True,
        calls=("abstained_judged",),
        words="Answers that decline, by a judge",
    ),
    _row(
        "correctness_by_people",
        "correctness, from people's labels of each fact of the reference",
        "labels of calibrate_judge.py --label on the facts",
        high=5.0,
        unit="points",
        words="Reference facts stated, by people, of 5",
    ),
    _row(
        "faithfulness_by_people",
        "claims of the answer that people find supported / claims that they decided",
        "labels of calibrate_judge.py --label on the claims: on all of them, or one unsupported",
        words="Claims that passages support, by people",
    ),
    _row(
        "judge_self_agreement",
        "identical verdicts of two opinions on the same item / pairs of opinions",
        "judge_answers.py --repeats 2 or more",
        words="Judge's agreement with itself",
    ),
    _row(
        "judge_manipulation_suspected",
        "1 when an answer addresses its judge, by rules or by the judge's report",
        "a judged answer",
        higher_is_better=False,
        binary=True,
        words="Answers that address the judge",
    ),
)

SECTION = MetricSection(
    "judged",
    "Judged",
    ROWS,
    "judge_answers.py",
    labels=("answerable", "expected_key_facts", "reference_answer", "gold_facts"),
    needs=("texts", "verdicts"),
)

CALLS_BY_METRIC = {row.name: row.calls for row in ROWS if row.calls}
"""The kinds of judgement that each metric is counted from; the others need none of their own."""
