"""Long texts, snippets in them, and two answers beside one another."""

from __future__ import annotations

from tests.views.browser.case_lines import RESULT, SCORES, detail_of, marked

from views.browser.case_page import pair_docs, raw_doc
from views.browser.document import Doc, _find_snippets
from views.case import Case, Claim
from views.case_blocks import ShownWith, case_blocks


def test_snippets_are_found_whatever_the_line_breaks() -> None:
    assert _find_snippets("a  B\nc. a b c", ["a b c", ""]) == [(0, 6), (8, 13)]


def test_a_snippet_that_is_wrapped_is_marked_on_each_of_its_lines() -> None:
    """20 cells less an indent of 8: `alpha beta`, `gamma delta`, `epsilon`."""
    doc = Doc(width=20)
    doc.passage("alpha beta gamma delta epsilon", ["beta gamma"], 100)
    assert doc.text == "        alpha beta\n        gamma delta\n        epsilon\n"
    assert marked(doc, "marked") == ["beta", "gamma"]
    doc = Doc(width=20)
    doc.passage("zero " * 60 + "the snippet" + " more" * 60, ["the snippet"], 30)
    assert " ".join(marked(doc, "marked")) == "the snippet"
    assert doc.text.lstrip().startswith("…")
    assert doc.text.endswith("…\n")


def test_passages_claims_and_quotes_are_cut_between_words() -> None:
    """Every word that is shown is a whole one; words of 7 letters, whatever the limit."""
    words = [f"word{n:03}" for n in range(200)]
    text = " ".join(words)
    for limit in range(60, 76):
        doc = Doc(width=60)
        doc.passage(text, ["word120 word121"], limit)
        shown = doc.text.replace("…", " ").split()
        assert set(shown) <= set(words), limit
        assert "word120" in shown
    claim = Claim(text, None, "unsupported", "", "", quote=text)
    case = Case("q", 0, "?", "ok", claims=(claim,), claims_by="rules")
    doc = Doc(width=60)
    doc.draw(case_blocks(case, ("claims",))[1:])
    shown = doc.text.replace("…", " ").replace('"', " ").split()
    assert set(shown) - set(words) == {"✗", "not", "supported", "quote:"}
    doc = Doc()
    doc.passage("y" * 300, [], 100)
    assert doc.text == f"{'y' * 100} …\n", "a word without an end is cut where it must be"


def test_a_huge_text_says_that_it_is_cut_and_a_long_result_is_not() -> None:
    doc = Doc()
    doc.line("x" * 70_000)
    assert doc.text.endswith("x … (cut: 70000 characters)\n")
    doc = Doc()
    doc.passage("y" * 70_000, [], None)
    assert doc.text.endswith("y …\n")
    raw = raw_doc(Doc, detail_of(RESULT | {"policy_flags": ["flag"] * 20_000}))
    assert raw.text.count('"flag"') == 20_000


def test_a_pair_says_what_changed() -> None:
    new_scores = SCORES | {
        "retrieval": {
            "case_id": "q",
            "scores": {"recall@5": 0.0},
            "evidence": {"match": "anchor", "found": [None, None], "hits": []},
        }
    }
    base, new = detail_of(), detail_of(RESULT | {"answer": "Forever."}, scores=new_scores)
    view = ShownWith(
        before=base,
        runs=("k10", "k5"),
        states=(
            "ok (warning: of the base)",
            "FAILS: the right passage was at rank 2 and is now missing",
        ),
        way="broke",
    )
    left, right = pair_docs(Doc, new, view, two=False)
    assert right is None
    assert (
        "BROKE  k10: ok; k5: FAILS: the right passage was at rank 2 and is now missing" in left.text
    )
    assert left.text.count("of the base") == 1, "a warning is beside its answer alone"
    assert left.text.index("Base: k10") < left.text.index("New: k5")
    assert "gold 1 → none      a.md > A" in left.text
    assert "recall@5           0.50 → 0" in left.text
    assert "1 changed, 3 equal" in left.text
    left, right = pair_docs(Doc, new, view, two=True)
    assert right is not None
    assert ("Base: k10" in left.text, "New: k5" in right.text) == (True, True)
