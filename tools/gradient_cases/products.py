"""Products of matrices, contractions, determinants, and Fourier transforms."""

from __future__ import annotations

import torch  # pyright: ignore[reportMissingImports]  a tool for those who have it

from gradient_cases.case import case

_PRODUCTS = [((2, 3), (3, 4)), ((3,), (3, 4)), ((2, 3), (3,)), ((3,), (3,)), ((2, 2, 3), (3, 2)),
             ((2, 1, 2, 3), (3, 3, 2)), ((3,), (2, 3, 2)), ((2, 2, 3), (3,))]  # fmt: skip
_EQUATIONS = [
    ("ij,jk->ik", (2, 3), (3, 4)), ("bij,bjk->bik", (2, 2, 3), (2, 3, 2)), ("i,j->ij", (2,), (3,)),
    ("bhid,bhjd->bhij", (1, 2, 3, 2), (1, 2, 2, 2)), ("...ij,jk->...ik", (2, 2, 3), (3, 2)), ("ij,ij->", (2, 3), (2, 3)),
    ("ijk,k->ji", (2, 3, 2), (2,)),
]  # fmt: skip


def _gemm(name, attributes, f, **inputs):
    return case(f"Gemm {name}", f"y = Gemm <{attributes}> ({', '.join(inputs)})", f, **inputs)


def _parts(z):
    return torch.view_as_real(z)


def _dft(x, n, axis, inverse):
    z = torch.view_as_complex(x) if x.shape[-1] == 2 else x[..., 0].to(torch.complex128)
    return _parts((torch.fft.ifft if inverse else torch.fft.fft)(z, n, axis))


CASES = [
    *(case(f"MatMul {a} {b}", "y = MatMul (a, b)", torch.matmul, a=a, b=b) for a, b in _PRODUCTS),
    *(
        case(f"Einsum {e}", f'y = Einsum <equation = "{e}"> (a, b)', lambda a, b, e=e: torch.einsum(e, a, b), a=a, b=b)
        for e, a, b in _EQUATIONS
    ),
    case("Einsum diagonal", 'y = Einsum <equation = "ii->i"> (a)', torch.diag, a=(3, 3)),
    case("Einsum trace", 'y = Einsum <equation = "ii"> (a)', torch.trace, a=(3, 3)),
    case("Einsum of three", 'y = Einsum <equation = "ij,jk,kl->il"> (a, b, c)', lambda a, b, c: a @ b @ c,
         a=(2, 3), b=(3, 2), c=(2, 2)),
    _gemm("plain", "alpha = 1.0", lambda a, b: a @ b, a=(2, 3), b=(3, 4)),
    _gemm("bias", "beta = 0.5", lambda a, b, c: a @ b + c / 2, a=(2, 3), b=(3, 4), c=(4,)),
    _gemm("transA", "transA = 1, alpha = 0.5", lambda a, b, c: 0.5 * a.T @ b + c, a=(3, 2), b=(3, 4), c=(2, 1)),
    _gemm("transB", "transB = 1", lambda a, b, c: a @ b.T + c, a=(2, 3), b=(4, 3), c=(2, 4)),
    _gemm("both", "transA = 1, transB = 1", lambda a, b, c: a.T @ b.T + c, a=(3, 2), b=(4, 3), c=()),
    case("Det", "y = Det (x)", torch.linalg.det, x=(2, 3, 3)),
    case("Det of 2 by 2", "y = Det (x)", torch.linalg.det, x=(2, 2)),
    case("Det singular", "y = Det (x)", torch.linalg.det, x=[[1.0, 2.0], [2.0, 4.0]]),
    case("DFT", "y = DFT (x, , axis)", lambda x, a: _dft(x, None, 1, inverse=False), x=(2, 5, 1), axis=1),
    case("DFT complex", "y = DFT (x, , axis)", lambda x, a: _dft(x, None, 1, inverse=False), x=(2, 4, 2), axis=1),
    case("DFT longer", "y = DFT (x, n, axis)", lambda x, n, a: _dft(x, 6, 1, inverse=False), x=(2, 4, 2), n=6, axis=1),
    case("DFT shorter", "y = DFT (x, n, axis)", lambda x, n, a: _dft(x, 3, 1, inverse=False), x=(2, 4, 2), n=3, axis=1),
    case("DFT inverse", "y = DFT <inverse = 1> (x, , axis)", lambda x, a: _dft(x, None, 0, inverse=True),
         x=(5, 2, 2), axis=0),
    case("DFT onesided", "y = DFT <onesided = 1> (x, , axis)", lambda x, a: _parts(torch.fft.rfft(x[..., 0], dim=1)),
         x=(2, 5, 1), axis=1),
    case("STFT", "y = STFT (x, step, window)", lambda x, s, w: _parts(torch.stft(
        x[..., 0], 4, 3, window=w, center=False, return_complex=True)).transpose(1, 2),
        x=(2, 10, 1), step=3, window=(4,)),
    case("STFT twosided", "y = STFT <onesided = 0> (x, step, , length)", lambda x, s, n: _parts(torch.stft(
        x[..., 0], 4, 2, window=torch.ones(4, dtype=x.dtype), center=False, onesided=False, return_complex=True)
        ).transpose(1, 2), x=(1, 8, 1), step=2, length=4),
]  # fmt: skip
