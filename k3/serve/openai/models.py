"""GET /v1/models, /version: what is served here."""

from typing import Any

import k3
from k3.serve.openai.errors import ApiError
from k3.serve.openai.service import Service


def listed(service: Service) -> dict[str, Any]:
    """Every name of the model."""
    return {
        "object": "list",
        "data": [_model(service, name) for name in service.options.names],
    }


def one(service: Service, name: str) -> dict[str, Any]:
    """The model of a name.

    Raises: ApiError 404.
    """
    if name not in service.options.names:
        raise ApiError(
            404,
            f"model must be one of {', '.join(service.options.names)}: got "
            f"{name[:80]!r}",
            param="model",
            code="model_not_found",
        )
    return _model(service, name)


def version() -> dict[str, str]:
    """Our version."""
    return {"version": k3.__version__}


def _model(service: Service, name: str) -> dict[str, Any]:
    options = service.options
    return {
        "id": name,
        "object": "model",
        "created": service.started,
        "owned_by": "k3",
        "root": options.names[0],
        "parent": None,
        "max_model_len": options.context_tokens,
    }
