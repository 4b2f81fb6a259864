"""What this machine computes on, found out cheaply: torch is imported only where there is a sign of a GPU."""

from __future__ import annotations

import platform
import shutil
import sys
from pathlib import Path

SIGNS = ("/dev/nvidiactl", "/dev/nvidia0", "/dev/kfd", "/dev/dxg")  # NVIDIA, AMD, and both under Windows' Linux
TOOLS = ("nvidia-smi", "rocm-smi")


def find_capability() -> str:
    """ "cuda", "mps" or "cpu": the device models would run on here; "cpu" where torch is not installed.

    A few microseconds on a machine without a GPU; the time to import torch (seconds) on one with a GPU.
    """
    if not _may_have_a_gpu():
        return "cpu"
    try:
        import torch
    except ImportError:
        return "cpu"
    if torch.cuda.is_available():
        return "cuda"
    return "mps" if torch.backends.mps.is_available() else "cpu"


def _may_have_a_gpu() -> bool:
    if sys.platform == "darwin":
        return platform.machine() == "arm64"
    return any(Path(sign).exists() for sign in SIGNS) or any(shutil.which(tool) for tool in TOOLS)
