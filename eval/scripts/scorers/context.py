"""Context quality: do the retrieved chunks repeat each other, and do they hold the facts?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ragmetrics import context
from ragmetrics.catalogue.context import ROWS
from ragmetrics.catalogue.metric import Metric
from ragmetrics.text.tfidf import Frequencies
from records.cases import TestCase
from records.results import TestResult, iter_results
from records.targets import BANDS, read_bands
from scorers.common import in_rank_order, row_of, without_passages
from scorers.contract import Evidence, ScoreRow, ScoringJob, SectionScorer, WorstCase
from scorers.loop import results_of

if TYPE_CHECKING:
    from rich.console import Console

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
            in_rank_order(result)[: self.top],
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
    for result in iter_results(results_of(folder)):
        chunks = in_rank_order(result)[:top]
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


def _show_worst(console: Console, item: WorstCase) -> None:
    """The two chunks that are most alike, and where each gold fact stands."""
    from terminal.tables import plain

    chunks = {chunk.chunk_id: chunk for chunk in in_rank_order(item.result)}
    ranks = {name: rank for rank, name in enumerate(chunks, 1)}
    alike = item.evidence.get("most_alike")
    if alike:
        console.print(f"  most alike, 3-gram overlap {alike['overlap']:.2f}:")
        for name in alike["chunks"]:
            chunk = chunks[name]
            location = " > ".join(filter(None, (chunk.rel_path, chunk.heading_path)))
            console.print(f"    {ranks[name]:>3}. {plain(location or name)}", soft_wrap=True)
            console.print(f"         {plain(chunk.text or '', 100)}", soft_wrap=True)
    for fact in item.evidence.get("facts", []):
        rank_list = ", ".join(str(ranks[name]) for name in fact["chunks"])
        where = f"in chunk {rank_list}" if rank_list else "in no chunk"
        console.print(f"  fact {where}: {plain(fact['fact'])}", soft_wrap=True)


SECTION = SectionScorer(options=ContextOptions, scorer=_make_scorer, show_worst=_show_worst)
