"""What every layer stands on: the errors, findings with locations, and safe paths."""

from sabir.base._errors import (
    ACCIDENTS,
    CheckError,
    EvaluationError,
    ExternalDataError,
    FeedError,
    FileError,
    InferenceError,
    ParseError,
    SabirError,
    SchemaError,
    UnsupportedError,
    WireError,
    quote,
    suggest,
)
from sabir.base._files import map_file, open_inside, replace_file, view_of
from sabir.base._findings import Finding, Location, Severity

__all__ = [
    "ACCIDENTS",
    "CheckError",
    "EvaluationError",
    "ExternalDataError",
    "FeedError",
    "FileError",
    "Finding",
    "InferenceError",
    "Location",
    "ParseError",
    "SabirError",
    "SchemaError",
    "Severity",
    "UnsupportedError",
    "WireError",
    "map_file",
    "open_inside",
    "quote",
    "replace_file",
    "suggest",
    "view_of",
]
