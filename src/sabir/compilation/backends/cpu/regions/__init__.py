"""The family of pooled regions of images."""
