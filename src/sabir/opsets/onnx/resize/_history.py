"""The history of Resize."""

from sabir.opsets.families.resampling import CROP
from sabir.opsets.families.resizing import STRETCH
from sabir.schema import BFLOAT16, CLASSIC, FLOATS, Attribute, Constraint, Input, Operator, Output, one_of

resize = Operator(
    "Resize",
    summary="`X` at other places, `floor(scale * size)` or a given number along each axis: the element"
    " nearest to a coordinate, or a weighted sum of those around it.",
)

T = Constraint("T", CLASSIC)
_COORDINATES = ("half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric", CROP)
FOR_NN, SYMMETRIC = "tf_half_pixel_for_nn", "half_pixel_symmetric"  # before opset 18, since opset 19
_SCALES = "New over old length, one for each axis (of `axes`); above 0."

v10 = resize.first(
    10,
    inputs=[
        Input("X", T, "A tensor of any shape.", differentiable=True),
        Input("scales", "tensor(float)", _SCALES, differentiable=False),
    ],
    outputs=[Output("Y", T, "The resized tensor.", differentiable=True)],
    attributes=[
        Attribute(
            "mode",
            "string",
            "How elements between the old places are made.",
            default="nearest",
            values=one_of("nearest", "linear"),
        )
    ],
)
T1 = Constraint("T1", CLASSIC)
T2 = Constraint("T2", FLOATS)
_ROI = "Starts, then ends, of the part to read on each axis, 0 and 1 being the first and the last place."
_SIZES = "The new lengths, in place of `scales`."
v11 = v10.evolve(
    11,
    "`sizes` in place of `scales`, cubic interpolation, and attributes that say where the new places lie.",
    inputs=[
        Input("X", T1, "A tensor of any shape.", differentiable=True),
        Input("roi", T2, _ROI, differentiable=False),
        Input("scales", "tensor(float)", _SCALES, differentiable=False),
        Input("sizes", "tensor(int64)", _SIZES, optional=True, differentiable=False),
    ],
    outputs=[Output("Y", T1, "The resized tensor.", differentiable=True)],
    values={"mode": one_of("nearest", "linear", "cubic")},
    add=[
        Attribute(
            "extrapolation_value", "float", "What tf_crop_and_resize finds outside the tensor.", default=0.0
        ),
        Attribute("exclude_outside", "int", "1: places beyond the ends weigh nothing.", default=0),
        Attribute(
            "nearest_mode",
            "string",
            "How nearest rounds; `round_prefer_floor` and `round_prefer_ceil` differ in halves.",
            default="round_prefer_floor",
            values=one_of("round_prefer_floor", "round_prefer_ceil", "floor", "ceil"),
        ),
        Attribute(
            "coordinate_transformation_mode",
            "string",
            "Where new places lie in the old tensor.",
            default="half_pixel",
            values=one_of(*_COORDINATES, FOR_NN),
        ),
        Attribute("cubic_coeff_a", "float", "The slope of the cubic kernel at distance 1.", default=-0.75),
    ],
)
v13 = v11.evolve(
    13,
    "`roi` and `scales` may be left out.",
    inputs=[
        Input("X", T1, "A tensor of any shape.", differentiable=True),
        Input("roi", T2, f"{_ROI} Only tf_crop_and_resize reads it.", optional=True, differentiable=False),
        Input("scales", "tensor(float)", _SCALES, optional=True, differentiable=False),
        Input("sizes", "tensor(int64)", _SIZES, optional=True, differentiable=False),
    ],
    # gone from the text, but tf2onnx writes it, and runtimes run it
    values={"coordinate_transformation_mode": one_of(*_COORDINATES, aliases={FOR_NN: FOR_NN})},
    widen={"T1": BFLOAT16},
)
v18 = v13.extend(
    18,
    "`axes` to resize, antialiasing, and sizes that keep the aspect ratio; tf_half_pixel_for_nn is gone.",
    values={"coordinate_transformation_mode": one_of(*_COORDINATES)},
    attributes=[
        Attribute(
            "keep_aspect_ratio_policy",
            "string",
            "stretch, or one scale for all axes, by which none gets larger (not_larger) or smaller"
            " (not_smaller) than in `sizes`.",
            default=STRETCH,
            values=one_of(STRETCH, "not_larger", "not_smaller"),
        ),
        Attribute("axes", "ints", "The axes to resize, from the back if negative; all of them when absent."),
        Attribute("antialias", "int", "1: linear and cubic kernels are stretched to shrink.", default=0),
    ],
)
v19 = v18.restate(
    19,
    "The coordinates half_pixel_symmetric.",
    values={"coordinate_transformation_mode": one_of(*_COORDINATES, SYMMETRIC)},
)
