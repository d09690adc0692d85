"""Windows, samples and paddings whose attributes are far too large, negative, or of another number than the axes."""

from __future__ import annotations

from hostile.small import HUGE, LEAST, constant, ints, text

MOST = 2**63 - 1
ODD = {
    "dilations of 2^63 - 1": f"dilations = [{MOST}]", "dilations of -1": "dilations = [-1]",
    "dilations of INT64_MIN": f"dilations = [{LEAST}]",
    "dilations that pads make up for": f"dilations = [{2**61}], pads = [{2**61}, {2**61}]",
    "dilations of 2^30 that pads make up for": f"dilations = [{2**30}], pads = [{2**30}, {2**30}]",
    "negative pads": "pads = [-4, -4]", "pads of INT64_MIN": f"pads = [{LEAST}, {LEAST}]",
    "three pads": "pads = [1, 1, 1]", "strides of INT64_MIN": f"strides = [{LEAST}]",
    "two strides": "strides = [1, 1]", "strides of 0, padded": 'auto_pad = "SAME_LOWER", strides = [0]',
    "a strange padding": 'auto_pad = "\x1b[2J"', "a kernel of 0": "kernel_shape = [0]",
    "a kernel of -1": "kernel_shape = [-1]", "a kernel of 2^63 - 1": f"kernel_shape = [{MOST}]",
    "0 groups": "group = 0", "-1 groups": "group = -1", "INT64_MIN groups": f"group = {LEAST}",
}  # fmt: skip
for name, attributes in ODD.items():
    for op in ("Conv", "ConvTranspose"):
        text(
            f"y = {op} <{attributes}> (x, w)", inputs="float[1,1,8] x, float[1,1,3] w", name=f"{op} of {name}"
        )
    if "group" in attributes:
        continue
    whole = attributes if "kernel" in attributes else f"{attributes}, kernel_shape = [3]"
    for op in ("MaxPool", "AveragePool", "LpPool"):
        text(
            f"y = {op} <{whole}, ceil_mode = 1> (x)",
            inputs="float[1,1,8] x",
            opset=22,
            name=f"{op} of {name}",
        )

TRANSPOSED = {
    "a small output": "output_shape = [1]", "an output of INT64_MIN": f"output_shape = [{LEAST}]",
    "endless output padding": f"output_padding = [{HUGE}]", "negative output padding": "output_padding = [-50]",
    "strides that pads make up for": f"strides = [{2**40}], pads = [{7 * 2**40}, 0]",
    "dilations that pads cut off": f"dilations = [{2**30}], pads = [{2**31 - 5}, 0]",
}  # fmt: skip
for name, attributes in TRANSPOSED.items():
    text(
        f"y = ConvTranspose <{attributes}> (x, w)",
        inputs="float[1,1,8] x, float[1,1,3] w",
        name=f"ConvTranspose of {name}",
    )

ONES = ",".join(["1"] * 48)
text(f"y = Conv <pads = [{ONES}]> (x, w)", inputs=f"float[1,1,{ONES[:47]}] x, float[1,1,{','.join(['2'] * 24)}] w",
     name="Conv over 24 dimensions")  # fmt: skip
text("y = Conv (x, w, b)", inputs="float[1,1,8] x, float[2,1,3] w, float[77] b", name="Conv of 77 biases")
text(f"y = Conv <pads = [{2**40}, 0]> (x, w)", inputs="float[0,1,8] x, float[1,1,3] w",
     name="Conv of no images and pads 2^40")  # fmt: skip

BLOCKS = {
    "negative sizes": (ints("s", -4, -4) + ints("b", -1, -1), ""),
    "blocks of 0": (ints("s", 4, 4) + ints("b", 0, 0), ""),
    "steps of 0": (ints("s", 4, 4) + ints("b", 2, 2), f"<dilations = [0, {HUGE}], strides = [0, -1]>"),
    "wide pads": (ints("s", 4) + ints("b", 1), f"<pads = [{2**40}, {2**40}]>"),
    "blocks of another rank": (ints("s", 4, 4) + ints("b", 2), ""),
}
for name, (sizes, attributes) in BLOCKS.items():
    text(f"{sizes} y = Col2Im {attributes} (x, s, b)", inputs="float[1,4,4] x", name=f"Col2Im of {name}")

PLACES = "i = Constant <value = int64[1,1,4] {-1,-9223372036854775808,4611686018427387904,3}> () "
for name, shape in {"any": "", "a small one": ints("s", 1, 1, 2), "another rank": ints("s", 8)}.items():
    text(
        f"{PLACES} {shape} y = MaxUnpool <kernel_shape = [2], strides = [2]> (x, i{', s' if shape else ''})",
        inputs="float[1,1,4] x",
        name=f"MaxUnpool at odd places into {name}",
    )

REGIONS = {
    "NaN": "nan,inf,-inf,1e38", "far corners": "0,0,1e9,1e9", "endless corners": "0,0,1e38,1e38",
}  # fmt: skip
for name, corners in REGIONS.items():
    region = f"r = Constant <value = float[1,4] {{{corners}}}> () {ints('i', 0)}"
    for sampling in (0, -5, MOST):
        text(
            f"{region} y = RoiAlign <sampling_ratio = {sampling}> (x, r, i)",
            inputs="float[1,1,4,4] x",
            name=f"RoiAlign of {name}, {sampling} samples",
        )
    text(
        f"r = Constant <value = float[1,5] {{0,{corners}}}> () "
        "y = MaxRoiPool <pooled_shape = [2, 2], spatial_scale = nan> (x, r)",
        inputs="float[1,1,4,4] x",
        name=f"MaxRoiPool of {name}",
    )

for mode in ("linear", "nearest", "cubic", "\x07"):
    for padding in ("zeros", "border", "reflection"):
        text(
            "g = Constant <value = float[1,2,2,2] {nan,inf,-inf,1e38,-1e38,3e9,0,0}> () "
            f'y = GridSample <mode = "{mode}", padding_mode = "{padding}"> (x, g)',
            inputs="float[1,1,1,3] x",
            name=f"GridSample {mode!a} and {padding} of NaN",
        )
text('y = GridSample <mode = "cubic"> (x, g)', inputs=f"float[{','.join(['1'] * 30)}] x, float[{','.join(['1'] * 29)},28] g",
     name="GridSample over 28 dimensions")  # fmt: skip

OFFSETS = "float[1,1,4,4] x, float[1,1,2,2] w, float[1,8,3,3] o"
for name, attributes in {"no groups": "group = 0", "no offset groups": "offset_group = 0", "odd groups": "offset_group = 3"}.items():  # fmt: skip
    text(f"y = DeformConv <{attributes}> (x, w, o)", inputs=OFFSETS, name=f"DeformConv of {name}")
for number in ("nan", "1e38"):
    text(
        f"{ints('s', 1, 8, 3, 3)} o = ConstantOfShape <value = float[1] {{{number}}}> (s) y = DeformConv (x, w, o)",
        inputs="float[1,1,4,4] x, float[1,1,2,2] w",
        name=f"DeformConv by {number}",
    )

for mode in ("nearest", "linear", "cubic"):
    for name, (call, shape) in {
        "a scale of 1e-30": (f"{constant('s', 'float', '1e-30')} y = Resize <mode = \"{mode}\", antialias = 1> (x, , s)", 8),
        "a scale of 0": (f"{constant('s', 'float', '0')} y = Resize <mode = \"{mode}\"> (x, , s)", 8),
        "a scale of -1": (f"{constant('s', 'float', '-1')} y = Resize <mode = \"{mode}\"> (x, , s)", 8),
        "nothing": (f"{ints('s', 5)} y = Resize <mode = \"{mode}\"> (x, , , s)", 0),
        "a part that is none": (
            (f"{ints('s', 4)} {constant('r', 'float', 'nan,inf')} y = Resize <mode = \"{mode}\", "
            'coordinate_transformation_mode = "tf_crop_and_resize"> (x, r, , s)'), 4,
        ),
        "far parts": (
            (f"{ints('s', 4)} {constant('r', 'float', '-1e38,1e38')} y = Resize <mode = \"{mode}\", "
            'coordinate_transformation_mode = "tf_crop_and_resize", extrapolation_value = nan> (x, r, , s)'), 4,
        ),
        "2^22 to one": (
            f"{ints('z', 2**22)} f = ConstantOfShape (z) {ints('s', 1)} y = Resize <mode = \"{mode}\", antialias = 1> (f, , , s)", 1,
        ),
    }.items():  # fmt: skip
        text(call, inputs=f"float[{shape}] x", name=f"Resize {mode} of {name}")
text(
    ints("s", 4, 4) + "y = Resize <axes = [0, 0]> (x, , , s)",
    inputs="float[4,4] x",
    name="Resize of one axis twice",
)
text(
    ints("s", 4) + f"y = Resize <axes = [{LEAST}]> (x, , , s)",
    inputs="float[4] x",
    name="Resize of axis INT64_MIN",
)

for mode in ("reflect", "edge", "wrap", "constant", "\x1b"):
    for name, pads, size in (
        ("1 by 2^40", ints("p", 2**40, 0), 1), ("0 by 5", ints("p", 5, 5), 0), ("4 by -3 and -3", ints("p", -3, -3), 4),
        ("4 by INT64_MIN and the most", ints("p", LEAST, MOST), 4), ("4 by what makes up for it", ints("p", -(2**50), 2**50), 4),
        ("4 by three", ints("p", 1, 1, 1), 4), ("3 by 10^6", ints("p", 10**6, 10**6), 3),
    ):  # fmt: skip
        text(
            f'{pads} y = Pad <mode = "{mode}"> (x, p)',
            inputs=f"float[{size}] x",
            name=f"Pad {mode!a} of {name}",
        )
