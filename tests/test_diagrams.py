"""The methods' diagrams: all parts named, legible on a phone and in the dark, and what they show is true."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from pathlib import Path

import numpy as np
import pytest

from fgl_core.plots.style import COLOURS
from fgl_core.signature import cluster, signature

STATIC = Path(__file__).parents[1] / "book" / "_static"
SVG = "{http://www.w3.org/2000/svg}"
PARTS = {
    "fgssl": ["Server", "Local model", "Global model", "strong view", "weak view", "encoder G",
              "classifier F", "FNSC", "FGSD", "cross-entropy", "likeness", "frozen", "trained"],
    "fedcch": ["GIN", "PF", "head", "sum of nodes", "64 numbers", "8 × 8", "aHash", "64 bits", "HCT",
               "share of", "average of", "its cluster", "stays with the client", "travels"],
}  # fmt: skip
PHONE = 388  # pixels that a figure gets on a screen 420 wide


@pytest.fixture(params=sorted(PARTS))
def diagram(request: pytest.FixtureRequest) -> tuple[str, ET.Element]:
    return request.param, ET.parse(STATIC / f"{request.param}.svg").getroot()


def texts(svg: ET.Element) -> list[ET.Element]:
    return list(svg.iter(f"{SVG}text"))


def test_its_parts_are_named(diagram: tuple[str, ET.Element]) -> None:
    name, svg = diagram
    words = " ".join("".join(text.itertext()) for text in texts(svg))
    assert [part for part in PARTS[name] if part not in words] == []


def test_it_is_legible_on_a_phone(diagram: tuple[str, ET.Element]) -> None:
    _, svg = diagram
    width = float(svg.get("viewBox").split()[2])
    (size,) = re.findall(r"text \{ font: (\d+)px", svg.find(f"{SVG}style").text)
    assert int(size) * PHONE / width >= 12
    small = [int(span.get("font-size")) for span in svg.iter() if span.get("font-size")]
    assert all(number * PHONE / width >= 9 for number in small)  # indices


def test_it_brings_its_own_light_card_and_dark_text(diagram: tuple[str, ET.Element]) -> None:
    _, svg = diagram
    width, height = svg.get("viewBox").split()[2:]
    card = svg.find(f"{SVG}rect")
    assert (card.get("width"), card.get("height"), card.get("fill")) == (width, height, "#fff")
    assert re.search(r"text \{[^}]*fill: #1a1a1a", svg.find(f"{SVG}style").text)
    assert not any(text.get("fill") for text in texts(svg))


def test_its_lines_have_the_colours_of_the_books_figures(diagram: tuple[str, ET.Element]) -> None:
    _, svg = diagram
    strokes = set(re.findall(r"stroke: (#\w+)", svg.find(f"{SVG}style").text))
    assert strokes <= {*COLOURS, "#1a1a1a", "#767676"} and len(strokes & set(COLOURS)) >= 2


def fills(svg: ET.Element, group: str) -> list[str]:
    (found,) = [part for part in svg.iter(f"{SVG}g") if part.get("id") == group]
    return [square.get("fill") for square in found]


def brightness(colour: str) -> int:
    digits = colour.lstrip("#")
    return int(digits[:2] if len(digits) == 6 else 2 * digits[0], 16)


def test_the_bits_drawn_are_the_hash_of_the_picture_drawn() -> None:
    svg = ET.parse(STATIC / "fedcch.svg").getroot()
    picture = np.array([brightness(colour) for colour in fills(svg, "picture")])
    bits = np.array([brightness(colour) == 255 for colour in fills(svg, "hash")])
    assert picture.min() == 0 and picture.max() == 255
    assert (signature(picture) == bits).all()


def test_the_matrix_drawn_has_two_clusters() -> None:
    svg = ET.parse(STATIC / "fedcch.svg").getroot()
    darkness = 1 - np.array([brightness(colour) for colour in fills(svg, "similarity")]).reshape(5, 5) / 255
    assert (darkness == darkness.T).all()
    np.fill_diagonal(darkness, 1)
    assert cluster(darkness, clusters=2).tolist() == [0, 0, 0, 1, 1]
