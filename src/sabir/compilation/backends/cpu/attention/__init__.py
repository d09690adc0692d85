"""The family of attention: two products and a softmax without the matrix of scores."""
