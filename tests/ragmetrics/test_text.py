"""Text rules: the normalised copy and its map, words, stems, sentences, claims, questions alike."""

from __future__ import annotations

import json
import random
import unicodedata
from collections.abc import Iterator

from hypothesis import example, given
from hypothesis import strategies as st
from tests.rows import each_row

from ragmetrics import claims as ragmetrics_claims
from ragmetrics.text import language
from ragmetrics.text import sentences as cut_sentences
from ragmetrics.text.asked_questions import AskedQuestions
from ragmetrics.text.content import content_stems
from ragmetrics.text.sentences import units
from ragmetrics.text.words import (
    clean,
    content_words,
    fold,
    has_fewer_words,
    normalise,
    stem,
    word_spans,
    words,
)
from records.runs import EVAL_SET

ANY = st.text(st.characters(), max_size=80)  # includes lone surrogates
MARKDOWN = st.text(
    st.sampled_from(list("ab1. \n#-*|`[](){}!?:;,“”’–\u200b\u0301你好🙂\ud800")), max_size=60
)


@given(st.text(st.sampled_from(list("abAB12  '.,,_-;!\n")), max_size=40))
@example("1,234.5 EUR isn't a_b 2.x")
def test_a_text_in_ascii_has_the_words_that_it_has_beside_another_sign(text: str) -> None:
    assert [*words(text), "é"] == words(f"{text} é")


@each_row(
    ("text", "folded"),
    [
        ("Plan B", "plan b"),
        ("“It’s”", '"it\'s"'),
        ("a\u00a0b\u200bc", "a bc"),
        ("ﬁne", "fine"),  # one ligature, two letters
        ("Straße", "strasse"),
        ("2½", "2 1/2"),  # not 21/2
        ("20–30", "20 - 30"),  # a dash joins two ends, a hyphen makes one word
        ("e\u0301", "é"),
        ("\ud800x", "\ufffdx"),
    ],
)
def test_fold(text: str, folded: str) -> None:
    assert fold(text) == folded


@given(ANY)
@example("e\u0301\u0323a")
@example("\u1100\u1161\u11a8")  # Hangul letters that compose to one syllable
@example("e\u200b\u0301")  # a dropped character between a letter and its accent
@example("½\uff9e")
def test_the_map_leads_every_character_back_into_the_original(text: str) -> None:
    normal = normalise(text)
    assert normal.text == fold(text)
    if normal.offsets is not None:
        assert len(normal.offsets) == len(normal.text) + 1
        assert list(normal.offsets) == sorted(normal.offsets)
        assert normal.offsets[-1] == len(text)


def test_a_span_of_the_copy_is_a_span_of_the_original() -> None:
    text = "The ﬁne\u200b is “20 EUR”"
    normal = normalise(text)
    place = normal.text.index("20 eur")
    start, end = normal.span(place, place + 6)
    assert text[start:end] == "20 EUR"
    place = normal.text.index("fine")
    assert text[slice(*normal.span(place, place + 4))].startswith("ﬁne")


@given(ANY)
def test_clean_text_keeps_its_length_and_can_be_stored(text: str) -> None:
    assert len(clean(text)) == len(text)
    clean(text).encode("utf-8")


def test_words_keep_numbers_whole_and_cut_unspaced_scripts_in_pairs() -> None:
    assert words(fold("1,234.5 EUR isn't much")) == ["1234.5", "eur", "isn't", "much"]
    assert words("你好吗") == ["你好", "好吗"]
    assert words("!!! ... 🙂") == []
    assert word_spans("a 你好") == [("a", 0, 1), ("你", 2, 3), ("好", 3, 4)]
    assert words(fold("हिन्दी में")) == [fold("हिन्दी"), fold("में")]
    # Three signs: ก, ิ on it (one sign), น; each pair of neighbours is a word.
    assert words(fold("กินน้ำ"))[0] == fold("กิน")


@each_row(
    ("word", "expected"),
    [
        ("stores", "stor"), ("stored", "stor"), ("storing", "stor"), ("store", "stor"),
        ("studies", "study"), ("studied", "study"), ("stopping", "stop"), ("falling", "fall"),
        ("boxes", "box"), ("glass", "glass"), ("bus", "bus"), ("king", "king"), ("red", "red"),
        ("plan's", "plan"), ("v2s", "v2s"), ("zürichs", "zürichs"),
    ],
)  # fmt: skip
def test_stem(word: str, expected: str) -> None:
    assert stem(word) == expected


def test_content_words_leave_stop_words_out() -> None:
    # the, was, to, of are stop words; "not" too: negation is looked at apart.
    assert content_words(fold("The fee was not raised to 20 of them.")) == ["fee", "rais", "20"]


def sentences(text: str) -> list[tuple[str, str]]:
    return [(unit.kind, text[unit.start : unit.end]) for unit in units(text)]


def test_blocks_first_then_sentences() -> None:
    text = (
        "# Fees\n\nPlan B costs 1.5 EUR. [1] See Eq. 2 of the U.S. law.[2]\n"
        "Options:\n- **one** item\n"
        "2) Another. With two.\n| a | b |\n|---|---|\n| fee | 20 |\n"
        "```\nx = 1\n```\n> quoted text\n---\n"
    )
    assert sentences(text) == [
        ("heading", "# Fees"),
        ("prose", "Plan B costs 1.5 EUR. [1]"),
        ("prose", "See Eq. 2 of the U.S. law.[2]"),
        ("stem", "Options:"),
        ("item", "**one** item"),
        ("item", "Another."),
        ("item", "With two."),
        ("heading", "| a | b |"),
        ("table", "| fee | 20 |"),
        ("code", "x = 1"),
        ("prose", "quoted text"),
    ]


@each_row(
    ("text", "expected"),
    [
        (
            "Follow these steps: 1. Open the box. 2. Close the box.",
            [
                ("stem", "Follow these steps:"),
                ("item", "Open the box."),
                ("item", "Close the box."),
            ],
        ),
        ("Cats sleep. Dogs bark.", [("prose", "Cats sleep."), ("prose", "Dogs bark.")]),
        ("It costs 1.5 EUR.", [("prose", "It costs 1.5 EUR.")]),
    ],
)
def test_sentences_of_a_line(text: str, expected: list[tuple[str, str]]) -> None:
    assert sentences(text) == expected


@given(st.one_of(ANY, MARKDOWN))
def test_units_lie_in_order_inside_the_text(text: str) -> None:
    place = 0
    for unit in units(text):
        assert place <= unit.start < unit.end <= len(text)
        assert text[unit.start : unit.end].strip()
        place = unit.end


def claims(text: str) -> list[str]:
    return [claim.text for claim in ragmetrics_claims.extract(text).claims]


def skipped(text: str) -> list[str]:
    return [item.reason for item in ragmetrics_claims.extract(text).skipped]


@each_row(
    ("text", "reason"),
    [
        ("What does plan B cost?", "question"),
        ("Let me know if you need more.", "greeting or offer"),
        ("I could not find that in the notes.", "abstention"),
        ("# Plan B costs", "heading"),
        ("Plan B has these parts:", "stem"),
        ("```\nfee = plan.cost * 2\n```", "code"),
        ("Twenty euros.", "too short"),
        ("It is what it is.", "no content word"),
        ("[1]", "no content word"),
    ],
)
def test_what_is_no_claim_is_skipped_with_its_reason(text: str, reason: str) -> None:
    assert claims(text) == []
    assert skipped(text) == [reason]


def test_lead_ins_are_taken_off_a_claim() -> None:
    lead = "Based on the provided passages, plan B costs 20 EUR."
    assert claims(lead) == ["plan B costs 20 EUR."]
    assert claims("Passage 2 says that plan B costs 20 EUR.") == ["plan B costs 20 EUR."]
    assert claims("From Monday on, plan B costs 20 EUR.") == [
        "From Monday on, plan B costs 20 EUR."
    ]
    both = "The first plan costs twenty euros, and the second plan includes phone support."
    assert len(ragmetrics_claims.extract(both, clauses=True).claims) == 2
    assert len(ragmetrics_claims.extract(both).claims) == 1
    listed = "The plan includes phones, and mail."
    assert len(ragmetrics_claims.extract(listed, clauses=True).claims) == 1


def test_a_short_item_takes_the_stem_above_it_along() -> None:
    found = ragmetrics_claims.extract(
        "Plan B includes:\n- Phone support\n- A yearly visit by an engineer"
    ).claims
    assert [(claim.text, claim.lead) for claim in found] == [
        ("Phone support", "Plan B includes:"),
        ("A yearly visit by an engineer", ""),
    ]


@each_row(
    ("text", "kind"),
    [
        ("Plan B costs 20 EUR.", "assertion"),
        ("Plan B may cost 20 EUR.", "inference"),
        ("Plan B started in May 2020.", "assertion"),  # the month
        ('The note says "it may change" twice.', "assertion"),  # quoted
        ("Plans typically cost 20 EUR, or might.", "general"),  # general goes first
    ],
)
def test_claim_types(text: str, kind: str) -> None:
    assert ragmetrics_claims.claim_type(text) == kind


@given(st.one_of(ANY, MARKDOWN))
def test_claims_are_spans_of_the_cleaned_answer(text: str) -> None:
    for claim in ragmetrics_claims.extract(text).claims:
        assert clean(text)[claim.start : claim.end] == claim.text


def test_scripts_and_languages_that_differ() -> None:
    assert language.script("退款政策") == "han"
    assert language.script("123 !?") is None
    assert language.language(ENGLISH) == "en"
    assert language.language("Plan B") is None
    assert language.differ(ENGLISH, GERMAN)
    assert language.differ(ENGLISH, "الرسوم عشرون")
    assert not language.differ(ENGLISH, "Plan B: 20 EUR")
    assert not language.differ("", GERMAN)


ENGLISH = "The fee is 20 EUR and it is due in the month that was agreed."
GERMAN = "Die Gebühr ist 20 EUR und wird in dem Monat fällig, der nicht vereinbart ist."


@each_row(
    ("text", "name"),
    [
        (ENGLISH, "en"),
        (GERMAN, "de"),
        ("Dazu finde ich in den Dokumenten leider keine Angaben.", "de"),
        ("Je ne peux pas répondre à cette question.", "fr"),
        ("Lo siento, no tengo información sobre eso.", "es"),
        ("Mi dispiace, non posso rispondere a questa domanda.", "it"),
        ("Câu trả lời không có trong các tài liệu này.", "vi"),
        ("Не знаю.", "ru"),
        ("我不知道。", "zh"),
        ("わかりません。", "ja"),
        ("मुझे नहीं पता।", "hi"),
        ("Չգիտեմ։", "armenian"),
        ("Δεν γνωρίζω.", "el"),
        # Numbers, names, formulas, addresses and code tell no language.
        ("30 %, 1,234.5", None),
        ("Paris.", None),
        ("Los Angeles, Las Vegas, El Paso, Los Alamos", None),
        ("- Los Angeles\n- Las Vegas\n- El Paso", None),
        ("π ≈ 3.14, 5 Ω, 10 µm, 10 μm", None),
        ("import os\nprint(os.path.join(os.getcwd(), os.sep))", None),
        ("a@das.com, www.die.com, der.nicht.com", None),
        ("Ｐａｒｉｓ", None),
        ("", None),
    ],
)
def test_the_language_of_a_text(text: str, name: str | None) -> None:
    assert language.guess(text) == name
    assert language.guess(unicodedata.normalize("NFD", text)) == name  # accents as marks


def test_a_short_answer_takes_the_language_of_its_question_and_passages() -> None:
    assert language.language_of("30 Tage.", "Wie lange gilt die Frist?", [None, GERMAN]) == "de"
    assert language.language_of("30 days.", "How long is it open?", [ENGLISH]) == "en"
    assert language.language_of("30", "Wann?", [], "de") == "de"  # the run's most frequent
    assert language.language_of("30", "Wann?", []) is None
    assert language.language_of("The fee that is due to it.", "", [], "de") == "en"  # its own first
    # A guess looks at 4,000 characters: 3,000 of the answer, 900 of each passage.
    passages = iter(["1" * 900] * 9)
    assert language.language_of("1" * 3000, "", passages) is None
    assert len([*passages]) == 6  # two are read, and the third is not looked at
    assert [language.is_covered(name) for name in ("en", None, "de", "hi", "pl")] == [True] * 5
    assert not any(language.is_covered(name) for name in ("cs", "hebrew", "hangul"))


def test_a_wide_blank_before_a_full_stop_is_a_blank() -> None:
    text = "That is plan B\u00a0.Then comes plan C\u2009.It ends."
    cut = [text[unit.start : unit.end] for unit in units(text)]
    assert "".join(cut).replace(" ", "") == text.replace(" ", "")
    text = "word " * 3000
    assert sum(unit.end - unit.start for unit in units(text)) >= len(text) - 10


def test_thai_is_cut_at_function_words_and_the_rest_into_three_signs() -> None:
    # cat, in, garden: the word between is dropped, three signs on either side are one group.
    assert list(content_stems(fold("แมวในสวน"), "th")) == ["แมว", "สวน"]
    assert list(content_stems(fold("ในกา"), "th")) == ["กา"]  # shorter than a group: as it is


@given(st.text(st.sampled_from("ab1 ,.'é中文ไทย\u0e31"), max_size=30), st.integers(1, 6))
@example("中文字", 2)  # one run, two groups of signs
@example("中文字", 3)
def test_fewer_words_are_counted_as_all_are(text: str, number: int) -> None:
    folded = fold(text)
    assert has_fewer_words(folded, number) == (len(words(folded)) < number)


@given(st.text(st.sampled_from('aA1٣(.):;!?, \n"*'), max_size=40))
@example("Steps: 1. Open it. 2) Close it.")
def test_an_item_within_a_line_is_never_passed_over(text: str) -> None:
    if cut_sentences._INLINE_ITEM.search(text):
        assert cut_sentences._NUMBERED.search(text)


def test_nearly_the_same_question_is_not_new() -> None:
    asked = AskedQuestions(["How do I clean a crane?"])
    assert not asked.add("How do I clean the crane?")
    assert not asked.add("how DO i clean cranes?")
    assert asked.add("How do I rent a crane?")
    assert asked.add("What is a mixer?")
    assert not asked.add("What should I know about mixers?")
    assert not asked.add("?!")
    asked = AskedQuestions(["crane wheel rope"])
    assert asked.closeness("crane wheel rope bucket") == 3 / 4
    assert not asked.add("crane wheel rope bucket")
    assert asked.closeness("crane wheel") == 2 / 3
    assert asked.add("crane wheel")


@given(st.lists(st.text("abc xyz?", min_size=1, max_size=12), max_size=15))
def test_a_question_is_never_new_twice(texts: list[str]) -> None:
    asked = AskedQuestions()
    for text in texts:
        asked.add(text)
        assert not asked.add(text)


def variants(question: str, rng: random.Random) -> Iterator[str]:
    """The same question as users write it: courtesies, slips, case, order, another form."""
    words = question.rstrip("?").split()
    yield question.upper()
    yield f"Hi, could you please tell me: {question[0].lower()}{question[1:]} Thanks!"
    yield " ".join(words) + " ???"
    longest = max(words, key=len)
    at = rng.randrange(1, len(longest) - 2)
    slip = longest[:at] + longest[at + 1] + longest[at] + longest[at + 2 :]
    yield question.replace(longest, slip)
    yield question.replace(longest, longest[:at] + longest[at + 1 :])
    yield "I would like to know, " + question


def test_near_duplicates_of_the_set_are_found() -> None:
    """On the questions of the shipped demo set; distinct questions of it stay apart."""
    questions = [json.loads(line)["question"] for line in EVAL_SET.read_text("utf-8").splitlines()]
    asked, rng = AskedQuestions(questions), random.Random(3)
    pairs = [(q, v) for q in questions for v in variants(q, rng)]
    found = sum(not asked.add(variant) for _, variant in pairs)
    assert found / len(pairs) >= 0.95, f"{found} of {len(pairs)}"
    alone = AskedQuestions()
    assert sum(alone.add(question) for question in questions) >= 0.95 * len(questions)
