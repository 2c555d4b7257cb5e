"""The reader: each claim of the paper beside its code, its theorem and its widget.

`k3 read` builds static pages from `k3/paper/*.md`; `docs/reader.md` says how.
"""

__all__: list[str] = []
