"""Numbers as values, and where those of a claim come from."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.rows import each_row

from ragmetrics.text import number_scan, number_words
from ragmetrics.text.numbers import NumberIndex, index, judge, numbers


def values(text: str, *, claim: bool = True) -> list[set[float]]:
    return [
        {key[1] for key in number.keys if key[0] == "v" and isinstance(key[1], float)}
        for number in numbers(text, claim=claim)
        if not number.is_id
    ]


def verdicts(claim: str, context: str, question: str = "") -> list[str]:
    return list(judge(numbers(claim), index(context), index(question)))


@each_row(
    ("text", "expected"),
    [
        ("1,234.5", [{1234.5}]),
        ("1.234,5", [{1234.5}]),
        ("1,234", [{1234.0, 1.234}]),  # thousands, or a decimal comma
        ("12 345 EUR", [{12345.0, 12.0, 345.0}]),  # one number, or two side by side
        ("15%", [{15.0, 0.15}]),
        ("15 percent", [{15.0, 0.15}]),
        ("1.5 million", [{1.5, 1_500_000.0}]),
        ("$3bn", [{3.0, 3e9}]),
        ("10k", [{10.0, 10_000.0}]),
        ("20-30 days", [{20.0}, {30.0}]),
        ("20–30 days", [{20.0}, {30.0}]),
        ("3x4", [{3.0}, {4.0}]),
        ("the 1990s", [{1990.0 + year for year in range(10)}]),  # any year of them
        ("the mid-1970s", [{1970.0 + year for year in range(10)}]),
        ("the '80s", [{80.0, *(1980.0 + n for n in range(10)), *(2080.0 + n for n in range(10))}]),
        ("a 30s limit", [{30.0}]),  # seconds
        ("the twenty-first of the nineteenth", [{21.0}, {19.0}]),
        ("two-thirds", [{0.6666666667}]),
        ("the 3rd plan", [{3.0}]),
        ("2½ cups", [{2.5}]),
        ("US$5", [{5.0}]),
        ("boxes 1, 2,3", [{1.0}, {2.3, 2.0, 3.0}]),
        ("twenty-one", [{21.0}]),
        ("half a million", [{500_000.0}]),
        ("one hundred and five", [{105.0}]),
        ("an eight-point lead", [{8.0}]),
        ("5 % off", [{5.0, 0.05, -5.0, -0.05}]),  # "off" says a minus
        ("It was -5, then 5.", [{-5.0}, {5.0}]),
        ("-5 and 5", [{5.0, -5.0}, {5.0}]),  # the mark of an item, or a minus
        ("(-5) -$5 $-5 = -5", [{-5.0}, {-5.0}, {-5.0}, {-5.0}]),
        ("from 3-5, page-5", [{3.0}, {5.0}]),
        ("minus five, negative 5", [{-5.0}, {-5.0}]),
        ("5 degrees below zero", [{-5.0}]),
        ("it fell by 5", [{5.0, -5.0}]),
        ("it fell from 7 to 5", [{7.0}, {5.0}]),  # levels, each with its own sign
        ("Die Temperatur sank auf 5 Grad", [{5.0}]),
        ("1.500 und 31,40", [{1500.0}, {31.4}]),  # decimal commas
        ("1,500 und 31,40", [{1.5}, {31.4}]),
        ("1.500 and 31.40", [{1.5}, {31.4}]),
        ("1.500.000 Euro", [{1_500_000.0}]),
        ("30ユーロ", [{30.0}]),
        ("20万人", [{20.0, 200_000.0}]),
        ("3万5千円", [{3.0, 30_000.0, 35_000.0}, {5.0, 5000.0, 35_000.0}]),
    ],
)
def test_values(text: str, expected: list[set[float]]) -> None:
    assert values(text) == expected


@each_row(
    "text",
    [
        "see [1] and [2, 3]",
        "as passage 2 and figure 3 say",
        "version 2.0.1 and v3",
        "COVID-19 and B12",
        "call (805) 555-1234",
        "run `sleep 30` now",
        "one of them",
        "rated out of 5, open seven days a week, 24/7",
        "no number at all",
    ],
)
def test_no_numbers_of_a_claim(text: str) -> None:
    assert values(text) == []


@each_row(
    ("phrase", "value"),
    [
        ("one point five million", 1_500_000.0),
        ("nineteen ninety nine", 1999.0),
        ("two dozen", 24.0),
        ("three hundred and five thousand two", 305_002.0),
        ("a hundred", 100.0),
    ],
)
def test_number_words(phrase: str, value: float) -> None:
    assert number_words.parse(phrase) == value


@each_row(
    ("claim", "context", "verdict"),
    [
        ("It costs 1,200 EUR.", "The price is 1200 EUR.", "found"),
        ("It rose by 15%.", "It rose by 15 percent.", "found"),
        ("It rose by 15%.", "The share rose by 0.15.", "found"),
        ("It opens at 5:30 PM.", "It opens at 17:30.", "found"),
        ("It opens at 5 pm.", "Opening: 17:0", "found"),
        ("Born on 4 March 2019.", "Born 2019-03-04", "days"),
        ("Born on 5 March 2019.", "Born 2019-03-04", ["fabricated", "found"]),
        ("It takes twelve days.", "It takes 12 days.", "found"),
        ("It takes 12 days.", "A dozen days.", "found"),
        ("It takes 17 days.", "It takes 12 days.", "fabricated"),
        ("Plan C costs 3 EUR.", "Plan C: 3 EUR.", "found"),
        ("The fee is 3 EUR.", "See page 3 of the manual.", "fabricated"),  # no shared word near
        ("It opens at 6 PM.", "It opens at 17:30.", "fabricated"),
        ("About 1,200 came.", "1,198 came.", "rounded"),  # |1200 - 1198| / 1198 = 0.17 %
        ("About 1,250 came.", "1,198 came.", "fabricated"),  # 4.3 %
        ("Heat to 350 F (177 C).", "Heat to 350 F.", ["found", "derived"]),  # (350 - 32) / 1.8
        ("From 20 to 35, up by 15.", "It was 20, then 35.", ["found", "found", "derived"]),
        ("It is up by 15.", "It was 20, then 35.", "fabricated"),  # operands not in the claim
        ("The two brothers met.", "Jim and John met.", "unchecked"),  # counted, not told
        ("He has three sons now.", "He has 4 sons now.", "fabricated"),  # another count told
        ("Version 9.9.9 is out.", "Nothing.", "found"),  # an id is not a number
        ("It shuts at 2:30 am.", "It shuts at 14:30.", "fabricated"),
        ("It shuts at 2:30.", "It shuts at 14:30.", "found"),  # morning or afternoon is left open
        ("It shuts at 12 am.", "It shuts at noon.", "fabricated"),
        ("It fell to -5 degrees.", "It fell to 5 degrees.", "fabricated"),
        ("It fell to 5 degrees.", "It fell to -5 degrees.", "fabricated"),
        ("It changed by -5 %.", "It rose by 5 %.", "fabricated"),
        ("A record of 5-2.", "He threw 5 innings, lost, and 2 fans came.", ["fabricated"] * 2),
        ("It takes 21 days.", "It takes 3 weeks.", "found"),
        ("It takes 28 days.", "It takes 2 fortnights.", "found"),
        ("It takes 4 quarters.", "It takes 1 year.", "found"),
        ("It takes 20 years.", "It takes 2 decades.", "found"),
        ("It takes 20 decades.", "It takes 2 centuries.", "found"),
        ("It takes 2 minutes.", "It takes 2 hours.", "fabricated"),  # the same digits
        ("It takes 2 minutes.", "It takes 2 hours, or 2 if you run.", "found"),  # 2 of what?
        ("It takes 150 minutes.", "It takes 2 hours and 30 minutes.", "found"),  # 120 + 30
        ("It lasts 730 days.", "It lasts 2 years.", "fabricated"),  # not exact
        ("It holds 1024 MB.", "It holds 1 GB.", "found"),
        ("It holds 1000 MB.", "It holds 1 GB.", "found"),
        ("It weighs 16 oz.", "It weighs 1 lb.", "found"),
        ("It costs 25 cents.", "It costs $2.50.", "fabricated"),
    ],
)
def test_verdicts(claim: str, context: str, verdict: str | list[str]) -> None:
    if verdict == "days":
        assert verdicts(claim, context) == ["found", "found"]  # the day and the year
    else:
        assert verdicts(claim, context) == ([verdict] if isinstance(verdict, str) else verdict)


def test_indexes_add_up() -> None:
    together = NumberIndex()
    together.add(index("20 EUR"))
    together.add(index("30 EUR"))
    assert together.values() == [20.0, 30.0]
    assert verdicts("In 2019 it rained.", "It rained.", "What happened in 2019?") == ["question"]


@given(st.integers(10, 10**9))
def test_a_number_is_found_in_its_own_text(value: int) -> None:
    assert verdicts(f"It is {value:,} EUR.", f"It is {value} EUR.") == ["found"]
    assert verdicts(f"It is {value} EUR.", f"It is {value:,} EUR.") == ["found"]


def test_a_plural_scale_is_no_number_whatever_stands_beside_it() -> None:
    for text in ("a comma for a thousands separator", "a thousands separator, as in 7 or 8"):
        found = [number.text for number in numbers(text, claim=False)]
        assert "a thousand" not in found
    assert [number.text for number in numbers("a thousand")] == ["a thousand"]


PIECES = (
    "half", "an", "a", "hundred", "dozen", "twenty", "one", "five", "3", "12", "007", "1,5",
    "2.0.1", "passage", "figure", "step", "march", "may", "sept", "12:30", "pm", "v2", "x", "b4",
    "and", "to", "point", "percent", "%", "$", "(", ")", "+", "#", "/", "-", "_", ".", ",", ":",
    " ", " ", " ", "\n", "    ", "\u00a0", "someverylongwordthatgoesonandonandon", "2024-01-02",
    "555", "\u0663",
)  # fmt: skip


@settings(max_examples=300)
@given(st.lists(st.sampled_from(PIECES), max_size=30).map("".join))
def test_looking_only_near_digits_finds_what_looking_everywhere_finds(folded: str) -> None:
    near = [match.span() for match in number_scan.matches(folded)]
    assert near == [match.span() for match in number_scan._SCANNER.finditer(folded)]


@each_row(
    ("claim", "context"),
    [
        ("August 24th", "Aug 24"),
        ("24 August", "2021-08-24"),
        ("the late 1980s", "in 1987"),
        ("the '80s", "in 1985"),
        ("in '87", "in 1987"),
        ("the 1980s", "the eighties"),
        ("2:30 pm", "14:30"),
        ("2.30 p.m.", "14:30"),
        ("17:00", "5 o'clock"),
        ("12:00", "noon"),
        ("00:00", "midnight"),
        ("from 8-10 pm", "20:00 to 22:00"),
        ("the 21st century", "the twenty-first century"),
        ("the twentieth day", "the 20th day"),
        ("two-thirds", "2/3"),
    ],
)
def test_numbers_in_other_forms_are_equal(claim: str, context: str) -> None:
    assert set(verdicts(claim, context)) == {"found"}


@each_row(
    ("claim", "context"),
    [
        ("the 1980s", "in 1871"),
        ("12:00", "in the afternoon"),
        ("a 30s limit", "a 35 s limit"),
        ("the twenty-first day", "the twenty-second day"),
        ("from 8-10 pm", "19:00 to 23:00"),
        ("2:30 pm", "15:30"),
    ],
)
def test_other_numbers_are_not(claim: str, context: str) -> None:
    assert "fabricated" in verdicts(claim, context)
