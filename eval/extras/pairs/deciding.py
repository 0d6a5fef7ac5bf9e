"""Which of two runs gives the better answers, by a judge that saw both answers in both orders.

A case is won where the judge takes the run's answer in both orders, lost where it takes the base's,
else undecided. Won minus lost is tested by the engine: the signs of whole clusters are flipped.
Beside it is what the judge's own habits do: how often the place of an answer decided, and whether
longer answers win. Prompts and biases of judges: Zheng et al. 2023 (arXiv:2306.05685), Wang et al.
2023 (arXiv:2305.17926).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from decisions.change import Change, ChangeVerdict
from decisions.effects import ALPHA
from decisions.joint import PrimaryTable, settle
from decisions.pairing import ClusterCodes
from extras.pairs.record import (
    PairFile,
    PairKey,
    PairOpinion,
    pairs_file,
    people_on,
    read_pairs,
)
from judging.kinds import EQUAL, FIRST, SECOND
from ragmetrics.stats.arrays import Floats, np
from ragmetrics.stats.significance import mcnemar
from records.claim_labels import ClaimLabel
from records.clusters import Clustering
from records.id_numbers import id_number
from records.rubrics import of_prompt
from records.verdicts import identity_of
from terminal.page import (
    Block,
    Conclusion,
    Heading,
    Page,
    Prose,
    Quotation,
    Quoted,
    Tone,
    items,
    p_words,
    percent,
)
from terminal.tables import counted, plain

LENGTH_LABELS = 40
"""Labelled pairs from which on it is tested whether the judge favours longer answers."""

SHOWN = 3


@dataclass(frozen=True, slots=True)
class PairHabits:
    """The judge's habits that do not depend on the answers.

    ``asked``: opinions that were asked in both orders. ``by_order``: of them, those in which the
    same place won both times; ``unquoted``: those with a quote that neither answer has. ``first``:
    share of verdicts for the first place among those for either. ``longer``, ``shorter``: decided
    pairs that the longer and the shorter answer won.
    """

    asked: int = 0
    by_order: int = 0
    first: float | None = None
    longer: int = 0
    shorter: int = 0
    unquoted: int = 0

    @property
    def order_decided(self) -> float | None:
        """Share of the asked opinions that the order decided; None without any."""
        return self.by_order / self.asked if self.asked else None


@dataclass(frozen=True, slots=True)
class LengthBias:
    """Whether a judge favours longer answers more than people's labels do.

    ``labels``: pairs that people and judge decided or called equal. ``longer``: of them, those in
    which the judge took the longer answer and people the shorter one; ``shorter``: the reverse.
    ``p``: one-sided, of the sign test of the two; None below ``LENGTH_LABELS`` labels.
    """

    labels: int
    longer: int
    shorter: int
    p: float | None

    @property
    def flagged(self) -> bool:
        return self.p is not None and self.p <= ALPHA


@dataclass(frozen=True, slots=True)
class PairDecision:
    """The decision on a run and its base from a judge's pairs.

    ``better``, ``worse``, ``undecided``: cases; ``equal``: of the undecided, those with the same
    answer in both runs. ``share``: of the decided cases, those that the run won, with its 95 %
    ``interval``; ``smallest``: the share that this verdict would find 4 times in 5. All three None
    where nothing was decided; ``p`` and ``smallest`` also for too few clusters.
    """

    base_id: str
    new_id: str
    question: str = ""
    judge: str = ""
    better: int = 0
    worse: int = 0
    undecided: int = 0
    equal: int = 0
    verdict: ChangeVerdict = "too few"
    p: float | None = None
    share: float | None = None
    interval: tuple[float, float] | None = None
    smallest: float | None = None
    clusters: int = 0
    failed: int = 0
    no_answer: int = 0
    stale: int = 0
    habits: PairHabits = PairHabits()
    bias: LengthBias | None = None

    @property
    def cases(self) -> int:
        """Cases with a verdict."""
        return self.better + self.worse + self.undecided

    def line(self) -> str:
        """``better 20, worse 12, undecided 68 of 100``."""
        counts = f"better {self.better:,}, worse {self.worse:,}, undecided {self.undecided:,}"
        return f"{counts} of {self.cases:,}"

    def says(self) -> str:
        """The verdict as a sentence, with its basis."""
        decided = self.better + self.worse
        if self.verdict == "too few":
            return f"too few independent cases ({self.clusters}) to tell"
        if not decided:
            return "no evidence of a difference: no case was decided"
        low, high = self.interval or (0.0, 1.0)
        won = f"wins {percent(self.share)} of {counted(decided, 'decided case')}"
        figures = f"95 % interval {percent(low)} to {percent(high)}, {p_words(self.p or 0.0)}"
        if self.verdict in ("better", "worse"):
            return f"{self.verdict}: the run {won} ({figures})"
        seen = f"at least {percent(self.smallest)}" if (self.smallest or 1.0) < 1 else "no share"
        found = f"{seen} would have been found 4 times in 5"
        return f"no evidence of a difference: the run {won} ({figures}; {found})"

    def to_dict(self) -> dict[str, Any]:
        """As JSON data."""
        return asdict(self) | {"cases": self.cases, "order_decided": self.habits.order_decided}


def decide_pairs(
    outcomes: Sequence[Floats], clusters: Any = None, *, alpha: float = ALPHA, seed: int = 0
) -> list[PairDecision]:
    """Counts, test and interval of won minus lost, of several runs against one base.

    ``outcomes``: for each run a value in [-1, 1] a case, the same cases in the same order: above 0
    won, below lost, not a number where it has no verdict. ``clusters``: an integer for each case.
    The runs are tested together, so p is corrected for their number. The interval is that of the
    mean outcome, over the share of cases that were decided, so it excludes 1/2 as the p does.
    """
    groups = np.arange(len(outcomes[0])) if clusters is None else clusters
    tables = []
    for values in outcomes:
        zero = np.where(np.isnan(values), np.nan, 0.0)
        table = PrimaryTable(("pairs.won",), (), groups, zero[:, None], values[:, None])
        tables.append(table)
    decisions = settle(tables, alpha=alpha, seed=seed)
    return [_decision(own, found.rows[0]) for own, found in zip(outcomes, decisions, strict=True)]


def _decision(values: Floats, row: Change) -> PairDecision:
    n = int((~np.isnan(values)).sum())
    better, worse = int((values > 0).sum()), int((values < 0).sum())
    made = PairDecision(
        "",
        "",
        better=better,
        worse=worse,
        undecided=n - better - worse,
        verdict=row.verdict,
        p=row.p_joint,
        clusters=row.units,
    )
    size = float(np.nansum(np.abs(values))) / n if n else 0.0
    if not size:
        return made

    def share(difference: float) -> float:
        return min(1.0, max(0.0, (1 + difference / size) / 2))

    limits = row.t_interval
    return replace(
        made,
        share=share(row.delta or 0.0),
        interval=None if limits is None else (share(limits[0]), share(limits[1])),
        smallest=None if row.mde is None else share(row.mde),
    )


def habits_of(verdicts: Sequence[PairOpinion], longer: Mapping[PairKey, int]) -> PairHabits:
    """The judge's habits that do not depend on the answers. ``longer``: 1 where the run's answer is
    the longer one, -1 where it is the shorter one, 0 where both are of a length."""
    asked = [verdict for verdict in verdicts if verdict.orders]
    said = [order.verdict for verdict in asked for order in verdict.orders]
    places = said.count(FIRST), said.count(SECOND)
    sides = [v.outcome * longer.get((v.case_id, v.repeat), 0) for v in asked]
    return PairHabits(
        len(asked),
        sum(v.orders[0].verdict == v.orders[1].verdict in (FIRST, SECOND) for v in asked),
        places[0] / sum(places) if any(places) else None,
        sides.count(1),
        sides.count(-1),
        sum(any(o.verdict not in (FIRST, SECOND, EQUAL) for o in v.orders) for v in asked),
    )


def length_bias(judge: Sequence[int], people: Sequence[int], longer: Sequence[int]) -> LengthBias:
    """Compare judge and people on the same pairs: 1 the run's answer, -1 the base's, 0 neither.

    ``longer``: which answer is the longer one, likewise. One-sided sign test of the pairs that
    judge and people decided differently, by mid-p: the exact test of few such pairs is too careful.
    At 40 labels, one call a pair, it flags .78 of judges that take the longer answer in .9, mid-p
    .86; an unbiased one .02 and .04, of 100 labels .03 and .05 (bench/decisions_pairs.py of this
    folder). Raises ValueError for lists of other lengths.
    """
    rows = list(zip(judge, people, longer, strict=True))
    toward = sum(j == side and p == -side for j, p, side in rows if side)
    against = sum(j == -side and p == side for j, p, side in rows if side)
    if len(rows) < LENGTH_LABELS:
        return LengthBias(len(rows), toward, against, None)
    half = mcnemar(toward, against)[1] / 2
    return LengthBias(len(rows), toward, against, half if toward > against else 1 - half)


def outcomes_by_case(verdicts: Sequence[PairOpinion]) -> dict[str, float]:
    """The mean outcome of a case over repeats of the answer and opinions of the judge."""
    values: dict[str, list[int]] = {}
    for verdict in verdicts:
        values.setdefault(verdict.case_id, []).append(verdict.outcome)
    return {case_id: sum(own) / len(own) for case_id, own in values.items()}


def decided_runs(
    base: Path,
    runs: Sequence[Path],
    clustering: Clustering | None = None,
    *,
    metric: str = "",
    seed: int = 0,
    labels: Iterable[ClaimLabel] = (),
) -> list[tuple[PairDecision, PairFile]]:
    """The pairs of runs with one base, question by question, tested together.

    ``metric``: that question alone. ``labels``: people's, for the test of length. Runs without
    verdicts are left out. Raises StorageError for a damaged file.
    """
    labels = list(labels)
    files = [(run, file) for run in runs for file in read_pairs(run, base)]
    files = [(run, file) for run, file in files if metric in ("", file.metric)]
    found: list[tuple[PairDecision, PairFile]] = []
    for name in sorted({file.metric for _, file in files}):
        own = [(run, file) for run, file in files if file.metric == name]
        by_case = [outcomes_by_case(file.verdicts) for _, file in own]
        cases = list(dict.fromkeys(case for values in by_case for case in values))
        ids = np.array([id_number(case) for case in cases], np.int64)
        columns = [
            np.array([values.get(case, np.nan) for case in cases], float) for values in by_case
        ]
        codes = ClusterCodes(clustering).of(ids)
        for (run, file), decision in zip(own, decide_pairs(columns, codes, seed=seed), strict=True):
            bias = bias_of(file, people_on(labels, file)) if labels else None
            found.append((replace(_named(decision, base, run, file), bias=bias), file))
    return found


def bias_of(file: PairFile, people: Mapping[PairKey, int]) -> LengthBias:
    """The length bias of a judge on the pairs that people labelled, by its first opinion."""
    first = {(v.case_id, v.repeat): v.outcome for v in reversed(file.verdicts) if v.orders}
    keys = [key for key in people if key in first]
    return length_bias(
        [first[key] for key in keys],
        [people[key] for key in keys],
        [file.longer.get(key, 0) for key in keys],
    )


def _named(decision: PairDecision, base: Path, run: Path, file: PairFile) -> PairDecision:
    rubric = of_prompt(file.prompt)
    equal = {verdict.case_id for verdict in file.verdicts if not verdict.orders}
    asked = {verdict.case_id for verdict in file.verdicts if verdict.orders}
    return replace(
        decision,
        base_id=base.resolve().name,
        new_id=run.resolve().name,
        question="" if rubric is None else rubric.name,
        judge=str(identity_of(file.judge)),
        equal=len(equal - asked),
        failed=file.failed,
        no_answer=file.not_applicable,
        stale=file.stale,
        habits=habits_of(file.verdicts, file.longer),
    )


def pair_verdicts(run: Path, base: Path, key: PairKey) -> list[tuple[str, str, str]]:
    """A judge's verdicts on one case of two runs: question asked, better, worse or undecided, and
    the quote; [] where no pair of them was judged."""
    path = pairs_file(run, base)
    if not path.exists():
        return []
    return list(_by_case(run, base, path.stat().st_mtime_ns).get(key, ()))


@lru_cache(maxsize=4)
def _by_case(run: Path, base: Path, changed: int) -> Mapping[PairKey, list[tuple[str, str, str]]]:
    found: dict[PairKey, list[tuple[str, str, str]]] = {}
    for file in read_pairs(run, base):
        for one in file.verdicts:
            word = {1: "better", -1: "worse", 0: "undecided"}[one.outcome]
            if not one.orders:
                word = "equal answers, not asked"
            said = (file.metric, word, quote_of(one))
            found.setdefault((one.case_id, one.repeat), []).append(said)
    return found


_TONES: dict[str, Tone] = {"better": "good", "worse": "bad"}


def pair_blocks(decision: PairDecision, file: PairFile) -> Iterator[Block]:
    """The pairs of a run and its base as a part of a page, the verdict last."""
    by = f" by {decision.question}" if decision.question else ""
    judge = (f", judged by {decision.judge}" if decision.judge else "") + ", in both orders"
    title = (f"Pairs{by}: ", Quoted(decision.new_id), " against ", Quoted(decision.base_id))
    yield Heading((*title, Quoted(judge)))
    yield Prose(decision.line(), "strong")
    yield from items(habit_lines(decision))
    for title_word, wanted, tone in (("Better", 1, "good"), ("Worse", -1, "bad")):
        shown = [verdict for verdict in file.verdicts if verdict.outcome == wanted]
        for verdict in shown[:SHOWN]:
            yield Prose((f"{title_word}: ", Quoted(verdict.case_id)), tone, item=1)  # type: ignore[arg-type]
            texts = file.texts.get((verdict.case_id, verdict.repeat), ("", "", ""))
            for name, text in zip(
                ("Q", "base", "new "), (texts[0], texts[2], texts[1]), strict=True
            ):
                yield Quotation(name, plain(text, 400))
            yield Quotation("quote that decided", plain(quote_of(verdict), 300))
        if len(shown) > SHOWN:
            yield Prose(f"{len(shown) - SHOWN:,} more.", item=1)
    yield Prose(f"Pairs: {decision.says()}.", _TONES.get(decision.verdict))


def quote_of(verdict: PairOpinion) -> str:
    """The words that decided a pair, with the judge's reason; "" where nothing was asked."""
    order = next((order for order in verdict.orders if order.quote), None)
    if order is None:
        return next((order.reason for order in verdict.orders), "")
    return f"{order.quote} ({order.reason})" if order.reason else order.quote


def habit_lines(decision: PairDecision) -> list[str]:
    """Remarks on the judge and on missing verdicts, a sentence each."""
    habits, bias = decision.habits, decision.bias
    lines = []
    if decision.equal:
        lines.append(f"{counted(decision.equal, 'case')} with equal answers: not asked.")
    if habits.asked:
        share, pairs = percent(habits.order_decided), counted(habits.asked, "pair")
        lines.append(f"The order decided {share} of {pairs}; they count as undecided.")
    if habits.unquoted:
        count = f"{habits.unquoted:,} of {counted(habits.asked, 'pair')}"
        lines.append(f"The quote is in neither answer in {count}; they count as undecided.")
    if habits.first is not None:
        lines.append(f"The first place wins {percent(habits.first)} of the verdicts.")
    if habits.longer or habits.shorter:
        total = habits.longer + habits.shorter
        lines.append(
            f"Longer answers win {percent(habits.longer / total)} of "
            f"{counted(total, 'decided pair')}."
        )
    if bias is not None:
        lines.append(bias_line(bias))
    missing = (
        (decision.failed, "without a verdict: a call failed"),
        (decision.no_answer, "not asked: a run has no answer, or the judge cannot compare"),
        (decision.stale, "out of date: an answer has changed since; judge again"),
    )
    lines += [f"{counted(count, 'pair')} {why}." for count, why in missing if count]
    return lines


def bias_line(bias: LengthBias) -> str:
    """Whether longer answers win beyond people's labels, as a sentence."""
    if bias.p is None:
        return (
            f"Whether people like longer answers as much as the judge is tested from "
            f"{LENGTH_LABELS} labelled pairs on; there are {bias.labels}."
        )
    counts = f"{bias.longer} against {bias.shorter} of {bias.labels} labelled pairs"
    word = "The judge favours longer answers" if bias.flagged else "No sign of a length bias"
    return (
        f"{word}: it takes the longer answer where people take the shorter one, or the reverse, "
        f"in {counts} ({p_words(bias.p)})."
    )


def pairs_page(found: Sequence[tuple[PairDecision, PairFile]]) -> Page:
    """All that was judged of pairs with one base, the verdicts last."""
    blocks: list[Block] = []
    for decision, file in found:
        *parts, verdict = pair_blocks(decision, file)
        blocks += parts
        assert isinstance(verdict, Prose)
        head = decision.line() + ("" if len(found) == 1 else f" ({decision.new_id})")
        blocks.append(Conclusion(Quoted(head), more=(verdict,)))
    return Page("Pairs", blocks)
