"""Everything that touches vLLM: its environment, the worker process that loads a model in it, and kernels for CPUs."""
