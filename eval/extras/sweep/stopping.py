"""A run that is asked until it is decided: portions, looks, and what the last look said."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from clients.run_plan import Ending, Job, Jobs
from decisions.change import is_skewed, measure, range_of
from decisions.conditions import read_run
from decisions.effects import compact
from decisions.pairing import ClusterCodes
from decisions.stopping import DECIDED, PLANNED, Decided, look_at, verdict_at
from extras.sweep.order import portions, random_order
from extras.sweep.scoring import PartScorer, scores_by_case
from ragmetrics.stats.sequential import PLANNED_LOOKS
from records.cases import TestCase
from records.clusters import AUTO, read_clusters
from records.errors import StorageError
from records.files import sha256_file
from records.id_numbers import id_number
from records.targets import read_decide
from scorers.contract import ScoringJob
from terminal.tables import counted

if TYPE_CHECKING:
    from ragmetrics.stats.arrays import Floats, Ints


class StopWhenDecided:
    """Looks at a new run against a finished one, and stops it when one metric is decided."""

    open_ended = False

    def __init__(self, against: Path, metric: str, repeat: int, job: ScoringJob) -> None:
        """``job``: the set and labels; its folder is not looked at. Raises StorageError when the
        finished run cannot be compared with."""
        self._base = read_run(against)
        self._repeat, self._job = repeat, job
        self._section, self._metric = self._find(metric)
        self._scorer = PartScorer((self.name,), job)
        self._check()
        self._asked: list[str] = []
        self._selected: list[str] = []
        self._scores: list[float] = []
        self._decided: Decided | None = None

    @property
    def name(self) -> str:
        return f"{self._section}.{self._metric}"

    @property
    def plan(self) -> Mapping[str, Any]:
        return {"against": self._base.id, "metric": self.name, "way": PLANNED}

    @property
    def warm_up(self) -> Sequence[Job]:
        return ()

    def portions(self, cases: Sequence[TestCase]) -> Iterator[Sequence[Job]]:
        self._selected = [case.id for case in cases]
        for part in portions(random_order(cases, self._job.seed), PLANNED_LOOKS):
            yield list(Jobs(part, self._repeat))

    def after(self, folder: Path, portion: Sequence[Job]) -> Ending | None:
        new = list(dict.fromkeys(job.case.id for job in portion))
        self._asked += new
        self._scores += self._scorer.scores(folder, new)[self.name].tolist()
        whole = len(self._asked) == len(self._selected)
        decided = self._decided = self._look()
        facts = {DECIDED: msgspec.to_builtins(decided)}
        if whole:
            return Ending("complete", facts=facts)
        if decided.verdict in ("better", "worse"):
            reason = f"{decided.metric} is {decided.verdict} than in {self._base.id}"
            return Ending("stopped", reason, facts)
        return None

    def summary(self) -> str:
        """The outcome of the looks, as a sentence."""
        decided = self._decided
        if decided is None:
            return "No look was taken at this run."
        words = f"{decided.metric} against {decided.against}: {decided.verdict}"
        if decided.difference is not None and decided.interval is not None:
            low, high = decided.interval
            words += f", {decided.difference:+.4f} ({low:+.4f} to {high:+.4f}, valid at every look)"
        saved = f"; {decided.saved:.0%} of the calls saved" if decided.saved else ""
        return f"{words}, after {decided.calls:,} of {counted(decided.of, 'call')}{saved}."

    def _look(self) -> Decided:
        import numpy as np

        ids = np.fromiter(map(id_number, self._asked), np.int64, len(self._asked))
        a, b = self._base_scores(ids), np.array(self._scores)
        codes = compact(self._codes.of(ids))
        effect, _ = measure(a, b, codes, largest=range_of(self.name))
        total = np.isfinite(self._base_scores(self._all_ids)).sum()
        share = float(np.isfinite(a).sum() / total) if total else 1.0
        seen = look_at(effect, share) if share else None
        calls, of = (len(ids) * self._repeat for ids in (self._asked, self._selected))
        return Decided(
            against=self._base.id,
            metric=self.name,
            way=PLANNED,
            share=share or 1 / len(self._selected),
            verdict=verdict_at(seen, self.name),
            calls=calls,
            of=of,
            saved=1 - calls / of,
            difference=effect.delta,
            interval=(seen.low, seen.high) if seen else None,
        )

    @cached_property
    def _all_ids(self) -> Ints:
        import numpy as np

        return np.fromiter(map(id_number, self._selected), np.int64, len(self._selected))

    @cached_property
    def _codes(self) -> ClusterCodes:
        return ClusterCodes(read_clusters(self._job.eval_set, AUTO, read_decide().documents))

    def _base_scores(self, ids: Ints) -> Floats:
        return scores_by_case(self._base.source, self._section, self._metric, ids)

    def _find(self, metric: str) -> tuple[str, str]:
        """Section and name of the metric, among those that the finished run has."""
        measured = [
            (section, name)
            for section, part in self._base.metrics.get("sections", {}).items()
            for name in part.get("mean", {})
            if metric in (name, f"{section}.{name}")
        ]
        if len(measured) != 1:
            hint = "is in several of its sections; write section.metric" if measured else "is not"
            hint += "" if measured else " scored in it; score it first, or name another --metric"
            raise StorageError(f"--against {self._base.id}: {metric} {hint}.")
        return measured[0]

    def _check(self) -> None:
        name, base = self.name, self._base.id
        if is_skewed(name) or range_of(name) is None:
            raise StorageError(
                f"--metric {name}: looks need a metric with a lowest and a highest value."
            )
        if self._base.metrics.get("eval_set_sha256") != sha256_file(self._job.eval_set):
            raise StorageError(
                f"--against {base}: it was scored with another set than {self._job.eval_set}; "
                "choose a run of the same set."
            )
        options = dict(self._base.section(self._section).get("options", {}))
        options.pop("seed", None)
        if options != self._scorer.scorers[self._section].options:
            raise StorageError(
                f"--against {base}: its section {self._section} was not scored with the default "
                f"options; score it again with score_{self._section}.py."
            )
