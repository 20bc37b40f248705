"""Reports of aprof: every line of the format, both ways, and faults that name file and line."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pylink.aprof import (
    BB_COUNT,
    TIME_USEC,
    Context,
    MalformedReport,
    Point,
    Report,
    Routine,
    encode,
    parse,
    read,
    write,
)

EVERY_TAG = """\
v 4
m time-usec
i rms
e 1353580000
t Tue Nov 21 2026
c a comment with  two blanks
f prog --flag "x y"
a prog
k 1000

r "main" "/bin/prog" 0
u 0 "_Z4mainv"
d 0 "main(int, char**)"
r "f" "/lib/libf.so" 1
q 0 23 600 600 600 360000 1 600 500 500 500 250000
q 1 7 20 40 60 2000 2 60 60 20 40 2000
x 0 0 -1
x 1 1 0
fav main
"""


def routines(*points: Point) -> Report:
    return Report(routines=[Routine(0, "f", "lib", points=list(points))])


def test_every_tag_is_read() -> None:
    report = parse(EVERY_TAG.encode())
    assert (report.version, report.metric, report.input_metric) == (4, TIME_USEC, "rms")
    assert (report.modified, report.created) == ("1353580000", "Tue Nov 21 2026")
    assert report.comments == ["a comment with  two blanks"]
    assert (report.command, report.application) == ('prog --flag "x y"', "prog")
    assert report.total == 1000
    main, f = report.routines
    assert (main.id, main.name, main.image) == (0, "main", "/bin/prog")
    assert (main.mangled, main.full) == ("_Z4mainv", "main(int, char**)")
    assert f.mangled is f.full is None
    assert [(context.id, context.routine, context.parent) for context in report.contexts] == [
        (0, 0, -1),
        (1, 1, 0),
    ]
    assert report.contexts[1].points == [Point(7, 20, 40, 60, 2000, 2, 60, 60, 20, 40, 2000)]
    assert report.points()[f.id] == report.contexts[1].points
    assert report.warnings == []


def test_points_of_equal_size_in_several_contexts_are_one() -> None:
    points = [
        Point(7, 20, 40, 60, 2000, 2, 60, 60, 20, 40, 2000),
        Point(7, 10, 30, 40, 1000, 2, 44, 36, 8, 28, 848),
    ]
    joined = Point(7, 10, 40, 100, 3000, 4, 104, 96, 8, 40, 2848)
    smaller = Point(3, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1)
    f = Routine(0, "f")
    for first, second in (points, points[::-1]):
        contexts = [Context(0, 0, -1, [first, smaller]), Context(1, 0, 0, [second])]
        assert Report(routines=[f], contexts=contexts).points() == {0: [smaller, joined]}


def test_what_is_read_is_written_again() -> None:
    report = parse(EVERY_TAG.encode())
    written = encode(report).decode()
    assert parse(written.encode()) == report
    assert [line.split(" ")[0] for line in written.splitlines()] == list("vmietcfakrudrqqxx")


def test_a_routine_outside_any_context_is_written_with_one() -> None:
    called, alone = Point.of_calls(4, [3]), Point.of_calls(8, [5])
    report = parse(
        b'v 4\nr "f" "i" 0\nr "g" "i" 1\nr "h" "i" 2\nx 0 0 -1\n'
        b"q 0 4 3 3 3 9 1 3 3 3 3 9\np 1 8 5 5 5 25 1 5 5 5 5 25\n"
    )
    again = parse(encode(report))
    assert again.points() == report.points() == {0: [called], 1: [alone], 2: []}
    # Readers that know contexts would count own costs of `p` and `q` lines of a routine twice.
    assert [(context.routine, context.id, context.parent) for context in again.contexts] == [
        (0, 0, -1),
        (1, 1, -1),
        (2, 2, -1),
    ]
    assert not any(routine.points for routine in again.routines)
    assert parse(encode(again)) == again


def test_contexts_are_written_from_the_top_and_in_their_order() -> None:
    tree = {4: -1, 1: 4, 3: 4, 0: 1, 2: 1}
    contexts = [Context(id, 0, parent) for id, parent in tree.items()]
    lines = encode(Report(routines=[Routine(0, "f")], contexts=contexts)).decode().splitlines()
    assert lines[-5:] == ["x 0 4 -1", "x 0 1 4", "x 0 0 1", "x 0 2 1", "x 0 3 4"]


def test_windows_line_ends_and_a_byte_order_mark_are_accepted() -> None:
    plain = parse(EVERY_TAG.encode())
    assert parse(EVERY_TAG.replace("\n", "\r\n").encode()) == plain
    marked = parse(b"\xef\xbb\xbf" + EVERY_TAG.encode(), "m.aprof")
    assert marked == plain
    assert marked.warnings[0].startswith("m.aprof:1: a byte order mark")


@pytest.mark.parametrize(
    ("head", "numbers", "expected"),
    [
        ("", "3 1 2 3 5 2", Point(3, 1, 2, 3, 5, 2, 3, 0, 0, 0, 0)),
        ("v 1\n", "3 1 2 3 5 2", Point(3, 1, 2, 3, 5, 2, 3, 0, 0, 0, 0)),
        ("v 2\n", "3 1 2 3 2 3 2", Point(3, 1, 2, 3, 0, 2, 3, 2, 0, 0, 0)),
        ("v 3\n", "3 1 2 3 2 3 2 1 1", Point(3, 1, 2, 3, 0, 2, 3, 2, 1, 1, 0)),
        ("v 4\n", "3 1 2 3 5 2 3 2 1 1 2", Point(3, 1, 2, 3, 5, 2, 3, 2, 1, 1, 2)),
        ("v 5\n", "3 1 2 3 5 2 3 2 1 1 2 9 9", Point(3, 1, 2, 3, 5, 2, 3, 2, 1, 1, 2)),
        ("v 6\n", "3 1 2 3 5 2 3 2 1 1 2 9 9 9 9", Point(3, 1, 2, 3, 5, 2, 3, 2, 1, 1, 2)),
    ],
)
def test_points_of_every_version(head: str, numbers: str, expected: Point) -> None:
    report = parse(f'{head}r "f" "lib" 7\np 7 {numbers}\n'.encode())
    assert report.routines[0].points == [expected]
    assert report.metric == BB_COUNT  # when nothing is said


def test_an_impossible_point_is_accepted_with_a_warning() -> None:
    line = "p 7 23 15 37 270 3000 10 199 200 10 10 3000"
    report = parse(f'v 4\nr "f" "lib" 7\n{line}\n'.encode(), "a.aprof")
    assert report.routines[0].points[0].sum == 270
    assert report.warnings == [
        "a.aprof:3: squares of 10 calls that cost 270 exceed 3000",
        "a.aprof:3: 10 own costs from 10 to 10 are not 200",
    ]


@pytest.mark.parametrize(
    ("numbers", "warning"),
    [
        # The size; least, most, sum, squares and number of calls; sum without recursion; own.
        ("5  1 1 1 1 0  1  1 1 1 1", "a point of no calls"),
        ("5  10 20 19 500 2  19  19 9 10 500", "2 calls from 10 to 20 do not cost 19"),
        ("5  10 20 41 900 2  41  30 10 20 500", "2 calls from 10 to 20 do not cost 41"),
        ("5  10 20 30 449 2  30  30 10 20 500", "squares of 2 calls that cost 30 exceed 449"),
        ("5  10 20 30 450 2  30  19 10 20 500", "2 own costs from 10 to 20 are not 19"),
        ("5  10 20 30 450 2  30  41 10 20 900", "2 own costs from 10 to 20 are not 41"),
        ("5  10 20 30 450 2  30  30 10 20 449", "squares of own costs 30 exceed 449"),
        ("5  10 20 30 450 2  30  30 10 20 450", None),
        ("5  10 20 40 800 2  40  20 10 20 200", None),
    ],
)
def test_what_is_impossible_in_a_point(numbers: str, warning: str | None) -> None:
    text = f'v 4\nr "f" "lib" 7\np 7 {numbers}\n'
    found = parse(text.encode(), "a").warnings
    assert found == ([] if warning is None else [f"a:3: {warning}"])


def test_points_may_come_before_their_routine() -> None:
    report = parse(b'v 4\nq 0 1 1 1 1 1 1 1 1 1 1 1\nx 3 0 -1\nd 3 "f()"\nr "f" "lib" 3\n')
    assert report.routines[0].full == "f()"
    assert report.contexts[0].points[0].rms == 1


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("", 1, "the file is empty"),
        ("v x\n", 1, "version is not a whole number: 'x'"),
        ("v\n", 1, "version is not a whole number"),
        ("m seconds\n", 1, "unknown metric 'seconds'"),
        ("i bytes\n", 1, "unknown input metric"),
        ("k -1\n", 1, "total cost -1 is not from 0 to"),
        (f"k {1 << 64}\n", 1, "is not from 0 to 18446744073709551615"),
        ('r "" "lib" 0\n', 1, "expected r"),
        ('r "f" lib 0\n', 1, "expected r"),
        (f'r "f" "lib" {1 << 32}\n', 1, "routine id 4294967296"),
        ('r "f" "lib" 0\nr "g" "lib" 0\n', 2, "routine 0 is there twice"),
        ('v 4\nr "f" "l" 0\np 0 1 2\n', 3, "version 4 has 12 numbers after p, this line 3"),
        ('r "f" "l" 0\np 0 1 2 3 4 5 6.5\n', 2, "occ is not a whole number: '6.5'"),
        ('r "f" "l" 0\np 0 1 2 3 4 5 -6\n', 2, "occ -6 is not from 0"),
        ("p 5 1 1 1 1 1 1\n", 1, "routine 5 has a point and no r line"),
        ("q 5 1 1 1 1 1 1\n", 1, "context 5 has a point and no x line"),
        ('u 3 "f"\n', 1, "routine 3 has a name and no r line"),
        ('r "f" "l" 0\nu 0 ""\n', 2, "a name is missing"),
        ("x 0 0\n", 1, "expected x routine context parent"),
        ("x 9 0 -1\n", 1, "context 0 is of routine 9, which is not there"),
        ('r "f" "l" 0\nx 0 0 4\n', 2, "context 0 has the parent 4, which is not there"),
        ('r "f" "l" 0\nx 0 0 -1\nx 0 0 -1\n', 3, "context 0 is there twice"),
        ('r "f" "l" 0\nx 0 0 1\nx 0 1 0\n', 2, "context 0 is above itself"),
        ('r "f" "l" 0\nx 0 0 1\nx 0 1 2\nx 0 2 1\n', 3, "context 1 is above itself"),
        ('r "f" "l" 0\nx 0 0 -2\n', 2, "parent id -2 is not from -1"),
    ],
)
def test_faults_name_file_and_line(tmp_path: Path, text: str, line: int, message: str) -> None:
    path = tmp_path / "bad.aprof"
    path.write_text(text)
    with pytest.raises(MalformedReport) as caught:
        read(path)
    assert str(caught.value).startswith(f"{path}:{line}: ")
    assert message in str(caught.value)


def test_contexts_may_be_deep_and_many() -> None:
    # Deepest first, so that the way up from the first is through all others.
    deep = 50_000
    lines = [f"x 0 {number} {number + 1}" for number in range(deep)]
    lines += [f"x 0 {number} -1" for number in range(deep, 2 * deep)]
    report = parse("\n".join(['r "f" "l" 0', *lines]).encode())
    assert parse(encode(report)).contexts[0].id == deep
    assert len(report.contexts) == 2 * deep


def test_unknown_lines_are_warned_of() -> None:
    assert parse(b"v 4\nz 1\n", "a").warnings == ["a:2: unknown tag 'z'"]


@given(st.binary(max_size=200))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    with suppress(MalformedReport):
        parse(data)


@given(st.lists(st.tuples(st.integers(0, len(EVERY_TAG) - 1), st.integers(0, 255)), max_size=8))
def test_damaged_reports_are_read_or_refused(changes: list[tuple[int, int]]) -> None:
    data = bytearray(EVERY_TAG.encode())
    for at, value in changes:
        data[at] = value
    try:
        report = parse(bytes(data))
    except MalformedReport:
        return
    assert report.points().keys() == {routine.id for routine in report.routines}


def test_names_lose_what_the_format_cannot_hold() -> None:
    report = Report(routines=[Routine(0, 'a "b"\n\x00c', "", full='d("x")')])
    line, full = encode(report).decode().splitlines()[2:]
    assert line == 'r "a \'b\'??c" "NONE" 0'
    assert full == "d 0 \"d('x')\""


@pytest.mark.parametrize(
    ("report", "message"),
    [
        (Report(metric="seconds"), "the metric is"),
        (Report(input_metric="bytes"), "no input metric is called 'bytes'"),
        (Report(routines=[Routine(1, "f"), Routine(1, "g")]), "routine ids must be there once"),
        (Report(routines=[Routine(1 << 31, "f")]), "routine id 2147483648"),
        (Report(routines=[Routine(0, "")]), "a name must not be empty"),
        (Report(total=-1), "total cost -1"),
        (Report(routines=[Routine(0, "f")], contexts=[Context(0, 1)]), "context 0 is of routine 1"),
        (Report(routines=[Routine(0, "f")], contexts=[Context(0, 0, 3)]), "has the parent 3"),
        (Report(routines=[Routine(0, "f")], contexts=[Context(0, 0, 0)]), "no way from the top"),
        (routines(Point.of_calls(1 << 63, [1])), "rms 9223372036854775808"),
        (routines(Point.of_calls(1, [1 << 63])), "min 9223372036854775808"),
    ],
)
def test_what_readers_would_misread_is_not_written(report: Report, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        encode(report)


def test_ids_and_points_are_written_as_they_are() -> None:
    point, part = Point.of_calls(8, [3, 4]), Point.of_calls(8, [3])
    report = Report(
        routines=[Routine(30, "f", "lib", points=[point]), Routine(7, "g", "lib")],
        contexts=[Context(352, 30, points=[part]), Context(9, 7, 352)],
    )
    again = parse(encode(report))
    assert [routine.id for routine in again.routines] == [30, 7]
    assert [(context.id, context.routine, context.parent) for context in again.contexts] == [
        (352, 30, -1),
        (9, 7, 352),
    ]
    # The routine's own points are those of all its contexts, not more calls.
    assert again.points() == {30: [point], 7: []}


def test_numbers_go_to_the_ends_of_their_ranges(tmp_path: Path) -> None:
    largest = (1 << 63) - 1
    report = routines(Point.of_calls(largest, [largest]))
    write(report, tmp_path / "large.aprof")
    point = read(tmp_path / "large.aprof").routines[0].points[0]
    assert (point.rms, point.min, point.sum, point.occ) == (largest, largest, largest, 1)
    assert point.sqr == (1 << 64) - 1  # more than the format holds
    assert read(tmp_path / "large.aprof").warnings == []


def test_a_point_of_calls() -> None:
    assert Point.of_calls(9, [3, 5], [1, 2]) == Point(9, 3, 5, 8, 34, 2, 8, 3, 1, 2, 5)
    assert Point.of_calls(9, [3, 5]).mean == 4
    for costs, own in (([], None), ([1], [])):
        with pytest.raises(ValueError, match="at least one call"):
            Point.of_calls(1, costs, own)


names = st.text(
    st.characters(min_codepoint=32, exclude_characters='"\x7f', exclude_categories=["Cs"]),
    min_size=1,
)
costs = st.lists(st.integers(0, 1 << 53), min_size=1, max_size=5)
points = st.lists(st.builds(Point.of_calls, st.integers(0, (1 << 63) - 1), costs), max_size=4)


@st.composite
def reports(draw: st.DrawFn) -> Report:
    names_here = draw(st.lists(names, min_size=1, max_size=4))
    made = [Routine(i, name, "lib") for i, name in enumerate(names_here)]
    report = Report(metric=draw(st.sampled_from((BB_COUNT, TIME_USEC))), routines=made)
    report.total = draw(st.none() | st.integers(0, (1 << 64) - 1))
    if draw(st.booleans()):
        for i, routine in enumerate(made):
            parent = draw(st.integers(-1, i - 1))
            report.contexts.append(Context(i, routine.id, parent, draw(points)))
    else:
        for routine in made:
            routine.points = draw(points)
    return report


@given(reports())
def test_reports_survive_a_round_trip(report: Report) -> None:
    again = parse(encode(report))
    again.contexts.sort(key=lambda context: context.id)
    owners: list[Routine | Context] = [*report.routines, *report.contexts]
    for owner in owners:
        for point in owner.points:
            point.sqr, point.self_sqr = (
                min(value, (1 << 64) - 1) for value in (point.sqr, point.self_sqr)
            )
    assert again == report
    assert again.warnings == []
