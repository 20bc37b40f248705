"""Folding of Mercury sections (`.nv.merc.*`) with equal contents.

Cubins of sm_100 and later describe each function twice: as machine code and as Mercury sections,
which hold a capsule (a portable form of the code) and debug data about it. Template code that many
translation units instantiate repeats these sections in every one of them. `compare` decides whether
one object's sections can replace another's; `fold` does so for a build.

The rule
--------
An object has three vectors (lists): primary data, section headers, relocation targets. A stage
compares each, in this order; the first that fails gives the code of the result: 17, 19 or 18. Code
0 means that the candidate's sections are accepted as copies of the reference's.

1. Primary data: each payload (contents of a section) of the candidate equals the start of the
   reference's at the same position. Else 17.
2. Section headers: equal numbers, and for each of the candidate's some header of the reference with
   the same name (without `.nv.merc`), +0 qword (sh_size), +8 qword (sh_link and sh_info) and
   alignment. Else 19.
3. Relocation targets, i.e. relocation sections: equal numbers, and for each of the candidate's some
   target of the reference with the same name, length and bytes. Else 18.

`fold` uses these stages, except for objects without any entry: `compare` accepts such a candidate
if the reference has neither headers nor targets, and `fold` keeps it.

Why a fold is safe
------------------
The rule alone proves less than a fold needs. Equal entries of a relocation section have equal
symbol *numbers*, and numbers are private to a file. Stage 1 does not check bytes that only the
reference has. Stages 2 and 3 may match two entries with one of the reference. So if both objects
have symbol tables and `identity` is "symbols", an accepted candidate C of a reference R must also
pass these checks. A failure rejects it with the code of the vector concerned.

* Twins (an entry of C and the equal one of R) are at the same position in both vectors, so stages
  2 and 3 are one-to-one. The +0 qword is the size, and types, flags and sizes in the file are
  equal, too, so stage 1 compared whole sections: every section of C equals its twin bytewise, and
  every relocation section of C equals its twin bytewise and applies to the twin of its section.
* Every symbol number in a relocation of C is the same symbol in R and C after resolution. Both are
  the null symbol; or both are global or weak, of one type and one name, and a link has one
  definition of a name; or both are the start of a section, and these sections are twins. A local
  function or variable is another symbol in each file, so it rejects. Sections that are not compared
  are placed separately for each file, so their starts reject, too.
* R and C define the same functions at the same numbers, all of them global or weak. So no live code
  is described by C alone. R's copy does not lose against C's: if R's were weak and C's strong, a
  link would drop the relocations of R's debug data. The attribute records of both files are equal,
  and so are the register counts in them, which may decide between weak copies. (If both copies are
  strong, the link fails.)

So after relocation, C's sections would have the bytes of R's sections, except where they refer to
the start of a section: C's refer to C's section, R's to its twin. Nothing is lost by omitting C's
sections. A link that folds must use R's sections for whichever copy of a function wins.

Hashes are only a filter: a pair that they propose is compared field by field and byte by byte, and
a pair that they omit could not have been accepted (see pylink.mercury.index).
"""

from pylink.mercury.cubin import MalformedCubin
from pylink.mercury.folding import FoldResult, fold
from pylink.mercury.objects import MercuryObject
from pylink.mercury.stages import Verdict, compare
from pylink.mercury.stats import Stats

__all__ = ["FoldResult", "MalformedCubin", "MercuryObject", "Stats", "Verdict", "compare", "fold"]
