"""Passes over tensor expressions; a backend lists the passes that it runs, in order."""

from sabir.compilation.passes._channels_last import channels_last, is_seed
from sabir.compilation.passes._common_products import common_products, is_contract
from sabir.compilation.passes._gradients_in_order import gradients_in_order, is_transposed_product
from sabir.compilation.passes._pipeline import Pass, run_pipeline
from sabir.compilation.passes._quantized_products import is_narrow, quantized_of, quantized_products
from sabir.compilation.passes._recurrent_products import is_recurrence, recurrent_products
from sabir.compilation.passes._repeats import MOST_REPEATS, repeats, repeats_as_views
from sabir.compilation.passes._scaled_matrices import reads_scaled, scaled_matrices
from sabir.compilation.passes._shared_heads import reads_repeated, shared_heads

__all__ = [
    "MOST_REPEATS",
    "Pass",
    "channels_last",
    "common_products",
    "gradients_in_order",
    "is_contract",
    "is_narrow",
    "is_recurrence",
    "is_seed",
    "is_transposed_product",
    "quantized_of",
    "quantized_products",
    "reads_repeated",
    "reads_scaled",
    "recurrent_products",
    "repeats",
    "repeats_as_views",
    "run_pipeline",
    "scaled_matrices",
    "shared_heads",
]
