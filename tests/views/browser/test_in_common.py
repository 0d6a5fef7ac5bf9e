"""What the cases that broke have in common, from the files of two runs and their set."""

from __future__ import annotations

from typing import Any

import pytest

from decisions.case_changes import read_pair
from decisions.slices import common_slices
from views.browser.listing import PairList
from views.library import RunLibrary

BROKE = {*range(20, 38), 0, 1}
"""18 of the 20 cases with the tag, from the 21st on, and 2 of the 40 others."""

FAILED_BEFORE = {39, 50}
"""One of the cases with the tag and one of the others: they were not ok, so they cannot break."""


@pytest.fixture
def pair(runs: Any) -> Any:
    """The base run and the new one; a case fails where its call failed."""
    names = [f"c{at:02}" for at in range(60)]
    tags = [["late"] if 20 <= at < 40 else ["early"] if at < 20 else [] for at in range(60)]
    runs.cases(
        *({"id": n, "question": f"Q {n}?", "tags": t} for n, t in zip(names, tags, strict=True))
    )
    for run, bad in (("base", FAILED_BEFORE), ("new", BROKE | FAILED_BEFORE)):
        results = [
            {"id": name, "status": "error" if at in bad else "ok", "answer": f"A {at}."}
            for at, name in enumerate(names)
        ]
        lines: list[dict[str, Any]] = [
            {"case_id": name, "status": "failed" if at in bad else "scored", "scores": {}}
            for at, name in enumerate(names)
        ]
        runs.run(run, results, pipeline=lines)
    return runs


def test_what_broke_is_told_from_run_files_and_the_browser_says_the_same(pair: Any) -> None:
    folders = pair.results_dir / "base", pair.results_dir / "new"
    slices = common_slices(read_pair(*folders), pair.eval_set, None)
    assert slices.verb == "broke"
    # of 20 cases with the tag 19 were ok before, of 40 others 39
    (sentence,) = slices.sentences()
    assert sentence == (
        "Of the questions that were ok before, those with tag late broke more often: "
        "18 of 19, against 2 of 39 others (p < .001)."
    )
    library = RunLibrary(pair.results_dir, pair.eval_set, None)
    pairs = PairList(*(library.open(name) for name in ("base", "new")))
    pairs.update(0)
    sentences, groups = pairs.slices()
    assert sentences[0] == sentence.removesuffix(".")
    assert groups[0].value == "with tag late"
    # the cases of the slice that were ok before; 18 of them broke
    assert (len(groups[0].rows), groups[0].failing) == (19, 18)
