"""What a verdict is worth when cases lost their score, when a bot refuses, and with a lead metric.

    python bench/decisions_lost.py          # about half an hour of one core
    python bench/decisions_lost.py --quick  # some of the cells, few simulations: three minutes
    python bench/decisions_lost.py --tiny   # only to see that it runs

Four tables, from the engine itself (decisions/joint.py) and its sentences (decisions/headline.py):
false verdicts on two runs of one bot of which one lost scores by chance, by its own failure or by
how hard a case is; the verdicts that are left after a loss by chance; headlines on a bot that
refuses; headlines with a lead. Seeds are fixed.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import product
from typing import Literal, NamedTuple

os.environ.setdefault("OMP_NUM_THREADS", "1")

from measuring import SCRIPTS, print_table

sys.path.insert(0, str(SCRIPTS))

import numpy as np
from numpy.typing import NDArray

from decisions.comparison import Comparison
from decisions.headline import with_headline
from decisions.joint import Decision, PrimaryTable, decide, decided
from decisions.metric_words import finding

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

CLAIMS, RIGHT = "groundedness.claim_support_rate", "abstention.decision_right"
RECALL, PASS, ANSWERED = "retrieval.evidence_recall@5", "pipeline.pass", "pipeline.answered"
NAMES = (RECALL, CLAIMS, RIGHT, PASS, ANSWERED)
LOST = RECALL
"""The metric that loses cases."""

SIZES, NOISES, SHARES = (120, 300), (0.1, 0.3), (0.05, 0.1, 0.2, 0.3, 0.4)

Why = Literal["chance", "own failure", "difficulty"]
WHYS: tuple[Why, ...] = ("chance", "own failure", "difficulty")

DECIDED = ("better", "worse")

MOST_FALSE, LEAST_LEFT, MOST_LED = 0.05, 0.8, 0.03


class Asked(NamedTuple):
    """A bot's scores, cases x metrics, and how easy each case is."""

    scores: Floats
    ease: Floats


def bot(n: int, noise: float, rng: np.random.Generator) -> Callable[[float], Asked]:
    """A bot that is asked again and again. Each case has an ease of its own; a share of the cases
    is answered anew each time. The first two metrics take thirds, the others 0 and 1; all calls are
    answered. ``shift``: by how much the first metric differs in truth."""
    ease = rng.uniform(0.4, 1.0, (n, 1))

    def answer(shift: float) -> Floats:
        hits = rng.random((n, 3, 2)) < np.clip(ease[:, :, None] + [shift, 0], 0, 1)
        rest = rng.random((n, 3)) < ease
        scores: Floats = np.concatenate([hits.mean(axis=1), rest], axis=1)
        scores[:, -1] = 1
        return scores

    rng_state = rng.bit_generator.state
    usual = answer(0.0)

    def ask(shift: float = 0.0) -> Asked:
        own = usual
        if shift:  # the same luck with another ease
            later = rng.bit_generator.state
            rng.bit_generator.state = rng_state
            own = answer(shift)
            rng.bit_generator.state = later
        again = rng.random((n, 1)) < noise
        return Asked(np.where(again, answer(shift), own), ease[:, 0])

    return ask


def lost_cases(run: Asked, share: float, why: Why, rng: np.random.Generator) -> Bools:
    """Which cases lose their score: any; those that the run itself fails, first; hard ones, first,
    each with some luck."""
    n = len(run.ease)
    luck = rng.random(n)
    order = luck
    if why == "own failure":
        order = run.scores[:, NAMES.index(LOST)] + luck / 3
    elif why == "difficulty":
        order = run.ease + luck / 5
    lost = np.zeros(n, bool)
    lost[np.argsort(order)[: round(share * n)]] = True
    return lost


def judged(
    a: Floats, b: Floats, seed: int, lead: str = "", names: Sequence[str] = NAMES
) -> Decision:
    places = [NAMES.index(name) for name in names]
    table = PrimaryTable(tuple(names), [], np.arange(len(a)), a[:, places], b[:, places])
    return decide(table, seed=seed, lead=lead)


def without(scores: Floats, lost: Bools) -> Floats:
    own = scores.copy()
    own[lost, NAMES.index(LOST)] = np.nan
    return own


def called(decision: Decision) -> bool:
    return any(row.verdict in DECIDED for row in decision.rows)


def print_false(simulations: int, seed: int, quick: bool) -> bool:
    """Verdicts on two runs of one bot: of the metric that lost cases, where it decides alone and
    beside four others; and of any of the five."""
    cells: dict[tuple[str, str], list[tuple[float, ...]]] = {}
    sizes, shares = (SIZES[:1], SHARES[::2]) if quick else (SIZES, SHARES)
    whys: list[tuple[Why, str, float]] = [("chance", "none", 0.0)]
    whys += list(product(WHYS, ("base", "new"), shares))
    for (why, side, share), n, noise in product(whys, sizes, NOISES):
        key = [seed, WHYS.index(why), side == "base", n, int(100 * noise), int(100 * share)]
        rng = np.random.default_rng(key)
        calls = np.zeros(3)
        for at in range(simulations):
            ask = bot(n, noise, rng)
            base, new = ask(0.0), ask(0.0)
            a, b = base.scores, new.scores
            if side == "base":
                a = without(a, lost_cases(base, share, why, rng))
            elif side == "new":
                b = without(b, lost_cases(new, share, why, rng))
            alone, joint = judged(a, b, at, names=(LOST,)), judged(a, b, at)
            calls += called(alone), joint.rows[0].verdict in DECIDED, called(joint)
        cells.setdefault((why, side), []).append(tuple(calls / simulations))
    rows = []
    for (why, side), own in cells.items():
        means, most = np.mean(own, axis=0), np.max(own, axis=0)
        figures = [f"{mean:.3f} ({high:.3f})" for mean, high in zip(means, most, strict=True)]
        rows.append([why if side != "none" else "nothing", side, *figures, str(MOST_FALSE)])
    print(
        f"\nFalse verdicts after a loss of {shares[0]:.0%} to {shares[-1]:.0%}, n "
        f"{', '.join(map(str, sizes))}, answered anew {', '.join(map(str, NOISES))}: mean, and the "
        f"largest of {len(shares) * len(sizes) * len(NOISES)} cells of {simulations} pairs"
    )
    head = ("lost by", "in", "the metric alone", "it beside others", "any of five", "at most")
    print_table(head, rows)
    return all((np.mean(own, axis=0)[:2] <= MOST_FALSE).all() for own in cells.values())


def print_left(simulations: int, seed: int) -> bool:
    """Of the verdicts on the metric that the kept cases alone give, as if the others had not been
    asked, those that are left after a loss of a fifth by chance."""
    rows, kept = [], True
    for n, noise, shift in product(SIZES, NOISES, (-0.1, 0.1)):
        rng = np.random.default_rng([seed, n, int(100 * noise), int(100 * shift) + 100])
        alone = left = 0
        for at in range(simulations):
            ask = bot(n, noise, rng)
            base, new = ask(0.0), ask(shift)
            lost = lost_cases(new, 0.2, "chance", rng)
            both = [judged(without(base.scores, lost), without(new.scores, lost), at)]
            both.append(judged(base.scores, without(new.scores, lost), at))
            first, then = (decision.rows[0].verdict for decision in both)
            alone += first in DECIDED
            left += first in DECIDED and then == first
        share = left / max(alone, 1)
        rows.append([str(n), f"{noise}", f"{shift:+}", f"{alone}", f"{share:.3f}", str(LEAST_LEFT)])
        kept &= share >= LEAST_LEFT
    print(f"\nVerdicts that are left after a loss of 20 % by chance ({simulations} pairs a row)")
    print_table(("n", "anew", "shift", "kept cases alone", "left", "at least"), rows)
    return kept


def refusing(run: Floats, unanswerable: Bools, declines: Bools) -> Floats:
    """The scores of a bot that declines some questions: no claims; right where there is no answer.
    Passages are as before."""
    own = run.copy()
    own[:, NAMES.index(RIGHT)] = np.where(declines, unanswerable, ~unanswerable)
    own[declines, NAMES.index(CLAIMS)] = np.nan
    own[declines & ~unanswerable, NAMES.index(PASS)] = 0
    own[unanswerable, NAMES.index(RECALL)] = np.nan
    return own


def print_refusals(simulations: int, seed: int) -> bool:
    """A bot that declines nine of ten questions without an answer (a seventh of all) and 3 % of the
    others, against the same that refuses so many more. MIXED: another metric is better by
    chance."""
    rows, kept = [], True
    for n, share in product(SIZES, (0.3, 0.6, 0.9, 1.0)):
        rng = np.random.default_rng([seed, n, int(100 * share)])
        heads = Counter[str]()
        for at in range(simulations):
            ask = bot(n, 0.2, rng)
            none = np.arange(n) < n // 7
            usual = [rng.random(n) < np.where(none, 0.9, 0.03) for _ in range(2)]
            more = np.zeros(n, bool)
            more[rng.permutation(n)[: round(share * n)]] = True
            a = refusing(ask(0.0).scores, none, usual[0])
            b = refusing(ask(0.0).scores, none, usual[1] | more)
            heads[headline(judged(a, b, at)).headline] += 1
        words = ", ".join(f"{word} {count}" for word, count in heads.most_common())
        rows.append([str(n), f"{share:.0%}", words, f"WORSE {simulations}"])
        kept &= heads["WORSE"] >= 0.95 * simulations
        kept &= heads["WORSE"] + heads["MIXED"] == simulations
    print(f"\nA bot that refuses ({simulations} pairs a row)")
    print_table(("n", "refused", "headlines", "asked for"), rows)
    return kept


def headline(decision: Decision) -> Comparison:
    """The decision in the words of compare_runs.py."""
    rows = []
    for found in decision.rows:
        rows.append(decided(replace(found, verdict="not tested"), found))
    found = Comparison("base", "new", tuple(rows), decision.headline, lead=decision.lead)
    return with_headline(found, {})


def print_lead(simulations: int, seed: int) -> bool:
    """A lead that does not change, and one that falls by 6 points while all others rise by 10."""
    rows, kept = [], True
    for n in (90, 300, 1000):
        rng = np.random.default_rng([seed, n, 7])
        null, heads = Counter[str](), Counter[str]()
        unnamed = 0
        for at in range(simulations):
            ask = bot(n, 0.2, rng)
            null[judged(ask(0.0).scores, ask(0.0).scores, at, lead=LOST).headline] += 1
            said = headline(judged(*traded(n, rng), at, lead=LOST))
            heads[said.headline] += 1
            lead = said.row(LOST)
            assert lead is not None
            unnamed += said.headline == "BETTER" and finding(lead) not in said.says[0]
        better, worse = (null[word] / simulations for word in ("BETTER", "WORSE"))
        any_word = (null["BETTER"] + null["WORSE"] + null["MIXED"]) / simulations
        words = ", ".join(f"{word} {count}" for word, count in heads.most_common())
        rows.append(
            [str(n), f"{better:.3f}", f"{worse:.3f}", f"{any_word:.3f}", words, str(unnamed)]
        )
        kept &= max(better, worse) <= MOST_LED and any_word <= MOST_FALSE + 0.01 and not unnamed
    print(f"\nWith a lead ({simulations} pairs a row)")
    head = (
        *("n", f"null: BETTER (<= {MOST_LED})", f"WORSE (<= {MOST_LED})", "any word (.05)"),
        *("lead -6, others +10", "BETTER without it (0)"),
    )
    print_table(head, rows)
    return kept


def traded(n: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Two runs of which the new one is 6 points worse in the lead and 10 better in all else."""
    ask = bot(n, 0.2, rng)
    a, b = ask(0.0).scores, ask(0.0).scores
    a[:, -1] = rng.random(n) < 0.85
    b[:, -1] = a[:, -1]
    for at, name in enumerate(NAMES):
        column = b[:, at]
        if name == LOST:
            falls = rng.random(n) < 0.06 / max(column.mean(), 1e-9)
            column[falls] = 0
        else:
            rises = rng.random(n) < 0.1 / max(1 - column.mean(), 1e-9)
            column[rises] = 1
    return a, b


PARTS = ("false", "left", "refusals", "lead")


def parts_of(options: argparse.Namespace) -> Iterator[bool]:
    some = 2 if options.tiny else options.simulations or (100 if options.quick else 300)
    quick, seed = options.tiny or options.quick, options.seed
    for part in options.part or PARTS:
        if part == "false":
            yield print_false(some, seed, quick)
        elif part == "left":
            yield print_left(some, seed)
        elif part == "refusals":
            yield print_refusals(min(some, 100), seed)
        else:
            yield print_lead(some if quick else 2 * some, seed)


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--simulations", type=int, help="pairs a cell; 300, 100 with --quick")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--part", choices=PARTS, action="append", help="only this table")
    parser.add_argument("--quick", action="store_true", help="some cells, few simulations")
    parser.add_argument("--tiny", action="store_true", help="only to see that it runs")
    options = parser.parse_args(words)
    kept = [*parts_of(options)]
    return 0 if all(kept) or options.tiny else 1


if __name__ == "__main__":
    sys.exit(main())
