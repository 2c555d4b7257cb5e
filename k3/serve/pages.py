"""One pool of pages of equal size, for MLA rows and KDA memories alike (§5.4.1)."""

from collections.abc import Iterable

import torch
from torch import Tensor

from k3.errors import RequestError


class Pages:
    """Which pages are taken, and how often: a page is free when nobody holds it.

    `allocate` takes all it was asked for or nothing, and says so with None.
    """

    def __init__(self, num_pages: int) -> None:
        if num_pages < 1:
            raise RequestError(
                f"a cache needs at least one page: got {num_pages}; give it more memory"
            )
        self.refs = [0] * num_pages
        # Taken from the end: low numbers first, and what was freed last comes first.
        self._free = list(range(num_pages))[::-1]

    @property
    def num_free(self) -> int:
        """Pages that nobody holds."""
        return len(self._free)

    @property
    def num_used(self) -> int:
        """Pages that somebody holds."""
        return len(self.refs) - len(self._free)

    def allocate(self, count: int) -> tuple[int, ...] | None:
        """Return `count` pages, each held once, or None if so many are not free."""
        if count > len(self._free):
            return None
        pages = tuple(self._free.pop() for _ in range(count))
        for page in pages:
            self.refs[page] = 1
        return pages

    def share(self, pages: Iterable[int]) -> None:
        """Hold taken pages once more: they outlive their first holder."""
        for page in pages:
            assert self.refs[page] > 0, f"page {page} is free and cannot be shared"
            self.refs[page] += 1

    def release(self, pages: Iterable[int]) -> None:
        """Give up one hold on each page; one that nobody holds is free."""
        for page in pages:
            assert self.refs[page] > 0, f"page {page} was released before"
            self.refs[page] -= 1
            if not self.refs[page]:
                self._free.append(page)


class Memory:
    """The bytes of the pages: uint8 [P page_bytes], read and written as any dtype."""

    def __init__(
        self, num_pages: int, page_bytes: int, device: torch.device | str = "cpu"
    ) -> None:
        self.data = torch.empty(num_pages, page_bytes, dtype=torch.uint8, device=device)

    def rows(self, dtype: torch.dtype, width: int) -> Tensor:
        """Return all pages as rows, [P page width]: what MLA kernels take."""
        typed = self.data.view(dtype)
        return typed[:, : typed.shape[1] // width * width].unflatten(1, (-1, width))

    def write(self, pages: tuple[int, ...], tensors: Iterable[Tensor]) -> None:
        """Write tensors behind each other over pages, in order."""
        flat = [x.detach().contiguous().flatten().view(torch.uint8) for x in tensors]
        joined = torch.cat(flat).to(self.data.device)
        room = len(pages) * self.data.shape[1] - joined.numel()
        assert room >= 0, f"{len(pages)} pages are {-room} bytes too few"
        joined = torch.nn.functional.pad(joined, (0, room))
        self.data[list(pages)] = joined.unflatten(0, (len(pages), -1))

    def read(self, pages: tuple[int, ...]) -> Tensor:
        """Return a copy of the bytes of pages, joined in order."""
        return self.data[list(pages)].flatten()
