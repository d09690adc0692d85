"""What is in markup; it is read as XML, so it must be well-formed."""

from typing import Any

# ruff: ignore[suspicious-xml-etree-import]  our own text
from xml.etree import ElementTree as ET


def parsed(text):
    return ET.fromstring(text)  # ruff: ignore[suspicious-xml-element-tree-usage]  our own text


def html_of(item: Any) -> str:
    """What a notebook shows of an object."""
    return item._repr_html_()


def cells(markup):
    """The texts of the rows of all tables."""
    return [[cell.text or "" for cell in row] for row in parsed(markup).iter("tr")]
