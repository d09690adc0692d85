"""The family of steps that update matrices, as linear attention does."""
