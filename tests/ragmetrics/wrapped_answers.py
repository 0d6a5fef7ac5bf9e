"""Twenty answers and fifteen wrappings: an answer says the same whatever it is wrapped in.

Written before the rules were read. `WRAPPINGS[name](text)` wraps an answer; a blank line in an
answer separates its paragraphs.
"""

import html
import json
import re
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class PlainAnswer:
    """An answer without any markup, what it does, and the passages beside it."""

    text: str
    state: str  # abstained, partial or answered
    claims: tuple[str, ...] = ()
    passages: tuple[str, ...] = ()
    question: str = ""


ANSWERS = (
    PlainAnswer("I don't know.", "abstained"),
    PlainAnswer(
        "The document does not say. Please call us.", "abstained", claims=("Please call us.",)
    ),
    PlainAnswer("I'm sorry, but the passages don't mention the price of \"Plan B\".", "abstained"),
    PlainAnswer("No information about this is available in the provided context.", "abstained"),
    PlainAnswer("I cannot answer that from the R&D notes.", "abstained"),
    PlainAnswer("Das kann ich anhand der Dokumente nicht beantworten.", "abstained"),
    PlainAnswer("Je ne sais pas.", "abstained"),
    PlainAnswer(
        "Based on the passages, it isn't possible to tell.\n\nTry the help desk.",
        "abstained",
        claims=("Try the help desk.",),
    ),
    PlainAnswer(
        "The pool opens on 1 May.",
        "answered",
        claims=("The pool opens on 1 May.",),
        passages=("The outdoor pool opens on 1 May and closes on 30 September.",),
    ),
    PlainAnswer("Yes.", "answered"),
    PlainAnswer(
        "The museum is closed on Mondays. It opens at 9:30 on all other days.",
        "answered",
        claims=("The museum is closed on Mondays.", "It opens at 9:30 on all other days."),
        passages=("The museum is closed on Mondays. On all other days it opens at 9:30.",),
    ),
    PlainAnswer(
        "The fee is 1,500 euros [1]. It is due within 30 days [2].",
        "answered",
        claims=("The fee is 1,500 euros [1].", "It is due within 30 days [2]."),
        passages=("The fee is 1,500 euros a year.", "The fee is due within 14 days."),
    ),
    PlainAnswer(
        "Use the `--force` flag to overwrite the file.",
        "answered",
        claims=("Use the `--force` flag to overwrite the file.",),
        passages=("With the --force flag the command will overwrite the file.",),
    ),
    PlainAnswer(
        "The R&D team isn't part of the sales department.",
        "answered",
        claims=("The R&D team isn't part of the sales department.",),
        passages=("The R&D team is part of the sales department.",),
    ),
    PlainAnswer(
        "Der Vertrag läuft 24 Monate und kostet 31,40 Euro im Monat.",
        "answered",
        claims=("Der Vertrag läuft 24 Monate und kostet 31,40 Euro im Monat.",),
        passages=("Der Vertrag hat eine Laufzeit von 24 Monaten. Er kostet 29,90 Euro im Monat.",),
    ),
    PlainAnswer("図書館は日曜日に休みです。", "answered", claims=("図書館は日曜日に休みです。",)),
    PlainAnswer(
        "The basic tariff costs 31.4 cents per kWh plus 11.90 euros a month. "
        "The contract partner is not named in the document.",
        "partial",
        claims=("The basic tariff costs 31.4 cents per kWh plus 11.90 euros a month.",),
        passages=("Basic tariff: 31.4 cents per kWh plus 11.90 euros a month.",),
        question="How much is the basic tariff, and who is the contract partner?",
    ),
    PlainAnswer(
        "The warranty lasts two years. I could not find who pays for the shipping.",
        "partial",
        claims=("The warranty lasts two years.",),
        passages=("All our devices have a warranty that lasts two years.",),
        question="How long does the warranty last, and who pays for the shipping?",
    ),
    PlainAnswer(
        "The train takes 45 minutes if the temperature is < 35 degrees.\n\nThe bus takes 2 hours.",
        "answered",
        claims=(
            "The train takes 45 minutes if the temperature is < 35 degrees.",
            "The bus takes 2 hours.",
        ),
        passages=(
            "The train takes 45 minutes. Above 35 degrees it takes an hour. The bus takes 3 hours.",
        ),
    ),
    PlainAnswer(
        "The ferry may be late in the north, and it could be cancelled.",
        "answered",
        claims=("The ferry may be late in the north, and it could be cancelled.",),
        passages=("In a storm the ferry in the north is often late or cancelled.",),
    ),
)


def _each_paragraph(wrap: Callable[[str], str], joiner: str = "\n\n") -> Callable[[str], str]:
    return lambda text: joiner.join(wrap(paragraph) for paragraph in text.split("\n\n"))


def _each_sentence(wrap: Callable[[str], str]) -> Callable[[str], str]:
    return _each_paragraph(lambda line: " ".join(map(wrap, re.split(r"(?<=[.。]) ", line))))


def _numeric_entities(text: str) -> str:
    return re.sub(r"[^\w\s.]", lambda match: f"&#{ord(match[0])};", text)


def _numbered(text: str) -> str:
    return "\n".join(f"{number}. {line}" for number, line in enumerate(text.split("\n\n"), start=1))


def _json(text: str) -> str:
    return json.dumps({"answer": text})


WRAPPINGS: dict[str, Callable[[str], str]] = {
    "bold": _each_paragraph("**{}**".format),
    "bold by underscores": _each_paragraph("__{}__".format),
    "each sentence bold": _each_sentence("**{}**".format),
    "italic": _each_paragraph("*{}*".format),
    "bullet list": _each_paragraph("- {}".format, "\n"),
    "numbered list": _numbered,
    "quote": _each_paragraph("> {}".format, "\n>\n"),
    "under a heading": "## Answer\n\n{}".format,
    "HTML paragraphs": _each_paragraph(lambda line: f"<p>{html.escape(line)}</p>", "\n"),
    "HTML bold, numeric entities": _each_paragraph(
        lambda line: f"<div><strong>{_numeric_entities(line)}</strong></div>", ""
    ),
    "JSON": _json,
    "JSON in a fence": lambda text: f"```json\n{_json(text)}\n```",
    "table": lambda text: "| Answer |\n|---|\n" + _each_paragraph("| {} |".format, "\n")(text),
    "fence": "```\n{}\n```".format,
    "thoughts before": (
        "<think>The user asks about 77 things. I don't know yet. Passage [3] may say it.</think>"
        "\n\n{}".format
    ),
}
