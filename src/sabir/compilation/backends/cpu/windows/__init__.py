"""The family of windows: poolings and depthwise convolutions."""
