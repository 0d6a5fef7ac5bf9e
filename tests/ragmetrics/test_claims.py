"""The support scorer: windows, veto, thresholds, evidence, negation; talk, which is no claim."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.rows import each_row

from ragmetrics import support
from ragmetrics.claims import ClaimSupport, extract, score_claim
from ragmetrics.support import judge, unknown_names
from ragmetrics.text.negation import is_opposite
from ragmetrics.text.numbers import index
from ragmetrics.text.talk import talk_ends
from ragmetrics.text.words import content_words, fold, spelled
from ragmetrics.windows import PreparedChunk, best_window, prepare

WORDS = st.lists(st.sampled_from(["fee", "plan", "bank", "loan", "card", "rate"]), max_size=6)


def score(claim: str, *contexts: str, **more: object) -> ClaimSupport:
    found = score_claim(claim, [prepare(text) for text in contexts], **more)  # type: ignore[arg-type]
    assert found is not None
    return found


def test_score_is_the_share_of_distinct_content_words() -> None:
    # Content words: plan, includ, phone, support, weekend; weekend is missing: 4 of 5.
    found = score(
        "The plan includes phone support on weekends, the plan!", "The plan includes phone support."
    )
    assert found.score == 4 / 5
    assert found.missing == ("weekends",)
    assert found.supported


def test_windows_are_three_sentences_of_one_chunk() -> None:
    # Words alpha beta gamma delta stand in sentences 1-4: a window of three holds 3 of 4.
    text = "Here alpha. Here beta. Here gamma. Here delta."
    assert score("Alpha beta gamma delta.", text).score == 3 / 4
    # In two chunks the best single chunk holds 2 of 4: windows never cross.
    assert (
        score("Alpha beta gamma delta.", "Here alpha. Here beta.", "Gamma, delta.").score == 2 / 4
    )


def test_the_window_and_its_chunk_are_evidence() -> None:
    text = "Nothing here. Plan B costs money. It renews yearly. The end. Or not."
    found = score("Plan B renews yearly.", "Another note.", text)
    assert found.chunk == 1
    assert found.window is not None
    # The earliest window that holds all words: sentences 1-3.
    assert text[slice(*found.window)] == "Nothing here. Plan B costs money. It renews yearly."
    # First sentence 3 of 3 words, second 1 of 3 (plan; phone and support are missing).
    found = score("The plan renews yearly. The plan has phone support.", "The plan renews yearly.")
    assert found.score == 1 / 3
    assert found.missing == ("phone", "support")


@each_row(
    ("claim", "supported"),
    [
        # 5 of 9 words = 0.556 >= 0.55; 5 of 10 = 0.5 < 0.55, but >= 0.45 for an inference.
        ("alpha beta gamma delta epsilon one1 two2 three3 four4", True),
        ("alpha beta gamma delta epsilon one1 two2 three3 four4 five5", False),
        ("alpha beta gamma delta epsilon might one1 two2 three3 four4 five5", True),
    ],
)
def test_thresholds_by_type(claim: str, supported: bool) -> None:
    assert score(claim, "alpha beta gamma delta epsilon").supported is supported


def test_a_number_without_a_source_vetoes_but_one_of_the_question_does_not() -> None:
    context = "Plan B costs 20 EUR a month for all members."
    found = score("Plan B costs 25 EUR a month for all members.", context)
    # Content words: plan, b, cost, 25, eur, month, member: 6 of 7 are held, and yet:
    assert found.score == 6 / 7
    assert found.vetoing == ("25",)
    assert not found.supported
    assert found.strength == 0.0
    assert score("Plan B costs 20 EUR a month for all members.", context).strength == 1.0
    question = index("What did it cost in 2019?")
    claim, context = "In 2019 plan B cost twenty EUR.", "Plan B cost 20 EUR."
    assert score(claim, context).vetoing == ("2019",)
    assert score(claim, context, question=question).vetoing == ()


def test_no_contexts_is_no_support_and_no_content_word_no_score() -> None:
    found = score("Plan B costs money.")
    assert (found.supported, found.score, found.chunk, found.window) == (False, 0.0, None, None)
    assert score_claim("It is.", [prepare("It is.")]) is None
    assert score_claim("!?", [prepare("It is.")]) is None
    assert score_claim("", []) is None


def test_negation_is_a_warning_and_no_verdict() -> None:
    found = score("Plan B does not include phone support.", "Plan B includes phone support.")
    assert found.negation_mismatch
    assert found.supported
    assert not score(
        "Plan B includes phone support.", "Plan B includes phone support."
    ).negation_mismatch
    assert score("Plan B includes phone support.", "Plan B lacks no phone support.").window_negated


def test_names_that_no_passage_holds() -> None:
    chunks = [prepare("Plan B was made by Ada Lovelace in London.")]
    # "Ada Byron" has a word there; "Plan" opens the sentence; of "Charles Babbage" there is none.
    claim = (
        "Plan B was made by Ada Byron and Charles Babbage in Paris. Berlin [1] and Paris like it."
    )
    assert unknown_names(claim, chunks) == ("Charles Babbage", "Paris")
    assert unknown_names("It was made in London.", chunks) == ()
    assert unknown_names("", chunks) == ()


def test_which_words_of_a_claim_count_and_of_few_all() -> None:
    claim = "1. Plan B includes phone support (Passage 2)[1][3]."
    assert score(claim, "Plan B includes phone support.").score == 1.0
    assert score("It costs money.", "The plan costs money.").supported
    assert not score("It costs money.", "The plan costs nothing.").supported  # 1 of 2
    assert score("Alpha beta gamma.", "Alpha beta delta.").supported  # 2 of 3, over .55


def test_a_lead_adds_its_words_but_not_its_numbers() -> None:
    found = score(
        "Phone support", "Plan B includes phone support.", lead="In 80 words, plan B includes:"
    )
    # Lead and claim: 80, word, plan, b, includ, phone, support: 5 of 7; 80 does not veto.
    assert found.score == 5 / 7
    assert found.vetoing == ()


def naive_best(wanted: list[str], text: str) -> int:
    """The definition, written out: every window of three sentences, words as sets."""
    chunk = prepare(text)
    sets = [set(content_words(fold(text[a:b]))) for a, b in chunk.spans]
    windows = [set().union(*sets[i : i + 3]) for i in range(len(sets))]
    return max((len(set(wanted) & window) for window in windows), default=0)


@given(WORDS, st.lists(WORDS, max_size=8))
def test_the_bit_masks_count_as_the_definition_does(
    wanted: list[str], lines: list[list[str]]
) -> None:
    text = " ".join(f"Has {' '.join(line)}." for line in lines)
    distinct = list(dict.fromkeys(content_words(" ".join(wanted))))
    assert best_window(distinct, prepare(text))[0] == naive_best(distinct, text)


def test_many_words_overflow_no_counter() -> None:
    words = [f"word{number}" for number in range(100)]
    chunk = PreparedChunk(
        "", ((0, 0),) * 5, {word: 1 << (n % 5) for n, word in enumerate(words)}, index("")
    )
    # Each sentence holds 20 of the words, so each full window holds 60; the first one wins.
    assert best_window(words, chunk) == (60, 0)


@given(st.text(st.characters(codec="utf-8"), max_size=80))
def test_a_sentence_supports_itself(text: str) -> None:
    found = score_claim(text, [prepare(text)])
    if found is not None and found.score < 1.0:
        # Marks and mentions of sources are left out of a claim; no word may get lost beyond that.
        assert set(found.missing) <= set(spelled(fold(text)).values())


def test_the_distance_to_the_nearest_training_set(monkeypatch: pytest.MonkeyPatch) -> None:
    # By hand, at the ends of the 10 steps. Half of the claims are in the first step and half in the
    # last: the share below is .5 from .1 to .9. Of "low" all are below .1: distance .5; of "even"
    # the share below k/10 is k/10: |.5 - .1| = .4 at both ends.
    even = tuple(step / 10 for step in range(1, 10))
    monkeypatch.setattr(support, "STRENGTHS", {"low": (1.0,) * 9, "even": even})
    distance, nearest = support.distance([7, *[0] * 8, 7])
    assert nearest == "even"
    assert distance == pytest.approx(0.4)
    assert support.distance([3, *[0] * 9]) == (0.0, "low")


@each_row(
    "text",
    [
        "Sure!",
        "That is true.",
        "Great question.",
        "Thanks for waiting.",
        "Let me know if the printer stops again.",
        "I hope this helps!",
        "I can also draft a letter to the landlord if you like.",
        "Here is a short summary of the refund rules:",
        "No, that is not correct.",
        "I will keep it brief.",
        "So sorry to hear about the flood.",
        "Cheers for writing in, that must be annoying.",
        "What a lovely plan.",
        "TL;DR:",
        "Allow me a moment to find that.",
        "If I got it wrong, tell me and I'll try again.",
        "Best wishes for the move.",
    ],
)
def test_talk_is_no_claim(text: str) -> None:
    assert talk_ends(text) == len(text)
    assert extract(text).claims == ()


@each_row(
    "text",
    [
        "Thanks to a grant, the pool is open all year.",
        "Sure-fire lighters are sold at the kiosk.",
        "Great Hall tickets cost nine euros.",
        "Let's Encrypt issues certificates for ninety days.",
        "You need to provide additional information.",
        "Welcome packs are sent to new members.",
        "I'm sorry cards are sold in the gift shop.",
        "Cheers Bar opens at noon.",
        "Feel free to take up to three plants.",
        "Let us know of a new address within a week.",
        "Excuse notes have to be signed by a parent.",
        "You're welcome to bring a guest to the pool.",
    ],
)
def test_what_begins_like_talk_stays_whole(text: str) -> None:
    assert [claim.text for claim in extract(text).claims] == [text]


@each_row(
    "opening",
    ["Sure, ", "Yes, ", "Of course! ", "Let me explain: ", "Thanks, good question: ", "In short, "],
)
def test_talk_before_a_claim_is_cut(opening: str) -> None:
    claim = "the warranty covers water damage."
    answer = f"{opening}{claim}"
    found = extract(answer).claims
    assert [one.text for one in found] == [claim]
    assert answer[found[0].start : found[0].end] == claim


def test_talk_leads_no_list_item() -> None:
    # "Sure, happy to help:" says nothing of the items; "The plan includes:" does.
    talk, stem = (
        extract(f"{line}\n- phone support for all\n- visits").claims
        for line in ("Sure, happy to help:", "Sure, the plan includes:")
    )
    assert {claim.lead for claim in talk} == {""}
    assert {claim.lead for claim in stem} == {"the plan includes:"}


@each_row(
    ("claim", "sentence"),
    [
        ("The plan does not cover dental care.", "The plan covers dental care."),
        ("The plan covers dental care.", "The plan doesn't cover dental care."),
        ("Guests can't use the pool.", "Guests can use the pool."),
        ("No pets are allowed on the roof.", "Pets are allowed on the roof."),
        ("The fee is never waived without a form.", "The fee is waived without a form."),
        ("The pool no longer opens on Sundays.", "The pool opens on Sundays."),
        ("Neither the gym nor the pool opens early.", "Both the gym and the pool open early."),
        ("Rooms come with a balcony.", "Rooms come without a balcony."),
    ],
)
def test_a_not_on_one_side_vetoes(claim: str, sentence: str) -> None:
    assert is_opposite(claim, [sentence])
    found = judge(claim, [prepare(f"This is a note. {sentence}")])
    assert found is not None
    assert (found.supported, found.strength, found.opposite) == (False, 0.0, True)


@each_row(
    ("claim", "sentence"),
    [
        ("The plan does not cover dental care.", "The plan does not cover dental care."),
        ("Entry is not possible after six.", "Entry is only possible after six."),
        ("Statements are not charged.", "Statements are free, they are charged to the bank."),
        ("The pool is not open to guests.", "The pool is not closed, and not open to guests."),
        ("The plan does not cover visits abroad.", "The plan covers dental care."),
        ("The key cannot be changed.", "The door is locked."),
    ],
)
def test_other_differences_do_not(claim: str, sentence: str) -> None:
    assert not is_opposite(claim, [sentence])


def test_the_sentence_with_most_of_the_words_decides() -> None:
    # The second sentence has all four words of the claim, the first three of them and a "not".
    sentences = ["The plan does not cover dental visits.", "The plan covers dental care visits."]
    assert not is_opposite("The plan covers dental care visits.", sentences)
    assert not is_opposite("", sentences)
    assert not is_opposite("The plan covers it.", [])
