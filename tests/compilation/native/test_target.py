"""The machine that code is compiled for."""

import ast
import operator
import os
from dataclasses import fields
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import sabir
from sabir.base import UnsupportedError
from sabir.compilation.native import TARGETS, _arm, _target, disassemble, host, target_named
from sabir.compilation.native._arm import FEATURES, arm_features
from sabir.compilation.native._compile import _alternatives
from sabir.compilation.native._cores import usable_cores

X86 = "x86_64", "x86_64-unknown-linux-gnu", "cpu"
WIDE = dict.fromkeys(("avx2", "fma", "f16c", "avx512f", "avx512bw", "avx512dq", "avx512vl"), True)


def test_the_host():
    found = host()
    assert host() is found
    assert found.features == ",".join(
        sorted(found.features.split(","), key=operator.itemgetter(slice(1, None)))
    )
    assert found.has({"x86_64": "avx2", "aarch64": "neon"}[found.architecture])
    assert not found.has("nonsense")
    widths = {"x86_64": {(256, 16), (512, 32)}, "aarch64": {(128, 32)}}
    assert (found.vector_bits, found.registers) in widths[found.architecture]


def test_vectors_are_wide_where_all_of_avx512_is_there():
    def width(found):
        described = _target._described(*X86, found)
        return described.vector_bits, described.registers

    assert width(WIDE) == (512, 32)
    for name in ("avx512f", "avx512bw", "avx512dq", "avx512vl"):
        assert width(WIDE | {name: False}) == (256, 16)
    narrow = _target._described(*X86, {"fma": True, "f16c": True, "avx2": True, "avx512f": False})
    assert narrow.features == "+avx2,-avx512f,+f16c,+fma"


@pytest.mark.parametrize("name", ["avx2", "fma", "f16c"])
def test_older_processors_are_refused(name):
    with pytest.raises(UnsupportedError, match=f"this one has no {name}; choose another engine"):
        _target._described(*X86, WIDE | {name: False})


def test_other_processors_are_refused(monkeypatch):
    monkeypatch.setattr(_target, "processor", lambda: "riscv64")
    with pytest.raises(UnsupportedError, match="and for 64-bit Arm processors, and this one is riscv64"):
        _target._host.__wrapped__("")


def arm_machine(monkeypatch, **features):
    """Let this machine be an Arm processor with these features."""
    monkeypatch.setattr(_target, "processor", lambda: "aarch64")
    monkeypatch.setattr(_target, "arm_features", lambda: dict.fromkeys(FEATURES, False) | features)


def test_arm_processors(monkeypatch):
    arm_machine(monkeypatch, dotprod=True)
    found = _target._host.__wrapped__("")
    assert (found.architecture, found.vector_bits, found.registers, found.has_masks) == (
        "aarch64",
        128,
        32,
        False,
    )
    assert found.features == "+dotprod,+fp-armv8,-i8mm,-lse,+neon,-sve,-sve2"
    least = _target._host.__wrapped__("aarch64")
    assert (least.cpu, least.has("dotprod"), least.has("neon")) == ("generic", False, True)
    with pytest.raises(
        UnsupportedError, match="SABIR_CPU is neoverse-v1, and this processor has no i8mm, lse$"
    ):
        _target._host.__wrapped__("neoverse-v1")
    with pytest.raises(
        UnsupportedError, match=r"'x86-64-v3'; it may be aarch64 or neoverse-n1 or .*, or unset"
    ):
        _target._host.__wrapped__("x86-64-v3")


def test_what_linux_says_of_an_arm_processor(monkeypatch):
    def entry(number):
        return {16: 1 << 20 | 1 << 8, 26: 1 << 13}[number]

    monkeypatch.setattr(_arm.sys, "platform", "linux")
    monkeypatch.setattr(_arm.ctypes, "CDLL", lambda _: SimpleNamespace(getauxval=entry))
    assert arm_features() == {"dotprod": True, "i8mm": True, "lse": True}
    monkeypatch.setattr(_arm.ctypes, "CDLL", lambda _: SimpleNamespace(getauxval=lambda _: 1 << 20))
    assert arm_features() == {"dotprod": True, "i8mm": False, "lse": False}
    monkeypatch.setattr(_arm.ctypes, "CDLL", lambda _: SimpleNamespace())
    assert not any(arm_features().values())


def test_what_macos_says_of_an_arm_processor(monkeypatch):
    def ask(name, answer, size, new, new_size):
        assert (size._obj.value, new, new_size.value) == (4, None, 0)
        answer._obj.value = name == b"hw.optional.arm.FEAT_DotProd"
        return -1 if name == b"hw.optional.arm.FEAT_I8MM" else 0  # unknown to an older system

    monkeypatch.setattr(_arm.sys, "platform", "darwin")
    monkeypatch.setattr(_arm.ctypes, "CDLL", lambda _: SimpleNamespace(sysctlbyname=ask))
    assert arm_features() == {"dotprod": True, "i8mm": False, "lse": False}
    monkeypatch.setattr(_arm.ctypes, "CDLL", lambda _: SimpleNamespace())
    assert not any(arm_features().values())
    monkeypatch.setattr(_arm.sys, "platform", "win32")
    assert not any(arm_features().values())


def test_a_level_limits_the_features(scaled, load, run, monkeypatch):
    wide = load(scaled(2)).compiled
    if host().architecture == "aarch64":
        monkeypatch.setenv("SABIR_CPU", "aarch64")
        assert host().features == "-dotprod,+fp-armv8,-i8mm,-lse,+neon,-sve,-sve2"
    else:
        monkeypatch.setenv("SABIR_CPU", "x86-64-v3")
        found = host()
        assert (found.cpu, found.vector_bits, found.registers) == ("x86-64-v3", 256, 16)
        assert not any("avx512" in f for f in found.features.split(",") if f[0] == "+")
        assert "zmm" not in disassemble(scaled(2), host())
        assert "ymm" in disassemble(scaled(2), host())
    library = load(scaled(2))
    assert (wide, library.compiled) == (1, 1)  # not the object of the whole processor
    assert np.array_equal(run(library), 2 * np.arange(64, dtype=np.float32))


def test_levels_that_there_are_not(monkeypatch):
    monkeypatch.setattr(_target, "processor", lambda: "x86_64")
    for name in ("x86-64-v9", "neoverse-n1"):
        monkeypatch.setenv("SABIR_CPU", name)
        with pytest.raises(
            UnsupportedError, match=f"SABIR_CPU is '{name}'; it may be x86-64-v3 or x86-64-v4,"
        ):
            host()
    level = _target._Level("x86_64", "future", frozenset(["avx2048"]))
    monkeypatch.setattr(_target, "_LEVELS", {"future": level})
    with pytest.raises(UnsupportedError, match="SABIR_CPU is future, and this processor has no avx2048"):
        _target._host.__wrapped__("future")


@pytest.mark.parametrize(
    ("name", "features"),
    {
        "llvm.x86.avx2.psad.bw": [("avx2",)],
        "llvm.x86.sse2.pause": [("sse2",)],
        "llvm.x86.sse41.ptestz": [("sse4.1",)],
        "llvm.x86.vcvtps2ph.256": [("f16c",)],
        "llvm.x86.avx512.mask.scalef.ps.512": [("avx512f", "avx512bw", "avx512dq", "avx512vl")],
        "llvm.x86.avx512.vpdpbusd.512": [("avx512f", "avx512bw", "avx512dq", "avx512vl", "avx512vnni")],
        "llvm.x86.avx512.vpdpbusd.256":
            [("avx512f", "avx512bw", "avx512dq", "avx512vl", "avx512vnni"), ("avxvnni",)],
        "llvm.x86.avx2.vpdpbssd.256": [("avxvnniint8",)],
        "llvm.x86.avx2.vpdpwsud.256": [("avxvnniint16",)],
        "llvm.x86.avx512bf16.dpbf16ps.512": [("avx512bf16",)],
        "llvm.arm.neon.vmulls": [],
        "llvm.aarch64.isb": [("neon",)],
        "llvm.aarch64.neon.saddlp.v4i32.v8i16": [("neon",)],
        "llvm.aarch64.neon.sdot.v4i32.v16i8": [("dotprod",)],
        "llvm.aarch64.neon.usdot.v4i32.v16i8": [("i8mm",)],
    }.items(),
)  # fmt: skip
def test_the_features_that_an_intrinsic_needs(name, features):
    assert _alternatives(name) == features


def test_intrinsics_that_the_processor_lacks():
    text = (
        "define void @kernel(ptr %a) {\n%x = load <16 x float>, ptr %a\n"
        "%y = call <16 x float> @llvm.x86.avx512.mask.scalef.ps.512(<16 x float> %x, <16 x float> %x,"
        " <16 x float> %x, i16 -1, i32 4)\nstore <16 x float> %y, ptr %a\nret void }\n"
        "declare <16 x float> @llvm.x86.avx512.mask.scalef.ps.512(<16 x float>, <16 x float>, <16 x float>, i16, i32)"
    )
    with pytest.raises(
        UnsupportedError, match=r"scalef\.ps\.512, which the processor \(x86-64-v3\) does not"
    ):
        disassemble(text, target_named("x86-64-v3"))


def test_intrinsics_that_another_processor_lacks():
    name = "llvm.aarch64.neon.sdot.v4i32.v16i8"
    text = (
        f"define <4 x i32> @kernel(<4 x i32> %a, <16 x i8> %x) {{\n"
        f"%y = call <4 x i32> @{name}(<4 x i32> %a, <16 x i8> %x, <16 x i8> %x)\nret <4 x i32> %y }}\n"
        f"declare <4 x i32> @{name}(<4 x i32>, <16 x i8>, <16 x i8>)"
    )
    assert "sdot" in disassemble(text, target_named("neoverse-n1"))
    for target in ("aarch64", "x86-64-v4"):
        with pytest.raises(
            UnsupportedError, match=r"sdot\.v4i32\.v16i8, which the processor \(.*\) does not have"
        ):
            disassemble(text, target_named(target))


def test_without_llvm(output):
    code = """
import sys
sys.modules["llvmlite"] = None
from sabir.base import UnsupportedError
from sabir.compilation.disk import cache
from sabir.compilation.native import host
key = bytes(32)
print(cache().put("plans", key, b"plan"), bytes(cache().get("plans", key)))
try:
    host()
except UnsupportedError as error:
    print(error)
"""
    first, second = output(code).splitlines()
    assert first == "True b'plan'"
    assert second.startswith("compiled models need llvmlite, which cannot be imported")


def test_the_cache_does_not_load_llvm(output):
    assert output(
        "import sys; from sabir.compilation.disk import cache; cache(); print('llvmlite' in sys.modules)"
    ) == ("False\n")


@pytest.mark.parametrize(
    ("files", "cores"),
    [
        ({}, 8),
        ({"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/cpu.max": "max 100000\n"}, 8),
        ({"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/cpu.max": "250000 100000\n"}, 2),
        ({"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/cpu.max": "50000 100000\n"}, 1),
        ({"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/cpu.max": "6400000 100000\n"}, 8),
        ({"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/cpu.max": "garbage\n"}, 8),
        ({"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/cpu.max": "300000 0\n"}, 8),
        # the smallest of the group and those around it
        ({"proc/self/cgroup": "0::/a/b\n", "sys/fs/cgroup/a/cpu.max": "300000 100000",
          "sys/fs/cgroup/a/b/cpu.max": "500000 100000"}, 3),
        # in a container: the path is the host's, the folder the container's
        ({"proc/self/cgroup": "0::/docker/0123\n", "sys/fs/cgroup/cpu.max": "400000 100000"}, 4),
        ({"proc/self/cgroup": "12:cpu,cpuacct:/a\n3:cpuset:/\n", "sys/fs/cgroup/cpu,cpuacct/a/cpu.cfs_quota_us": "200000",
          "sys/fs/cgroup/cpu,cpuacct/a/cpu.cfs_period_us": "100000"}, 2),
        ({"proc/self/cgroup": "12:cpuacct,cpu:/a\n", "sys/fs/cgroup/cpu/a/cpu.cfs_quota_us": "500000",
          "sys/fs/cgroup/cpu/a/cpu.cfs_period_us": "100000"}, 5),
        ({"proc/self/cgroup": "12:cpu:/a\n", "sys/fs/cgroup/cpu/a/cpu.cfs_quota_us": "-1",
          "sys/fs/cgroup/cpu/a/cpu.cfs_period_us": "100000"}, 8),
        ({"proc/self/cgroup": "nonsense\n\n0::\n"}, 8),
    ],
)  # fmt: skip
def test_cores_are_bounded_by_quotas(files, cores, tmp_path, monkeypatch):
    monkeypatch.setattr("sabir.compilation.native._cores._affinity", lambda: 8)
    for name, text in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="ascii")
    assert usable_cores(tmp_path) == cores


@pytest.mark.skipif(
    not hasattr(os, "sched_setaffinity"), reason="this system does not bind processes to cores"
)
def test_cores_are_bounded_by_affinity(output):
    code = """
import os
os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
from sabir.compilation.native import usable_cores
print(usable_cores())
"""
    assert output(code) == "1\n"


def test_only_the_default_backend_and_the_page_of_the_installation_ask_for_this_processor():
    """All else is passed the target that code is compiled for."""
    source = Path(sabir.__file__).parent
    asking = {
        path.relative_to(source).as_posix()
        for path in source.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "host"
    }
    assert asking == {"cli/_info.py", "compilation/backends/cpu/backend.py"}


def test_a_target_describes_a_processor_and_nothing_else():
    for name in TARGETS:
        found = target_named(name)
        assert found == target_named(name)
        assert {f.name for f in fields(found)} == {
            "architecture", "triple", "cpu", "features", "vector_bits", "registers",
        }  # fmt: skip
