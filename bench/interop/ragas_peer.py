"""Writes and reads data sets with the real ragas."""

from __future__ import annotations

import json
import sys
import types
from pathlib import Path

# ragas 0.4.3 imports a module that langchain-community no longer has; nothing here uses it.
for gone in ("langchain_community.chat_models.vertexai", "langchain_community.llms"):
    try:
        __import__(gone)
    except ImportError:
        module = types.ModuleType(gone)
        module.ChatVertexAI = module.VertexAI = object  # type: ignore[attr-defined]
        sys.modules[gone] = module

from facts import FACTS, trajectories  # noqa: E402
from ragas import EvaluationDataset, SingleTurnSample  # noqa: E402


def make(folder: Path) -> None:
    samples = [
        SingleTurnSample(
            user_input=fact["question"],
            response=fact["answer"],
            reference=fact["reference"],
            reference_contexts=fact["gold"],
            retrieved_contexts=[passage["text"] for passage in fact["passages"]],
            retrieved_context_ids=[passage["id"] for passage in fact["passages"]],
            reference_context_ids=list(fact["relevant"]),
            rubrics={"score1": fact["note"]},
        )
        for fact in FACTS
    ]
    data = EvaluationDataset(samples)
    data.to_jsonl(str(folder / "ragas.jsonl"))
    data.to_csv(str(folder / "ragas.csv"))


def tools(folder: Path) -> None:
    """Tool call F1 of each trajectory."""
    import asyncio

    from ragas import MultiTurnSample
    from ragas.messages import AIMessage, HumanMessage, ToolCall
    from ragas.metrics import ToolCallF1

    async def score() -> list[float]:
        return [
            await ToolCallF1().multi_turn_ascore(
                MultiTurnSample(
                    user_input=[
                        HumanMessage(content="?"),
                        AIMessage(
                            content="",
                            tool_calls=[ToolCall(name=name, args=args) for name, args in actual],
                        ),
                    ],
                    reference_tool_calls=[
                        ToolCall(name=name, args=args) for name, args in expected
                    ],
                )
            )
            for expected, actual in trajectories()
        ]

    print(json.dumps(asyncio.run(score())))


if __name__ == "__main__":
    {"make": make, "tools": tools}[sys.argv[1]](Path(sys.argv[2]))
