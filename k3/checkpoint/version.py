"""A number for the weights that a directory holds, the same in every process.

States packed to disk are restored where the same files are loaded, and nowhere else.
"""

import json
from hashlib import blake2b

from k3.checkpoint.survey import EXPERT, Survey

PIECE = 4096


def weight_version(found: Survey) -> int:
    """Return 62 bits of a digest of config, headers, file times and samples.

    Every byte of a large checkpoint takes an hour to read. Of each tensor but routed
    experts the first 4 KiB are read, of each file its size and time of change: files
    that were copied without their times count as other weights, which is safe.
    """
    digest = blake2b(json.dumps(found.config.to_dict(), sort_keys=True).encode())
    by_file: dict[str, list[str]] = {}
    for name, stored in found.tensors.items():
        by_file.setdefault(str(stored.file), []).append(name)
    for file in sorted(by_file):
        names = sorted(by_file[file], key=lambda n: found.tensors[n].entry.begin)
        with found.tensors[names[0]].file.open("rb") as stream:
            status = found.tensors[names[0]].file.stat()
            digest.update(f"{status.st_size} {status.st_mtime_ns}".encode())
            for name in names:
                entry = found.tensors[name].entry
                digest.update(f"{name} {entry.dtype} {entry.shape}".encode())
                if not EXPERT.fullmatch(name):
                    stream.seek(entry.begin)
                    digest.update(stream.read(min(PIECE, entry.nbytes)))
    return int.from_bytes(digest.digest()[:8], "little") >> 2
