"""Resizing, sampling along grids, affine grids."""

from __future__ import annotations

from itertools import product

from torch.nn import functional  # pyright: ignore[reportMissingImports]  a tool for those who have it

from gradient_cases.case import between, case

IMAGE = between(-2, 2, 1, 2, 3, 4)
GRID = between(-1.3, 1.3, 1, 3, 2, 2)
_MODES = {"nearest": "nearest", "linear": "bilinear", "cubic": "bicubic"}
_SIZES = [[5, 7], [2, 3]]


def _resize(mode, torch_mode, coordinates, align, sizes):
    attributes = f'mode = "{mode}", coordinate_transformation_mode = "{coordinates}", cubic_coeff_a = -0.75'
    if mode == "nearest":
        attributes += ', nearest_mode = "floor"'
    return case(f"Resize {mode} {coordinates} {sizes}", f"y = Resize <{attributes}> (x, , , s)",
                lambda x, s: functional.interpolate(x, tuple(sizes), mode=torch_mode, align_corners=align),
                x=IMAGE, s=[1, 2, *sizes])  # fmt: skip


def _antialiased(mode, torch_mode):
    # the coefficient is PyTorch's with antialiasing
    attributes = f'mode = "{mode}", antialias = 1, exclude_outside = 1, cubic_coeff_a = -0.5'
    return case(f"Resize {mode} antialias", f"y = Resize <{attributes}> (x, , , s)",
                lambda x, s: functional.interpolate(x, (2, 3), mode=torch_mode, antialias=True),
                x=between(-2, 2, 1, 1, 5, 6), s=[1, 1, 2, 3])  # fmt: skip


def _sample(mode, padding, align):
    attributes = f'mode = "{mode}", padding_mode = "{padding}", align_corners = {int(align)}'
    options = {"mode": _MODES[mode], "align_corners": align}
    return case(f"GridSample {mode} {padding} {int(align)}", f"y = GridSample <{attributes}> (x, grid)",
                lambda x, grid: functional.grid_sample(
                    x, grid, padding_mode="reflection" if padding == "reflection" else padding, **options),
                x=IMAGE, grid=GRID)  # fmt: skip


CASES = [
    *(_resize("nearest", "nearest", "asymmetric", None, sizes) for sizes in _SIZES),
    *(
        _resize(mode, _MODES[mode], coordinates, align, sizes)
        for mode, (coordinates, align), sizes in product(
            ("linear", "cubic"), [("half_pixel", False), ("align_corners", True)], _SIZES
        )
    ),
    _antialiased("linear", "bilinear"),
    _antialiased("cubic", "bicubic"),
    case("Resize 1d", 'y = Resize <mode = "linear"> (x, , , s)',
         lambda x, s: functional.interpolate(x, 5, mode="linear"), x=(1, 2, 3), s=[1, 2, 5]),
    case("Resize 3d", 'y = Resize <mode = "linear"> (x, , , s)',
         lambda x, s: functional.interpolate(x, (3, 4, 3), mode="trilinear"), x=(1, 1, 2, 3, 2), s=[1, 1, 3, 4, 3]),
    *(_sample(*of) for of in product(_MODES, ("zeros", "border", "reflection"), (False, True))),
    case("GridSample 3d", "y = GridSample (x, grid)", lambda x, grid: functional.grid_sample(x, grid, align_corners=False),
         x=(1, 1, 2, 3, 2), grid=between(-1.2, 1.2, 1, 2, 2, 1, 3)),
    *(
        case(f"AffineGrid {a}", f"y = AffineGrid <align_corners = {a}> (t, s)",
             lambda t, s, a=a: functional.affine_grid(t, s.tolist(), align_corners=bool(a)), t=(1, 2, 3), s=[1, 1, 2, 3])
        for a in (0, 1)
    ),
    case("AffineGrid 3d", "y = AffineGrid (t, s)", lambda t, s: functional.affine_grid(t, s.tolist(), align_corners=False),
         t=(1, 3, 4), s=[1, 1, 2, 2, 2]),
]  # fmt: skip
