"""The family of attention: two products and a softmax, fused so that the matrix of scores is never stored."""
