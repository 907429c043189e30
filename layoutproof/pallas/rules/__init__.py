"""Properties of kernels, one per file: `obligations(kernel)`, or `obligations(kernel, target)` where TARGET is True."""
