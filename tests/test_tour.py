"""The tour shows the steps of bench/pictures.py, with pictures that run and fetch nothing."""

from __future__ import annotations

import importlib.util
import re
import sys
import xml.etree.ElementTree as ET
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[1]
TOUR = ROOT / "docs" / "tour.md"


@pytest.fixture(scope="module")
def pictures() -> ModuleType:
    spec = importlib.util.spec_from_file_location("pictures", ROOT / "bench" / "pictures.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["pictures"] = module
    spec.loader.exec_module(module)
    return module


def faults(svg: str) -> list[str]:
    """What an SVG holds that could run or fetch something."""
    words = [tag for tag in ("script", "image", "foreignObject", "use", "a") if f"<{tag}" in svg]
    words = [word for word in words if re.search(rf"<{word}[\s>/]", svg)]
    links = re.findall(r"(?:url\(|href\s*=|src\s*[:=])\s*(?!#)\S+|@import|@font-face|\son\w+=", svg)
    return words + links


def test_the_tour_shows_every_step_in_order(pictures: ModuleType) -> None:
    text = TOUR.read_text("utf-8")
    shown = re.findall(r"!\[[^\]]+\]\(pictures/([\w.]+)\)", text)
    assert shown == [step.file for step in pictures.STEPS]
    parts = re.split(r"^## ", text, flags=re.MULTILINE)[1:]
    for step, part in zip(pictures.STEPS, parts, strict=True):
        assert part.startswith(step.name.capitalize())
        assert f"`{step.command}`" in part


def test_every_picture_is_there_small_and_fetches_nothing(pictures: ModuleType) -> None:
    for step in pictures.STEPS:
        file = pictures.PICTURES / step.file
        if file.suffix == ".png":
            assert file.read_bytes().startswith(b"\x89PNG")
            continue
        svg = file.read_text("utf-8")
        assert len(svg.encode()) < 120_000
        assert ET.fromstring(svg).tag == "{http://www.w3.org/2000/svg}svg"
        assert faults(svg) == []


def test_a_drawing_is_the_same_each_time_and_has_local_fonts(pictures: ModuleType) -> None:
    ansi = "\n\x1b[31mred_one\x1b[0m <script>alert(1)</script>\n" + "x" * 130
    svg = pictures.drawn(ansi, "command", "name")
    assert svg == pictures.drawn(ansi, "command", "name")
    assert faults(svg) == []
    assert "name-line-0" in svg
    assert ">red_one<" in svg
    assert f">{'x' * 110}<" in svg  # a terminal of 110 columns breaks the line of 130 there
    assert f">{'x' * 20}<" in svg


def test_what_a_picture_must_not_hold_is_found() -> None:
    assert faults('<svg><script>1</script><rect onclick="1"/></svg>') != []
    assert faults('<style>@font-face { src: url("https://example.org/a.woff") }</style>') != []
    assert faults('<image href="https://example.org/a.png"/>') != []
