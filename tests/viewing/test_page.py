"""The HTML of a page, and the script that is in the package."""

import base64
import hashlib
import html
import json
import re
from importlib.resources import files
from pathlib import Path

import sabir
from sabir.viewing import html_of, page_of

ROOT = Path(__file__).parents[2]
HEAD = '<ir_version: 10, opset_import: ["" : 21]> g (float[N] x) => (float[N] y)'
SCRIPTS = re.compile(r"<script([^>]*)>(.*?)</script>", re.DOTALL)


def parts(text):
    """The data and the script of a page, as a browser finds them."""
    (data_attributes, data), (attributes, script) = SCRIPTS.findall(text)
    assert (data_attributes, attributes) == (' type="application/json" id="data"', "")
    return json.loads(data), script


def page(model, **options):
    return html_of(page_of(model, **options)).decode()


def test_names_are_no_markup():
    model = sabir.parse(f"{HEAD} {{ y = Relu (x) }}")
    names = "</script><script>alert(1)</script>", "<!--<script>", "]]>&amp;\u2028\u2029", "\udc80"
    for name in names:
        model.graph[0].name = name
        text = page(model, name=name)
        data, _ = parts(text)
        assert len(SCRIPTS.findall(text)) == 2
        assert "<!--" not in text.split('id="data">')[1].split("</script>")[0]
        shown = data["nodes"][0]["name"]
        assert shown == name if name.isprintable() else "\\u" in shown


def test_the_title_is_escaped():
    model = sabir.parse(f"{HEAD} {{ y = Relu (x) }}")
    assert "<title>&lt;b&gt; &amp; &quot;</title>" in page(model, name='<b> & "')


def test_the_policy_admits_only_the_script_and_the_style_of_the_page():
    text = page(sabir.parse(f"{HEAD} {{ y = Relu (x) }}"))
    policy = html.unescape(re.search(r'Content-Security-Policy" content="([^"]*)"', text)[1])
    rules = dict(rule.split(" ", 1) for rule in policy.split("; "))
    style = re.search(r"<style>(.*?)</style>", text, re.DOTALL)[1]
    for name, content in (("script-src", parts(text)[1]), ("style-src", style)):
        digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
        assert rules[name] == f"'sha256-{digest}'"
    assert rules["default-src"] == "'none'"
    assert rules["connect-src"] == "'none'"
    assert not re.search(r"\bstyle=|\bon\w+=", SCRIPTS.sub("", text).split("<body>")[1])


def test_a_page_loads_nothing():
    text = page(sabir.parse(f"{HEAD} {{ y = Relu (x) }}"))
    outside = re.sub(r'"https?://www\.w3\.org/[^"]*"', "", text)
    assert not re.search(r"https?://|\bsrc=|@import|url\(", SCRIPTS.sub("", outside))


def test_the_script_was_built_from_these_sources():
    web = ROOT / "web"
    names = ["build.mjs", "package.json", "package-lock.json", "tsconfig.json"]
    digest = hashlib.sha256()
    for name in sorted([*names, *(f"src/{p.name}" for p in (web / "src").iterdir())]):
        digest.update(f"{name}\0".encode() + (web / name).read_bytes() + b"\0")
    recorded = files("sabir.viewing").joinpath("page", "sources.sha256").read_text().strip()
    assert recorded == digest.hexdigest(), "the sources in `web` changed; run `make web`"


def test_the_licences_of_the_libraries_are_in_the_package():
    text = files("sabir.viewing").joinpath("page", "LICENCES.txt").read_text()
    used = json.loads((ROOT / "web" / "package.json").read_text())["dependencies"]
    for name, version in used.items():
        assert f"{name} {version} (" in text
    assert text.count("Permission") >= len(used)


def test_view_writes_a_file(tmp_path):
    path = tmp_path / "page.html"
    sabir.view(sabir.parse(f"{HEAD} {{ y = Relu (x) }}"), path)
    data, _ = parts(path.read_text())
    assert data["model"]["name"] == "page"
