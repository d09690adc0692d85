"""Small models that double without an end, loop without an end, or match without an end."""

from __future__ import annotations

from hostile.small import ints, text

DOUBLE = {
    "Concat": "v{b} = Concat <axis = 0> (v{a}, v{a})", "Tile": "v{b} = Tile (v{a}, two)", "StringConcat": "v{b} = StringConcat (v{a}, v{a})",
    "Pad": "v{b} = Pad (v{a}, pads)", "shape arithmetic": "v{b} = Mul (v{a}, v{a})", "Add": "v{b} = Add (v{a}, v{a})",
}  # fmt: skip
for name, step in DOUBLE.items():
    kind = "string" if name == "StringConcat" else "float"
    first = (
        'v0 = Constant<value_strings=["aaaaaaaa"]>() '
        if kind == "string"
        else "v0 = Constant<value_floats=[1.0]>() "
    )
    before = ints("two", 2) + ints("pads", 1000, 1000)
    if name in {"shape arithmetic", "Add"}:
        first, kind = "v0 = Shape (x) ", "int64"
    text(
        before + first + " ".join(step.format(a=i, b=i + 1) for i in range(60)),
        inputs="float[N] x",
        outputs=f"{kind}[] v60",
        name=f"60 doublings by {name}",
    )
text(
    "v0 = Shape (x) "
    + ints("one", 1)
    + " ".join(f"w{i} = Add (v{i}, one) v{i + 1} = Mul (w{i}, w{i})" for i in range(40))
    + " y = ConstantOfShape (v40)",
    inputs="float[N] x",
    name="40 squares of a symbol and one",
)
text(
    "v0 = Shape (x) w0 = Shape (z) "
    + " ".join(f"v{i + 1} = Add (v{i}, w{i}) w{i + 1} = Mul (v{i}, w{i})" for i in range(40))
    + " y = ConstantOfShape (w40)",
    inputs="float[N] x, float[M] z",
    name="40 mixtures of two symbols",
)
text(
    "v0 = Constant<value_ints=[3]>() "
    + " ".join(f"v{i + 1} = Mul (v{i}, v{i})" for i in range(100))
    + " y = ConstantOfShape (v100)",
    name="100 squares of 3",
)
text(
    "q0 = SequenceConstruct (x) "
    + " ".join(
        f"l{i} = ConcatFromSequence <axis = 0> (q{i}) q{i + 1} = SequenceInsert (q{i}, l{i})"
        for i in range(60)
    )
    + " y = SequenceLength (q60)",
    inputs="float[2] x",
    outputs="int64 y",
    name="60 doublings by a sequence",
)

TRUE = "m = Constant<value = int64 {9223372036854775807}>() t = Constant<value = bool {1}>() "
BODY = "body = b (int64 i, bool c, {state}) => (bool c2, {result}) {{ c2 = Identity (c) {nodes} }}"
text(
    TRUE
    + "y = Loop <"
    + BODY.format(state="float[] s", result="float[] s2", nodes="s2 = Neg (s)")
    + "> (m, t, x)",
    inputs="float[2] x",
    name="a Loop without an end",
)
text(
    TRUE
    + "y = Loop <"
    + BODY.format(state="float[] s", result="float[] s2", nodes="s2 = Concat <axis = 0> (s, s)")
    + "> (m, t, x)",
    inputs="float[2] x",
    name="a Loop that doubles",
)
text(
    TRUE
    + "y, z = Loop <"
    + BODY.format(state="float[] s", result="float[] s2, float[] o", nodes="s2 = Neg (s) o = Neg (s)")
    + "> (m, t, x)",
    inputs="float[2] x",
    name="a Loop that scans without an end",
)
text(
    TRUE
    + "q = SequenceConstruct (x) p = Loop <"
    + BODY.format(
        state="seq(float[]) s",
        result="seq(float[]) s2",
        nodes="e = Constant<value_floats=[1.0]>() s2 = SequenceInsert (s, e)",
    )
    + "> (m, t, q) y = SequenceLength (p)",
    inputs="float[2] x",
    outputs="int64 y",
    name="a Loop that appends without an end",
)
text(
    TRUE + "y = Loop <body = b (int64 i, bool c) => (bool c2) { c2 = Identity (c) }> (m, t)",
    outputs="float y",
    name="a Loop of nothing",
)
text(
    "y = Loop <body = b (int64 i, bool c, float[] s) => (bool c2, float[] s2) { c2 = Identity (c) s2 = Neg (s) }> (, , x)",
    inputs="float[2] x",
    name="a Loop without a bound",
)
text(
    "m = Constant<value_int=-5>() y = Loop <body = b (int64 i, bool c, float[] s) => (bool c2, float[] s2) { c2 = Identity (c) s2 = Neg (s) }> (m, , x)",
    inputs="float[2] x",
    name="a Loop of -5 turns",
)
text(
    "y = Scan <num_scan_inputs = 4611686018427387904, body = b (float s) => (float r) { r = Neg (s) }> (x)",
    inputs="float[2] x",
    name="a Scan of 2^62 inputs",
)
text(
    "y = Scan <num_scan_inputs = -1, body = b (float s) => (float r) { r = Neg (s) }> (x)",
    inputs="float[2] x",
    name="a Scan of -1 inputs",
)
text(
    "y = If <then_branch = a () => (float r) { r = Neg (zzz) }, else_branch = b () => (float r) { r = Neg (x) }> (c)",
    inputs="float x, bool c",
    outputs="float y",
    name="an If that reads nothing",
)
text(
    "y = If <then_branch = a () => () { }, else_branch = b () => () { }> (c)",
    inputs="bool c",
    outputs="float y",
    name="an If that gives nothing",
)
text(
    "q = SequenceMap <body = b (float[] e) => (float[] r) { r = Neg (e) }> (s) y = SequenceLength (q)",
    inputs="seq(float[]) s",
    outputs="int64 y",
    name="SequenceMap of what is not fed",
)


for name, pattern in {
    "nested stars": "(a+)+$", "alternatives": "(a|a)*b", "nested counts": "((a{1,1000}){1,1000}){1,1000}", "a huge count": "a{1000000000}",
    "deep parentheses": "(" * 2000 + "a" + ")" * 2000, "open parentheses": "(" * 2000, "a reference": "(a)\\\\1", "a look ahead": "(?=a)a",
    "a class without an end": "[[[[[", "many alternatives": "|".join("ab" * 500), "Unicode classes": "\\\\p{Greek}+", "nothing": "", "bad escape": "\\\\",
    "a flag": "(?i)A+", "a long pattern": "a?" * 2000 + "a" * 2000,
}.items():  # fmt: skip
    text(
        's = Constant<value_strings=["'
        + "a" * 2000
        + 'b"]>() y = RegexFullMatch <pattern = "'
        + pattern
        + '"> (s)',
        outputs="bool[] y",
        name=f"RegexFullMatch of {name}",
    )
text(
    's = Constant<value_strings=["' + "a," * 100_000 + '"]>() y, n = StringSplit <delimiter = ","> (s)',
    outputs="string[] y",
    name="StringSplit into 100000",
)
text(
    's = Constant<value_strings=["'
    + "a " * 20_000
    + '"]>() y, n = StringSplit <maxsplit = 4611686018427387904> (s)',
    outputs="string[] y",
    name="StringSplit of 2^62",
)
text(
    'y = StringNormalizer <case_change_action = "SIDEWAYS"> (s)',
    inputs="string[2] s",
    outputs="string[] y",
    name="StringNormalizer of no action",
)
text(
    f'y = TfIdfVectorizer <mode = "TF", min_gram_length = 1, max_gram_length = 1, max_skip_count = {2**40}, ngram_counts = [0], ngram_indexes = [{2**40}], pool_int64s = [1]> (x)',
    inputs="int64[4] x",
    name="TfIdfVectorizer of 2^40",
)
text(
    'y = TfIdfVectorizer <mode = "TF", min_gram_length = 1, max_gram_length = 1000000, max_skip_count = 1000000, ngram_counts = [0], ngram_indexes = [0], pool_int64s = [1]> (x)',
    inputs="int64[4] x",
    name="TfIdfVectorizer of 1000000 grams",
)
