"""JSON and protobuf's text format, where they are no such thing, or say what no message can hold."""

from __future__ import annotations

from hostile.case import MANY, Outcome, case

SOUND = """{"irVersion": "10", "opsetImport": [{"domain": "", "version": "21"}], "graph": {"name": "g",
"node": [{"input": ["x"], "output": ["y"], "opType": "Relu"}],
"input": [{"name": "x", "type": {"tensorType": {"elemType": 1, "shape": {"dim": [{"dimParam": "N"}]}}}}],
"output": [{"name": "y", "type": {"tensorType": {"elemType": 1, "shape": {"dim": [{"dimParam": "N"}]}}}}]}}"""
PLAIN = """ir_version: 10 opset_import { domain: "" version: 21 } graph { name: "g"
node { input: "x" output: "y" op_type: "Relu" }
input { name: "x" type { tensor_type { elem_type: 1 shape { dim { dim_param: "N" } } } } }
output { name: "y" type { tensor_type { elem_type: 1 shape { dim { dim_param: "N" } } } } } }"""


def json(name: str, text: str | bytes, outcome: Outcome = "refused") -> None:
    """Add a case in JSON."""
    case(f"JSON: {name}", lambda: text if isinstance(text, bytes) else text.encode(), outcome, form="json")


def plain(name: str, text: str | bytes, outcome: Outcome = "refused") -> None:
    """Add a case in protobuf's text format."""
    case(
        f"textproto: {name}",
        lambda: text if isinstance(text, bytes) else text.encode(),
        outcome,
        form="textproto",
    )


json("sound", SOUND, "sound")
json("with a byte order mark", "\ufeff" + SOUND, "sound")
json("nothing", "")
json("null", "null")
json("a list", "[]")
json("a number", "1e999")
json("a text", '"model"')
json("an empty object", "{}")
json("two objects", SOUND + SOUND)
json("no UTF-8", SOUND.encode().replace(b'"g"', b'"\xff\xfe"'))
json("UTF-16", SOUND.encode("utf-16"))
json("NUL", SOUND.replace('"g"', '"g\0"'))
json("a NUL that is written", SOUND.replace('"g"', '"g\\u0000"'), "any")
json("half a surrogate", SOUND.replace('"g"', '"\\ud800"'))
json("escapes for a terminal", SOUND.replace('"g"', '"\\u001b[2J\\u202e"'), "any")
json("an unknown field", SOUND.replace('"name"', '"nmae"', 1), "any")
json("a field twice", SOUND.replace('"irVersion": "10"', '"irVersion": "10", "irVersion": "3"'), "any")
json(
    "a field by both its names",
    SOUND.replace('"irVersion": "10"', '"irVersion": "10", "ir_version": "3"'),
    "any",
)
for twelfth in range(1, 12):
    json(f"cut at {twelfth}/12", SOUND[: len(SOUND) * twelfth // 12])
for name, value in {
    "a float": "10.5", "1e2": "1e2", "NaN": "NaN", "Infinity": "Infinity", "2^63": str(2**63), "-2^63 - 1": str(-(2**63) - 1), "of 1000000 digits": "9" * 1_000_000,
    "an object": "{}", "a list": "[]", "true": "true", "null": "null", "hexadecimal": "0x10", "with a plus": "+10", "with zeros": "0010", "of Arabic digits": '"\u0661\u0660"', "empty": '""',
    "with spaces": '" 10 "', "with underscores": '"1_0"', "1e999": "1e999", "of an exponent of 10000 digits": "1e" + "9" * MANY,
}.items():  # fmt: skip
    json(f"an IR version: {name}", SOUND.replace('"10"', value, 1), "any")
    json(f"an element type: {name}", SOUND.replace('"elemType": 1', f'"elemType": {value}', 1), "any")
    json(f"a dimension: {name}", SOUND.replace('"dimParam": "N"', f'"dimValue": {value}'), "any")
for name, value in {
    "a text": '"nodes"',
    "a number": "5",
    "null": "null",
    "an object": '{"a": 1}',
    "a list of lists": "[[[]]]",
    "a list of nulls": "[null]",
    "a list of numbers": "[1]",
}.items():
    json(f"nodes that are {name}", SOUND.replace('"node": [', f'"node": {value}, "doc": [', 1), "any")
TENSOR = SOUND.replace(
    '"node"', '"initializer": [{"name": "w", "dataType": 1, "dims": ["2"], %s}], "node"', 1
)
for name, value in {
    "too short": '"rawData": "AAAA"', "no base64": '"rawData": "*()"', "base64 of 4 letters less": '"rawData": "AAA"', "a number as data": '"rawData": 5', "NaN as text": '"floatData": ["NaN", "-Infinity"]',
    "beyond float": '"floatData": [1e39, 1]', "text as a float": '"floatData": ["a", 1]', "true as a float": '"floatData": [true, 1]', "beyond int32": '"int32Data": [4294967296]', "a float as int32": '"int32Data": [1.5]',
    "nested": '"floatData": [[1], 2]',
}.items():  # fmt: skip
    json(f"data: {name}", TENSOR % value, "any")
for letter in '[{"\\-0t,:':
    json(f"5000000 times {letter!r}", letter * 5_000_000)
json("10000 lists in lists", "[" * MANY + "]" * MANY)
json("10000 objects in objects", '{"graph":' * MANY + "{}" + "}" * MANY)
json(
    "1000 graphs in graphs",
    '{"irVersion": 10, "graph": ' + '{"node": [{"attribute": [{"g": ' * 1000 + "{}" + "}]}]}" * 1000 + "}",
)
json(
    "2000 empty nodes",
    '{"irVersion": 10, "graph": {"name": "g", "node": [' + ",".join(["{}"] * 2_000) + "]}}",
)
json("10000 fields that nobody knows", "{" + ",".join(f'"k{i}": 1' for i in range(MANY)) + "}")
json("10000 times one field", "{" + ",".join(['"irVersion": 1'] * MANY) + "}")
json("a name of 5 MB", SOUND.replace('"g"', '"' + "g" * 5_000_000 + '"'), "any")
json("a million escapes", SOUND.replace('"g"', '"' + "\\u0041" * 1_000_000 + '"'), "any")

plain("sound", PLAIN, "sound")
plain("nothing", "")
plain("comments", "# no\n" * MANY)
plain("no UTF-8", PLAIN.encode().replace(b'"g"', b'"\xff\xfe"'))
plain("bytes that are no UTF-8", PLAIN.replace('"g"', '"\\377\\376"'))
plain("a NUL that is written", PLAIN.replace('"g"', '"\\000"'), "any")
plain("escapes for a terminal", PLAIN.replace('"g"', '"\\033[2J"'), "any")
plain("an escape that is none", PLAIN.replace('"g"', '"\\q"'))
plain("a surrogate", PLAIN.replace('"g"', '"\\ud800"'))
plain("an unknown field", PLAIN.replace("name", "nmae", 1))
plain("an unknown field by number", "999: 5 " + PLAIN, "any")
plain("a field twice", PLAIN + " ir_version: 3")
plain("an extension", "[a.b.c] { x: 1 } " + PLAIN)
plain("Any", "[type.googleapis.com/onnx.ModelProto] { ir_version: 1 } " + PLAIN)
for twelfth in range(1, 12):
    plain(f"cut at {twelfth}/12", PLAIN[: len(PLAIN) * twelfth // 12])
for name, value in {
    "a float": "10.5", "nan": "nan", "2^63": str(2**63), "of 1000000 digits": "9" * 1_000_000, "text": '"10"', "a word": "TEN", "hexadecimal": "0xA", "octal": "012", "minus": "- 5", "nothing": "",
    "a message": "{}", "a list": "[1]",
}.items():  # fmt: skip
    plain(f"an IR version: {name}", PLAIN.replace("10", value, 1), "any")
    plain(f"an element type: {name}", PLAIN.replace("elem_type: 1", f"elem_type: {value}", 1), "any")
for letter in '{<["\\:;#a0':
    plain(f"5000000 times {letter!r}", letter * 5_000_000)
plain("10000 messages in messages", "graph {" * MANY)
plain("1000 graphs in graphs", "graph { " + "node { attribute { g { " * 1000 + "} } } " * 1000 + "}")
plain("groups of 10000 brackets", "graph " + "<" * MANY + ">" * MANY)
plain("unknown fields 10000 deep", "zzz {" * MANY + "}" * MANY)
plain("2000 empty nodes", 'ir_version: 10 graph { name: "g" ' + "node { } " * 2_000 + "}")
plain("10000 pieces of a text", PLAIN.replace('"g"', '"g" ' * MANY), "any")
plain("a name of 5 MB", PLAIN.replace('"g"', '"' + "g" * 5_000_000 + '"'), "any")
