"""The reference: what each operator is, in every version, as pages to read."""

from sabir.reference._index import index, operators_of
from sabir.reference._page import file_name, page

__all__ = ["file_name", "index", "operators_of", "page"]
