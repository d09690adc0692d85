"""The page of a model: one HTML file with its script, its style and its data, which loads nothing."""

from __future__ import annotations

import base64
import hashlib
import html
import json
from importlib.resources import files
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sabir.viewing._document import ModelPage

# what could end the element of the data, or begin one inside it
_ESCAPES = str.maketrans({
    "<": "\\u003c",
    ">": "\\u003e",
    "&": "\\u0026",
    "\u2028": "\\u2028",
    "\u2029": "\\u2029",
})


def html_of(page: ModelPage, *, reload: bool = False) -> bytes:
    """Return the page of a model as one HTML document.

    Its Content-Security-Policy admits its own script and style, by their hashes, and nothing else. The texts
    of the model are data of JSON, which the script shows as text. With `reload` the page asks the server that
    it comes from whether the model has changed.

    >>> model = sabir.parse('''<ir_version: 10, opset_import: ["" : 21]>
    ... g (float[N] x) => (float[N] y) { y = Relu (x) }''')
    >>> html_of(page_of(model)).count(b'<script')
    2
    """
    data = {**page.data, "reload": reload}
    return document_of(str(page.data["model"]["name"]), data, connect="'self'" if reload else "'none'")


def document_of(title: str, data: Mapping[str, Any], *, connect: str) -> bytes:
    """Return an HTML document with the script of the pages; `connect` is what it may ask."""
    script, style = _asset("page.js"), _asset("page.css")
    policy = "; ".join([
        "default-src 'none'",
        f"script-src {_hash(script)}",
        f"style-src {_hash(style)}",
        "img-src data: blob:",
        "worker-src blob:",
        f"connect-src {connect}",
        "base-uri 'none'",
        "form-action 'none'",
    ])  # fmt: skip
    text = json.dumps(data, separators=(",", ":"), allow_nan=False).translate(_ESCAPES)
    lines = [
        "<!doctype html>",
        '<html lang="en">',
        "<head>",
        '<meta charset="utf-8">',
        f'<meta http-equiv="Content-Security-Policy" content="{html.escape(policy)}">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        '<meta name="referrer" content="no-referrer">',
        '<link rel="icon" href="data:,">',
        f"<title>{html.escape(title)}</title>",
        f"<style>{style}</style>",
        "</head>",
        "<body>",
        f'<script type="application/json" id="data">{text}</script>',
        f"<script>{script}</script>",
        "</body>",
        "</html>",
    ]
    return "\n".join([*lines, ""]).encode("utf-8", "replace")


def _asset(name: str) -> str:
    return files("sabir.viewing").joinpath("page", name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    digest = hashlib.sha256(text.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"
