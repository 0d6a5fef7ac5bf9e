"""Every generated page of docs/: code blocks hold code, lists are lists, and no key is missing."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

import make_docs
from tests.rows import each_row

from labeller.actions import ACTIONS as LABELLER
from labeller.windows import help_screen as labeller_help
from terminal.actions import Action, shown_key
from terminal.keys import keys_on
from validation.claim_session import CLAIMS, FACTS, LabelKind, actions, help_text
from views.browser.actions import ACTIONS as BROWSER
from views.browser.actions import TEXTS
from views.browser.actions import _help_screen as browser_help

DOCS = Path(make_docs.__file__).resolve().parents[1] / "docs"
PAGES = [
    path for path in sorted(DOCS.glob("*.md")) if path.read_text("utf-8").startswith(make_docs.MARK)
]
FENCED = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
COMMAND = re.compile(r"(?:(?:[\d*]+ ){5}cd \S+ && )?(?:\S*python|curl|source|make) \S")
"""The start of a command, also in a line of cron."""


def faults_of_page(text: str) -> Iterator[str]:
    """Lines of code blocks that are no code, and columns that became prose."""
    for language, code in FENCED.findall(text):
        lines = re.sub(r"\\\n\s*", "", code).splitlines()
        if language == "json":
            yield from faults_of_json(code)
        else:
            yield from (line for line in lines if not COMMAND.match(line))
    for line in FENCED.sub("", text).splitlines():
        if not line.startswith("| ") and re.search(r"\S {2,}\S", line):
            yield line


def faults_of_json(code: str) -> Iterator[str]:
    """The rest of a block from where it is no JSON value after another."""
    rest = code.strip()
    while rest:
        try:
            _, end = json.JSONDecoder().raw_decode(rest)
        except ValueError:
            yield rest
            return
        rest = rest[end:].strip()


@each_row("path", PAGES)
def test_code_blocks_hold_code_and_lists_are_lists(path: Path) -> None:
    assert list(faults_of_page(path.read_text("utf-8"))) == []


def test_a_damaged_page_is_found() -> None:
    prose, columns = "counts by reason and means follow", "n        shows all A        counts"
    text = f"{columns}\n\n```sh\n{prose}\npython a.py \\\n    --b\n```\n\n"
    text += '```json\n{"a": 1}\nb\n```\n'
    assert list(faults_of_page(text)) == [prose, "b", columns]
    assert len(PAGES) > 20


def keys_beside(text: str, sentence: str) -> set[str]:
    """The keys that a help page has in the lines of a sentence, before it."""
    lines = [line.partition(sentence) for line in text.splitlines()]
    keys = " ".join(head for head, match, _ in lines if match)
    return set(keys.replace("1-0", "1 2 3 4 5 6 7 8 9 0").replace("`, then", "` then").split())


def assert_explained(text: str, actions: Iterable[Action]) -> None:
    """Each action with its help and all of its keys, or the way to an action without one."""
    for action in actions:
        keys = {shown_key(key) for key in action.keys} or {"by"}
        assert keys <= keys_beside(text, action.help), action


@each_row("where", BROWSER)
def test_every_key_of_the_browser_is_in_its_help_and_in_the_table(where: str) -> None:
    actions = BROWSER[where].values()
    assert_explained(browser_help(where)._pages[0][0], actions)
    table = [line for line in (DOCS / "browse_runs.md").read_text("utf-8").splitlines()
             if re.fullmatch(rf".* \| (all|.*\b{where}\b.*) \|", line)]  # fmt: skip
    for action in actions:
        keys = {f"`{shown_key(key)}`" for key in action.keys} or {"none:"}
        assert keys <= keys_beside("\n".join(table), f"| {action.help} |"), action


@each_row("where", sorted({action.where for action in LABELLER}))
def test_every_key_of_the_labeller_is_in_its_help_and_in_the_table(where: str) -> None:
    actions = [action for action in LABELLER if action.where == where]
    assert_explained(labeller_help(where, {})._pages[0][0], actions)
    table = (DOCS / "labelling.md").read_text("utf-8")
    for action in actions:
        keys = {f"`{shown_key(key)}`" for key in action.keys} or {"none:"}
        assert keys <= keys_beside(table, f"| {action.help.replace('<', '&lt;')} |"), action


@each_row("kind", [CLAIMS, FACTS])
def test_every_key_of_claims_is_in_their_help(kind: LabelKind) -> None:
    assert_explained(help_text(kind), actions(kind))


def test_every_key_does_something_on_a_screen() -> None:
    """The tables of actions name all actions of the table of keys, so that no key is left out."""
    lists = {name for where in set(BROWSER) - set(TEXTS.split()) for name in BROWSER[where]}
    texts = {name for where in TEXTS.split() for name in BROWSER[where]}
    labels = {action.id for action in actions(CLAIMS)} | {f"label-{n}" for n in range(10)}
    assert set(keys_on("label")) <= {action.id for action in LABELLER}
    assert set(keys_on("lists")) <= lists
    assert set(keys_on("pages")) <= texts
    assert set(keys_on("claims")) <= labels
