"""The history of Resize."""

from sabir.opsets.families.resampling.resampling import CROP, mode
from sabir.opsets.families.resampling.resizing import STRETCH
from sabir.schema import BFLOAT16, CLASSIC, FLOATS, Attribute, Constraint, Input, Operator, Output, one_of

resize = Operator(
    "Resize",
    summary="`X` resampled to `floor(scale * size)` elements, or a specified number, along each axis: each is"
    " the element nearest to a coordinate, or a weighted sum of those around it.",
)

T = Constraint("T", CLASSIC)
_COORDINATES = ("half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric", CROP)
FOR_NN, SYMMETRIC = "tf_half_pixel_for_nn", "half_pixel_symmetric"  # before opset 18, since opset 19
_SCALES = "The new size divided by the old, for each axis in `axes`; above 0."

v10 = resize.first(
    10,
    inputs=[
        Input("X", T, "A tensor of any shape.", differentiable=True),
        Input("scales", "tensor(float)", _SCALES, differentiable=False),
    ],
    outputs=[Output("Y", T, "The resized tensor.", differentiable=True)],
    attributes=[mode("nearest", "linear")],
)
T1 = Constraint("T1", CLASSIC)
T2 = Constraint("T2", FLOATS)
_X = Input("X", T1, "A tensor of any shape.", differentiable=True)
_ROI = "The starts, then the ends, of the part to read on each axis; 0 and 1 are the first and last element."
_SIZES = "The new sizes, instead of `scales`."
v11 = v10.evolve(
    11,
    "Adds `sizes` as an alternative to `scales`, cubic interpolation, and attributes for the coordinates.",
    inputs=[
        _X,
        Input("roi", T2, _ROI, differentiable=False),
        Input("scales", "tensor(float)", _SCALES, differentiable=False),
        Input("sizes", "tensor(int64)", _SIZES, optional=True, differentiable=False),
    ],
    outputs=[Output("Y", T1, "The resized tensor.", differentiable=True)],
    values={"mode": one_of("nearest", "linear", "cubic")},
    add=[
        Attribute(
            "extrapolation_value",
            "float",
            "The value outside the tensor for tf_crop_and_resize.",
            default=0.0,
        ),
        Attribute("exclude_outside", "int", "1: elements outside the tensor have the weight 0.", default=0),
        Attribute(
            "nearest_mode",
            "string",
            "The rounding of nearest; `round_prefer_floor` and `round_prefer_ceil` differ in ties.",
            default="round_prefer_floor",
            values=one_of("round_prefer_floor", "round_prefer_ceil", "floor", "ceil"),
        ),
        Attribute(
            "coordinate_transformation_mode",
            "string",
            "The coordinates of the new elements in the old tensor.",
            default="half_pixel",
            values=one_of(*_COORDINATES, FOR_NN),
        ),
        Attribute("cubic_coeff_a", "float", "The slope of the cubic kernel at distance 1.", default=-0.75),
    ],
)
v13 = v11.evolve(
    13,
    "`roi` and `scales` are optional.",
    inputs=[
        _X,
        Input("roi", T2, f"{_ROI} Only tf_crop_and_resize reads it.", optional=True, differentiable=False),
        Input("scales", "tensor(float)", _SCALES, optional=True, differentiable=False),
        Input("sizes", "tensor(int64)", _SIZES, optional=True, differentiable=False),
    ],
    # no longer in the standard, but tf2onnx writes it, and runtimes run it
    values={"coordinate_transformation_mode": one_of(*_COORDINATES, aliases={FOR_NN: FOR_NN})},
    widen={"T1": BFLOAT16},
)
v18 = v13.extend(
    18,
    "Adds `axes`, antialiasing, and sizes that keep the aspect ratio; drops tf_half_pixel_for_nn.",
    values={"coordinate_transformation_mode": one_of(*_COORDINATES)},
    attributes=[
        Attribute(
            "keep_aspect_ratio_policy",
            "string",
            "stretch, or one scale for all axes, so that none is larger (not_larger) or smaller"
            " (not_smaller) than in `sizes`.",
            default=STRETCH,
            values=one_of(STRETCH, "not_larger", "not_smaller"),
        ),
        Attribute("axes", "ints", "The axes to resize, from the back if negative; all by default."),
        Attribute(
            "antialias", "int", "1: linear and cubic kernels are stretched along axes that shrink.", default=0
        ),
    ],
)
v19 = v18.restate(
    19,
    "Adds the coordinates half_pixel_symmetric.",
    values={"coordinate_transformation_mode": one_of(*_COORDINATES, SYMMETRIC)},
)
