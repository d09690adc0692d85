"""Passes over tensor expressions; a backend lists the passes that it runs, in order."""

from sabir.compilation.passes._channels_last import channels_last, is_seed
from sabir.compilation.passes._common_products import common_products, is_contract
from sabir.compilation.passes._pipeline import Pass, run_pipeline
from sabir.compilation.passes._quantized_products import is_narrow, quantized_of, quantized_products
from sabir.compilation.passes._repeats import MOST_REPEATS, repeats, repeats_as_views
from sabir.compilation.passes._shared_heads import reads_repeated, shared_heads

__all__ = [
    "MOST_REPEATS",
    "Pass",
    "channels_last",
    "common_products",
    "is_contract",
    "is_narrow",
    "is_seed",
    "quantized_of",
    "quantized_products",
    "reads_repeated",
    "repeats",
    "repeats_as_views",
    "run_pipeline",
    "shared_heads",
]
