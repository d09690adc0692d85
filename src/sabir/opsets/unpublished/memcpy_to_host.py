"""MemcpyToHost: a copy from the memory of a device to that of the host, its input unchanged."""

from sabir.opsets.families.building import copies
from sabir.schema import Operator

memcpy_to_host = Operator(
    "MemcpyToHost",
    summary="The input, unchanged: a copy from the memory of a device to that of the host.",
    body_opset=copies.BODY_OPSET,
)

v1 = copies.declare(memcpy_to_host)
memcpy_to_host.examples(copies.examples)
