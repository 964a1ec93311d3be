"""The search and its layers in Triton, for torch tensors on a GPU; imported only with these."""
