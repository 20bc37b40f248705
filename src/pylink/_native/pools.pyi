"""Places the pools of functions (docs/format-notes/literal-pools.md).

`.nv.constant2.F` of a device function is not a section of an executable, if it has constants: its
bytes are appended to the pool of every kernel that reaches F, at one offset for all of them. So are
the pools of copies of a weak function that lost against an earlier copy. The table of pools has a
PoolRow for each such piece (`tables/poolrows.pxd`).
"""

from pylink._native.results import MergedTables
from pylink._native.tables import Sections

def cut_pools(merged: MergedTables) -> Sections:
    """Return the input sections; literal pools of linked copies are cut after the last constant.

    The bytes after it were appended by an earlier stage of linking. Returns the same object if
    nothing is cut.
    """

def place_pools(merged: MergedTables) -> None:
    """Place the pools that are appended to pools of kernels or functions: fills `pools`.

    In an executable, pools of device functions go to the kernels that reach them, the pool of the
    last input section first. The pool of a device function stays a section with -r, if it has no
    constants, or if only copies that lost have pools. Then the pools of its lost copies are
    appended to it. Those of a kernel's lost copies are always appended to the kernel's pool.
    """
