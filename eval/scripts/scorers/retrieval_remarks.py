"""Remarks on all retrieval lines of a run: headings and paths that never match, texts that are
missing, and what unjudged passages leave open."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ragmetrics import matching
from ragmetrics.catalogue import metric as catalogue_metric
from ragmetrics.gold import CUT, Match, gold_of, match_chunks, place_of, place_of_gold
from ragmetrics.matching import Anchor
from ragmetrics.paths import MOST_PASSAGES, examine_paths
from records.cases import ignore, iter_cases, tells_places
from records.results import RetrievedChunk
from records.run import Run
from records.runs import results_file
from records.scores import ScoreLine
from scorers.contract import ScoringJob
from scorers.judged_pool import RANGED
from terminal.tables import counted

if TYPE_CHECKING:
    from rich.console import Console

FEW_FOUND = 0.8
"""Recall below which the file names of bot and labels are compared."""


LEAST_MISPLACED, MISPLACED_SHARE = 5, 0.2
"""Cases, and their share, above which headings that never match are remarked on."""


def places_found(
    gold: Sequence[Anchor], ranks: Sequence[int | None], chunks: Sequence[RetrievedChunk]
) -> dict[str, Any]:
    """Return whether a gold heading was found where its file was; if not, the headings found there.

    A part of the section has its heading, too, whether or not it contains the quote. {} when no
    file of a support that has a heading was retrieved.
    """
    headed = [index for index, support in enumerate(gold) if support.heading]
    if any(ranks[index] is not None for index in headed):
        return {"heading_found": True}
    wanted = {gold[index].path: gold[index] for index in reversed(headed)}
    places = [place_of(chunk) for chunk in chunks]
    if any(
        place is not None
        and place.path == gold[index].path
        and matching.is_within(place.heading, gold[index].heading)
        for place in places
        for index in headed
    ):
        return {"heading_found": True}
    for chunk, place in zip(chunks, places, strict=True):
        if place is not None and place.path in wanted:
            support = wanted[place.path]
            heading = matching.SEPARATOR.join(support.heading)
            got = [place.path, heading, (chunk.heading_path or "")[:MOST_HEADING]]
            return {"heading_found": False, "instead": got}
    return {}


MOST_HEADING = 500
"""Characters of a bot's heading that are kept as an example."""


class MisplacedGold:
    """Gathers cases whose file was found and whose heading was not."""

    def __init__(self) -> None:
        self._cases: set[str] = set()
        self._instead: dict[str, Sequence[str]] = {}
        self._is_due = True

    def take(self, line: ScoreLine) -> None:
        """Count a score line; where a heading matched, no remark is due."""
        self.count(line.case_id, line.evidence or {})

    def count(self, case_id: str, evidence: Mapping[str, Any]) -> None:
        """Add a case by the evidence of its score line."""
        if evidence.get("match") in ("anchor", "document"):
            self._cases.add(case_id)
            if "instead" in evidence:
                self._instead.setdefault(case_id, evidence["instead"])
        if evidence.get("heading_found"):
            self._is_due = False

    def noted(self) -> dict[str, Any] | None:
        """The remark, if there are enough of them."""
        least = max(LEAST_MISPLACED, MISPLACED_SHARE * len(self._cases))
        if not self._is_due or len(self._instead) < least:
            return None
        path, wanted, got = next(iter(self._instead.values()))
        counts = {"cases": len(self._cases), "path_found": len(self._instead)}
        return counts | {"path": path, "wanted": wanted, "got": got}


def match_of_run(job: ScoringJob, match: Match) -> Match:
    """How gold is matched in a run: where the bot finds its files and names no heading as any label
    does, ``auto`` means ``file``, for a recall of 0 would be no finding about the bot. One that
    finds sections of other questions alone does name them."""
    if match != "auto" or not (results_file(job.folder).exists() and tells_places(job.eval_set)):
        return match
    cases = {case.id: case for case in iter_cases(job.eval_set, ignore)}
    labelled: dict[str, set[tuple[str, ...]]] = {}
    for support in chain.from_iterable(case.gold_supports for case in cases.values()):
        if (anchor := place_of_gold(support)).heading:
            labelled.setdefault(anchor.path, set()).add(anchor.heading)
    misplaced = MisplacedGold()
    for result in Run(job.folder).iter_results():
        case = cases.get(result.test_case_id)
        gold = None if case is None or case.answerable is False else gold_of(case, "auto")
        if gold is None or gold.mode != "anchor" or result.status != "ok":
            continue
        chunks = result.chunks()
        if any(
            matching.is_within(place.heading, heading)
            for place in filter(None, map(place_of, chunks))
            for heading in labelled.get(place.path, ())
        ):
            return match
        evidence = places_found(gold.keys, match_chunks(gold, chunks).first, chunks)
        if evidence.get("heading_found"):
            return match
        misplaced.count(result.test_case_id, {"match": gold.mode, **evidence})
    return "file" if misplaced.noted() else match


class MissingTexts:
    """Counts the answers whose passages lack the text in which a gold quote would be looked for."""

    def __init__(self) -> None:
        self._by_heading = self._not_scored = self._without_precision = 0

    def take(self, line: ScoreLine) -> None:
        evidence = line.evidence or {}
        self._by_heading += "by_heading" in evidence
        self._not_scored += line.reasons.get("*") == CUT
        self._without_precision += "undecided" in evidence

    def noted(self) -> dict[str, Any]:
        """The counts as a section has them; {} where every quote could be looked for."""
        cut = {"not_scored": self._not_scored, "without_precision": self._without_precision}
        counts = {"by_heading_only": self._by_heading, "text_cut": cut if any(cut.values()) else 0}
        return {name: count for name, count in counts.items() if count}


def unseen_files(eval_set: Path, folder: Path) -> dict[str, Any] | None:
    """The remark that the bot names files as the labels never do; None where this is untrue."""
    if not results_file(folder).exists():  # one scorer scores the parts of several runs
        return None
    lists: dict[str, list[str]] = {}
    passages = 0
    for result in Run(folder).iter_results("test_case_id", "status", "retrieved"):
        if result.status == "ok" and result.test_case_id not in lists:
            lists[result.test_case_id] = [
                chunk.rel_path or ""
                for chunk in result.retrieved or ()
                if isinstance(chunk, RetrievedChunk)
            ]
            passages += len(lists[result.test_case_id])
        if passages > MOST_PASSAGES:
            break
    known: set[str] = set()
    asked = []
    for case in iter_cases(eval_set, ignore):
        gold = [support.rel_path for support in case.gold_supports]
        known.update(gold)
        if gold and case.answerable is not False and case.id in lists:
            asked.append((gold, lists[case.id]))
    verdict = examine_paths(asked, known)
    gained = verdict.seen_cut - verdict.seen
    if not verdict.two_name_spaces and gained < max(1, MISPLACED_SHARE * verdict.gold):
        return None
    label, bot = verdict.example or ("", "")
    return {
        "gold": verdict.gold,
        "seen": verdict.seen,
        "seen_cut": verdict.seen_cut,
        "steps": " ".join(verdict.cut.steps),
        "root": verdict.cut.root,
        "label": label[:MOST_HEADING],
        "bot": bot[:MOST_HEADING],
    }


SHOWN_RANGE = 5
"""The cut-off whose ranges are shown, or the nearest one."""

MOSTLY = 0.5
"""Share of unjudged passages from which a warning is due."""


def show_more(console: Console, section: Mapping[str, Any]) -> None:
    """Print counts of answers that lack texts, and the ranges due to unjudged passages."""
    for sentence in (*_about_texts(section), *_about_ranges(section)):
        console.print(sentence)


def _about_texts(section: Mapping[str, Any]) -> Iterator[str]:
    if answers := section.get("by_heading_only"):
        yield (
            f"By heading only: in {counted(answers, 'answer')} a passage below the labelled "
            "heading has no text, so its heading alone decides that it counts. Map the passages' "
            "text (chunk.text in the profile), and the labels' quotes decide."
        )
    if cut := section.get("text_cut"):
        yield (
            "Text was truncated before a quote was found: "
            f"{counted(cut['not_scored'], 'answer')} not scored, and "
            f"{cut['without_precision']} without precision, F1 and MAP. Ask again with run_eval.py "
            "--store-full-text."
        )


def _about_ranges(section: Mapping[str, Any]) -> Iterator[str]:
    """What the unjudged passages leave open, and that most were never judged where it is so."""
    ranges = section.get("ranges")
    if not ranges:
        return
    k = catalogue_metric.nearest_cutoff(SHOWN_RANGE, section["options"]["k"])
    share = section["mean"][f"unjudged@{k}"]
    parts = [
        f"{name}@{k} {low:.3f} … {high:.3f}"
        for name in RANGED
        for low, high in [ranges[f"{name}@{k}"]]
    ]
    yield (
        f"{100 * share:.0f} % of the top {k} have no human judgement. Over the "
        f"{section['n'][f'unjudged@{k}']} cases with judgements the worst and best possible means "
        f"are: {', '.join(parts)}."
    )
    if share > MOSTLY:
        yield (
            "Most of it is unjudged, as after a change of the chunks: a judgement is for one text. "
            "Label this run (label_eval.py) before you trust its precision."
        )
