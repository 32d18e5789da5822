"""Which device to train on."""

import torch

from redraft.errors import ConfigError

DEVICES = ("auto", "cpu", "cuda", "mps")


def choose_device(name: str) -> torch.device:
    """The named device; `auto` is the fastest there is. The noise is drawn on it."""
    available = {"cpu": True, "cuda": torch.cuda.is_available()}
    available["mps"] = torch.backends.mps.is_available()
    if name == "auto":
        return torch.device("cuda" if available["cuda"] else "cpu")
    if not available.get(name, False):
        known = ", ".join(device for device, there in available.items() if there)
        raise ConfigError(f"no device {name!r} here; choose auto or one of: {known}")
    return torch.device(name)
