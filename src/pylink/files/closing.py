"""What a file system says of a file only when it is closed, while the file can still be dropped.

Each close of a descriptor asks the file system (its `flush`), also where another descriptor keeps
the file open. NFS answers only then that a quota is exceeded, and not always: with a delegation the
client may wait. So file systems with a server are asked to write everything, too (`fsync`). That
takes milliseconds, which no local file system is asked for.
"""

from __future__ import annotations

import os

# As `/proc/self/mountinfo` calls file systems with a server; with what follows a dot.
NETWORK = (
    *("9p", "afs", "beegfs", "ceph", "cifs", "coda", "fuse", "fuseblk", "gfs2", "gpfs", "lustre"),
    *("ncpfs", "nfs", "nfs4", "ocfs2", "orangefs", "prl_fs", "smb3", "smbfs", "vboxsf", "virtiofs"),
)
_MOUNTS = "/proc/self/mountinfo"


def settle(descriptor: int, folder: int | None = None) -> None:
    """Have an error reported of an open file that closing it would report; OSError.

    `folder` is an open one, None for a file without a name: the servers that have such files, those
    of SMB and FUSE, get everything at each close. Locks of this process on the file are gone
    afterwards (fcntl(2)).
    """
    if folder is not None and is_network(folder):
        os.fsync(descriptor)
    try:
        copy = os.dup(descriptor)
    except OSError:  # too many are open
        return
    os.close(copy)


def is_network(folder: int) -> bool:
    """Whether an open folder lies on another machine, or may do so, as nothing says where."""
    device = os.fstat(folder).st_dev
    # Local disks have numbers of a driver; what has no disk gets those of major 0.
    if os.major(device):
        return False
    place = f"{os.major(device)}:{os.minor(device)}"
    try:
        with open(_MOUNTS, encoding="utf-8", errors="replace") as stream:
            for line in stream:
                fields = line.split(" ")
                if fields[2] == place:
                    kind = fields[fields.index("-") + 1]
                    return kind.partition(".")[0] in NETWORK
    except (OSError, ValueError, IndexError):
        return True
    return False
