"""Pages that show models in a browser: graphs, costs, findings, weights, and what runs say about nodes."""

from typing import TYPE_CHECKING

from sabir.base import importing_later, listing_public

if TYPE_CHECKING:
    from sabir.viewing._diff_layer import difference_layer
    from sabir.viewing._document import ModelPage, page_of
    from sabir.viewing._layers import Layer
    from sabir.viewing._page import html_of
    from sabir.viewing._run_layers import decision_layer, error_layer, time_layer, trace_layer
    from sabir.viewing._serve import ModelServer
    from sabir.viewing._view import view

# imported on first use, so that the command line starts without a server and the checker
_LATER = {
    "Layer": "_layers", "ModelPage": "_document", "ModelServer": "_serve", "decision_layer": "_run_layers",
    "difference_layer": "_diff_layer", "error_layer": "_run_layers", "html_of": "_page",
    "page_of": "_document", "time_layer": "_run_layers", "trace_layer": "_run_layers", "view": "_view",
}  # fmt: skip

__getattr__ = importing_later(__name__, _LATER)
__dir__ = listing_public(__name__)

__all__ = [
    "Layer",
    "ModelPage",
    "ModelServer",
    "decision_layer",
    "difference_layer",
    "error_layer",
    "html_of",
    "page_of",
    "time_layer",
    "trace_layer",
    "view",
]
