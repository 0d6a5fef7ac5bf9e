"""Thanks, offers and agreement are no claims; what begins like them and says something is one."""

from __future__ import annotations

from tests.rows import each_row

from ragmetrics.claims import extract
from ragmetrics.text.talk import talk_ends


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
