"""Passes over tensor expressions; a backend lists the passes that it runs, in order."""

from sabir.compilation.passes._channels_last import channels_last
from sabir.compilation.passes._common_products import common_products
from sabir.compilation.passes._pipeline import Pass, run_pipeline
from sabir.compilation.passes._quantized_products import quantized_of, quantized_products
from sabir.compilation.passes._repeats import MOST_REPEATS, repeats_as_views
from sabir.compilation.passes._scaled_matrices import scaled_matrices
from sabir.compilation.passes._shared_heads import shared_heads

__all__ = [
    "MOST_REPEATS",
    "Pass",
    "channels_last",
    "common_products",
    "quantized_of",
    "quantized_products",
    "repeats_as_views",
    "run_pipeline",
    "scaled_matrices",
    "shared_heads",
]
