"""Asks a judge which of two answers is better, in both orders."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

from msgspec.structs import replace

from extras.pairs.record import pair_sha256, pairs_file
from judging.answers import JudgedAnswer
from judging.calls import Call, Settings, ask_parts, line_of, mark_of, not_applicable, prompt_of
from judging.kinds import EQUAL, PAIRS, Material
from judging.run import JudgingPlan
from records.rubrics import READS, Rubric
from records.verdicts import VerdictLine


@dataclass
class AnswerPair(JudgedAnswer):
    """The answers of two runs to the same question; ``other`` is that of the base."""

    other: JudgedAnswer | None = None

    def __post_init__(self) -> None:
        """Where the bots said other things before, the judge sees only what the user said."""
        if self.other is not None and self.earlier != self.other.earlier:
            self.before = [message for message in self.before if message.role == "user"]
            del self.earlier

    @property
    def base(self) -> JudgedAnswer:
        """The answer of the base. Raises ValueError without one."""
        if self.other is None:
            raise ValueError("a pair has two answers")
        return self.other

    @property
    def equal(self) -> bool:
        """Both answers have the same words and marks, in the same order."""
        return self.text.split() == self.base.text.split()

    def answer_sha256(self, metric: str) -> str:
        """Hash of both answers."""
        return pair_sha256(self.result.answer, self.base.result.answer)

    def inputs(self, rubric: Rubric | None) -> list[Any]:
        """The texts that the judge sees."""
        return [pair_material(self, rubric).to_dict()]


@dataclass(frozen=True)
class PairsPlan(JudgingPlan):
    """The pairs of answers of a run and a ``base`` to judge."""

    base: Path = Path()
    judges_run: ClassVar[bool] = False  # who judges a run's pairs need not be who judges the run

    @property
    def verdicts_file(self) -> Path:
        """Where its verdicts are."""
        return pairs_file(self.folder, self.base)

    def answers(self) -> Iterator[JudgedAnswer]:
        """The answers of the run, each beside the base's answer to the same question."""
        others: dict[tuple[str, int], JudgedAnswer] = {}
        for answer in self.of_base().answers():
            # no pair shows passages, and they are most of what a run is
            answer.result.retrieved = []
            others[answer.case.id, answer.result.repeat] = answer
        own = super().answers()
        return (
            AnswerPair(answer.case, answer.result, answer.k, answer.before, other=other)
            for answer in own
            if (other := others.get((answer.case.id, answer.result.repeat))) is not None
        )

    def of_base(self) -> JudgingPlan:
        """The answers of the base by themselves."""
        return JudgingPlan(self.base, self.eval_set, self.labels_dir, self.calls, kinds=self.kinds)

    def call_of(self, name: str) -> Call:
        """The function that asks about a pair."""
        return partial(judge_pair, name)

    def countable(
        self,
        lines: Sequence[VerdictLine],
        identity: Mapping[str, Any],
        parameters: Mapping[str, Any],
    ) -> Sequence[VerdictLine]:
        """The lines that need not be asked for again.

        The judge of the last line counts: where that is another one, the lines of this one are
        written again, from the cache.
        """
        own = [line for line in lines if line["metric"] in self.calls]
        same = own and (own[-1]["judge"], own[-1]["parameters"]) == (identity, parameters)
        return own if same else []


async def judge_pair(
    name: str, pair: JudgedAnswer, settings: Settings, repeat: int
) -> list[VerdictLine]:
    """Which of two answers is better, asked in both orders; equal answers are not asked."""
    assert isinstance(pair, AnswerPair)
    kind, other = settings.kinds[name], pair.base
    reason = pair.why_no_answer() or other.why_no_answer() or settings.cannot.get(PAIRS)
    if reason is not None:
        lines = [not_applicable(pair, name, reason)]
    else:
        material = pair_material(pair, kind.rubric)
        if pair.equal:
            entry = {"id": "1", "context": None, "quote": "", "reason": "", "verdict": EQUAL}
            lines = [
                line_of(
                    pair,
                    name,
                    "ok",
                    input=material.to_dict(),
                    verdicts=[entry],
                    extra={"by_code": "equal answers"},
                    mode="code",
                    cost_usd=0.0,
                )
            ]
        else:
            swapped = replace(material, answer=material.other, other=material.answer)
            mark = {"mark": mark_of(material.to_dict())}
            lines = await ask_parts(pair, settings, name, [material, swapped], repeat, mark)
    prompt = prompt_of(kind, pair)
    prompt |= {} if kind.rubric is None else {"rubric": kind.rubric.to_dict()}
    return [line | {"prompt": prompt} for line in lines]


def pair_material(pair: AnswerPair, rubric: Rubric | None) -> Material:
    """The texts of a pair that the judge sees, the run's answer first: of the rest what the rubric
    reads."""
    reads = READS if rubric is None else rubric.reads
    return Material(
        question=pair.question if "question" in reads else "",
        earlier=pair.earlier if "history" in reads else "",
        answer=pair.text,
        other=pair.base.text,
        reference=pair.reference if "reference" in reads else "",
    )
