"""Claims that differ from their passage in one sign, word or unit: what is the same, and what not.

The pairs were written before the rules. Each expected value is plain: two amounts are equal when
they are the same in one unit, two statements are not when one word turns one into the other.
"""

from __future__ import annotations

from tests.rows import each_row

from ragmetrics.support import LexicalClaim, judge
from ragmetrics.text.language import language_of
from ragmetrics.windows import prepare

TRUE = [
    # the same amount in another unit, or written in another way
    ("The trip takes 120 minutes.", "The trip takes 2 hours."),
    ("The trip takes 2 hours.", "The trip takes 120 minutes."),
    ("The trip takes 90 minutes.", "The trip takes 1 hour and 30 minutes."),
    ("The trip takes 1 hour 30 minutes.", "The trip takes 90 min."),
    ("The trip takes 1.5 hours.", "The trip takes 90 minutes."),
    ("The trip takes 60 minutes.", "The trip takes an hour."),
    ("The trip takes 30 minutes.", "The trip takes half an hour."),
    ("The trial lasts 14 days.", "The trial lasts two weeks."),
    ("The contract runs for 24 months.", "The contract runs for 2 years."),
    ("The parcel weighs 2,000 g.", "The parcel weighs 2 kg."),
    ("The parcel weighs 2 kg.", "The parcel weighs 2,000 grams."),
    ("The path is 1,200 metres long.", "The path is 1.2 km long."),
    ("The bottle holds 750 ml.", "The bottle holds 0.75 litres."),
    ("The price was $1.5 million.", "The price was $1,500,000."),
    ("The price was 1,500,000 dollars.", "The price was 1.5 million dollars."),
    ("The fair opens on 3 May 2026.", "The fair opens on 2026-05-03."),
    ("The fair opens on 2026-05-03.", "The fair opens on May 3, 2026."),
    ("The stadium has 1.500 seats.", "The stadium has 1,500 seats."),
    ("A half of the users pay.", "50 percent of the users pay."),
    ("50 % of the users pay.", "Half of the users pay."),
    ("The house was built in the 1980s.", "The house was built in 1987."),
    ("The fee is 250 cents.", "The fee is 2.50 euros."),
    ("Der Versand dauert 48 Stunden.", "Der Versand dauert in der Regel 2 Tage."),
    ("Le trajet dure 120 minutes.", "Le trajet dure 2 heures."),
    # signs and directions in other words
    ("It was minus 5 degrees.", "It was -5 degrees."),
    ("It was 5 degrees below zero.", "It was -5 degrees."),
    ("The index fell by 5 %.", "The index changed by -5 %."),
    ("The index moved by -5 %.", "The index fell by 5 %."),
    ("Der Index sank um 5 %.", "Der Index änderte sich um -5 %."),
    ("The range is 5-10 degrees.", "The range is 5 - 10 degrees."),
    # less than was said is true as well
    ("Some users see the banner.", "All users see the banner."),
    ("Prices rose in May and fell in June.", "Prices rose in May, then fell in June."),
    ("Anna manages Ben.", "Ben is managed by Anna."),
    ("Acme was bought by Globex in 2019.", "Globex bought Acme in 2019."),
    ("Ben met Anna.", "Anna met Ben."),
    ("Paris is the capital of France.", "France's capital is Paris."),
    ("In 2019 Acme bought Globex.", "Acme bought Globex in 2019."),
    ("図書館の料金は30ユーロです。", "図書館の料金は30ユーロです。"),
    ("会議は2026年5月3日に開かれます。", "会議は2026-05-03に開かれます。"),
    ("人口は20万人です。", "人口は200,000人です。"),
]

FALSE = [
    ("It was -5 degrees.", "It was 5 degrees."),
    ("It was 5 degrees.", "It was -5 degrees."),
    ("The account has minus 200 euros.", "The account has 200 euros."),
    ("All users see the banner.", "Some users see the banner."),
    ("Every plan includes support.", "Most plans include support."),
    ("All plans include support.", "Few plans include support."),
    ("The gym opens except on Sundays.", "The gym opens only on Sundays."),
    ("The gym is always open.", "The gym is sometimes open."),
    ("The price rose in May.", "The price fell in May."),
    ("Sales increased by 5 % in 2024.", "Sales decreased by 5 % in 2024."),
    ("The limit was raised to 500 euros.", "The limit was lowered to 500 euros."),
    ("Anna manages Ben.", "Ben manages Anna."),
    ("Ben is managed by Anna.", "Anna is managed by Ben."),
    ("Anna manages Ben.", "Anna is managed by Ben."),
    ("Globex bought Acme in 2019.", "Acme bought Globex in 2019."),
    ("The gym is larger than the pool.", "The pool is larger than the gym."),
    ("Plan B costs more than plan C.", "Plan C costs more than plan B."),
    ("図書館の料金は20ユーロです。", "図書館の料金は30ユーロです。"),
    ("ตั๋วราคา20บาท", "ตั๋วราคา30บาท"),
    ("门票价格是20元。", "门票价格是30元。"),
    # near misses of units
    ("The trip takes 12 minutes.", "The trip takes 2 hours."),
    ("The trip takes 2 minutes.", "The trip takes 2 hours."),
    ("The trip takes 100 minutes.", "The trip takes 1 hour."),
    ("The trip takes 130 minutes.", "The trip takes 1 hour and 30 minutes."),
    ("The parcel weighs 200 g.", "The parcel weighs 2 kg."),
    ("The parcel weighs 2 g.", "The parcel weighs 2 kg."),
    ("The parcel weighs 20,000 g.", "The parcel weighs 2 kg."),
    ("The path is 120 metres long.", "The path is 1.2 km long."),
    ("The price was $1.5 million.", "The price was $150,000."),
    ("The price was $1.5 billion.", "The price was $1,500,000."),
    ("The fair opens on 5 March 2026.", "The fair opens on 2026-05-03."),
    ("The parcel weighs 1.500 kg.", "The parcel weighs 1500 kg."),  # 1.5 in an English text
    ("30 percent of the users pay.", "Half of the users pay."),
    ("The house was built in the 1970s.", "The house was built in 1987."),
    ("The trial lasts 15 days.", "The trial lasts two weeks."),
    ("会議は2026年3月5日に開かれます。", "会議は2026-05-03に開かれます。"),
    ("人口は2万人です。", "人口は200,000人です。"),
]


def verdict(claim: str, passage: str, language: str | None = None) -> LexicalClaim:
    language = language or language_of(claim, "", [passage])
    chunk = prepare(passage, None if language == "en" else language)
    found = judge(claim, [chunk])
    assert found is not None
    return found


def is_supported(claim: str, passage: str, language: str | None = None) -> bool:
    return verdict(claim, passage, language).supported


@each_row(("claim", "passage"), TRUE)
def test_the_same_in_other_words_is_supported(claim: str, passage: str) -> None:
    assert is_supported(claim, passage)


@each_row(("claim", "passage"), FALSE)
def test_a_difference_in_one_place_is_not(claim: str, passage: str) -> None:
    assert not is_supported(claim, passage)


@each_row(
    ("passage", "supported"),
    [
        ("Das Paket wiegt laut Lieferschein 1500 kg.", True),
        ("Das Paket wiegt laut Lieferschein 1,5 kg.", False),  # a thousandth
        ("Das Paket wiegt laut Lieferschein 1,5 t.", False),  # no unit that we convert
    ],
)
def test_the_language_tells_how_decimals_are_written(passage: str, supported: bool) -> None:
    assert is_supported("Das Paket wiegt 1.500 kg.", passage, "de") == supported


def test_other_numbers_of_the_text_tell_how_decimals_are_written() -> None:
    claim = "The parcel weighs 1.500 kg and costs 31,40 euros."
    assert is_supported(claim, "The parcel weighs 1500 kg and costs 31,40 euros.")
    assert not is_supported(claim, "The parcel weighs 1,5 kg and costs 31,40 euros.")


@each_row(
    ("claim", "passage"),
    [
        ("The pool is larger than the gym.", "The gym is smaller than the pool."),
        ("The pool is open until 8 pm.", "The pool is closed from 8 pm."),
        ("Anna and Ben manage the team.", "Ben and Anna manage the team."),
        ("The first bus leaves early.", "The last bus leaves late."),  # two words differ
        ("Sales rose in May and fell in June.", "Sales fell in June, they rose in May."),
        ("The price rose in May.", "The wage fell in May."),  # of another thing: no opposite
        ("The plan includes support.", "All plans include support."),
        (
            "A tank of 3000 litres collects rain water.",
            "Rain water is collected in a tank of 3000 litres.",
        ),
    ],
)
def test_what_turns_twice_or_elsewhere_is_no_opposite(claim: str, passage: str) -> None:
    assert not verdict(claim, passage).opposite
