"""What a checkpoint is, without running it: where it comes from, what its tensors are called, how its bytes lie."""
