"""LLVM IR for loops over tensors: registers and lanes, scalar functions, loop nests."""
