"""Scores context quality: whether the retrieved chunks repeat each other, and contain the facts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ragmetrics import context
from ragmetrics.catalogue.context import ROWS
from ragmetrics.catalogue.metric import Metric
from ragmetrics.text.tfidf import Frequencies
from records.cases import TestCase
from records.results import TestResult
from records.run import Run
from records.targets import BANDS, read_bands
from scorers.common import row_of, without_passages
from scorers.contract import Evidence, ScoreRow, ScoringJob, SectionScorer
from scorers.loop import results_of

Bands = Mapping[str, tuple[float, float]]


@dataclass(frozen=True)
class ContextScorer:
    """Scores the chunks of one result; ``top`` is how many of them count (None: all).

    ``frequencies`` come from a first pass over the run, see ``read_frequencies``.
    """

    frequencies: Frequencies
    top: int | None = None
    bands: Bands = field(default_factory=lambda: context.BANDS)

    section = "context"
    metrics: tuple[Metric, ...] = ROWS

    @property
    def options(self) -> dict[str, Any]:
        return {
            "top": self.top,
            "bands": {name: list(band) for name, band in sorted(self.bands.items())},
        }

    def score(self, case: TestCase, result: TestResult) -> tuple[ScoreRow, Evidence]:
        """Scores of one result. No chunk, cut texts or none sent: not applicable."""
        value, why = without_passages(result)
        if why:
            return ScoreRow((value,) * len(self.metrics), (("*", why),)), {}
        scores = context.score_case(
            result.chunks()[: self.top],
            frequencies=self.frequencies,
            gold_facts=case.gold_facts,
            query_type=case.query_type,
            bands=self.bands,
        )
        return row_of(scores, self.metrics), scores.evidence


def _read_frequencies(folder: Path, top: int | None = None) -> Frequencies:
    """Document frequencies of a run's distinct chunk texts, in one streaming pass.

    Memory grows by 8 bytes for each distinct chunk. Cut texts are left out: they are not
    scored either.
    """
    frequencies = Frequencies()
    results_of(folder)
    for result in Run(folder).results:
        chunks = result.chunks()[:top]
        frequencies.add(chunk.text for chunk in chunks if chunk.text and not chunk.truncated)
    return frequencies


@dataclass(frozen=True)
class ContextOptions:
    """``top``: how many retrieved chunks count, None for all."""

    top: int | None = None


def _make_scorer(job: ScoringJob, options: ContextOptions) -> ContextScorer:
    """The scorer with the run's word frequencies, and bands for each query_type."""
    frequencies = _read_frequencies(job.folder, options.top)
    return ContextScorer(frequencies, options.top, read_bands(BANDS))


SECTION = SectionScorer(options=ContextOptions, scorer=_make_scorer)
