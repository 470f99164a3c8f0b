"""Documents: page sets, page images, the prompt as served, and the synthetic page generator."""
