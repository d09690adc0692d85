"""Machine code: LLVM, the cache of objects, and the threads that run plans."""
