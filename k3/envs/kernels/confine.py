"""What holds for a kernel: it computes, allocates and reads files, and nothing else.

Runs under any Python 3, beside the grader.
"""

import ctypes
import os
import resource
import struct

LIBC = ctypes.CDLL(None, use_errno=True)
PR_SET_SECCOMP, PR_SET_NO_NEW_PRIVS = 22, 38
# What the loader, the allocator and a calculation ask of the kernel of the system.
ALLOWED = {
    "x86_64": (
        0xC000003E,
        "0 1 3 4 5 6 8 9 10 11 12 13 14 15 17 19 20 21 24 25 28 35 39 59 60 63 89 96 "
        "98 102 104 107 108 158 186 202 204 218 228 229 230 231 257 262 267 273 318 "
        "332 334 439",
    ),
    "aarch64": (
        0xC00000B7,
        "17 48 56 57 62 63 64 65 66 67 78 79 80 93 94 96 98 99 101 113 114 115 124 "
        "134 135 139 160 165 169 172 174 175 176 177 178 214 215 216 221 222 226 233 "
        "278 291 293 439",
    ),
}


def confine():
    """What holds for a kernel: no processes, no signals, no settings of others."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    machine = os.uname().machine
    audit, numbers = ALLOWED[machine]
    program = list(filtered(audit, sorted(map(int, numbers.split()))))
    code = ctypes.create_string_buffer(b"".join(program))
    fields = [("count", ctypes.c_ushort), ("code", ctypes.c_void_p)]
    kind = type("Program", (ctypes.Structure,), {"_fields_": fields})
    given = kind(len(program), ctypes.addressof(code))
    LIBC.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    if LIBC.prctl(PR_SET_SECCOMP, 2, ctypes.byref(given), 0, 0):
        os._exit(9)


def filtered(audit, numbers):
    """Instructions of a filter that refuses all system calls but these."""
    load, equal, back = 0x20, 0x15, 0x06
    refuse, allow, kill = 0x00050001, 0x7FFF0000, 0x80000000

    def one(code, yes, no, value):
        return struct.pack("HBBI", code, yes, no, value)

    yield one(load, 0, 0, 4)
    yield one(equal, 1, 0, audit)
    yield one(back, 0, 0, kill)
    yield one(load, 0, 0, 0)
    for number in numbers:
        yield one(equal, 0, 1, number)
        yield one(back, 0, 0, allow)
    yield one(back, 0, 0, refuse)
