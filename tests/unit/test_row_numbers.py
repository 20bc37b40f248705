"""No number of a row is used for the rows of another table: `helpers.row_numbers` says how."""

from __future__ import annotations

import re

import pytest
from helpers.native_trees import native_sources
from helpers.row_numbers import Mistake, check, described_columns, native_vocabulary

HEAD = """\
from libc.stddef cimport size_t
from libc.stdint cimport int32_t, uint8_t, uint32_t

from base.vector cimport Vec, vec_append, vec_init, vec_push
from tables.rows cimport EntityNumber, EntityRow, OutNumber, OutRow, SectionNumber, SectionRow

cdef extern from *:
    void use(size_t value) nogil

ctypedef int32_t CakeNumber

cdef struct CakeRow:
    int32_t price

ctypedef struct Bakery:
    const CakeRow* cakes
    const EntityRow* entities
    const SectionRow* sections
    size_t section_count
    const EntityNumber* owner   # by input section: its entity
    const uint32_t* sizes       # by input section
    Vec eaten                   # CakeNumber: cakes that are gone
    Vec lost

cdef inline EntityNumber owner_of(const Bakery* bakery, SectionNumber section) noexcept nogil:
    return bakery.owner[section]

cdef inline void put(int32_t* numbers, int32_t number) noexcept nogil:
    numbers[0] = number

cdef inline void clear(EntityNumber* numbers) noexcept nogil:
    numbers[0] = -1

cdef inline OutNumber choose(const Bakery* b, SectionNumber section) noexcept nogil:
    return b.owner[section]

cdef inline OutNumber count_out(const CakeRow* cake) noexcept nogil:
    return cake.price

cdef inline void eat(Vec* cakes, CakeNumber cake) noexcept nogil:
    (<int32_t*>vec_push(cakes))[0] = <int32_t>cake

cdef inline void eat_lost(Bakery* b, CakeNumber cake) noexcept nogil:
    eat(&b.eaten, cake)

cdef inline uint32_t look_up(const uint32_t* sizes, EntityNumber entity) noexcept nogil:
    return sizes[entity]

cdef inline uint32_t size_of(const Bakery* b, EntityNumber entity) noexcept nogil:
    return look_up(b.sizes, entity)
"""

# Parameters, body, and the mistakes that the checker finds; the head is line 1.
PLANTED = {
    "rows by a number of another table": (
        "Bakery* b, SectionNumber section",
        "use(b.entities[section].flags)",
        "section is a number of Section, but b.entities takes a number of Entity",
    ),
    "rows of a table of the source by a number of another": (
        "Bakery* b, EntityNumber entity",
        "use(b.cakes[entity].price)",
        "entity is a number of Entity, but b.cakes takes a number of Cake",
    ),
    "rows by pointer arithmetic": (
        "Bakery* b, SectionNumber section",
        "use((b.entities + section).flags)",
        "section is a number of Section, but b.entities takes a number of Entity",
    ),
    "rows by a parameter without a type": (
        "Bakery* b, size_t section",
        "use(b.sections[section].size)",
        "section: b.sections takes a number of Section, "
        "but parameter section in line 1 has no type",
    ),
    "rows by a field without a type": (
        "Bakery* b, CakeNumber cake",
        "use(b.entities[b.cakes[cake].price].flags)",
        "b.cakes[cake].price has no type, but b.entities takes a number of Entity",
    ),
    "a column by a number of another table": (
        "Bakery* b, EntityNumber entity",
        "use(b.sizes[entity])",
        "entity is a number of Entity, but b.sizes takes a number of Section",
    ),
    "a column in a local pointer": (
        "Bakery* b, EntityNumber entity",
        "cdef const uint32_t* sizes = b.sizes\nuse(sizes[entity])",
        "entity is a number of Entity, but sizes takes a number of Section",
    ),
    "a number from a column": (
        "Bakery* b, SectionNumber section",
        "use(b.sections[b.owner[section]].size)",
        "b.owner[section] is a number of Entity, but b.sections takes a number of Section",
    ),
    "an assignment": (
        "EntityRow* row, SectionNumber section",
        "row.first = section",
        "section is a number of Section, but row.first is a number of Symbol",
    ),
    "an initial value": (
        "SectionNumber section",
        "cdef OutNumber out = section",
        "section is a number of Section, but out is a number of Out",
    ),
    "an argument": (
        "Bakery* b, EntityNumber entity",
        "owner_of(b, entity)",
        "entity is a number of Entity, but section of owner_of() is a number of Section",
    ),
    "a branch of an argument": (
        "Bakery* b, EntityNumber entity, SectionNumber section",
        "owner_of(b, section if entity >= 0 else entity)",
        "entity is a number of Entity, but section of owner_of() is a number of Section",
    ),
    "a comparison": (
        "EntityNumber entity, SectionNumber section",
        "use(entity == section)",
        "entity is a number of Entity, but section is a number of Section",
        "section is a number of Section, but entity is a number of Entity",
    ),
    "an array of numbers": (
        "SectionNumber* numbers",
        "clear(numbers)",
        "numbers has numbers of Section, but numbers of clear() has numbers of Entity",
    ),
    "an argument without a type": (
        "int32_t* numbers, SectionNumber section",
        "put(numbers, section)",
        "section is a number of Section, but number of put() has no type",
    ),
    "an element without a type": (
        "int32_t* numbers, SectionNumber section",
        "numbers[0] = section",
        "section is a number of Section, but numbers[0] has no type",
    ),
    "a loop over one table that indexes another": (
        "Bakery* b",
        "cdef size_t i\nfor i in range(b.section_count):\n"
        "    use(b.sections[i].kind)\n    use(b.entities[i].kind)",
        "i: b.entities takes a number of Entity, "
        "but i: b.sections takes a number of Section in line 4",
    ),
    "a local variable with a number of another table": (
        "Bakery* b, SectionNumber section",
        "cdef size_t i = section\nuse(b.entities[i].kind)",
        "i: b.entities takes a number of Entity, but i gets a number of Section in line 2",
    ),
    "a local variable that does not say its table": (
        "Bakery* b, SectionNumber section",
        "cdef int32_t entity = b.owner[section]\nuse(b.entities[entity].kind)",
        "entity is always a number of Entity: declare it",
    ),
    # Numbers that are born without a type.
    "an assignment of a field without a type": (
        "EntityRow* row, const CakeRow* cake",
        "row.first = cake.price",
        "cake.price has no type, but row.first is a number of Symbol",
    ),
    "an initial value without a type": (
        "const uint32_t* sizes",
        "cdef OutNumber out = sizes[0]",
        "sizes[0] has no type, but out is a number of Out",
    ),
    "a field without a type in a call": (
        "Bakery* b, const CakeRow* cake",
        "owner_of(b, cake.price)",
        "cake.price has no type, but section of owner_of() is a number of Section",
    ),
    "a parameter without a type in a call": (
        "Bakery* b, int32_t number",
        "owner_of(b, number)",
        "number: section of owner_of() is a number of Section, "
        "but parameter number in line 1 has no type",
    ),
    "a loop that only calls": (
        "Bakery* b",
        "cdef size_t i\nfor i in range(b.section_count):\n    owner_of(b, i)",
        "i: section of owner_of() is a number of Section, but nothing says what it counts",
    ),
    "a bound without a type": (
        "Bakery* b, const CakeRow* cake",
        "cdef SectionNumber i\nfor i in range(cake.price):\n    owner_of(b, i)",
        "cake.price has no type, but i is a number of Section",
    ),
    "a comparison with a field without a type": (
        "const CakeRow* cake, SectionNumber section",
        "use(section == cake.price)",
        "cake.price has no type, but section is a number of Section",
    ),
    "a quotient": (
        "Bakery* b, SectionNumber section",
        "owner_of(b, section // 2)",
        "section // 2 has no type, but section of owner_of() is a number of Section",
    ),
    "a distance": (
        "Bakery* b, SectionNumber section, SectionNumber first",
        "owner_of(b, section - first)",
        "section - first has no type, but section of owner_of() is a number of Section",
    ),
    "an array of integers": (
        "int32_t* numbers",
        "clear(numbers)",
        "numbers has integers, but numbers of clear() has numbers of Entity",
    ),
    "an array that becomes one of integers": (
        "EntityNumber* numbers",
        "put(numbers, 1)",
        "numbers has numbers of Entity, but numbers of put() has integers",
    ),
    # Rows of a Vec.
    "rows of another type are read": (
        "Bakery* b",
        "use((<const OutRow*>b.eaten.data).size)",
        "b.eaten has rows of CakeNumber, not of OutRow",
    ),
    "rows without a type are added": (
        "Bakery* b, CakeNumber cake",
        "(<int32_t*>vec_push(&b.eaten))[0] = <int32_t>cake",
        "b.eaten has rows of CakeNumber, not of int32_t",
    ),
    "rows of another type are appended": (
        "Bakery* b, OutNumber out",
        "vec_append(&b.eaten, &out, 1)",
        "b.eaten has rows of CakeNumber, not of OutNumber",
    ),
    "rows of another Vec are appended": (
        "Bakery* b",
        "cdef Vec outs\nvec_init(&outs, sizeof(OutNumber))\n"
        "vec_append(&b.eaten, outs.data, outs.count)",
        "b.eaten has rows of CakeNumber, not of OutNumber",
    ),
    "a size of another type": (
        "Bakery* b",
        "vec_init(&b.eaten, sizeof(OutNumber))",
        "b.eaten has rows of CakeNumber, not of OutNumber",
    ),
    "a size without a type": (
        "Bakery* b",
        "vec_init(&b.eaten, 4)",
        "b.eaten has rows of CakeNumber, but their size does not say so",
    ),
    "rows of a local Vec": (
        "CakeNumber cake",
        "cdef Vec cakes\nvec_init(&cakes, sizeof(CakeNumber))\n"
        "use((<const OutRow*>cakes.data).size)",
        "cakes has rows of CakeNumber, not of OutRow",
    ),
    "rows that nothing describes": (
        "Bakery* b",
        "use((<const OutRow*>b.lost.data).size)",
        "nothing says what rows b.lost has",
    ),
    # What is right.
    "numbers of one table": (
        "Bakery* b, SectionNumber section",
        "owner_of(b, section)\nuse(b.entities[b.owner[section + 1]].flags)\nuse(section == -1)",
    ),
    "one variable, two loops": (
        "Bakery* b",
        "cdef size_t i\nfor i in range(b.section_count):\n    use(b.sections[i].kind)\n"
        "for i in range(3):\n    use(b.entities[i].kind)",
    ),
    "casts": (
        "Bakery* b, int32_t* numbers, SectionNumber section",
        "put(numbers, <int32_t>section)\nuse(b.entities[<EntityNumber>section].flags)",
    ),
    "rows from a place on": (
        "Bakery* b, SectionNumber first, EntityNumber entity",
        "cdef const SectionRow* rows = b.sections + first\nuse(rows[entity].kind)",
    ),
    "numbers that say their table where they are born": (
        "Bakery* b, EntityRow* row, const CakeRow* cake",
        "cdef SectionNumber section = <SectionNumber>cake.price\n"
        "row.winner = -1\nowner_of(b, <SectionNumber>(cake.price // 2))\n"
        "clear(<EntityNumber*>b.sizes)\nuse(section < b.section_count)",
    ),
    "rows of a Vec": (
        "Bakery* b, CakeNumber cake",
        "cdef Vec* cakes = &b.eaten\nvec_init(&b.eaten, sizeof(CakeNumber))\n"
        "(<CakeNumber*>vec_push(cakes))[0] = cake\nvec_append(cakes, &cake, 1)\n"
        "use(b.cakes[(<const CakeNumber*>cakes.data + 1)[0]].price)",
    ),
    "the number of a row that a pointer leads to": (
        "Bakery* b, const SectionRow* row",
        "owner_of(b, <SectionNumber>(row - b.sections))",
    ),
}


def planted_function(number: int, parameters: str, body: str) -> str:
    """Return the text of a planted function."""
    lines = [f"cdef void plant_{number}({parameters}) noexcept nogil:", *body.splitlines()]
    return "\n    ".join(lines) + "\n"


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    """The mistakes in each planted function; lines in a message count from its head."""
    path = tmp_path_factory.mktemp("planted") / "planted.pyx"
    text = HEAD
    starts = {"the head": 0}
    for number, (name, (parameters, body, *_)) in enumerate(PLANTED.items()):
        starts[name] = text.count("\n")
        text += planted_function(number, parameters, body)
    path.write_text(text, encoding="utf-8")
    vocabulary = native_vocabulary()
    vocabulary.add(text)
    found: dict[str, list[str]] = {name: [] for name in starts}
    for mistake in check([path], vocabulary):
        assert mistake.file == "planted.pyx"
        name = max((name for name in starts if starts[name] < mistake.line), key=starts.__getitem__)
        found[name].append(with_lines_from(starts[name], mistake.text))
    return found


def with_lines_from(start: int, text: str) -> str:
    """Return a message with the lines that it names counted from a line on."""
    return re.sub(r"in line (\d+)", lambda line: f"in line {int(line[1]) - start}", text)


@pytest.mark.parametrize("name", PLANTED)
def test_a_planted_mistake_is_found(planted: dict[str, list[str]], name: str) -> None:
    assert sorted(planted[name]) == sorted(PLANTED[name][2:])


def test_results_columns_and_vectors_that_a_function_gets(planted: dict[str, list[str]]) -> None:
    """What the elements of an argument belong to, and what they are, is known from the calls."""
    assert planted["the head"] == [
        "b.owner[section] is a number of Entity, but the result of choose() is a number of Out",
        "cake.price has no type, but the result of count_out() is a number of Out",
        "cakes has rows of CakeNumber, not of int32_t",
        "entity is a number of Entity, but sizes takes a number of Section",
    ]


def test_a_message_names_file_and_line() -> None:
    assert str(Mistake("merge/merge.pyx", 7, "i is wrong")) == "merge/merge.pyx:7: i is wrong"


def test_comments_say_what_a_column_is_indexed_by() -> None:
    body = (
        "    const uint8_t* kinds        # by input section; NULL if there are none\n"
        "    # By entity, with -r: its align.\n"
        "    uint64_t* align\n"
        "    uint64_t* other             # by name\n"
        "    size_t count                # by entity\n"
        "    Vec owners                  # EntityNumber, by variable\n"
    )
    assert dict(described_columns(body)) == {
        "kinds": "Section",
        "align": "Entity",
        "owners": "Variable",
    }


def test_native_code_uses_each_number_for_its_table() -> None:
    vocabulary = native_vocabulary()
    assert len(vocabulary.rows) > 15
    assert len(vocabulary.columns) > 140
    assert list(map(str, check(native_sources(), vocabulary))) == []
