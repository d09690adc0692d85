"""The compiler: models as plans of native kernels."""
