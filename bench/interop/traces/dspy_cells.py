"""Golden traces of DSPy: ``python dspy_cells.py APP.INSTRUMENTATION FILE``."""

import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ |= {
    "OPENAI_API_KEY": "none",
    "DO_NOT_TRACK": "1",
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",
}
os.environ |= {"DSPY_CACHEDIR": tempfile.mkdtemp()}

import model
import shop
from capture import Spans

Ask = Callable[[shop.Turn], str]


def _configured() -> Any:
    import dspy

    lm = dspy.LM(f"openai/{model.NAME}", api_base=model.serve(), api_key="none", cache=False)

    class ShopRetriever:
        """A retrieval model of one's own, as dspy.Retrieve wants it."""

        def __call__(self, query: str, k: int | None = None, **_: Any) -> list[Any]:
            return [dspy.Prediction(long_text=passage.text) for passage in shop.search(query)]

    dspy.configure(lm=lm, rm=ShopRetriever())
    return dspy


def rag() -> Ask:
    """A module that retrieves with the question and then thinks in steps."""
    dspy = _configured()

    class Rag(dspy.Module):
        def __init__(self) -> None:
            self.retrieve = dspy.Retrieve(k=3)
            self.respond = dspy.ChainOfThought("context, question -> answer")

        def forward(self, question: str) -> Any:
            context = self.retrieve(question).passages
            return self.respond(context=context, question=question)

    app = Rag()
    return lambda turn: str(app(question=turn.question).answer)


def react() -> Ask:
    """DSPy's ReAct with one function as its tool."""
    dspy = _configured()

    def search(query: str) -> str:
        """Search the documents of the shop."""
        return shop.as_text(shop.search(query))

    app = dspy.ReAct("question -> answer", tools=[search], max_iters=4)
    return lambda turn: str(app(question=turn.question).answer)


APPS: dict[str, Callable[[], Ask]] = {"dspy_rag": rag, "dspy_react": react}
ALONE = [turn for turn in shop.TURNS if not turn.thread]
TURNS = {"dspy_rag": [turn for turn in ALONE if len(turn.queries) == 1], "dspy_react": ALONE}
"""Neither module has a conversation, and the first searches once."""


def openinference(app: str, target: Path) -> None:
    from openinference.instrumentation.dspy import DSPyInstrumentor

    spans = Spans()
    DSPyInstrumentor().instrument(tracer_provider=spans.provider)
    spans.run(APPS[app](), TURNS[app])
    spans.write(target)


if __name__ == "__main__":
    app, _, kind = sys.argv[1].partition(".")
    globals()[kind](app, Path(sys.argv[2]))
