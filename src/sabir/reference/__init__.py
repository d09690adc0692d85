"""The reference: a page of documentation for each operator in every version, and models of its examples."""

from sabir.reference._examples import (
    example_attributes,
    example_call,
    example_inputs,
    example_model,
    type_of_value,
)
from sabir.reference._index import index
from sabir.reference._json import facts_of
from sabir.reference._lookup import domains_of, find_version, inventory, operators_of
from sabir.reference._page import file_name, marked, page, page_of

__all__ = [
    "domains_of",
    "example_attributes",
    "example_call",
    "example_inputs",
    "example_model",
    "facts_of",
    "file_name",
    "find_version",
    "index",
    "inventory",
    "marked",
    "operators_of",
    "page",
    "page_of",
    "type_of_value",
]
