"""The arguments of a loop over bands, which runs other kernels."""

from __future__ import annotations

from sabir.compilation.plan.signature import KernelSignature, Repeated

VARIANTS = 5
"""Bands for which there are lists of calls: the first one, one in the middle, the same where the thread has
computed the band before, and both for the last one."""

BANDS = KernelSignature(
    items="size",
    bands="size",  # of each item
    scratch_bytes="bytes",  # of a thread; the memory between kernels is at its beginning
    own_bytes="bytes",  # of the memory between kernels
    lists=("number", VARIANTS),  # the words of the block where the lists of calls begin
    tensor_count="size",
    tensors=Repeated(KernelSignature(buffer="number", item="bytes", band="bytes")),
)
"""The first arguments of a block. Behind them are the lists of calls, and the blocks of the kernels.

Of each tensor these are its buffer and by how many bytes it moves from item to item and from band to band.
"""

CALLS = KernelSignature(count="size", calls=Repeated(KernelSignature(kernel="address", block="number")))
"""A list of calls: of each, the kernel, and the word of the block of the bands where its own block begins."""
