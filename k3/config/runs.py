"""The names of ready runs, known before torch is loaded."""

TRAINED = ("tiny", "scaling")
"""Functions of k3.recipes that return a run of training from scratch."""

DOMAINS = ("general", "agentic", "coding")
EFFORTS = ("low", "high", "max")

REINFORCED = {f"{domain}-{e}": (domain, e) for domain in DOMAINS for e in EFFORTS}
"""Each run of k3.post.recipes: its domain and its effort."""
