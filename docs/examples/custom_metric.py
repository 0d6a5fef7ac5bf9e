"""Two metrics of your own, for `python eval/scripts/eval_suite.py --plugin THIS_FILE`.

A metric is a function of a case (a line of eval_set.jsonl) and the bot's result (a line of
results.jsonl), and a row that says what the number means. Return None where it does not apply;
never return 0 for "I do not know". To set a target, write a table [custom] in eval/targets.toml.
"""

from ragmetrics.metric import Metric
from storage import TestCase, TestResult


def answer_words(case: TestCase, result: TestResult) -> float | None:
    """Words of the answer; None without an answer."""
    return float(len(result.answer.split())) if result.answer else None


def names_its_source(case: TestCase, result: TestResult) -> float | None:
    """1 when the answer's text names the path of a note that it cites; None without citations."""
    paths = [reference.rel_path for reference in result.references or () if reference.rel_path]
    if not paths or not result.answer:
        return None
    return float(any(path in result.answer for path in paths))


METRICS = [
    Metric(
        name="answer_words",
        family="custom",
        meaning="words of the answer",
        needs="an answer",
        source="an example",
        high=None,
        unit="words",
        higher_is_better=False,
        function=answer_words,
    ),
    Metric(
        name="names_its_source",
        family="custom",
        meaning="1 when the answer names the path of a note that it cites",
        needs="an answer with citations",
        source="an example",
        binary=True,
        function=names_its_source,
    ),
]
