"""The CPU backend: a package for each kernel family, and the emitter of LLVM IR in `emit`."""
