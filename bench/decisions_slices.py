"""Is it found what failing cases have in common, and how often is a slice named by chance alone?

    RAG_EVAL_DATA=FOLDER python bench/decisions_slices.py   # about 30 minutes
    python bench/decisions_slices.py                        # without the row of topics
    python bench/decisions_slices.py --part sizes           # only one of the tables
    python bench/decisions_slices.py --tiny                 # only to see that it runs

Documents of many sizes are made up: 60 slices are tried, half of them labels of documents, half
words. Other cases are those of the demo set, and 300 questions of SQuAD 2.0 (from RAG_EVAL_DATA)
whose articles are hidden: 15 % of the cases fail, of a planted slice 70 %. There a slice counts as
found when one that is named shares at least 40 % of its cases (Jaccard). Seeds are fixed.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

from measuring import SCRIPTS, print_table

sys.path.insert(0, str(SCRIPTS))

import numpy as np
from numpy.typing import NDArray

from clients.embedder import Embedder, EmbeddingUnavailable
from decisions.slices import (
    FALLEN_ALPHA,
    FallenSlice,
    SliceMember,
    Slices,
    fallen_of,
    find_rise,
    find_slices,
    sliced,
)
from records.cases import TestCase
from records.clusters import cluster_number
from records.id_numbers import id_number
from records.labels import read_cases

ROOT = SCRIPTS.parents[1]

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

USUAL, PLANTED, LEAST_OVERLAP = 0.15, 0.7, 0.4


def failing(
    share: Floats, luck: Sequence[int] | None, icc: float, rng: np.random.Generator
) -> Bools:
    """Which cases fail, each with its own chance; those of one number of ``luck`` share a draw so
    often that the correlation of two with the same chance is ``icc``."""
    own = rng.random(len(share))
    if luck is not None:
        _, number = np.unique(np.array(luck), return_inverse=True)
        shared = rng.random(number.max() + 1)[number]
        own = np.where(rng.random(len(share)) < np.sqrt(icc), shared, own)
    return np.asarray(own < share)


def search(cases: Sequence[SliceMember], fails: Bools, **options: object) -> Slices:
    marks = {id_number(case.case_id): bool(mark) for case, mark in zip(cases, fails, strict=True)}
    return find_slices(cases, marks, options.get("embed"))  # type: ignore[arg-type]


def is_found(slices: Slices, planted: frozenset[str]) -> bool:
    overlaps = (
        len(planted & {*s.case_ids}) / len(planted | {*s.case_ids}) for s in slices.significant
    )
    return any(overlap >= LEAST_OVERLAP for overlap in overlaps)


def power(
    cases: Sequence[SliceMember],
    planted: Sequence[frozenset[str]],
    simulations: int,
    seed: int,
    luck: Sequence[int] | None = None,
    icc: float = 0.0,
    **options: object,
) -> float:
    found = 0
    for simulation in range(simulations):
        rng = np.random.default_rng([seed, simulation])
        chosen = planted[int(rng.integers(len(planted)))]
        share = np.array([PLANTED if case.case_id in chosen else USUAL for case in cases])
        found += is_found(search(cases, failing(share, luck, icc, rng), **options), chosen)
    return found / simulations


def false_finds(
    cases: Sequence[SliceMember],
    simulations: int,
    seed: int,
    luck: Sequence[int] | None = None,
    icc: float = 0.4,
    **options: object,
) -> float:
    found = 0
    for simulation in range(simulations):
        rng = np.random.default_rng([seed, simulation])
        fails = failing(np.full(len(cases), 0.2), luck, icc, rng)
        found += bool(search(cases, fails, **options).significant)
    return found / simulations


def slices_by(
    cases: Sequence[SliceMember], of: Callable[[SliceMember], Sequence[str]], least: int, most: int
) -> list[frozenset[str]]:
    """The cases of each label (or place) that so many cases have."""
    values = sorted({value for case in cases for value in of(case)})
    sets = (frozenset(case.case_id for case in cases if value in of(case)) for value in values)
    return [own for own in dict.fromkeys(sets) if least <= len(own) <= most]


def alone(cases: Sequence[SliceMember]) -> list[SliceMember]:
    return [case._replace(cluster=0) for case in cases]


def conversations(cases: Sequence[TestCase]) -> list[int]:
    names = {case.conversation: number for number, case in enumerate(cases) if case.conversation}
    return [names.get(case.conversation, -1 - at) for at, case in enumerate(cases)]


def squad(folder: Path, count: int) -> tuple[list[SliceMember], list[frozenset[str]]]:
    """Questions without their articles, and the questions of each article with at least 12."""
    with gzip.open(folder / "squad2" / "questions.jsonl.gz", "rt") as file:
        lines = [json.loads(line) for line in file]
    order = np.random.default_rng(3).permutation(len(lines))[:count]
    chosen = [lines[at] for at in order]
    articles: dict[str, set[str]] = {}
    for line in chosen:
        articles.setdefault(line["group"], set()).add(line["id"])
    cases = [SliceMember(line["id"], line["question"]) for line in chosen]
    return cases, [frozenset(own) for own in articles.values() if len(own) >= 12]


def print_power(demo: Sequence[TestCase], simulations: int) -> bool:
    cases = sliced(demo)
    by_itself, talks = alone(cases), conversations(demo)

    def labels(case: SliceMember) -> Sequence[str]:
        return case.labels

    large, small = slices_by(cases, labels, 13, 30), slices_by(cases, labels, 8, 12)
    places = slices_by(cases, lambda case: case.places, 13, 30)
    rows = [
        ("label, 13-30 of 146 cases, each by itself", power(by_itself, large, simulations, 1), 0.9),
        ("the same, counted by document and conversation", power(cases, large, simulations, 1), 0),
        ("label, 8-12 cases, each by itself", power(by_itself, small, simulations, 2), 0.65),
        ("the same, counted by document and conversation", power(cases, small, simulations, 2), 0),
        (
            "label, 13-30 cases, conversations with luck .3",
            power(cases, large, simulations, 3, talks, 0.3),
            0.5,
        ),
        ("turn, document or folder, 13-30 cases", power(cases, places, simulations, 4), 0.75),
    ]
    folder = os.environ.get("RAG_EVAL_DATA")
    try:
        embedder = Embedder(None, Path(tempfile.mkdtemp()))
    except EmbeddingUnavailable as error:
        print(error)
    else:
        if folder:
            questions, articles = squad(Path(folder), 300)
            chance = power(questions, articles, simulations, 5, embed=embedder.encode)
            rows.append(("hidden article, 300 questions, topics", chance, 0.75))
            chance = power(questions, articles, simulations, 5)
            rows.append(("the same by words alone", chance, 0))
    print(f"\nA slice of which 70 % fail instead of 15 %: found ({simulations} simulations)")
    shown = [(name, f"{share:.3f}", f"≥ {goal}" if goal else "") for name, share, goal in rows]
    print_table(("slice", "found", "asked for"), shown)
    return all(share >= goal for _, share, goal in rows)


def print_false(demo: Sequence[TestCase], simulations: int) -> bool:
    cases = sliced(demo)
    four = [at // 4 for at in range(len(demo))]
    groups = [cluster_number(f"group: {number}") for number in four]
    told = [case._replace(cluster=group) for case, group in zip(cases, groups, strict=True)]
    documents = [case.cluster or -1 - at for at, case in enumerate(cases)]
    rows = [
        ("each case by itself", false_finds(alone(cases), simulations, 11), 0.06),
        ("the same, counted by document", false_finds(cases, simulations, 11), 0.06),
        (
            "conversations with luck .4",
            false_finds(cases, simulations, 12, conversations(demo)),
            0.06,
        ),
        ("blocks of 4 with luck .4", false_finds(told, simulations, 13, four), 0.06),
        ("documents with luck .4", false_finds(cases, simulations, 14, documents), 0),
    ]
    print(f"\nNo slice planted, 20 % fail: any slice named ({simulations} simulations)")
    shown = [(name, f"{share:.3f}", f"≤ {goal}" if goal else "") for name, share, goal in rows]
    print_table(("luck", "named", "asked for"), shown)
    return all(share <= (goal or 1) for _, share, goal in rows)


def print_rise(demo: Sequence[TestCase], simulations: int) -> bool:
    """A rise of the share of refusals, everywhere alike or in one slice; 8 times as many before."""
    cases = alone(sliced(demo))
    reference = [case._replace(case_id=f"{case.case_id}-{at}") for at in range(8) for case in cases]
    slices = slices_by(cases, lambda case: case.labels, 13, 30)
    rows = []
    for title, usual, inside in (("4 to 12 % everywhere", 0.12, None), ("in a slice", 0.06, 0.6)):
        named = found = 0
        for simulation in range(simulations):
            rng = np.random.default_rng([21, simulation])
            chosen = slices[int(rng.integers(len(slices)))]
            share = [inside if inside and c.case_id in chosen else usual for c in cases]
            before = (rng.random(len(reference)) < 0.04).tolist()
            now = (rng.random(len(cases)) < np.array(share)).tolist()
            result = find_rise(reference, before, cases, now)
            named += bool(result.significant)
            found += is_found(result, chosen)
        rows.append((title, f"{named / simulations:.3f}", f"{found / simulations:.3f}"))
    print(f"\nWhat rose ({simulations} simulations)")
    print_table(("rise", "any slice named", "the slice named"), rows)
    return True


def print_cost(demo: Sequence[TestCase]) -> bool:
    rows, within = [], True
    for cases, goal in ((sliced(demo), 0.5), (sized("uneven", 2_000, 0), 1.0)):
        fails = np.random.default_rng(5).random(len(cases)) < 0.3
        begin = time.process_time()
        tried = len(search(cases, fails).tried)
        spent = time.process_time() - begin
        within &= spent <= goal
        rows.append((f"{len(cases):,}", f"{tried}", f"{spent:.2f}", f"≤ {goal}"))
    print("\nCost of a search")
    print_table(("cases", "slices", "CPU s", "asked for"), rows)
    return within


SHAPES = {
    "uneven": "5 documents of 6 questions among 45 of 2",
    "equal": "5 of 50 documents of 3",
    "small": "5 documents of 2 questions among 45 of 6",
    "zipf": "any 5 of 50 documents of 30, 15, 10, … 1 (Zipf)",
    "talks": "5 of 40 conversations of 2 to 6 turns",
}
"""The slice of each set of documents that is lost whole."""

CANDIDATES, ICCS = 60, (0.0, 0.4, 0.8)


def sized(shape: str, least: int, simulation: int) -> list[SliceMember]:
    """Made-up cases, ``least`` or more, whose first label is the slice of a shape. Half of the
    CANDIDATES are labels of documents, half words; no other slice can be tried."""
    rng = np.random.default_rng([31, simulation])
    sizes = {
        "uneven": [6] * 5 + [2] * 45,
        "equal": [3] * 50,
        "small": [2] * 5 + [6] * 45,
        "zipf": [max(1, round(30 / rank)) for rank in range(1, 51)],
        "talks": rng.integers(2, 7, 40).tolist(),
    }[shape]
    sizes *= -(-least // sum(sizes)) or 1
    documents, n = np.repeat(np.arange(len(sizes)), sizes), sum(sizes)
    lost = np.arange(5)
    while shape == "zipf" and not 5 <= np.isin(documents, lost).sum() <= n / 2:
        lost = rng.permutation(len(sizes))[:5]
    masks = [np.isin(documents, lost)]
    while len(masks) < CANDIDATES:
        if 2 * len(masks) < CANDIDATES:
            some = rng.permutation(len(sizes))[: rng.integers(3, len(sizes) // 2)]
            mask = np.isin(documents, some)
        else:
            mask = rng.random(n) < rng.choice([0.05, 0.1, 0.2, 0.3])
        if max(5, 0.02 * n) <= mask.sum() <= n / 2:
            masks.append(mask)
    kind = "conversation" if shape == "talks" else "document"
    letters = np.array([*"bcdfghjklmnpqrtvwxz"])

    def word(number: int) -> str:
        return "q" + "".join(letters[list(np.unravel_index(number, (19,) * 4))])

    cases = []
    for at in range(n):
        own = [number for number, mask in enumerate(masks) if mask[at]]
        half = CANDIDATES // 2
        shown = [word(number) for number in own if number >= half]
        # As many words in each question, so that its length is no slice.
        shown += [word(CANDIDATES + at * half + more) for more in range(half - len(shown))]
        labels = tuple(f"label {number}" for number in own if number < half)
        cluster = cluster_number(f"{kind}: {simulation} {documents[at]}")
        cases.append(SliceMember(f"{at}", " ".join(shown), labels, (), cluster))
    return cases


def print_sizes(lost: int, simulations: int) -> bool:
    """A slice lost whole of documents of several sizes, and how often chance alone names any."""
    rows, shares, kept = [], [], True
    for number, (shape, title) in enumerate(SHAPES.items()):
        named = 0
        for simulation in range(lost):
            cases = sized(shape, 0, simulation)
            rng = np.random.default_rng([32, simulation])
            share = np.array([1.0 if "label 0" in case.labels else 0.05 for case in cases])
            slices = search(cases, failing(share, None, 0, rng))
            named += "label 0" in {part.phrase for part in slices.significant}
        kept &= 10 * named >= 9 * lost
        cells = []
        for icc in ICCS:
            found = 0
            for simulation in range(simulations):
                rng = np.random.default_rng([33, number, int(10 * icc), simulation])
                cases = sized(shape, 0, int(rng.integers(1 << 32)))
                luck = [case.cluster for case in cases]
                fails = failing(np.full(len(cases), 0.2), luck, icc, rng)
                found += bool(search(cases, fails).significant)
            cells.append(found / simulations)
        shares += cells
        rows.append((title, f"{named} of {lost}", *(f"{cell:.3f}" for cell in cells)))
    mean = float(np.mean(shares))
    print(
        f"\nA slice of which all fail, of others 5 %: named (asked for: {0.9 * lost:g} of {lost})"
    )
    print(f"No slice, 20 % fail: any named ({simulations} simulations; asked for: mean ≤ .05, each")
    print(f"cell ≤ .08; mean {mean:.3f}, largest {max(shares):.3f})")
    print_table(("slice", "named", *(f"ICC {icc:g}" for icc in ICCS)), rows)
    return kept and mean <= 0.05 and max(shares) <= 0.08


def print_fallen(lost: int, simulations: int) -> bool:
    """Two runs: a slice that is lost whole, alone and beside as many others that are fixed, and how
    often a slice is named of one bot that is asked twice."""
    rows, named, shares = [], [], []
    for number, shape in enumerate(("uneven", "equal", "zipf")):
        own = []
        for zero in (False, True):
            hits = 0
            for simulation in range(lost):
                cases = sized(shape, 0, simulation)
                rng = np.random.default_rng([42, number, simulation])
                planted = np.array(["label 0" in case.labels for case in cases])
                fixed = rng.permutation(np.flatnonzero(~planted))[: planted.sum() if zero else 0]
                before = rng.random(len(cases)) < 0.05
                after = before | planted
                before[planted], before[fixed], after[fixed] = False, True, False
                hits += "label 0" in {part.phrase for part in fallen(cases, before, after)}
            own.append(hits)
        named += own
        cells = []
        for icc in ICCS:
            hits = 0
            for simulation in range(simulations):
                rng = np.random.default_rng([43, number, int(10 * icc), simulation])
                cases = sized(shape, 0, int(rng.integers(1 << 32)))
                luck, share = [case.cluster for case in cases], np.full(len(cases), 0.2)
                before, after = (failing(share, luck, icc, rng) for _ in range(2))
                hits += bool(fallen(cases, before, after))
            cells.append(hits / simulations)
        shares += cells
        counts = (f"{hits} of {lost}" for hits in own)
        rows.append((SHAPES[shape], *counts, *(f"{cell:.3f}" for cell in cells)))
    mean = float(np.mean(shares))
    print(f"\nA slice fell between two runs: named at {FALLEN_ALPHA} (asked for: 18 of 20; with as")
    print(f"many fixed 17). One bot, 20 % fail: any named ({simulations} pairs a cell; asked for:")
    print(f"mean ≤ .05; mean {mean:.3f}, largest {max(shares):.3f})")
    print_table(("slice", "fell", "as many fixed", *(f"ICC {icc:g}" for icc in ICCS)), rows)
    kept = all(hits >= share * lost for hits, share in zip(named, 3 * (0.9, 0.85), strict=True))
    return kept and mean <= 0.05


def fallen(cases: Sequence[SliceMember], before: Bools, after: Bools) -> list[FallenSlice]:
    return fallen_of(cases, (before.astype(int) - after).tolist())


PARTS = ("cost", "sizes", "fallen", "power", "false", "rise")


def run(*, tiny: bool = False, parts: Sequence[str] = PARTS) -> bool:
    """Print all tables; True where every figure is as asked for."""
    demo = read_cases(ROOT / "eval_set.jsonl", ROOT / "eval" / "labels")
    many = 4 if tiny else 200
    tables: dict[str, Callable[[], bool]] = {
        "cost": lambda: print_cost(demo),
        "sizes": lambda: print_sizes(4 if tiny else 20, 5 * many),
        "fallen": lambda: print_fallen(4 if tiny else 20, 3 * many),
        "power": lambda: print_power(demo, many),
        "false": lambda: print_false(demo, 2 * many),
        "rise": lambda: print_rise(demo, many),
    }
    kept = [tables[part]() for part in parts]
    return all(kept)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--tiny", action="store_true", help="smallest sizes")
    parser.add_argument("--part", choices=PARTS, action="append", help="only this table")
    words = parser.parse_args()
    if not run(tiny=words.tiny, parts=words.part or PARTS) and not words.tiny:
        raise SystemExit("Some figures are not as asked for.")


if __name__ == "__main__":
    main()
