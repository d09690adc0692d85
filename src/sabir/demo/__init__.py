"""The demo's data: a small digit classifier and real images that its training never saw.

Both are written by `examples/digits/train.py`. The images are from the data set "Optical Recognition of
Handwritten Digits" by E. Alpaydin and C. Kaynak (UCI Machine Learning Repository, 1998, CC BY 4.0), as
scikit-learn ships it.
"""

from sabir.demo._digits import Digits, digits

__all__ = ["Digits", "digits"]
