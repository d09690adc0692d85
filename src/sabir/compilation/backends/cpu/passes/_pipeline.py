"""The passes over tensor expressions for CPUs, in the order in which they run between lowering and fusion."""

from sabir.compilation.backends.cpu.passes._convolutions import convolution_algorithms, is_filtered
from sabir.compilation.backends.cpu.passes._unsigned_bytes import is_of_bytes, unsigned_bytes
from sabir.compilation.passes import (
    Pass,
    channels_last,
    common_products,
    gradients_in_order,
    is_contract,
    is_narrow,
    is_recurrence,
    is_seed,
    is_transposed_product,
    quantized_products,
    reads_repeated,
    reads_scaled,
    recurrent_products,
    repeats,
    repeats_as_views,
    scaled_matrices,
    shared_heads,
)

PIPELINE = (
    Pass("convolution-algorithms", convolution_algorithms, is_filtered, required=True),
    Pass("quantized-products", quantized_products, is_narrow),
    Pass("unsigned-bytes", unsigned_bytes, is_of_bytes, required=True),
    Pass("common-products", common_products, is_contract),
    Pass("recurrent-products", recurrent_products, is_recurrence),
    Pass("scaled-matrices", scaled_matrices, reads_scaled),
    Pass("shared-heads", shared_heads, reads_repeated),
    Pass("channels-last", channels_last, is_seed),
    Pass("gradients-in-order", gradients_in_order, is_transposed_product),
    Pass("repeats-as-views", repeats_as_views, repeats),
)
PASSES = tuple(each.name for each in PIPELINE)
"""The names of the passes, in order."""
