"""The files of a local sandbox, as the program inside reads and writes them.

It is sent as text with that program, and runs under any Python 3 without packages. A
path may be anything: a pipe that nobody reads, or this program's own pipe to the host.
So nothing is opened that is not a regular file of the folders for work.
"""

import errno
import os
import stat

WORK = "/work"
FOLDERS = (WORK, "/tmp", "/dev/shm")


def opened(path, flags, folders=None):
    """A regular file; of these folders alone, if they are given.

    Looked at once it is open: a name may change its meaning before that.
    """
    number = os.open(path, flags | os.O_NONBLOCK | os.O_CLOEXEC, 0o644)
    found = os.fstat(number)
    devices = [os.stat(folder).st_dev for folder in folders or ()]
    if not stat.S_ISREG(found.st_mode) or (folders and found.st_dev not in devices):
        os.close(number)
        raise OSError(errno.EINVAL, "no regular file", path)
    return number


def content(path, most):
    """The bytes of a file that has at most so many; a hole has them too."""
    with open(opened(path, os.O_RDONLY), "rb") as file:
        found = file.read(most + 1)
    if len(found) > most:
        raise OSError(errno.EFBIG, "more bytes than the limit", path)
    return found


def read(header, data):
    """Return the bytes of a regular file."""
    path = header["path"]
    if not os.path.isfile(path):
        return {"error": f"no regular file: {path}"}, b""
    with open(opened(path, os.O_RDONLY), "rb") as file:
        return {}, file.read(header["most"])


def write(header, data):
    """Write a file and the folders above it."""
    folder = os.path.dirname(header["path"])
    if folder:
        os.makedirs(folder, exist_ok=True)
    number = opened(header["path"], os.O_WRONLY | os.O_CREAT, FOLDERS)
    with open(number, "wb") as file:
        file.truncate(0)
        file.write(data)
        os.fchmod(number, header.get("mode", 0o644))
    return {}, b""


def tree(header, data):
    """List all files below the work folder with their bytes, `most` in all."""
    rows, parts, left = [], [], header["most"]
    for folder, names, files in os.walk(WORK, onerror=closed):
        for name in names + files:
            path = os.path.join(folder, name)
            row, part = entry(path, left)
            if row:
                rows.append(row)
                parts.append(part)
                left = max(0, left - len(part))
    return {"rows": rows}, b"".join(parts)


def closed(error):
    """A folder that cannot be listed is no empty one."""
    raise error


def entry(path, most):
    """A row [path, kind, mode, size] and its bytes; None for sockets and the like."""
    short, mode = os.path.relpath(path, WORK), os.lstat(path).st_mode & 0o777
    if os.path.islink(path):
        target = os.fsencode(os.readlink(path))
        return [short, "link", mode, len(target)], target
    if os.path.isdir(path):
        return [short, "dir", mode, 0], b""
    if not os.path.isfile(path):
        return None, b""
    found = content(path, most)
    return [short, "file", mode, len(found)], found


def restore(header, data):
    """Make the files of a tree, folders first."""
    at = 0
    for path, kind, mode, size in header["rows"]:
        part = data[at : at + size]
        at += size
        if kind == "dir":
            os.makedirs(path, exist_ok=True)
        elif kind == "link":
            os.symlink(os.fsdecode(part), path)
        else:
            write({"path": path, "mode": mode}, part)
    for path, kind, mode, _ in reversed(header["rows"]):
        if kind == "dir":
            os.chmod(path, mode)
    return {}, b""
