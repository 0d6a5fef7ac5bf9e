"""The columns of the catalogue: nothing that is shown, aimed at or counted is named in vain."""

from __future__ import annotations

import msgspec
from tests.rows import each_row

from ragmetrics import catalogue
from ragmetrics.catalogue import DIMENSIONS, KS, METRICS, SECTIONS
from ragmetrics.catalogue.metric import MetricSection, at_cutoffs, nearest_cutoff
from ragmetrics.catalogue.rubrics import row_of
from records.cases import TestCase
from records.targets import BANDS, read_targets

each_section = each_row("section", SECTIONS.values())


def test_every_metric_belongs_to_one_section() -> None:
    definitions = [(metric.family, metric.name) for metric in METRICS]
    assert len(set(definitions)) == len(definitions)
    assert {family for family, _ in definitions} == SECTIONS.keys() - {"custom", "rubrics"}


def test_the_targets_of_the_toolkit_are_those_of_the_catalogue() -> None:
    targets = {name: set(table) for name, table in read_targets().items() if name != BANDS}
    assert targets == {name: set(one.targets) for name, one in SECTIONS.items() if one.targets}


@each_section
def test_what_a_section_names_is_computed(section: MetricSection) -> None:
    names = {metric.name for metric in at_cutoffs(section.metrics, KS)}
    assert names >= {*section.headline(), *section.targets, *section.must}
    assert section.worst_by in {*names, ""}
    assert {metric.family for metric in section.metrics} <= {section.name}


@each_section
def test_ranks_are_given_once(section: MetricSection) -> None:
    ranks = [metric.headline for metric in section.metrics if metric.headline]
    assert sorted(ranks) == list(range(1, len(ranks) + 1))


@each_section
def test_a_section_reads_fields_of_a_case(section: MetricSection) -> None:
    assert set(section.labels) <= {field.name for field in msgspec.structs.fields(TestCase)}


@each_row("column", ["overview", "tells_right"])
def test_ranks_over_all_sections_are_given_once(column: str) -> None:
    ranks = sorted(rank for metric in METRICS if (rank := getattr(metric, column)))
    assert ranks == list(range(1, len(ranks) + 1))


def test_a_headline_is_shown_at_the_nearest_cutoff() -> None:
    retrieval = SECTIONS["retrieval"]
    # The shares and ndcg stand at 5, precision at 1, mrr has the whole list.
    names = ("evidence_recall@4", "recall_all@4", "recall@4", "ndcg@4", "mrr", "precision@2")
    assert retrieval.headline((2, 4, 20)) == names
    assert nearest_cutoff(5, (4, 6)) == 4  # of two that are as near the smaller one
    assert nearest_cutoff(5, ()) == 5


def test_lists_of_cases_leave_out_what_no_case_has() -> None:
    assert {*catalogue.overview()} - {*catalogue.overview(of_cases=True)} == {
        "auc",
        "leak_detection_rate",
    }
    assert catalogue.headline("pipeline", ["latency_ok", "pass", "other"]) == ["pass", "latency_ok"]
    assert catalogue.headline("unknown", ["pass"]) == []


def test_dimensions_are_what_a_case_is_sliced_by() -> None:
    from ragmetrics.stats.tally import facets_of, slices_of

    case = TestCase("a", "?", category="factual", difficulty="d", query_type="q", tags=["t"])
    case.vaults, case.conversation, case.turn, case.standalone = ["v"], "c", 7, False
    slices = slices_of(facets_of(case))
    assert {dimension for dimension, _ in slices} == {*DIMENSIONS}
    assert slices[-2:] == (("turn", "3+"), ("standalone", "no"))
    turns = (TestCase("a", "?", conversation="c", turn=turn) for turn in (1, 2, 3))
    assert [slices_of(facets_of(turn)) for turn in turns] == [
        (("turn", "1"),),
        (("turn", "2"),),
        (("turn", "3+"),),
    ]
    assert slices_of(facets_of(TestCase("a", "?"))) == ()


def test_a_rubric_is_spoken_of_by_its_question_else_by_its_name() -> None:
    assert [row_of("tone", ask).words for ask in ("Is it kind?", "")] == ["Is it kind?", "tone"]
    assert row_of("tone_rank", "Is it kind?").words == "Mean rank: Is it kind?"
