"""The versions of QuantizeLinear."""

from sabir.opsets.families.quantization.quantization import AXIS, BLOCK_SIZE, PRECISIONS
from sabir.schema import (
    BFLOAT16,
    FLOAT4,
    FLOAT6,
    FLOAT8,
    FLOAT8E8M0,
    INT2,
    INT4,
    Attribute,
    Constraint,
    Input,
    Operator,
    Output,
    element_types,
    tensors,
)

quantize_linear = Operator(
    "QuantizeLinear",
    summary="`saturate(round(x / y_scale) + y_zero_point)`, ties to even, in the type of the zero point.",
)

T1 = Constraint("T1", tensors("float", "int32"))
T2 = Constraint("T2", tensors("int8", "uint8"))
ZERO = Input("y_zero_point", T2, "The number that represents 0; the uint8 0 by default.", optional=True)

v10 = quantize_linear.first(
    10, inputs=[Input("x", T1), Input("y_scale", "tensor(float)"), ZERO], outputs=[Output("y", T2)]
)
v13 = v10.extend(13, "Scales may differ along `axis`.", attributes=[AXIS])
v19 = v13.evolve(
    19,
    "Admits 16-bit floats, whose scale has the same type, and 8-bit floats with `saturate`.",
    inputs=[Input("x", T1), Input("y_scale", T1), ZERO],
    add=[
        Attribute(
            "saturate",
            "int",
            "For 8-bit floats, 1: overflow becomes the greatest number; 0: infinity or NaN.",
            default=1,
        )
    ],
    widen={"T1": BFLOAT16 | tensors("float16"), "T2": FLOAT8},
)
v21 = v19.extend(
    21,
    "Scales may differ by blocks along `axis`; `output_dtype` selects the type without a zero point.",
    attributes=[
        Attribute(
            "output_dtype",
            "int",
            "The output's type, as a number of TensorProto.DataType; 0: the zero point's, or uint8.",
            default=0,
            values=element_types("T2", unset=0),
        ),
        BLOCK_SIZE,
    ],
    widen={"T2": INT4 | tensors("int16", "uint16")},
)
X = Constraint("T1", BFLOAT16, tensors("float", "float16", "int32"))
SCALE = Constraint("T2", BFLOAT16, tensors("float", "float16", "int32"))
T3 = Constraint("T3", FLOAT8, INT4, FLOAT4, tensors("int16", "int8", "uint16", "uint8"))
v23 = v21.evolve(
    23,
    "`x` and its scale may differ in type; the scale's, or `precision`, is the type to divide in.",
    inputs=[
        Input("x", X, "A tensor of any shape."),
        Input("y_scale", SCALE, "The scale of `y`: a scalar, a vector along `axis`, or one for each block."),
        Input(
            "y_zero_point",
            T3,
            "The number that represents 0, in the shape of `y_scale`; 0 by default.",
            optional=True,
        ),
    ],
    outputs=[Output("y", T3, "The input's shape.")],
    values={"output_dtype": element_types("T3", unset=0)},
    add=[
        Attribute(
            "precision",
            "int",
            "The type to divide in, as a number of TensorProto.DataType; 0: the scale's.",
            default=0,
            values=element_types(PRECISIONS, unset=0),
        )
    ],
)
v24 = v23.widen(24, T2=FLOAT8E8M0)
v25 = v24.widen(25, T3=INT2)
v28 = v25.widen(28, T3=FLOAT6)
