"""Texts in the ONNX text syntax that no parser should stumble over."""

from __future__ import annotations

from hostile.case import MANY, Outcome, case

HEAD = '<ir_version: 10, opset_import: ["": 21]> '
SOUND = HEAD + "g (float[N] x) => (float[N] y) { y = Relu (x) }"


def text(name: str, written: str | bytes, outcome: Outcome = "refused") -> None:
    """Add a case that is a text."""
    case(
        f"text: {name}",
        lambda: written if isinstance(written, bytes) else written.encode(),
        outcome,
        form="onnxtxt",
    )


def in_type(kind: str) -> str:
    """A graph that passes on a value of a type."""
    return HEAD + f"g ({kind} x) => ({kind} y) {{ y = Identity (x) }}"


def in_attribute(value: str) -> str:
    """A node with an attribute of this value."""
    return HEAD + f"g (float[N] x) => (float[N] y) {{ y = LeakyRelu <alpha = {value}> (x) }}"


def in_data(kind: str, value: str) -> str:
    """A Constant of this data."""
    return HEAD + f"g () => ({kind} y) {{ y = Constant <value = {kind} {value}> () }}"


text("sound", SOUND, "sound")
text("nothing", "")
text("spaces", " " * 1_000_000)
text("comments", "# no\n" * MANY)
text("no model", "hello, world")
for letter in '([{<"\\/=:;,.-+&%$§0x_\0\x1b\n':
    text(f"5000000 times {letter!r}", letter * 5_000_000)
    text(
        f"10000 times {letter!r} inside",
        SOUND.replace("x)", f"x {letter * MANY})", 1),
        "any" if letter == "\n" else "refused",
    )
text("a byte order mark", "\ufeff" + SOUND, "any")
text("no UTF-8", SOUND.encode().replace(b"g (", b"g\xff ("))
text("NUL", SOUND.replace("g (", "g\0 ("))
text("escapes", SOUND.replace("g (", "g\x1b[2J\x07 ("))
text("escapes in the line that is shown", SOUND.replace("Relu", "\x1b[31m\u202eRelu ?"))
for twelfth in range(1, 12):
    text(f"cut at {twelfth}/12", SOUND[: len(SOUND) * twelfth // 12])
for levels in (60, 70, 1000, MANY):
    outcome: Outcome = "refused" if levels > 64 else "any"
    for word in ("seq", "optional"):
        text(f"{levels} times {word}", in_type(f"{word}(" * levels + "float[N]" + ")" * levels), outcome)
        text(f"{levels} times {word}, open", in_type(f"{word}(" * levels))
    text(f"{levels} maps", in_type("map(int64," * levels + "float" + ")" * levels), outcome)
    graphs = "x2 = If <then_branch = a () => (float r) { r = " * levels
    text(f"{levels} graphs", HEAD + f"g (float x) => (float y) {{ {graphs} Neg (x)")
    text(f"{levels} lists", in_attribute("[" * levels + "]" * levels))
    text(f"{levels} data", in_data("float[1]", "{" * levels + "}" * levels))
for name, value in {
    "of 1000000 digits": "9" * 1_000_000, "2^63": str(2**63), "-2^63 - 1": str(-(2**63) - 1), "of Arabic digits": "\u0661\u0662", "a float": "1.5",
}.items():  # fmt: skip
    text(
        f"an int {name}",
        HEAD + f"g (float[{value}] x) => (float[{value}] y) {{ y = Relu (x) }}",
        "any" if name.startswith(("a", "of A")) else "refused",
    )
    text(f"an IR version {name}", SOUND.replace("10,", f"{value},"))
    text(f"an opset {name}", SOUND.replace("21]", f"{value}]"))
    text(f"data {name}", in_data("int64[1]", f"{{{value}}}"))
for name, value in {
    "1e999": "1e999", "-1e999": "-1e999", "1e-999": "1e-999", "of 1000000 digits": "0." + "1" * 1_000_000, "of an exponent of 10000 digits": "1e" + "9" * MANY,
    "of two dots": "1.2.3", "of an open exponent": "1e", "nan": "nan", "inf": "inf", "hexadecimal": "0x1p3", "infinite": "Infinity",
}.items():  # fmt: skip
    text(f"a float {name}", in_attribute(value), "any")
    text(f"data of floats {name}", in_data("float[1]", f"{{{value}}}"), "any")
for name, value in {
    "an int8 of 70000": ("int8[1]", "{70000}"), "a uint8 of -1": ("uint8[1]", "{-1}"), "a bool of 7": ("bool[1]", "{7}"), "an int4 of 8": ("int4[1]", "{8}"),
    "a float16 of 70000": ("float16[1]", "{70000.0}"), "too few": ("float[3]", "{1.0}"), "too many": ("float[1]", "{1.0, 2.0}"), "in a huge shape": (f"float[{2**62}]", "{1.0}"),
    "in a shape of 65 axes": (f"float[{','.join(['1'] * 65)}]", "{1.0}"), "in a negative shape": ("float[-1]", "{1.0}"), "in a named shape": ("float[N]", "{1.0}"),
    "of strings for floats": ("float[1]", '{"a"}'), "of floats for strings": ("string[1]", "{1.0}"), "of nothing": ("float[1]", "{}"), "of commas": ("float[1]", "{,,,}"),
    "of another type": ("zzz[1]", "{1}"),
}.items():  # fmt: skip
    text(f"data: {name}", in_data(*value), "any" if name == "an int4 of 8" else "refused")
text("a string without an end", SOUND.replace("g (", '"g ('))
text("a string of an open escape", SOUND.replace("g (", '"g\\'))
text("a string of 5 MB", SOUND.replace("g (", '"' + "a" * 5_000_000 + '" ('), "any")
text("a string of 1000000 escapes", SOUND.replace("g (", '"' + "\\a" * 1_000_000 + '" ('), "any")
text("a string of surrogates", SOUND.replace("g (", '"\\ud800" ('), "any")
text("a name of 5 MB", SOUND.replace("y", "y" * 1_000_000), "any")
text("2000 nodes", HEAD + "g (float[N] x) => (float[N] y) { " + "y = Relu (x) " * 2_000 + "}")
text(
    "1000 nodes in a row",
    HEAD
    + "g (float[N] v0) => (float[N] v2000) { "
    + " ".join(f"v{i + 1} = Neg (v{i})" for i in range(1000))
    + "}",
    "any",
)
text("5000 inputs", HEAD + "g (" + "float[N] x," * (MANY // 2) + "float z) => (float[N] y) { y = Relu (x) }")
text(
    "10000 attributes",
    HEAD + "g (float[N] x) => (float[N] y) { y = Relu <" + "a = 1," * MANY + "a = 1> (x) }",
)
text("10000 numbers", in_data(f"float[{MANY}]", "{" + "1.0," * (MANY - 1) + "1.0}"), "any")
text("5000 dimensions", in_type(f"float[{','.join(['N'] * (MANY // 2))}]"), "any")
text("1000 functions", SOUND + ' <opset_import: ["": 21]> f (a) => (b) { b = Relu (a) }' * 1_000)
text("10000 headers", "<" + "ir_version: 10," * MANY + "ir_version: 10>" + SOUND[len(HEAD) - 1 :])
text(
    "10000 metadata",
    SOUND.replace("]>", "], metadata_props: [" + ",".join(['"k": "v"'] * MANY) + "]>"),
    "any",
)
text("an expression of 10000 terms", in_type("float[" + "+".join(["N"] * MANY) + "]"), "any")
text("an expression of 10000 parentheses", in_type("float[" + "(" * MANY + "N" + ")" * MANY + "]"))
text("an attribute type that is none", in_attribute("1").replace("alpha =", "alpha: zzz ="))
text("a reference in the main graph", in_attribute("@alpha"))
text("a keyword as a name", HEAD + "float (float[N] int64) => (float[N] seq) { seq = Relu (int64) }", "any")
text("a model after the model", SOUND + SOUND)
