"""The proof kernel and what surrounds it; knows nothing of K3."""
