"""Quantization: plan -> calibrate -> apply -> save."""
