"""The choice of the training device."""

import torch

from redraft.errors import ConfigError


def choose_device(name: str) -> torch.device:
    """Return the device `name`; `auto` is CUDA if available, otherwise the CPU."""
    available = {"cpu": True, "cuda": torch.cuda.is_available()}
    available["mps"] = torch.backends.mps.is_available()
    if name == "auto":
        return torch.device("cuda" if available["cuda"] else "cpu")
    if not available.get(name, False):
        names = ", ".join(device for device, is_available in available.items() if is_available)
        raise ConfigError(f"no device {name!r} here; choose auto or one of: {names}")
    return torch.device(name)
