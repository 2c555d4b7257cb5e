"""Ready configurations as Python functions: the published model, the paper's."""

from k3.config import K3Config
from k3.config.published import published


def released() -> K3Config:
    """The published config.json: 93 layers, 896 experts, no MTP layer."""
    return K3Config.from_dict(published())


def paper() -> K3Config:
    """Table 1: the released model with its one next-token-prediction layer."""
    data = published()
    data["text_config"]["num_nextn_predict_layers"] = 1
    return K3Config.from_dict(data)
