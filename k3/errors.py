"""The five exceptions that k3 raises.

    K3Error
    ├── ConfigError       a configuration breaks a rule
    ├── ShapeError        tensors do not fit together
    ├── CheckpointError   files on disk are not what the configuration says
    ├── ProofError        a proof step, theorem or graph is refused
    └── RequestError      an option, prompt or request cannot be served

A message says the rule, what came, and what to do.
"""


class K3Error(Exception):
    """Root of everything that k3 raises on purpose."""


class ConfigError(K3Error):
    """A configuration breaks a rule; the message lists every wrong field."""


class ShapeError(K3Error):
    """Tensors, masks or boundaries do not fit together."""


class CheckpointError(K3Error):
    """Files on disk are not what the configuration says."""

    problems: tuple[str, ...] = ()
    """All that is wrong, where the message lists the first of many."""


class ProofError(K3Error):
    """A proof step, a theorem or a graph is refused."""


class RequestError(K3Error):
    """An option, a prompt or a request cannot be served as asked."""
