"""Models in other versions: of the operator sets, and of the format."""

from sabir.conversion._engine import Conversion, convert, convert_and_report, convert_in_place

__all__ = ["Conversion", "convert", "convert_and_report", "convert_in_place"]
