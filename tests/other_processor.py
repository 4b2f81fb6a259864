"""Compute models as another processor would: the same, but for the last digits.

`pytest --other-processor` adds up to 1e-5 of its size to every product of a model's layers, which is what other kernels
(AVX2, AVX-512, SSE, Arm) were seen to change after a few layers.  A test that fails only then pins floats too tightly.
"""

from __future__ import annotations

from typing import Any

SHARE = 1e-5


def compute_otherwise() -> None:
    """Patch torch in this process: products of linear layers differ by up to `SHARE`, the same for the same values."""
    import torch
    from torch.nn import functional

    linear = functional.linear

    def otherwise(*arguments: Any, **named: Any) -> Any:
        product = linear(*arguments, **named)
        return product + product * torch.sin(product.detach() * 1e3) * SHARE

    functional.linear = otherwise
