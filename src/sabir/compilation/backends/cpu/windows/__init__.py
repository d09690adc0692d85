"""The family of windows: pooling and depthwise convolutions."""
