"""Training text that machines already have, with its held-out split."""

from k3.data.corpora.document import Corpus as Corpus
from k3.data.corpora.document import Document as Document
from k3.data.corpora.document import is_heldout as is_heldout
from k3.data.corpora.document import join as join
from k3.data.corpora.python import stdlib as stdlib

__all__ = ["Corpus", "Document", "is_heldout", "join", "stdlib"]
