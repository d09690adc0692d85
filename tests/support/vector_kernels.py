"""Kernels that apply scalar operations to arrays, compiled for this processor and for one with AVX2 only."""

import ctypes
import math
import struct

import llvmlite.binding as llvm
import numpy as np

from sabir.compilation.backends.cpu.emit.emitter import Emitter, Kind
from sabir.compilation.backends.cpu.emit.functions import FUNCTIONS
from sabir.compilation.native import host

llvm.initialize_native_target()
llvm.initialize_native_asmprinter()

HOST = (host().cpu, host().features)  # without vectors of unknown width, which LLVM would abort for
TARGETS = {"host": HOST}
if all(f"+{feature}" in HOST[1].split(",") for feature in ("avx2", "fma", "f16c")):
    TARGETS["avx2"] = ("x86-64-v3", "")
DTYPES = {
    "half": np.float16,
    "float": np.float32,
    "double": np.float64,
    "i1": np.bool_,
    "i8": np.int8,
    "i16": np.int16,
    "i32": np.int32,
    "i64": np.int64,
}
LANES = {"host": host().vector_bits // 32, "avx2": 8}


class Kernel:
    """A loop that applies operations to arrays, each operation with an output of its own."""

    def __init__(self, target, emit, scalars, lanes):
        e = Emitter()
        self.lanes, count = lanes, len(scalars)
        with e.loop(e.index(0), e.argument(0)) as turn:
            at = e.mul(turn, lanes)
            inputs = [self._load(e, i + 1, s, at) for i, s in enumerate(scalars)]
            results = emit(e, inputs)
            for i, result in enumerate(results, count + 1):
                stored = e.convert("zext", result, "i8") if result.kind.scalar == "i1" else result
                e.store(stored, e.offset(e.argument(i, "ptr"), at, stored.kind.scalar))
        self.dtypes = [DTYPES[result.kind.scalar] for result in results]
        self.run, self._keep = compiled(e.text("kernel"), target)

    def _load(self, e, place, scalar, at):
        stored = "i8" if scalar == "i1" else scalar
        x = e.load(e.offset(e.argument(place, "ptr"), at, stored), Kind(stored, self.lanes))
        return x if stored == scalar else e.compare("icmp ne", x, e.constant(x.kind, 0))

    def __call__(self, *arrays):
        size = arrays[0].size
        turns = -(-size // self.lanes)
        padded = [np.resize(x, turns * self.lanes) for x in arrays]
        outputs = [np.empty(turns * self.lanes, dtype) for dtype in self.dtypes]
        block = np.array([turns, *(x.ctypes.data for x in (*padded, *outputs))], np.int64)
        self.run(block.ctypes.data, None, 0, 1, 0)
        return [y[:size] for y in outputs]


def compiled(text, target):
    """Return the kernel, and what must live as long; the object calls nothing outside of it."""
    cpu, features = TARGETS[target]
    machine = llvm.Target.from_default_triple().create_target_machine(cpu=cpu, features=features, opt=1)
    module = llvm.parse_assembly(text)
    module.verify()
    options = llvm.create_pipeline_tuning_options(speed_level=1)
    options.loop_vectorization = options.slp_vectorization = options.loop_unrolling = False
    passes = llvm.create_pass_builder(machine, options)
    passes.getModulePassManager().run(module, passes)
    image = machine.emit_object(module)
    outside = undefined(image)
    assert not outside, outside
    jit = llvm.create_lljit_compiler(machine)
    builder = llvm.JITLibraryBuilder().add_object_img(image).export_symbol("kernel")
    library = builder.link(jit, "kernels")
    signature = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, *(ctypes.c_int64,) * 3)
    return signature(library["kernel"]), (jit, library)


def undefined(image):
    """Return the names that an ELF object expects elsewhere; objects of other systems are not looked into."""
    if not image.startswith(b"\x7fELF"):
        return []
    sections = {s.name(): s.data() for s in llvm.ObjectFileRef.from_data(image).sections()}
    symbols = struct.iter_unpack("<IBBHQQ", sections[b".symtab"])
    names = [
        sections[b".strtab"][name:].split(b"\0")[0] for name, _, _, section, *_ in symbols if section == 0
    ]
    return [name.decode() for name in names if name]


def each(names):
    """Return an emission of several operations on the same operands."""
    return lambda e, inputs: [FUNCTIONS[name](e, tuple(inputs)) for name in names]


def kernels(names, scalars):
    """Yield kernels of some operations for every target, in lanes and one by one."""
    for target, lanes in ((t, lanes) for t in TARGETS for lanes in (LANES[t], 1)):
        yield f"{target} x{lanes}", Kernel(target, each(names), scalars, lanes)


def erf(x):
    return np.array([math.erf(v) for v in x.tolist()], x.dtype)


def sigmoid(x):
    small = np.exp(-np.abs(x))
    return np.where(x < 0, small, 1) / (1 + small)


def softplus(x):
    return np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x)))


UNARY = {  # numpy's function, and the greatest error in units of the last place
    "sqrt": (np.sqrt, 0.51),
    "reciprocal": (np.reciprocal, 0.51),
    "rsqrt": (lambda x: 1 / np.sqrt(x), 1.51),
    "exp": (np.exp, 1.1),
    "exp2": (np.exp2, 1.1),
    "expm1": (np.expm1, 1.8),
    "log": (np.log, 1.0),
    "log2": (np.log2, 1.1),
    "log1p": (np.log1p, 1.0),
    "sin": (np.sin, 0.9),
    "cos": (np.cos, 0.9),
    "tan": (np.tan, 2.3),
    "asin": (np.arcsin, 2.1),
    "acos": (np.arccos, 1.3),
    "atan": (np.arctan, 2.0),
    "sinh": (np.sinh, 1.8),
    "cosh": (np.cosh, 1.6),
    "tanh": (np.tanh, 2.6),
    "asinh": (np.arcsinh, 1.9),
    "acosh": (np.arccosh, 2.2),
    "atanh": (np.arctanh, 2.2),
    "erf": (erf, 1.2),
    "sigmoid": (sigmoid, 2.3),
    "softplus": (softplus, 1.8),
}
