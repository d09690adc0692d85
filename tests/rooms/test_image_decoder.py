"""ImageDecoder on files of every format, broken files, large ones, and without Pillow."""

import struct
import sys
import zlib
from io import BytesIO

import numpy as np
import pytest

import sabir
from sabir.ir import Builder

LOSSLESS = {
    "BMP": {},
    "PNG": {},
    "PPM": {},
    "TIFF": {},
    "WEBP": {"lossless": True},
    "JPEG2000": {"irreversible": False},
}
NO_PILLOW = "decoding needs Pillow, which the extra `image` brings"


def decoded(data, pixel_format="RGB"):
    b = Builder(20)
    stream = b.input("stream", "uint8", ["n"])
    b.output(b.ImageDecoder(stream, pixel_format=pixel_format), "image")
    return sabir.evaluate(b.model(), {"stream": np.frombuffer(data, np.uint8)})["image"]


def encoded(pixels, form, **options):
    image = pytest.importorskip("PIL.Image", reason=NO_PILLOW)
    stream = BytesIO()
    image.fromarray(pixels).save(stream, form, **options)
    return stream.getvalue()


def picture():
    rows, columns = np.mgrid[:20, :30]
    return np.stack([rows * 12, columns * 8, (rows + columns) * 5], axis=-1).astype(np.uint8)


@pytest.mark.parametrize("form", LOSSLESS)
def test_formats_that_keep_every_pixel(form):
    data = encoded(picture(), form, **LOSSLESS[form])

    assert (decoded(data) == picture()).all()
    assert (decoded(data, "BGR") == picture()[..., ::-1]).all()
    grey = decoded(data, "Grayscale")
    assert grey.shape == (20, 30, 1)
    luma = picture() @ np.array([0.299, 0.587, 0.114])  # of ITU-R BT.601
    assert np.abs(grey[..., 0] - luma).max() <= 1


def test_jpeg():
    got = decoded(encoded(picture(), "JPEG", quality=95))

    assert np.abs(got.astype(int) - picture()).max() < 16


@pytest.mark.parametrize("form", ["PNG", "TIFF"])
def test_other_pixels_than_rgb(form):
    grey = picture()[..., 0]
    with_alpha = np.dstack([picture(), np.full((20, 30), 7, np.uint8)])

    assert (decoded(encoded(grey, form)) == grey[..., None]).all()
    assert (decoded(encoded(with_alpha, form)) == picture()).all()
    deep = grey.astype(np.uint16) * 256 + 99
    assert (decoded(encoded(deep, form), "Grayscale")[..., 0] == grey).all()


@pytest.mark.filterwarnings("ignore:Truncated File Read")
@pytest.mark.parametrize("form", [*LOSSLESS, "JPEG"])
def test_broken_files_have_no_pixels_or_some(form):
    data = encoded(picture(), form)

    for end in range(0, len(data), max(1, len(data) // 20)):
        assert decoded(data[:end]).shape in {(0, 0, 3), (20, 30, 3)}


@pytest.mark.parametrize("side", [9_000, 40_000])
def test_an_image_that_is_too_large_is_not_decoded(side):
    pytest.importorskip("PIL", reason=NO_PILLOW)
    header = b"IHDR" + struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0)
    data = b"\x89PNG\r\n\x1a\n" + struct.pack(">I", 13) + header + struct.pack(">I", zlib.crc32(header))

    with pytest.raises(sabir.EvaluationError, match="too large to decode"):
        decoded(data + struct.pack(">I", 0) + b"IDAT" + struct.pack(">I", zlib.crc32(b"IDAT")))


def test_without_pillow_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "PIL", None)

    with pytest.raises(sabir.SabirError, match=r"pip install sabir\[image\]"):
        decoded(b"P6 1 1 255\n\x01\x02\x03")
    assert decoded(b"no image").shape == (0, 0, 3)
