"""The help pages: keys of the screen it was opened from, then the filter language and the signs."""

from __future__ import annotations

from terminal.help import HelpPage, HelpScreen, HelpText, keys_page
from views.browser.actions import ACTIONS, key_names
from views.browser.query import KEYWORDS
from views.browser.success import RULES

FOOT = "Tab keys / filters and signs   PgDn PgUp, j k scroll   Esc back"

PARTS = ("Open", "Choose", "Look", "Move", "Tool")
"""Parts of the page of keys, in their order."""


def _guide() -> HelpPage:
    page = HelpText()
    page.heading("Filter (/): terms side by side must all hold")
    for word, says in KEYWORDS.items():
        page.row(word, says)
    page.row("category=factual", "difficulty, query_type, answerable: of the case")
    page.row("status=ok", "error, abstained, id: of the result")
    page.row("tag=lists", "one of the tags; flag=late: one of the answer's flags")
    page.row("recall@5<1", "any metric; = != < <= > >=; =none: not scored")
    page.row("latency>500", "milliseconds; also confidence, cost, repeat")
    page.row('"two words" word', "in the question or the case id")
    page.row("-failing -tag=lists", "a minus negates a term")
    page.heading("A case fails when (! sets another condition)")
    for rule in RULES:
        page.row(rule.word, rule.says)
    page.heading("Signs")
    page.row("✓ + supported", "a claim of the answer that the retrieved chunks hold")
    page.row("✗ x not supported", "they do not; the support rules see words, no meaning")
    page.row("‼ ! contradicted", "a judge found the opposite in them")
    page.row("? unclear  · skipped", "no clear verdict; not judged, such as a greeting")
    page.row("GOLD", "matches a gold support; its snippet is marked")
    page.row("BROKE, FIXED", "succeeds in the base run only; in the new one only")
    page.row("-", "no score; the Scores part of a case says why")
    return page.page


def help_screen(where: str) -> HelpScreen:
    """The keys of a screen, and the guide to filters and signs."""
    actions = sorted(ACTIONS[where].values(), key=lambda action: PARTS.index(action.part))
    return HelpScreen([keys_page(actions, key_names), _guide()], FOOT)
