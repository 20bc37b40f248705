"""Raising the errors that a file system reports only at close, while the file can be discarded.

Each close of a descriptor calls the file system's `flush`, even if another descriptor keeps the
file open. NFS reports an exceeded quota only then, and not always: with a delegation the client may
wait. So `fsync` is called, too, on file systems with a server. It takes milliseconds, so local file
systems are spared.
"""

from __future__ import annotations

import os

# Types in `/proc/self/mountinfo`, without the suffix after a dot, of file systems whose files other
# machines or processes keep.
NETWORK = (
    *("9p", "afs", "beegfs", "ceph", "cifs", "coda", "fuse", "fuseblk", "gfs2", "gpfs", "lustre"),
    *("ncpfs", "nfs", "nfs4", "ocfs2", "orangefs", "prl_fs", "smb3", "smbfs", "vboxsf", "virtiofs"),
)
_MOUNTS = "/proc/self/mountinfo"


def raise_close_errors(descriptor: int, directory: int | None = None) -> None:
    """Raise the OSError, if any, that closing an open file would report.

    `directory` is a descriptor of the file's directory, None for a file without a name: of network
    file systems, only SMB and FUSE have such files, and these write everything at each close. Locks
    of this process on the file are gone afterwards (fcntl(2)).
    """
    if directory is not None and is_network(directory):
        os.fsync(descriptor)
    try:
        copy = os.dup(descriptor)
    except OSError:  # too many open files
        return
    os.close(copy)


def is_network(directory: int) -> bool:
    """Return whether an open directory's file system is in NETWORK; True if mounts are unknown."""
    device = os.fstat(directory).st_dev
    # Local disks have the major number of their driver; file systems without a disk have 0.
    if os.major(device):
        return False
    device_number = f"{os.major(device)}:{os.minor(device)}"
    try:
        with open(_MOUNTS, encoding="utf-8", errors="replace") as stream:
            for line in stream:
                fields = line.split(" ")
                if fields[2] == device_number:
                    file_system = fields[fields.index("-") + 1]
                    return file_system.partition(".")[0] in NETWORK
    except (OSError, ValueError, IndexError):
        return True
    return False
