"""The passes over tensor expressions for CPUs, in the order in which they run between lowering and fusion."""

from sabir.compilation.backends.cpu.passes._convolutions import convolution_algorithms
from sabir.compilation.backends.cpu.passes._unsigned_bytes import unsigned_bytes
from sabir.compilation.passes import (
    Pass,
    channels_last,
    common_products,
    quantized_products,
    repeats_as_views,
    scaled_matrices,
    shared_heads,
)

PIPELINE = (
    Pass("convolution-algorithms", convolution_algorithms, required=True),
    Pass("quantized-products", quantized_products),
    Pass("unsigned-bytes", unsigned_bytes, required=True),
    Pass("common-products", common_products),
    Pass("scaled-matrices", scaled_matrices),
    Pass("shared-heads", shared_heads),
    Pass("channels-last", channels_last),
    Pass("repeats-as-views", repeats_as_views),
)
PASSES = tuple(each.name for each in PIPELINE)
"""The names of the passes, in order."""
