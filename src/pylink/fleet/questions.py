"""Common questions about an index, each a row: title, query, and the columns that a plot shows."""

from __future__ import annotations

from dataclasses import dataclass

# Names for the first and the last column of a query whose columns are not known.
FIRST, LAST = "(first)", "(last)"


@dataclass(frozen=True)
class Question:
    """One question, whose title is `about`; a plot shows the column `value` by the column `label`.

    `unit` is that of the values. `needs` are tables beyond those that every database has.
    """

    about: str
    label: str
    value: str
    query: str
    unit: str = "bytes"
    needs: tuple[str, ...] = ()


# Sections of equal family, size and digest have equal contents: `copies` counts them. The size is
# `own`, the bytes that no earlier section of the file has, so that shared bytes count once.
_CONTENTS = """
    SELECT family, digest, own, count(*) AS copies
    FROM sections WHERE own > 0 GROUP BY family, digest, own"""

_OF_TARGETS = """
    SELECT target, family, digest, own, count(*) AS copies
    FROM members JOIN objects USING (file) JOIN sections USING (object)
    WHERE own > 0 GROUP BY ALL"""

# fmt: off
QUESTIONS = {
    "repeats": Question("what repeats, by family of sections",
        "family", "repeated_bytes", query=f"""
WITH contents AS ({_CONTENTS})
SELECT family, sum(copies)::BIGINT AS sections, sum(copies * own)::BIGINT AS bytes,
       count(*) AS contents, sum(copies - 1)::BIGINT AS repeated,
       sum((copies - 1) * own)::BIGINT AS repeated_bytes
FROM contents GROUP BY family ORDER BY repeated_bytes DESC, family"""),
    "contents": Question("the contents that repeat most, with a file that has each",
        "section", "repeated_bytes", query="""
WITH contents AS (
    SELECT family, digest, own, count(*) AS copies, count(DISTINCT object) AS objects,
           min(struct_pack(path, member, entry, number, name)) AS first
    FROM sections JOIN objects USING (object) WHERE own > 0
    GROUP BY family, digest, own HAVING count(*) > 1)
SELECT first.name AS section, first.path AS path, first.member AS member,
       lower(hex(digest)) AS digest, own AS bytes, copies,
       ((copies - 1) * own)::BIGINT AS repeated_bytes, objects
FROM contents ORDER BY repeated_bytes DESC, section, digest"""),
    "templates": Question("what repeats, by template",
        "template", "repeated_bytes", needs=("functions",), query="""
WITH of_functions AS (
    SELECT coalesce(template, '(no template)') AS template, function, object, family, digest, own
    FROM sections JOIN functions USING (function) WHERE own > 0),
contents AS (
    SELECT template, count(*) AS copies, own FROM of_functions
    GROUP BY template, family, digest, own),
sums AS (
    SELECT template, sum(copies)::BIGINT AS sections, sum(copies * own)::BIGINT AS bytes,
           sum((copies - 1) * own)::BIGINT AS repeated_bytes
    FROM contents GROUP BY template),
places AS (
    SELECT template, count(DISTINCT function) AS instances, count(DISTINCT object) AS objects,
           count(DISTINCT target) AS targets
    FROM of_functions JOIN objects USING (object) LEFT JOIN members USING (file)
    GROUP BY template)
SELECT template, instances, objects, targets, sections, bytes, repeated_bytes
FROM sums JOIN places USING (template) ORDER BY repeated_bytes DESC, template"""),
    "targets": Question("what repeats inside each target, and what other targets have as well",
        "target", "repeated_bytes", query=f"""
WITH contents AS ({_OF_TARGETS}),
spread AS (
    SELECT family, digest, own, count(*) AS targets FROM contents
    GROUP BY family, digest, own),
counts AS (
    SELECT target, count(DISTINCT file) AS files, count(DISTINCT object) AS objects
    FROM members LEFT JOIN objects USING (file) GROUP BY target),
sums AS (
    SELECT target, sum(copies * own)::BIGINT AS bytes,
           sum((copies - 1) * own)::BIGINT AS repeated_bytes,
           sum(CASE WHEN targets > 1 THEN own ELSE 0 END)::BIGINT AS shared_bytes
    FROM contents JOIN spread USING (family, digest, own) GROUP BY target)
SELECT target, files, objects, bytes, repeated_bytes, shared_bytes
FROM counts JOIN sums USING (target) ORDER BY repeated_bytes DESC, target"""),
    "sizes": Question("bytes of device code, unpacked and in files, by kind and architecture",
        "arch", "bytes", query="""
SELECT CASE WHEN objects.kind <> 'cubin' THEN objects.kind
            WHEN linked THEN 'linked cubin' ELSE 'relocatable cubin' END AS code,
       CASE WHEN objects.kind = 'cubin' THEN 'sm_' ELSE 'compute_' END || nullif(sm, 0) AS arch,
       count(DISTINCT file) AS files, count(*) AS objects, sum(objects.size)::BIGINT AS bytes,
       sum(packed)::BIGINT AS packed_bytes
FROM objects GROUP BY ALL ORDER BY bytes DESC, code, arch"""),
    "functions": Question("the functions with most bytes, with all sections that belong to them",
        "function", "bytes", needs=("functions",), query="""
SELECT coalesce(functions.name, function) AS function, count(DISTINCT object) AS objects,
       count(DISTINCT sm) AS archs, sum(CASE WHEN family = '.text' THEN own END)::BIGINT AS code,
       sum(own)::BIGINT AS bytes
FROM sections JOIN objects USING (object) JOIN functions USING (function)
GROUP BY 1 HAVING code > 0 ORDER BY bytes DESC, 1"""),
    "largest": Question("the templates with most bytes, copies included",
        "template", "bytes", needs=("functions",), query="""
SELECT template, count(DISTINCT function) AS instances, count(DISTINCT object) AS objects,
       sum(own)::BIGINT AS bytes
FROM sections JOIN functions USING (function) WHERE template IS NOT NULL
GROUP BY template ORDER BY bytes DESC, template"""),
    "relocatable": Question(
        "files with relocatable cubins beside linked ones for the same architecture",
        "path", "bytes", query="""
SELECT path, 'sm_' || sm AS arch, count(*) FILTER (linked) AS linked,
       count(*) FILTER (NOT linked) AS relocatable,
       (sum(size) FILTER (NOT linked))::BIGINT AS bytes,
       (sum(packed) FILTER (NOT linked))::BIGINT AS packed_bytes
FROM objects WHERE kind = 'cubin' GROUP BY path, sm
HAVING bool_or(linked) AND bool_or(NOT linked) ORDER BY bytes DESC, path, arch"""),
    "aliases": Question("equal code under several names",
        "first", "repeated_bytes", query="""
SELECT min(function) AS first, count(DISTINCT function) AS names,
       count(DISTINCT object) AS objects, own AS bytes,
       ((count(DISTINCT function) - 1) * own)::BIGINT AS repeated_bytes
FROM sections WHERE family = '.text' AND own > 0
GROUP BY digest, own HAVING count(DISTINCT function) > 1
ORDER BY repeated_bytes DESC, first"""),
    "saving": Question("how much shorter the output of each target gets by folding",
        "target", "saved_bytes", needs=("saving",), query="""
SELECT target, 'sm_' || sm AS arch, objects, folded, payload_bytes, saved_bytes, note
FROM saving ORDER BY saved_bytes DESC NULLS LAST, target, sm"""),
    "blockers": Question("what keeps objects of each target from folding",
        "blocker", "objects", unit="objects", needs=("blockers",), query="""
SELECT target, 'sm_' || sm AS arch, blocker, code, objects, bytes
FROM blockers ORDER BY target, sm, objects DESC, code, blocker"""),
    "files": Question("what was found, by kind of file",
        "kind", "files", unit="files", query="""
SELECT files.kind, count(DISTINCT file) AS files, count(object) AS objects,
       coalesce(sum(objects.size), 0)::BIGINT AS bytes,
       coalesce(sum(packed), 0)::BIGINT AS packed_bytes
FROM files LEFT JOIN objects USING (file) GROUP BY files.kind ORDER BY files DESC, files.kind"""),
    "faults": Question("what could not be read, and why",
        "", "", query="""
SELECT path, member, reason FROM (
    SELECT path, '' AS member, note AS reason FROM files WHERE note IS NOT NULL
    UNION ALL SELECT path, member, fault FROM objects WHERE fault IS NOT NULL)
ORDER BY path, member, reason"""),
}
# fmt: on

# Bytes and repeated bytes by target and family; {0} is the schema of a build: before or after.
_SUMS = """
    SELECT target, family, sum(copies * own)::BIGINT AS bytes,
           sum((copies - 1) * own)::BIGINT AS repeated
    FROM (SELECT target, family, digest, own, count(*) AS copies
          FROM {0}.members JOIN {0}.objects USING (file) JOIN {0}.sections USING (object)
          WHERE own > 0 GROUP BY ALL)
    GROUP BY target, family"""

# By path, member, entry and architecture: the size of the objects there, in all roots together, and
# a sum of hashes of their sections, which is equal for equal objects. PTX and LTO-IR have no
# sections, and so no sum: only sizes count.
_OBJECTS = """
    SELECT path, member, entry,
           coalesce(CASE WHEN kind = 'cubin' THEN 'sm_' ELSE 'compute_' END || sm, '') AS arch,
           sum(one.size)::BIGINT AS size, sum(sum) AS sum
    FROM {0}.objects AS one LEFT JOIN (
        SELECT object, sum(hash(name, size, digest)::HUGEINT) AS sum
        FROM {0}.sections GROUP BY object) USING (object)
    GROUP BY ALL"""

# fmt: off
COMPARISONS = {
    "families": Question(
        "bytes and repeated bytes of each family of sections, in the targets of both builds",
        "family", "change", query=f"""
WITH before_sums AS ({_SUMS.format("before")}), after_sums AS ({_SUMS.format("after")})
SELECT target, family, coalesce(b.bytes, 0) AS bytes_before, coalesce(a.bytes, 0) AS bytes_after,
       coalesce(b.repeated, 0) AS repeated_before, coalesce(a.repeated, 0) AS repeated_after,
       coalesce(a.repeated, 0) - coalesce(b.repeated, 0) AS change
FROM before_sums AS b FULL JOIN after_sums AS a USING (target, family)
WHERE coalesce(b.bytes, 0) <> coalesce(a.bytes, 0)
   OR coalesce(b.repeated, 0) <> coalesce(a.repeated, 0)
ORDER BY abs(change) DESC, target, family"""),
    "targets": Question("bytes and repeated bytes of each target",
        "target", "change", query=f"""
WITH before_sums AS (SELECT target, sum(bytes)::BIGINT AS bytes, sum(repeated)::BIGINT AS repeated
                     FROM ({_SUMS.format("before")}) GROUP BY target),
after_sums AS (SELECT target, sum(bytes)::BIGINT AS bytes, sum(repeated)::BIGINT AS repeated
               FROM ({_SUMS.format("after")}) GROUP BY target)
SELECT target, coalesce(b.bytes, 0) AS bytes_before, coalesce(a.bytes, 0) AS bytes_after,
       coalesce(b.repeated, 0) AS repeated_before, coalesce(a.repeated, 0) AS repeated_after,
       coalesce(a.repeated, 0) - coalesce(b.repeated, 0) AS change
FROM before_sums AS b FULL JOIN after_sums AS a USING (target)
ORDER BY abs(change) DESC, target"""),
    "objects": Question("device code that is new, gone or changed, by file and member",
        "path", "change", query=f"""
WITH b AS ({_OBJECTS.format("before")}), a AS ({_OBJECTS.format("after")})
SELECT CASE WHEN b.size IS NULL THEN 'new' WHEN a.size IS NULL THEN 'gone' ELSE 'changed' END
       AS fate, path, member, nullif(arch, '') AS arch, b.size AS size_before,
       a.size AS size_after, coalesce(a.size, 0) - coalesce(b.size, 0) AS change
FROM b FULL JOIN a USING (path, member, entry, arch)
WHERE b.sum IS DISTINCT FROM a.sum OR b.size IS DISTINCT FROM a.size
ORDER BY path, member, entry"""),
    "saving": Question("how much shorter outputs get by folding",
        "target", "change", needs=("saving",), query="""
SELECT target, 'sm_' || sm AS arch, b.saved_bytes AS saved_before, a.saved_bytes AS saved_after,
       coalesce(a.saved_bytes, 0) - coalesce(b.saved_bytes, 0) AS change
FROM before.saving AS b FULL JOIN after.saving AS a USING (target, sm)
ORDER BY abs(change) DESC, target, sm"""),
}
# fmt: on
