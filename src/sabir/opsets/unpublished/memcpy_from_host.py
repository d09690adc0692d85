"""MemcpyFromHost: a copy from the memory of the host to that of a device, its input unchanged."""

from sabir.opsets.families.building import copies
from sabir.schema import Operator

memcpy_from_host = Operator(
    "MemcpyFromHost",
    summary="The input, unchanged: a copy from the memory of the host to that of a device.",
    body_opset=copies.BODY_OPSET,
)

v1 = copies.declare(memcpy_from_host)
memcpy_from_host.examples(copies.examples)
