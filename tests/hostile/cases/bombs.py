"""Small models that ask for endless memory when they are inferred or run."""

from __future__ import annotations

from hostile.small import HUGE, LEAST, ints, text

text(ints("s", 2**40) + "y = ConstantOfShape (s)", name="ConstantOfShape 2^40")
text(ints("s", 2**31, 2**31, 2**31) + "y = ConstantOfShape (s)", name="ConstantOfShape beyond int64")
text(ints("s", *[2] * 64) + "y = ConstantOfShape (s)", name="ConstantOfShape of 64 axes")
text(ints("s", *[1] * 65) + "y = ConstantOfShape (s)", name="ConstantOfShape of 65 axes")
text(ints("s", *[1] * 100_000) + "y = ConstantOfShape (s)", name="ConstantOfShape of 100000 axes")
text(ints("s", -1) + "y = ConstantOfShape (s)", name="ConstantOfShape -1")
text(ints("s", 0, HUGE) + "y = ConstantOfShape (s)", name="ConstantOfShape 0 by 2^62")
text(ints("s", 2**40) + "y = Expand (x, s)", inputs="float[1] x", name="Expand to 2^40")
text(ints("s", 2**20, 2**20) + "y = Tile (x, s)", inputs="float[2,2] x", name="Tile 2^20 by 2^20")
text(ints("s", HUGE, HUGE) + "y = Tile (x, s)", inputs="float[2,2] x", name="Tile beyond int64")
text(ints("s", 0, HUGE) + "y = Pad (x, s)", inputs="float[2] x", name="Pad by 2^62")
text(ints("s", -HUGE, -HUGE) + "y = Pad (x, s)", inputs="float[2] x", name="Pad by -2^62")
text(
    "a = Constant<value_int=0>() "
    f"b = Constant<value_int={HUGE}>() c = Constant<value_int=1>() y = Range (a, b, c)",
    outputs="int64[] y",
    name="Range to 2^62",
)
text(
    "a = Constant<value_int=0>() b = Constant<value_int=10>() c = Constant<value_int=0>() y = Range (a, b, c)",
    outputs="int64[] y",
    name="Range of step 0",
)
text(
    "a = Constant<value_float=0.0>() b = Constant<value_float=1e30>() c = Constant<value_float=1e-30>() y = Range (a, b, c)",
    name="Range of 1e60",
)
text(
    "a = Constant<value_float=0.0>() b = Constant<value_float=inf>() c = Constant<value_float=1.0>() y = Range (a, b, c)",
    name="Range to infinity",
)
text(
    ints("d", 2**40) + "i = Constant<value_ints=[1]>() v = Constant<value_ints=[0,1]>() y = OneHot (i, d, v)",
    outputs="int64[] y",
    name="OneHot 2^40",
)
text("y = EyeLike (x)", inputs=f"float[{2**40},{2**40}] x", name="EyeLike of what is not fed")
text(ints("s", 2**20, 2**20) + "a = ConstantOfShape (s) y = EyeLike (a)", name="EyeLike 2^40")
for op in ("RandomNormal", "RandomUniform"):
    text(f"y = {op} <shape = [{2**40}]> ()", name=f"{op} 2^40")
text(
    f"y = Multinomial <sample_size = {2**31 - 1}> (x)",
    inputs="float[1000,2] x",
    outputs="int32[] y",
    name="Multinomial 2^31 samples",
)
for op in ("HannWindow", "HammingWindow", "BlackmanWindow"):
    text(f"n = Constant<value_int={2**40}>() y = {op} (n)", name=f"{op} 2^40")
text(
    f"a = Constant<value_int={2**30}>() b = Constant<value_int={2**30}>() r = Constant<value_int=8000>() l = Constant<value_float=0.0>() h = Constant<value_float=4000.0>() y = MelWeightMatrix (a, b, r, l, h)",
    name="MelWeightMatrix 2^60",
)
text(f"n = Constant<value_int={2**40}>() y = DFT (x, n)", inputs="float[1,8,1] x", name="DFT of length 2^40")
text(
    f"n = Constant<value_int={2**40}>() y = STFT (x, n, , n)",
    inputs="float[1,8,1] x",
    name="STFT of step 2^40",
)
text("s = Constant<value_floats=[1e15]>() y = Resize (x, , s)", inputs="float[8] x", name="Resize by 1e15")
text("s = Constant<value_floats=[nan]>() y = Resize (x, , s)", inputs="float[8] x", name="Resize by NaN")
text(ints("s", HUGE) + "y = Resize (x, , , s)", inputs="float[8] x", name="Resize to 2^62")
text(
    "s = Constant<value_floats=[1e15,1.0]>() y = Upsample (x, s)",
    inputs="float[8,2] x",
    opset=9,
    name="Upsample by 1e15",
)
text(ints("s", HUGE) + "y = CenterCropPad (x, s)", inputs="float[8] x", name="CenterCropPad to 2^62")
text(ints("s", 1, 1, 2**30, 2**30) + "y = AffineGrid (t, s)", inputs="float[1,2,3] t", name="AffineGrid 2^60")
text(
    ints("s", 2**20, 2**20) + ints("b", 1, 1) + "y = Col2Im (x, s, b)",
    inputs="float[1,1,4] x",
    name="Col2Im 2^40",
)
text(
    ints("s", 1, 1, 2**20, 2**20)
    + "i = Constant<value = int64[1,1,1,1] {0}>() y = MaxUnpool <kernel_shape=[1,1]> (x, i, s)",
    inputs="float[1,1,1,1] x",
    name="MaxUnpool 2^40",
)
text(
    f"y = ConvTranspose <strides=[{2**40}]> (x, w)",
    inputs="float[1,1,4] x, float[1,1,2] w",
    name="ConvTranspose of stride 2^40",
)
text(
    f"y = ConvTranspose <output_shape=[{2**40}]> (x, w)",
    inputs="float[1,1,4] x, float[1,1,2] w",
    name="ConvTranspose to 2^40",
)
text(
    f"y = Conv <pads=[{2**40},{2**40}]> (x, w)",
    inputs="float[1,1,4] x, float[1,1,2] w",
    name="Conv of pads 2^40",
)
text(
    f"y = Conv <dilations=[{2**62}]> (x, w)",
    inputs="float[1,1,4] x, float[1,1,2] w",
    name="Conv of dilation 2^62",
)
text(f"y = Conv <group={2**62}> (x, w)", inputs="float[1,1,4] x, float[1,1,2] w", name="Conv of 2^62 groups")
text("y = Conv <strides=[0]> (x, w)", inputs="float[1,1,4] x, float[1,1,2] w", name="Conv of stride 0")
text(
    f"y = MaxPool <kernel_shape=[{2**40}], pads=[{2**40},{2**40}]> (x)",
    inputs="float[1,1,4] x",
    name="MaxPool of 2^40",
)
text(
    f"y = AveragePool <kernel_shape=[{2**62}], pads=[{2**62},{2**62}]> (x)",
    inputs="float[1,1,4] x",
    name="AveragePool of 2^62",
)
text("y = MaxPool <kernel_shape=[0]> (x)", inputs="float[1,1,4] x", name="MaxPool of 0")
text(
    f"y = LSTM <hidden_size={2**40}> (x, w, r)",
    inputs="float[1,1,1] x, float[1,4,1] w, float[1,4,1] r",
    name="LSTM of 2^40",
)
text(
    f"y = RoiAlign <output_height={2**31}, output_width={2**31}> (x, r, i)",
    inputs="float[1,1,2,2] x, float[1,4] r, int64[1] i",
    name="RoiAlign 2^62",
)
text(
    f"y = RoiAlign <sampling_ratio={2**31}> (x, r, i)",
    inputs="float[1,1,2,2] x, float[1,4] r, int64[1] i",
    name="RoiAlign of 2^31 samples",
)
text(
    f"y = MaxRoiPool <pooled_shape=[{2**31},{2**31}]> (x, r)",
    inputs="float[1,1,2,2] x, float[1,5] r",
    name="MaxRoiPool 2^62",
)
text(ints("s", *[2**10] * 4) + "y = Reshape (x, s)", inputs="float[4] x", name="Reshape to 2^40")
text(ints("s", -1, -1) + "y = Reshape (x, s)", inputs="float[4] x", name="Reshape to two unknowns")
text(ints("a", *range(100_000)) + "y = Unsqueeze (x, a)", inputs="float x", name="Unsqueeze to 100000 axes")
text(f"k = Constant<value_ints=[{HUGE}]>() y, i = TopK (x, k)", inputs="float[4] x", name="TopK of 2^62")
text("k = Constant<value_ints=[-1]>() y, i = TopK (x, k)", inputs="float[4] x", name="TopK of -1")
text("y = Split <num_outputs = 1000000> (x)", inputs="float[4] x", name="Split into 1000000")
text(
    "s = Constant<value_int=0>() q = SplitToSequence (x, s) y = SequenceLength(q)",
    inputs="float[4] x",
    outputs="int64 y",
    name="SplitToSequence of nothing",
)
text(
    ints("s", 10**8)
    + "z = ConstantOfShape (s) o = Constant<value_int=1>() q = SplitToSequence (z, o) y = SequenceLength (q)",
    outputs="int64 y",
    name="SplitToSequence into 10^8",
)
text(
    "y = ArrayFeatureExtractor (x, i)",
    inputs="float[4] x, int64[1] i",
    name="ArrayFeatureExtractor of another domain",
)
text(
    "i = Constant<value_ints=[-10]>() y = ai.onnx.ml.ArrayFeatureExtractor (x, i)",
    inputs="float[4] x",
    name="ArrayFeatureExtractor of -10",
)
text(
    "a = Reshape (x, s) b = Reshape (x, t) y = MatMul (a, b)",
    inputs="float[4] x, int64[2] s, int64[2] t",
    name="MatMul of shapes fed",
)
text(
    ints("s", 2**17, 1)
    + ints("t", 1, 2**17)
    + "a = ConstantOfShape (s) b = ConstantOfShape (t) y = MatMul (a, b)",
    name="MatMul 2^34",
)
text(
    ints("s", 2**17, 1)
    + ints("t", 1, 2**17)
    + "a = ConstantOfShape (s) b = ConstantOfShape (t) y = Add (a, b)",
    name="Add 2^34",
)
text(
    ints("s", 2**24) + 'a = ConstantOfShape (s) y = Einsum <equation = "i,j->ij"> (a, a)', name="Einsum 2^48"
)
text(
    'y = Einsum <equation = "' + ",".join("abcdefgh") + '->abcdefgh"> (x, x, x, x, x, x, x, x)',
    inputs="float[50] x",
    name="Einsum of 8 letters",
)
text(
    'y = Einsum <equation = "' + "a" * 100_000 + '"> (x)',
    inputs="float[2] x",
    name="Einsum of 100000 letters",
)
text('y = Einsum <equation = "éß->é"> (x)', inputs="float[2,2] x", name="Einsum of other letters")
text('y = Einsum <equation = "1"> (x)', inputs="float x", name="Einsum of a digit")
text('y = Einsum <equation = "' + "." * 4_000 + '"> (x)', inputs="float[2] x", name="Einsum of dots")
text('y = Einsum <equation = "->->->"> (x)', inputs="float[2] x", name="Einsum of arrows")
text(f"y = Concat <axis = {HUGE}> (x, x)", inputs="float[2] x", name="Concat along 2^62")
text(f"y = Concat <axis = {LEAST}> (x, x)", inputs="float[2] x", name="Concat along INT64_MIN")
text(f"y = Gather <axis = {LEAST}> (x, i)", inputs="float[2] x, int64[2] i", name="Gather along INT64_MIN")
text(
    f"i = Constant<value_ints=[{HUGE}]>() y = GatherElements (x, i)",
    inputs="float[2] x",
    name="GatherElements at 2^62",
)
text(
    f"i = Constant<value_ints=[{LEAST}]>() y = Gather (x, i)", inputs="float[2] x", name="Gather at INT64_MIN"
)
text(
    f"i = Constant<value = int64[1,1] {{{LEAST}}}>() y = GatherND (x, i)",
    inputs="float[2] x",
    name="GatherND at INT64_MIN",
)
text(
    f"y = GatherND <batch_dims = {LEAST}> (x, i)",
    inputs="float[2] x, int64[1,1] i",
    name="GatherND of INT64_MIN batches",
)
text(
    f"i = Constant<value = int64[1,1] {{{HUGE}}}>() y = ScatterND (x, i, u)",
    inputs="float[2] x, float[1] u",
    name="ScatterND at 2^62",
)
text(
    f"i = Constant<value_ints=[{HUGE}]>() y = ScatterElements (x, i, u)",
    inputs="float[2] x, float[1] u",
    name="ScatterElements at 2^62",
)
text(
    f"a = Constant<value_ints=[0]>() b = Constant<value_ints=[{2**63 - 1}]>() c = Constant<value_ints=[0]>() s = Constant<value_ints=[0]>() y = Slice (x, a, b, c, s)",
    inputs="float[2] x",
    name="Slice of step 0",
)
text(
    f"a = Constant<value_ints=[{2**63 - 1}]>() b = Constant<value_ints=[{LEAST}]>() c = Constant<value_ints=[0]>() s = Constant<value_ints=[{LEAST}]>() y = Slice (x, a, b, c, s)",
    inputs="float[2] x",
    name="Slice of step INT64_MIN",
)
text(
    f"y = Shape <start = {LEAST}, end = {2**63 - 1}> (x)",
    inputs="float[2] x",
    outputs="int64[] y",
    name="Shape of all ends",
)
text("y = Transpose <perm = [0, 0, 0]> (x)", inputs="float[2,2,2] x", name="Transpose of one axis")
text(f"y = Transpose <perm = [{HUGE}]> (x)", inputs="float[2] x", name="Transpose of axis 2^62")
text(f"a = Constant<value_int={HUGE}>() y = CumSum (x, a)", inputs="float[2] x", name="CumSum along 2^62")
text(
    "a = Constant<value_ints=[0,0]>() y = ReduceSum (x, a)",
    inputs="float[2] x",
    name="ReduceSum twice along one axis",
)
text(
    f"n = Constant<value_ints=[{HUGE}]>() y = NonMaxSuppression (b, s, n)",
    inputs="float[1,6,4] b, float[1,1,6] s",
    outputs="int64[] y",
    name="NonMaxSuppression of 2^62",
)
text(f"y = SpaceToDepth <blocksize = {2**31}> (x)", inputs="float[1,1,2,2] x", name="SpaceToDepth of 2^31")
text("y = SpaceToDepth <blocksize = 0> (x)", inputs="float[1,1,2,2] x", name="SpaceToDepth of 0")
text(f"y = DepthToSpace <blocksize = {2**62}> (x)", inputs="float[1,4,2,2] x", name="DepthToSpace of 2^62")
text(f"y = LRN <size = {2**62}> (x)", inputs="float[1,4,2,2] x", name="LRN of 2^62")
text("y = LpNormalization <p = -5> (x)", inputs="float[2] x", name="LpNormalization of -5")
text("y = Dropout (x, r)", inputs="float[2] x, float r", name="Dropout without a ratio")
text(
    "a = Constant<value = int32 {-2147483648}>() b = Constant<value = int32 {-1}>() y = Div (a, b)",
    outputs="int32 y",
    name="INT_MIN / -1",
)
text(
    "a = Constant<value = int64 {-9223372036854775808}>() b = Constant<value = int64 {-1}>() y = Mod (a, b)",
    outputs="int64 y",
    name="INT64_MIN % -1",
)
text(
    "a = Constant<value_int=1>() b = Constant<value_int=0>() y = Div (a, b)", outputs="int64 y", name="1 / 0"
)
text(
    "a = Constant<value_int=1>() b = Constant<value_int=0>() y = Mod (a, b)", outputs="int64 y", name="1 % 0"
)
text(
    f"a = Constant<value_int=3>() b = Constant<value_int={HUGE}>() y = Pow (a, b)",
    outputs="int64 y",
    name="3 to the 2^62",
)
text(
    "a = Constant<value_int=0>() b = Constant<value_int=-1>() y = Pow (a, b)",
    outputs="int64 y",
    name="0 to the -1",
)
text(
    'a = Constant<value = uint64 {1}>() b = Constant<value = uint64 {18446744073709551615}>() y = BitShift <direction = "LEFT"> (a, b)',
    outputs="uint64 y",
    name="BitShift by 2^64 - 1",
)
text("y = Cast <to = 99> (x)", inputs="float[2] x", name="Cast to 99")
text(f"y = Cast <to = {HUGE}> (x)", inputs="float[2] x", name="Cast to 2^62")
text(
    's = Constant<value_strings=["' + "9" * 100_000 + '"]>() y = Cast <to = 7> (s)',
    outputs="int64[] y",
    name="Cast of 100000 digits",
)
text(
    's = Constant<value_strings=["1e999", "0x10", "\u0661", "", "nan", " 1 "]>() y = Cast <to = 1> (s)',
    name="Cast of odd texts",
)
