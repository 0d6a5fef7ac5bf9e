"""Citations: forms, what they resolve to, what they stand behind, and the four shares."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from tests.rows import each_row

from ragmetrics import citations
from ragmetrics.citations import Resolver, attach, marks
from ragmetrics.claims import extract
from ragmetrics.windows import PreparedChunk, prepare
from records.results import Reference, RetrievedChunk

CHUNKS = [
    RetrievedChunk(chunk_id="c1", doc_id="internal-001", rel_path="Plans/plan-b.md"),
    RetrievedChunk(chunk_id="c2", doc_id="internal-002", rel_path="Plans/plan-c.md"),
]


@each_row(
    ("text", "targets"),
    [
        ("It is so [1].", [(1,)]),
        ("It is so[1].", [(1,)]),
        ("It is so [1, 3].", [(1, 3)]),
        ("It is so [1-3].", [(1, 2, 3)]),
        ("It is so [1–3].", [(1, 2, 3)]),
        ("It is so [1][2].", [(1,), (2,)]),
        ("It is so 【1】.", [(1,)]),
        ("It is so 【4:0†source】.", [(4,)]),
        ("It is so [^1].", [(1,)]),
        ("It is so [[Plan B]].", [("Plan B",)]),
        ("It is so (Plans/plan-b.md).", [("Plans/plan-b.md",)]),
        ("It is so [plan-b.md].", [("plan-b.md",)]),
        ("It is so [internal-001].", [("internal-001",)]),
        ("It is so [2, 2].", [(2,)]),
        ("It is so [0].", [(0,)]),
    ],
)
def test_forms(text: str, targets: list[tuple[object, ...]]) -> None:
    assert [mark.targets for mark in marks(text)] == targets


@each_row(
    "text",
    ["a[0] = 1", "x[1]", "[x] done", "so [sic]", "`data [1]`", "See:\n```\nrow [1]\n```",
     "$x_{[1]}$", "[ISO-8601] dates", "[docs](https://example.org/a.md)", "(see above)", "[1](https://example.org)"],
)  # fmt: skip
def test_no_citations(text: str) -> None:
    assert marks(text) == []


@each_row(
    ("target", "place"),
    [
        (1, 0), (2, 1), (0, None), (3, None),
        ("c2", 1), ("internal-001", 0), ("Plans/plan-b.md", 0), ("./Plans/plan-b.md#Fees", 0),
        ("plan-c.md", 1), ("plan-c", 1), ("PLAN-C", 1), ("plan-d.md", None),
    ],
)  # fmt: skip
def test_what_a_citation_resolves_to(target: int | str, place: int | None) -> None:
    assert Resolver(CHUNKS)(target) == place


def test_the_list_of_references_says_what_its_numbers_mean() -> None:
    resolver = Resolver(
        CHUNKS, [Reference(index=1, doc_id="internal-002"), Reference(index=2, doc_id="gone")]
    )
    assert resolver(1) == 1
    assert resolver(2) is None
    assert resolver.reference(Reference(index=1)) == 0  # a bare number is a place in the list
    assert Resolver(CHUNKS, first=0)(0) == 0
    assert Resolver(CHUNKS, first=0)(2) is None


def attached(answer: str) -> list[tuple[object, int | None, str, int | None]]:
    found = attach(answer, extract(answer).claims, Resolver(CHUNKS))
    return [(c.target, c.claim, c.covered, c.chunk) for c in found]


@each_row(
    ("answer", "expected"),
    [
        (  # the clause up to it, or the whole sentence
            "Plan B costs money [1] while plan C is free of charge [2].",
            [
                (1, 0, "Plan B costs money", 0),
                (2, 0, "Plan B costs money [1] while plan C is free of charge [2].", 1),
            ],
        ),
        (
            "Plan B costs money. Plan C is free of charge. [2]",
            [(2, 1, "Plan C is free of charge. [2]", 1)],
        ),
        (  # marks side by side
            "Plan B costs money [1][2] and plan C is free of charge.",
            [(1, 0, "Plan B costs money", 0), (2, 0, "Plan B costs money", 1)],
        ),
        ("# Plans [1]\nPlan B costs money.", [(1, None, "", 0)]),
    ],
)
def test_what_a_mark_covers(answer: str, expected: list[tuple[object, ...]]) -> None:
    found = [
        (target, claim, covered.strip(), chunk)
        for target, claim, covered, chunk in attached(answer)
    ]
    assert found == expected


def test_the_same_source_counts_once_a_claim() -> None:
    assert len(attached("Plan B [1] costs money [1].")) == 1
    assert [
        claim for _, claim, _, _ in attached("Plan B costs money. It renews yearly.\n\n[1]")
    ] == [1]


TEXTS = [prepare("Plan B costs 20 EUR a month."), prepare("Plan C is free of charge.")]


def shares(answer: str) -> tuple[float | None, float | None, float | None, float | None]:
    """form, content, coverage, joint"""
    claims = extract(answer).claims
    found = attach(answer, claims, Resolver(CHUNKS))
    checked = [passed for _, passed in citations.content_checks(found, TEXTS)]
    return (
        citations.validity_form([c.chunk for c in found]),
        sum(checked) / len(checked) if checked else None,
        citations.coverage(len(claims), [c.claim for c in found if c.claim is not None]),
        citations.joint(claims, found, TEXTS),
    )


def test_shares() -> None:
    # Three claims, two with a citation: coverage 2/3. Citations [1], [2], [9]: form 2/3.
    # [1] bears out plan B; [2] does not bear out "Plan B renews yearly" (1 of 4 words): 1/2.
    # Joint: claim one yes; claim two no (its sources [2] and the missing [9]): 1/2.
    answer = "Plan B costs 20 EUR [1]. Plan B renews yearly [2][9]. Plan C is free of charge."
    assert shares(answer) == (2 / 3, 1 / 2, 2 / 3, 1 / 2)
    # The second claim has both sources; for content each must bear it out alone.
    answer = "Plan B costs 20 EUR a month. Plan C is free of charge [1][2]."
    assert shares(answer) == (1.0, 1 / 2, 1 / 2, 1.0)
    assert shares("Plan B costs money.") == (None, None, 0.0, None)
    assert shares("") == (None, None, None, None)
    assert shares("[1]") == (1.0, None, None, None)


@given(st.text(st.sampled_from(list("ab.[]【】()1-,^ \n`$\ud800")), max_size=60))
def test_any_text_has_defined_citations(text: str) -> None:
    found = attach(text, extract(text).claims, Resolver(CHUNKS))
    form = citations.validity_form([c.chunk for c in found])
    assert form is None if not found else 0.0 <= (form or 0.0) <= 1.0


HALVES = [
    prepare("The garden opens at nine in the morning."),
    prepare("The cafe sells soup and bread."),
    prepare("The garden opens at nine. Bread is baked daily."),
]


def needed(answer: str, texts: list[PreparedChunk] = HALVES) -> tuple[float | None, float | None]:
    """precision, joint"""
    claims = extract(answer).claims
    passages = [RetrievedChunk(chunk_id=f"c{n}") for n in range(len(texts))]
    found = attach(answer, claims, Resolver(passages))
    return citations.precision(claims, found, texts), citations.joint(claims, found, texts)


def test_precision_forgives_a_citation_that_is_needed_jointly() -> None:
    # Content words: garden, open, nine, cafe, sell, soup, bread. [1] holds 3 of 7, [2] 4 of 7
    # (.57, over .55), so [2] supports alone and [1] is not needed: 1 of 2.
    answer = "The garden opens at nine and the cafe sells soup and bread [1][2]."
    assert needed(answer) == (1 / 2, 1.0)
    # With "morning" 8 words: [1] and [2] hold 4 of 8 each, under .55, together 8: both are needed.
    answer = "The garden opens at nine in the morning and the cafe sells soup and bread [1][2]."
    assert needed(answer) == (1.0, 1.0)
    # A third one that adds nothing: [1][2] do without it, and alone it has garden, open, nine,
    # bread, of which one window holds 4 of 8: 2 of 3. [1] and [2]: without [1] morning is missing,
    # and the rest, 7 of 8, still supports the claim; alone [1] does not: not needed. Without [2]
    # the rest holds garden, open, nine, morning, bread: 5 of 8 (.625): not needed either.
    assert needed(answer.replace("[2]", "[2][3]")) == (0.0, 1.0)


def test_precision_of_a_claim_that_is_not_supported_and_of_no_citation() -> None:
    # ALCE: a citation counts only where the claim's citations together support it.
    assert needed("The garden opens at ten in winter and closes at six [1].") == (0.0, 0.0)
    assert needed("The garden opens at nine in the morning [1].") == (1.0, 1.0)
    # [7] resolves to nothing: no citation of the claim is left to count.
    assert needed("The garden opens at nine in the morning [7].") == (None, 0.0)
    assert needed("The garden opens at nine in the morning.") == (None, None)
