"""Groundedness of single results by hand: claims, numbers, citations, and what does not apply."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

from hypothesis import given
from hypothesis import strategies as st
from tests.rows import each_row

from ragmetrics.catalogue.groundedness import ROWS
from ragmetrics.groundedness import METRICS
from scorers.contract import ScoreRow, ScoringJob
from scorers.groundedness import SECTION, GroundednessScorer
from storage import Reference, RetrievedChunk, TestCase, TestResult

LEAVE = "Staff get 15 days of paid vacation each year. Vacation accrues monthly."
OFFICE = "The office kitchen opens at seven."
NAMES = [metric.name for metric in ROWS]


def chunk(name: str, text: str | None, **fields: Any) -> RetrievedChunk:
    return RetrievedChunk(name, f"{name}.md", f"{name}.md", text=text, **fields)


CHUNKS: list[RetrievedChunk | str] = [chunk("leave", LEAVE), chunk("office", OFFICE)]


def score(answer: str | None, case: TestCase | None = None, **fields: Any) -> tuple[ScoreRow, Any]:
    result = TestResult("q", answer=answer, **({"retrieved": CHUNKS} | fields))
    return GroundednessScorer().score(case or TestCase("q", "How many days?"), result)


def values(row: ScoreRow) -> dict[str, Any]:
    return dict(zip(NAMES, row.values, strict=True))


def test_the_catalogue_has_a_row_for_each_metric() -> None:
    assert sorted(NAMES) == sorted(METRICS)


def test_a_supported_claim_with_its_citation() -> None:
    row, evidence = score("Staff get 15 days of paid vacation each year [1].")
    found = values(row)
    assert found["claim_support_rate"] == found["mean_claim_support"] == 1.0
    assert found["unsupported_claims"] == found["numeric_fabrications"] == 0.0
    assert found["citation_validity_form"] == found["citation_validity_content"] == 1.0
    assert found["citation_coverage"] == found["citation_joint"] == 1.0
    claim = evidence["claims"][0]
    assert (claim["supported"], claim["score"], claim["chunk_id"]) == (True, 1.0, "leave")
    window = LEAVE[slice(*claim["window"])]
    assert "15 days of paid vacation" in window
    assert evidence["citations"][0]["chunk_id"] == "leave"


PLAIN = {"answer_not_empty", "contexts_exist", "has_citations", "answer_quality"}
TERMIN = "Termín je pro osoby, které jsou zde, a nemůže být podle toho nebo za to změněn."
HINDI = "उसकी माँ दिल्ली में रहती है और वहाँ हिन्दी पढ़ाती है।"
FRIST = "Die Frist ist für das ganze Jahr und wird nicht verlängert."


@each_row(
    ("answer", "context"),
    [(f"{TERMIN} [1]", TERMIN), ("모르겠습니다. [1]", "모르겠습니다."), ("30 dnů [1].", TERMIN)],
)
def test_only_plain_checks_apply_in_a_language_without_phrases(answer: str, context: str) -> None:
    """Without phrases and a measured threshold no claim is judged."""
    row, evidence = score(answer, retrieved=[chunk("c", context)])
    assert {name for name, value in values(row).items() if value is not None} == PLAIN
    # 4 checks hold: an answer, contexts, a citation; the wording is not looked at.
    assert values(row)["answer_quality"] == 1.0
    reasons = dict(row.reasons)
    assert {reasons[name] for name in ("claim_support_rate", "no_fallback_phrase")} == {"language"}
    assert evidence["language"] in ("cs", "hangul")


@each_row("context", [FRIST, HINDI, "计划每个月花费二十欧元。"])
def test_a_copied_claim_is_supported_in_every_language_with_a_threshold(context: str) -> None:
    answer = f"{context} [1]"
    found = values(score(answer, retrieved=[chunk("c", context)])[0])
    assert found["claim_support_rate"] == found["mean_claim_support"] == 1.0
    other = values(score(answer, retrieved=[chunk("c", context[: len(context) // 4])])[0])
    assert other["claim_support_rate"] == 0.0


def test_a_language_with_phrases_but_no_threshold_has_no_claims() -> None:
    text = "Il termine della domanda non è più quello che era per le persone."
    row, _ = score(text, retrieved=[chunk("c", text)])
    assert dict(row.reasons)["claim_support_rate"] == "language"
    assert values(row)["no_fallback_phrase"] == 1.0


def test_an_answer_that_tells_no_language_goes_by_the_run_and_else_counts() -> None:
    def why(usual: str | None) -> str | None:
        result = TestResult("q", answer="Kioto, 1997.", retrieved=[chunk("c", "Kioto, 1997.")])
        row, _ = GroundednessScorer(usual_language=usual).score(TestCase("q", "Kioto?"), result)
        return dict(row.reasons).get("numeric_fabrications")

    assert [why("pl"), why("en"), why(None)] == ["language", None, None]


def test_a_number_found_nowhere_vetoes_its_claim() -> None:
    """Two claims, one vetoed: rate 1/2, mean (1 + 0) / 2, one number that stands nowhere."""
    answer = "Staff get 25 days of paid vacation each year [1]. Vacation accrues monthly [1]."
    row, evidence = score(answer)
    found = values(row)
    assert found["claim_support_rate"] == found["mean_claim_support"] == 0.5
    assert found["unsupported_claims"] == found["numeric_fabrications"] == 1.0
    assert evidence["numbers"] == {"fabricated": ["25"]}
    assert evidence["claims"][0]["vetoed_by"] == ["25"]
    assert evidence["claims"][0]["supported"] is False


def test_a_number_of_the_question_is_not_made_up() -> None:
    case = TestCase("q", "Do I get 25 days?")
    row, _ = score("No, 25 days of paid vacation are not what staff get each year.", case)
    assert values(row)["numeric_fabrications"] == 0.0


def test_citations_that_point_nowhere_or_to_the_wrong_chunk() -> None:
    """[2] resolves but says nothing of vacation, [9] was not retrieved: form 1/2, content 0/1."""
    row, evidence = score("Staff get 15 days of paid vacation each year [2][9].")
    found = values(row)
    assert found["citation_validity_form"] == 0.5
    assert found["citation_validity_content"] == 0.0
    cited = {part["target"]: part for part in evidence["citations"]}
    assert (cited[2]["chunk_id"], cited[2]["supported"]) == ("office", False)
    assert cited[9]["chunk_id"] is None


def test_marks_may_count_from_zero() -> None:
    answer = "Staff get 15 days of paid vacation each year [0]."
    result = TestResult("q", answer=answer, retrieved=CHUNKS)
    row, _ = GroundednessScorer(first_index=0).score(TestCase("q", "?"), result)
    assert values(row)["citation_validity_content"] == 1.0


def test_listed_references_count_where_the_text_has_no_marks() -> None:
    references = [Reference(chunk_id="leave"), Reference(chunk_id="gone")]
    row, _ = score("Staff get 15 days of paid vacation each year.", references=references)
    assert values(row)["citation_validity_form"] == 0.5
    assert values(row)["has_citations"] == 1.0


def test_labels_of_the_case() -> None:
    case = TestCase("q", "How many days?", answerable=True)
    case.expected_claims = ["15 days paid vacation", "sick leave is unlimited"]
    case.forbidden_claims = ["30 days of vacation", "vacation accrues monthly"]
    case.expected_citations = ["leave.md", "office.md"]
    answer = "Staff get 15 days of paid vacation each year [1]. Vacation accrues monthly [1]."
    row, evidence = score(answer, case)
    found = values(row)
    assert found["expected_claim_recall"] == 0.5
    assert found["forbidden_claims"] == 1.0
    assert found["expected_citation_recall"] == 0.5
    assert evidence["expected_claims_missing"] == ["sick leave is unlimited"]
    assert evidence["forbidden_claims_found"] == ["vacation accrues monthly"]


@each_row(
    ("answer", "fields", "reason"),
    [
        ("", {}, "empty answer"),
        ("  \n", {}, "empty answer"),
        ("I don't know.", {"abstained": True}, "abstention"),
        ("The documents do not mention this.", {}, "abstention"),  # by its wording
        ("Das kann ich Ihnen nicht sagen.", {"abstained": True}, "abstention"),
        ("Yes.", {}, "no claims"),
    ],
)
def test_what_claims_nothing_has_no_claim_score(answer: str, fields: Any, reason: str) -> None:
    row, _ = score(answer, **fields)
    assert values(row)["claim_support_rate"] is values(row)["citation_validity_form"] is None
    assert dict(row.reasons)["claim_support_rate"] == reason
    assert values(row)["answer_not_empty"] == float(bool(answer.strip()))


def test_the_bots_own_word_decides_what_is_an_abstention() -> None:
    """``abstained: false`` beside a refusal: the bot insists on an answer, so it is judged."""
    row, _ = score("The documents do not mention paid vacation.", abstained=False)
    assert dict(row.reasons).get("claim_support_rate") != "abstention"


@each_row(
    ("retrieved", "reason"),
    [
        ([chunk("leave", LEAVE[:20], text_length=len(LEAVE))], "text was truncated"),
        ([chunk("leave", None)], "no chunk texts"),
        (["leave"], "no chunk texts"),  # plain ids
    ],
)
def test_what_needs_texts_does_not_apply_without_them(retrieved: list[Any], reason: str) -> None:
    row, _ = score("Staff get 15 days of paid vacation each year [1].", retrieved=retrieved)
    found, reasons = values(row), dict(row.reasons)
    for name in ("claim_support_rate", "numeric_fabrications", "citation_joint"):
        assert found[name] is None
        assert reasons[name] == reason
    assert found["citation_validity_form"] == 1.0


def test_a_run_without_answers_has_no_scores() -> None:
    row, evidence = score(None)
    assert set(row.values) == {None}
    assert row.reasons == (("*", "no answer"),)
    assert evidence == {}


def test_retrieval_scores_are_held_against_the_minimum() -> None:
    scored = [chunk("leave", LEAVE, score_final=0.4), chunk("office", OFFICE, score_final=0.2)]
    result = TestResult("q", answer="Vacation accrues monthly.", retrieved=list(scored))
    for least, passed in ((0.0, 1.0), (0.3, 1.0), (0.4, 0.0)):
        row, _ = GroundednessScorer(min_score=least).score(TestCase("q", "?"), result)
        assert values(row)["retrieval_scores_ok"] == passed


@given(st.text(max_size=300), st.lists(st.text(max_size=300), max_size=4))
def test_any_text_scores_within_its_ranges(answer: str, texts: list[str]) -> None:
    chunks: list[RetrievedChunk | str] = [chunk(f"c{n}", text) for n, text in enumerate(texts)]
    row, _ = score(answer, retrieved=chunks)
    for metric, value in zip(ROWS, row.values, strict=True):
        if value is not None:
            assert isinstance(value, float)
            assert value >= (metric.low or 0.0)
            assert metric.high is None or value <= metric.high
        else:
            assert {metric.name, "*"} & dict(row.reasons).keys(), metric.name


class NeverSure:
    """A model of claim support that gives each claim a chance of .2."""

    identity = "never-sure@1"
    window_words = 100

    def __call__(self, claims: Sequence[Any], *more: Any) -> list[float]:
        return [0.2] * len(claims)


def test_what_is_handed_in_decides_about_claims_and_is_recorded(tmp_path: Path) -> None:
    assert SECTION.scorer is not None
    (tmp_path / "results.jsonl").touch()
    job = ScoringJob(tmp_path, tmp_path / "set.jsonl", tmp_path)
    scorer = SECTION.scorer(job, SECTION.options_from({"support_model": NeverSure}))
    assert scorer.options["support_model"] == "never-sure@1"
    answer = "Staff get 15 days of paid vacation each year [1]."
    result = TestResult("q", answer=answer, retrieved=CHUNKS)
    row, _ = cast(GroundednessScorer, scorer).score(TestCase("q", "How many days?"), result)
    assert values(row)["claim_support_rate"] == 0.0  # .2 is below .5; the words would support it
    by_words = SECTION.scorer(job, SECTION.options_from({}))
    assert by_words.options["support_model"] == "word features"
