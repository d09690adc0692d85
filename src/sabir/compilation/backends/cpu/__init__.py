"""The backend of CPUs: a folder for each family of kernels, and the emitter of LLVM IR in `emit`."""
