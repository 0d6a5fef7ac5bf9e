"""The help pages: keys of the screen it was opened from, then the filter language and the signs."""

from __future__ import annotations

from labeller.help import HelpScreen
from terminal.text_pane import Mark
from views.browser.actions import ACTIONS, key_names
from views.browser.query import KEYWORDS
from views.browser.success import RULES

KEY_WIDTH = 22

FOOT = "Tab keys / filters and signs   PgDn PgUp, j k scroll   Esc back"


def _guide() -> tuple[str, list[Mark]]:
    text = ""
    marks: list[Mark] = []

    def head(title: str) -> None:
        nonlocal text
        text += "\n" * bool(text)
        marks.append((len(text), len(text) + len(title), "rule"))
        text += title + "\n"

    def row(key: str, says: str) -> None:
        nonlocal text
        marks.append((len(text), len(text) + len(key), "key"))
        text += f"{key:<{KEY_WIDTH}} {says}\n"

    head("Filter (/): terms side by side must all hold")
    for word, says in KEYWORDS.items():
        row(word, says)
    row("category=factual", "difficulty, query_type, answerable: of the case")
    row("status=ok", "error, abstained, id: of the result")
    row("tag=lists", "one of the tags; flag=late: one of the answer's flags")
    row("recall@5<1", "any metric; = != < <= > >=; =none: not scored")
    row("latency>500", "milliseconds; also confidence, cost, repeat")
    row('"two words" word', "in the question or the case id")
    row("-failing -tag=lists", "a minus negates a term")
    head("A case fails when (! sets another condition)")
    for rule in RULES:
        row(rule.word, rule.says)
    head("Signs")
    row("✓ + supported", "a claim of the answer that the retrieved chunks hold")
    row("✗ x not supported", "they do not; the support rules see words, no meaning")
    row("‼ ! contradicted", "a judge found the opposite in them")
    row("? unclear  · skipped", "no clear verdict; not judged, such as a greeting")
    row("GOLD", "matches a gold support; its snippet is marked")
    row("BROKE, FIXED", "succeeds in the base run only; in the new one only")
    row("-", "no score; the Scores part of a case says why")
    return text, marks


def _keys(where: str) -> tuple[str, list[Mark]]:
    text = ""
    marks: list[Mark] = []
    part = ""
    for action in sorted(ACTIONS[where].values(), key=lambda action: _ORDER.index(action.part)):
        if action.part != part:
            part = action.part
            text += "\n" * bool(text)
            marks.append((len(text), len(text) + len(part), "rule"))
            text += part + "\n"
        keys = key_names(action)
        marks.append((len(text), len(text) + len(keys), "key"))
        text += f"{keys:<{KEY_WIDTH}} {action.help}\n"
    return text, marks


_ORDER = ("Open", "Choose", "Look", "Move", "Tool")


class BrowseHelp(HelpScreen):
    """The labeller's help window with the browser's pages."""

    KEYS = FOOT

    def __init__(self, where: str) -> None:
        super().__init__(where, {})
        self._pages = [_keys(where), _guide()]
