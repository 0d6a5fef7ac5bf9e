"""Plants faults in a copy of a vault of Markdown: what is written in planted/NAME.toml, the rest by
its seed. Knows nothing of the audit: it cuts files at headings and blank lines by itself."""

from __future__ import annotations

import random
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

PLANTED = Path(__file__).with_name("planted")
HEADING = re.compile(r"^(#{1,6}) +(.+?) *#*$")
WORDS = "amber brick canal drift ember flint grove hazel ivory jolly kite lemon maple".split()  # noqa: SIM905
MOVES = (
    *(("file", True), ("heading", True), ("heading", True), ("section", True), ("section", True)),
    *(("file", False), ("reworded", False), ("reworded", False), ("heading", False)),
    ("deleted", False),
)
"""How the gold of ten cases moves, and whether its label has a quote."""


@dataclass
class Section:
    """A heading with the text up to the next one. ``titles``: from the first heading down."""

    path: str
    titles: tuple[str, ...]
    level: int
    paragraphs: list[str]

    @property
    def prose(self) -> list[str]:
        return [text for text in self.paragraphs if is_prose(text)]


@dataclass
class Planted:
    """The truth. ``moved``: label, and its new place or None; ``doubles``: paragraph and copy."""

    contradictions: list[dict[str, Any]] = field(default_factory=list)
    stale: list[dict[str, Any]] = field(default_factory=list)
    doubles: list[tuple[tuple[str, str], tuple[str, str]]] = field(default_factory=list)
    moved: list[tuple[dict[str, Any], tuple[str, str] | None]] = field(default_factory=list)
    sound: list[dict[str, Any]] = field(default_factory=list)
    """Labels whose place stays."""


def is_prose(text: str) -> bool:
    plain = re.match(r"[A-Z“\"`*_][^|]*[.:)]\Z", text, re.DOTALL)
    return bool(plain) and len(text.split()) >= 20 and "```" not in text and "<" not in text


def sections_of(path: str, text: str) -> list[Section]:
    titles: dict[int, str] = {}
    result: list[Section] = []
    fenced = False
    block: list[str] = []

    def close() -> None:
        if block and result:
            result[-1].paragraphs.append("\n".join(block))
        block.clear()

    for line in text.split("\n"):
        fenced ^= line.lstrip().startswith(("```", "~~~"))
        heading = None if fenced else HEADING.match(line)
        if heading:
            close()
            level = len(heading[1])
            titles = {at: title for at, title in titles.items() if at < level}
            titles[level] = " ".join(heading[2].split())
            result.append(Section(path, tuple(titles.values()), level, []))
        elif line.strip() or fenced:
            block.append(line)
        else:
            close()
    close()
    return result


def text_of(sections: list[Section]) -> str:
    parts = []
    for section in sections:
        parts += [f"{'#' * section.level} {section.titles[-1]}", *section.paragraphs]
    return "\n\n".join(parts) + "\n"


def reworded(text: str, count: int, chance: random.Random) -> str:
    """The text with so many of its words, not the first, replaced by others."""
    words = text.split()
    for at in chance.sample(range(1, len(words)), count):
        words[at] = chance.choice(WORDS)
    return " ".join(words)


def plant(name: str, files: Mapping[str, str], folder: Path) -> Planted:
    """Write the files with all faults of a list below a folder."""
    plan = tomllib.loads((PLANTED / f"{name}.toml").read_text("utf-8"))
    chance = random.Random(plan["seed"])
    vault = {path: sections_of(path, text) for path, text in files.items()}
    vault = {path: sections for path, sections in vault.items() if sections}
    truth = Planted(plan["contradictions"], plan["stale"])
    touched = {each[key] for kind in ("contradictions", "stale") for each in plan[kind]
               for key in ("source", "to") if key in each}  # fmt: skip
    free = sorted(path for path in vault if path not in touched)
    chance.shuffle(free)
    _plant_moves(truth, vault, free, plan["renamed"], chance)
    for each in plan["contradictions"]:
        flat = " ".join(files[each["source"]].replace("\n>", "\n").split())
        assert each["quote"] in flat, each["quote"]
        _insert(vault[each["to"]], each["text"], chance)
    for each in plan["stale"]:
        if "source" not in each:
            _insert(vault[each["to"]], each["old"], chance)
            continue
        section = max(vault[each["source"]], key=lambda part: len(" ".join(part.prose)))
        body = section.prose[:4]
        copy = [reworded(text, max(1, len(text.split()) // 12), chance) for text in body]
        section.paragraphs.insert(0, each["new"])
        vault[each["to"]] = [Section(each["to"], (section.titles[-1],), 1, [each["old"], *copy])]
    _plant_doubles(truth, vault, chance)
    for path, sections in vault.items():
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text_of(sections), "utf-8")
    return truth


def _insert(sections: list[Section], text: str, chance: random.Random) -> None:
    section = chance.choice([part for part in sections if part.paragraphs] or sections)
    section.paragraphs.append(text)


def _plant_doubles(truth: Planted, vault: dict[str, list[Section]], chance: random.Random) -> None:
    """Ten paragraphs copied elsewhere: seven with 2 to 10 words changed, three a third shorter."""
    every = [
        (part, text)
        for path in sorted(vault)
        for part in vault[path]
        for text in part.prose
        if 40 <= len(text.split()) <= 120
    ]
    for number, (part, text) in enumerate(chance.sample(every, 10)):
        words = text.split()
        copy = (
            " ".join(words[: len(words) - len(words) // 3])
            if number >= 7
            else reworded(text, (2, 3, 4, 5, 6, 8, 10)[number], chance)
        )
        other = chance.choice([path for path in sorted(vault) if path != part.path])
        chance.choice(vault[other]).paragraphs.append(copy)
        truth.doubles.append(((part.path, text), (other, copy)))


def _plant_moves(
    truth: Planted,
    vault: dict[str, list[Section]],
    free: list[str],
    renamed: dict[str, str],
    chance: random.Random,
) -> None:
    """Ten cases whose gold moves, in files of their own, and ten whose gold stays."""
    usable = [path for path in free if _gold_sections(vault[path])]
    for (kind, has_quote), path in zip(MOVES, usable, strict=False):
        section = chance.choice(_gold_sections(vault[path]))
        label: dict[str, Any] = {"rel_path": path, "heading_path": " > ".join(section.titles)}
        if has_quote:
            label["snippets"] = [_sentence(section)]
        truth.moved.append((label, _move(kind, section, vault, usable[-1], renamed)))
    for path in usable[len(MOVES) : len(MOVES) + 10]:
        section = chance.choice(_gold_sections(vault[path]))
        label = {"rel_path": path, "heading_path": " > ".join(section.titles)}
        truth.sound.append(label | {"snippets": [_sentence(section)]})


def _gold_sections(sections: list[Section]) -> list[Section]:
    """Sections of more than a word in their heading, with prose, that have none below them."""
    return [
        part
        for part, after in zip(sections, [*sections[1:], None], strict=True)
        if part.prose
        and len(part.titles[-1].split()) >= 3
        and (after is None or after.level <= part.level)
    ]


def _sentence(section: Section) -> str:
    flat = " ".join(section.prose[0].split())
    return re.split(r"(?<=[.:])\s", flat)[0]


def _move(
    kind: str, section: Section, vault: dict[str, list[Section]], last: str, renamed: dict[str, str]
) -> tuple[str, str] | None:
    path, titles = section.path, section.titles
    if kind == "file":
        new = path
        for old, other in renamed.items():
            new = new.replace(old, other, 1) if new.startswith(old) else new
        new = new if new != path else f"moved/{path}"
        vault[new] = vault.pop(path)
        for part in vault[new]:
            part.path = new
        return new, " > ".join(titles)
    if kind in ("heading", "reworded"):
        words = titles[-1].split()
        title = "Another name altogether" if kind == "heading" else " ".join([*words[:-1], "anew"])
        section.titles = (*titles[:-1], title)
        return path, " > ".join(section.titles)
    vault[path].remove(section)
    if kind == "deleted":
        return None
    top = vault[last][0].titles[:1]
    section.titles = (*top, titles[-1])
    section.level = vault[last][0].level + 1
    section.path = last
    vault[last].append(section)
    return last, " > ".join(section.titles)
