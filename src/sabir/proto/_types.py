"""Types for protobuf's objects, whose classes are created at run time and differ by backend."""

from __future__ import annotations

from typing import Any, TypeAlias

from sabir.files import LazyBytes

MessageClass: TypeAlias = Any
Message: TypeAlias = Any
Descriptor: TypeAlias = Any
FieldDescriptor: TypeAlias = Any
UnknownValue: TypeAlias = Any

Buffer: TypeAlias = bytes | memoryview
Payload: TypeAlias = Buffer | LazyBytes
