"""Theorems about K3."""
