"""The declaration of this family; `sabir.compilation.fusion.families` explains the fields."""

from __future__ import annotations

from sabir.compilation.fusion.families import Family, Later

_KERNEL = "sabir.compilation.backends.cpu.control.kernel"
FAMILIES = (
    Family(
        "control",
        Later("sabir.compilation.backends.cpu.control.entries:add_control"),
        kernels={
            "Choice": f"{_KERNEL}:choice_text",
            "Jump": f"{_KERNEL}:jump_text",
            "LoopStart": f"{_KERNEL}:start_text",
            "LoopTest": f"{_KERNEL}:test_text",
            "LoopNext": f"{_KERNEL}:next_text",
            "LoopEnd": f"{_KERNEL}:end_text",
        },
    ),
)
