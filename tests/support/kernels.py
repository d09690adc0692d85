"""Single kernels, run on arrays: their arguments are packed by name."""

import ctypes

import numpy as np

from sabir.compilation.backends.cpu.texts import text_of
from sabir.compilation.native import Library, host
from sabir.compilation.plan.entries import FIRST
from sabir.compilation.plan.signature import scratch_memory

_SIGNATURE = ctypes.CFUNCTYPE(
    None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_int64
)


def run_kernel(spec, values, *, scratch=0, shares=1):
    """Run a kernel in so many shares; return how many errors it counted: 0 or 1.

    Tensors among the values are arrays. `scratch` is how many bytes of scratch memory a thread has: then it is
    an argument.
    """
    errors, memory = np.zeros(1, np.int64), np.zeros(scratch + 128, np.uint8)
    memory = memory[-memory.ctypes.data % 64 :]
    tables = [errors, np.zeros(8, np.int64), memory]
    block = np.array(spec.signature.pack(_numbered(values, tables)), np.int64)
    assert len(tables) >= FIRST
    buffers = np.array([t.ctypes.data for t in tables], np.int64)
    library = Library.load([text_of(spec)], host())
    kernel = _SIGNATURE(library.addresses[0])
    for share in range(shares):
        kernel(block.ctypes.data, buffers.ctypes.data, share, shares, 0)
    return int(errors[0])


def nest_values(sizes, *accesses, scratch=0, extents=(), **takes):
    """Return the arguments of a nest by name: arrays, or pairs of an array and its strides in bytes."""
    found = {"sizes": sizes, "extents": extents, "scratch": scratch_memory(scratch), **takes}
    for number, access in enumerate(accesses):
        tensor, strides = access if isinstance(access, tuple) else (access, ())
        found[f"a{number}"] = {"tensor": tensor, "strides": strides}
    return found


def _numbered(value, tables):
    """Return values with the number of a buffer, and the offset 0, in place of each array."""
    if isinstance(value, np.ndarray):
        tables.append(value)
        return [len(tables) - 1, 0]
    if isinstance(value, dict):
        return {name: _numbered(each, tables) for name, each in value.items()}
    return value


def aligned(shape, dtype=np.float32):
    """Return zeros that begin at a multiple of 64 bytes, as the memory of plans does."""
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    memory = np.zeros(size + 64, np.uint8)
    start = -memory.ctypes.data % 64
    return memory[start : start + size].view(dtype).reshape(shape)
