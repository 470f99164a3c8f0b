"""The CPU kernels against plain arithmetic in float64, run in vLLM's interpreter."""

from __future__ import annotations

import json
import subprocess
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ocria_compress.serving.client import worker_environment

pytestmark = pytest.mark.vllm

Run = Callable[[str], None]

# Importing vLLM takes ten seconds, so one interpreter runs the bodies, each in a namespace of its own.
_INTERPRETER = """
import json, os, sys, traceback
import torch
torch.set_num_threads(1)
E4M3 = torch.float8_e4m3fn
from vllm.platforms import current_platform
assert current_platform.is_cpu(), "these tests need vLLM's CPU build"
import ocria_cpu_kernels
ocria_cpu_kernels.register()
ocria_cpu_kernels.register()

def frozen(tensor):
    return torch.nn.Parameter(tensor, requires_grad=False)

def error(got, want):
    return float((got.double() - want.double()).norm() / want.double().norm())

out = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)
shared = {name: globals()[name] for name in ("torch", "E4M3", "frozen", "error", "ocria_cpu_kernels")}
for line in sys.stdin:
    torch.manual_seed(0)
    try:
        exec(json.loads(line), dict(shared))
        answer = ""
    except BaseException:
        answer = traceback.format_exc()
    print(json.dumps(answer), file=out, flush=True)
"""


@pytest.fixture(scope="module")
def run(vllm_python: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    log = tmp_path_factory.mktemp("plugin") / "log"
    with log.open("w") as errors:
        process = subprocess.Popen(
            [vllm_python, "-P", "-c", _INTERPRETER],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True, env=worker_environment(),
        )  # fmt: skip
    assert process.stdin and process.stdout

    def go(body: str) -> None:
        assert process.stdin and process.stdout
        try:
            process.stdin.write(json.dumps(textwrap.dedent(body)) + "\n")
            process.stdin.flush()
            answer = process.stdout.readline()
        except BrokenPipeError:
            answer = ""
        assert answer, log.read_text()[-2000:]
        assert not json.loads(answer), json.loads(answer)

    yield go
    process.kill()
    process.wait()
    process.stdin.close()
    process.stdout.close()


def test_vllm_finds_the_plugin_without_an_installation(run: Run) -> None:
    run("""
        from importlib.metadata import entry_points
        found = [e for e in entry_points(group="vllm.general_plugins") if e.name == "ocria_cpu_kernels"]
        assert len(found) == 1 and found[0].load() is ocria_cpu_kernels.register
        from vllm.model_executor.kernels import linear
        from vllm.platforms import PlatformEnum
        names = [k.__name__ for k in linear._POSSIBLE_FP8_KERNELS[PlatformEnum.CPU]]
        assert names[0] == "OcriaCpuFp8LinearKernel" and names.count(names[0]) == 1, names
    """)


def test_on_other_platforms_nothing_is_touched(vllm_python: Path) -> None:
    script = """
import sys, types
platforms = types.ModuleType("vllm.platforms")
platforms.current_platform = types.SimpleNamespace(is_cpu=lambda: False)
sys.modules["vllm"] = types.ModuleType("vllm")
sys.modules["vllm.platforms"] = platforms
import ocria_cpu_kernels
ocria_cpu_kernels.register()
assert not [name for name in sys.modules if name.startswith("ocria_cpu_kernels.")]
"""
    result = subprocess.run(
        [vllm_python, "-P", "-c", script],
        capture_output=True, text=True, env=worker_environment(), timeout=60, check=False,
    )  # fmt: skip
    assert result.returncode == 0, result.stderr


def test_fp8_is_the_product_of_the_dequantized_operands(run: Run) -> None:
    run("""
        from ocria_cpu_kernels.fp8 import scaled_product
        for T, K, N in ((1, 64, 32), (17, 256, 96), (300, 512, 64)):
            x = (torch.randn(T, K) * 40).to(E4M3)
            w = (torch.randn(N, K) * 40).to(E4M3)
            token, channel = torch.rand(T, 1) + 0.01, (torch.rand(N, 1) + 0.01).bfloat16()
            bias = torch.randn(N)
            for sx, sw in ((token, channel), (token[:1], channel[:1]), (token[0, 0], channel[0, 0])):
                xd, wd = x.double() * sx.double().reshape(-1, 1), w.double() * sw.double().reshape(-1, 1)
                want, size = xd @ wd.T + bias, xd.abs() @ wd.abs().T
                for weight in (w, w.float()):
                    got = scaled_product(x, weight, sx, sw, bias, torch.float32)
                    assert ((got - want).abs() / size).max() < 1e-6
                    rounded = scaled_product(x, weight, sx, sw, bias, torch.bfloat16)
                    assert torch.equal(rounded, got.bfloat16())
    """)


def test_fp8_layer_as_vllm_builds_it(run: Run) -> None:
    """Through vLLM's own chooser, activation quantization included, with and without room for the fp32 copy."""
    run("""
        from vllm.config import VllmConfig, set_current_vllm_config
        from vllm.model_executor.kernels.linear import init_fp8_linear_kernel
        from vllm.model_executor.layers.quantization.utils.quant_utils import kFp8DynamicTokenSym, kFp8StaticChannelSym
        from ocria_cpu_kernels import weights
        T, K, N = 20, 128, 64
        x, w, scale = torch.randn(T, K).bfloat16(), torch.randn(N, K).to(E4M3), torch.rand(N, 1) + 0.1
        sx = x.double().abs().amax(1, keepdim=True) / 448
        want = ((x.double() / sx).float().to(E4M3).double() * sx) @ (w.double() * scale.double()).T
        bf16, usual = torch.bfloat16, weights.KEEP_FREE
        for keep_free in (0, 1 << 60):
            weights.KEEP_FREE = keep_free
            with set_current_vllm_config(VllmConfig()):
                kernel = init_fp8_linear_kernel(kFp8DynamicTokenSym, kFp8StaticChannelSym, bf16, bf16, (N, K))
                assert type(kernel).__name__ == "OcriaCpuFp8LinearKernel"
                layer = torch.nn.Module()
                layer.weight, layer.weight_scale, layer.input_scale = frozen(w.t()), frozen(scale), None
                kernel.process_weights_after_loading(layer)
                assert layer.weight.dtype == E4M3 and (kernel._weight_NK is None) == (keep_free > 0)
                assert error(kernel.apply_weights(layer, x), want) < 0.005
        weights.KEEP_FREE = usual
    """)


def test_fp8_fused_shards_are_requantized_to_one_scale(run: Run) -> None:
    run("""
        from vllm.model_executor.layers.quantization.utils.w8a8_utils import requantize_with_max_scale
        w, scales = torch.randn(48, 64), torch.tensor([0.01, 0.02])
        q = torch.cat([(part / s).clamp(-448, 448).to(E4M3) for part, s in zip((w[:32], w[32:]), scales)])
        scale, out = requantize_with_max_scale(q.clone(), scales, [32, 16])
        assert scale == scales[1] and torch.equal(out[32:].float(), q[32:].float())
        want = q[:32].float() * scales[0]
        assert ((out[:32].float() * scale - want).abs() <= want.abs() / 16 + scale * 2**-10).all()
    """)


def test_nvfp4_activations_are_quantized_as_vllms_emulation_does(run: Run) -> None:
    run("""
        from ocria_cpu_kernels.nvfp4 import quantize_dequantize, round_to_fp4
        from vllm.model_executor.layers.quantization.utils import nvfp4_emulation_utils as vllms
        ties = torch.tensor([0, 0.25, 0.5, 0.75, 1, 1.25, 1.5, 1.75, 2, 2.5, 3, 3.5, 4, 5, 6])
        for x in (ties, -ties, torch.linspace(-6, 6, 100001)):
            assert torch.equal(round_to_fp4(x), vllms.cast_to_fp4(x.clone()))
        for dtype in (torch.bfloat16, torch.float32):
            for size in (1e-4, 1.0, 50.0):
                x = (torch.randn(33, 128) * size).to(dtype)
                x[3], x[4, :16] = 0, 0
                scale = 448 * 6 / x.abs().max().float()
                assert torch.equal(quantize_dequantize(x, scale), vllms.ref_nvfp4_quant_dequant(x.clone(), scale, 16))
    """)


def test_nvfp4_layers_are_the_product_of_the_dequantized_operands(run: Run) -> None:
    run("""
        from ocria_cpu_kernels import nvfp4
        from vllm.model_executor.layers.quantization.compressed_tensors.schemes import (
            compressed_tensors_w4a4_nvfp4 as scheme,
        )
        from vllm.model_executor.layers.quantization.utils import nvfp4_emulation_utils as vllms
        N, K = 48, 64
        layer = torch.nn.Module()
        layer.weight = frozen(torch.randint(0, 256, (N, K // 2), dtype=torch.uint8))
        layer.weight_scale = frozen((torch.rand(N, K // 16) * 100 + 1).to(E4M3))
        layer.weight_global_scale = frozen(torch.tensor(0.0007))
        x = torch.randn(9, K).bfloat16()
        inverse = layer.input_global_scale_inv = 448 * 6 / x.abs().max().float()
        stored = layer.weight, layer.weight_scale, layer.weight_global_scale
        w = vllms.dequantize_to_dtype(*stored, torch.bfloat16, 16, swizzle=False).double()
        for a16 in (False, True):
            kernel = scheme.init_nvfp4_linear_kernel(use_a16=a16)
            kernel.process_weights_after_loading(layer)
            got = kernel.apply_weights(layer, x)
            seen = x if a16 else nvfp4.quantize_dequantize(x, inverse)
            assert error(got, seen.double() @ w.T) < 0.003
            if not a16:
                assert error(got, vllms.run_nvfp4_emulations(x.clone(), inverse, *stored, swizzle=False)) < 0.005
    """)
