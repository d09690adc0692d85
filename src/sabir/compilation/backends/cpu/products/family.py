"""The declaration of the family of products; `sabir.compilation.fusion.families` explains the fields."""

from __future__ import annotations

from sabir.compilation.fusion.families import Family, Later
from sabir.loops import Contract

FAMILIES = (
    Family(
        "product",
        Later("sabir.compilation.backends.cpu.products.entries:add_product"),
        (Contract,),
        Later("sabir.compilation.backends.cpu.products.grouping:group_product"),
        closed=False,
        epilogue=True,
        kernels={
            "Product": "sabir.compilation.backends.cpu.products.kernel:product_text",
            "Packing": "sabir.compilation.backends.cpu.products.packing:packing_text",
            "Winograd": "sabir.compilation.backends.cpu.products.winograd_kernel:winograd_text",
        },
    ),
)
