"""Units of measure: which amounts are the same, such as 2 hours and 120 minutes.

Only units of one dimension with an exact factor between them are compared: a month is a twelfth of
a year and no number of days, an ounce is a sixteenth of a pound and no number of grams.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from ragmetrics.text.words import UNSPACED, by_letter

COUNT = "count"
"""The dimension of scales that are written behind a number without a space: 万 is 10,000."""

_LISTED: dict[str, dict[float, str]] = {
    "time": {
        0.001: "ms millisecond milliseconds",
        1: "s sec secs second seconds sekunde sekunden seconde secondes segundo segundos secondo "
        "secondi",
        60: "min mins minute minutes minuten minuto minutos minuti minuut",
        3600: "h hr hrs hour hours std stunde stunden heure heures hora horas ora ore uur",
        86400: "day days tag tage tagen jour jours día días dia dias giorno giorni dag dagen",
        604800: "week weeks woche wochen semaine semaines semana semanas settimana settimane weken",
        1209600: "fortnight fortnights",
    },
    "months": {
        1: "month months monat monate monaten mois mes meses mese mesi mês maand maanden",
        3: "quarter quarters quartal quartale",
        12: "year years yr yrs jahr jahre jahren an ans année années año años anno anni ano anos "
        "jaar",
        120: "decade decades",
        1200: "century centuries",
    },
    "mass": {
        0.001: "mg milligram milligrams",
        1: "g gram grams gramme grammes gramm gramo gramos grammo grammi",
        1000: "kg kilo kilos kilogram kilograms kilogramme kilogrammes kilogramm kilogramo "
        "kilogramos",
        1e6: "tonne tonnes tonnen",
    },
    "weight": {1: "oz ounce ounces", 16: "lb lbs pound pounds", 224: "stone stones"},
    "length": {
        0.001: "mm millimetre millimetres millimeter millimeters",
        0.01: "cm centimetre centimetres centimeter centimeters zentimeter",
        1: "m metre metres meter meters mètre mètres metro metros metri",
        1000: "km kilometre kilometres kilometer kilometers kilomètre kilomètres kilómetro "
        "kilómetros chilometro chilometri",
    },
    "feet": {
        1: "inch inches",
        12: "ft foot feet",
        36: "yd yard yards",
        63360: "mi mile miles",
    },
    "volume": {
        0.001: "ml millilitre millilitres milliliter milliliters",
        0.01: "cl centilitre centilitres centiliter",
        0.1: "dl decilitre decilitres deciliter",
        1: "l litre litres liter liters litro litros litri",
    },
    "bytes": {
        1: "byte bytes",
        1e3: "kb kilobyte kilobytes",
        1e6: "mb megabyte megabytes",
        1e9: "gb gigabyte gigabytes",
        1e12: "tb terabyte terabytes",
    },
    "hertz": {1: "hz hertz", 1e3: "khz", 1e6: "mhz", 1e9: "ghz"},
    "watts": {1: "w watt watts", 1000: "kw kilowatt kilowatts"},
    "euros": {0.01: "cent cents centimes", 1: "€ eur euro euros"},
    "dollars": {0.01: "cent cents", 1: "$ usd dollar dollars"},
    "pounds": {0.01: "pence penny", 1: "£ gbp"},
    COUNT: {
        1e2: "百",
        1e3: "千 พัน 천",
        1e4: "万 萬 หมื่น 만",
        1e6: "百万 百萬 ล้าน",
        1e8: "億 亿 억",
    },
}

_BINARY = {name: 1024.0**power for power, name in enumerate(("byte", "kb", "mb", "gb", "tb"))}
"""Besides thousands: a gigabyte has 1,000 or 1,024 megabytes."""

Measure = tuple[str, float]
"""A dimension, and how many of its smallest or usual unit one unit is."""

UNITS: dict[str, tuple[Measure, ...]] = {}

for _dimension, _sizes in _LISTED.items():
    for _size, _names in _sizes.items():
        for _name in _names.split():
            UNITS[_name] = (*UNITS.get(_name, ()), (_dimension, float(_size)))

for _name, _size in _BINARY.items():
    for _same in _LISTED["bytes"][UNITS[_name][0][1]].split():
        UNITS[_same] = (*UNITS[_same], ("binary bytes", _size))

_EAST = rf"{UNSPACED}\uac00-\ud7a3"

_AFTER = re.compile(rf"\s?-?(?:([^\W\d_{_EAST}]{{1,13}}|[€$£])(?!\w)|([{_EAST}]{{1,5}}))")
"""A word or a sign behind a number, with a blank or a hyphen between them."""

_ONE = re.compile(
    r"an?\s("
    + by_letter(name for name in UNITS if len(name) > 2 and name.isascii())
    + r")\b(\s(?:and|und) an? half\b)?"
)
"""One unit without a number; without a mark of a word's start, for which a search is slow."""


def unit_after(folded: str, end: int) -> tuple[tuple[Measure, ...], int]:
    """Return the measures of the unit that follows a place of a folded text, and where it ends."""
    match = _AFTER.match(folded, end)
    if match is None:
        return (), end
    if match[1]:
        measures = UNITS.get(match[1], ())
        return measures, match.end() if measures else end
    for length in range(len(match[2]), 0, -1):
        if measures := UNITS.get(match[2][:length], ()):
            return measures, match.start(2) + length
    return (), end


def single_units(folded: str) -> Iterator[tuple[int, int, float, tuple[Measure, ...]]]:
    """Return each "an hour", "half a day", "a year and a half": span, number, and measures."""
    for match in _ONE.finditer(folded):
        start = match.start()
        if folded[start - 1 : start].isalnum():
            continue
        is_half = folded.endswith("half ", 0, start)
        amount = (0.5 if is_half else 1.0) + 0.5 * bool(match[2])
        yield start - 5 * is_half, match.end(), amount, UNITS[match[1]]
