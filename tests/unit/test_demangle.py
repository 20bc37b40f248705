"""Names of the call graph against texts measured from nvlink."""

from __future__ import annotations

import string

import pytest

from pylink.demangle import demangle

FUNCTIONS = """
_Z1fv | f()
_Z1fiz | f(int, ...)
_Z2k1PiPKii | k1(int *, const int *, int)
_Z1fPVKi | f(const volatile int *)
_Z1fPrVKPi | f(int *const volatile restrict *)
_Z1fKPKi | f(const int *const )
_Z1fPFPivE | f(int *(*)())
_Z1fPFPFivEfE | f(int (*(*)(float))())
_Z1fPA3_A4_Pi | f(int *(*)[3][4])
_Z1fPA3_PFvvE | f(void (*(*)[3])())
_Z1fM1AFivE | f(int ( :: A::*)())
_Z1fPKFivRE | f(int (*)() const &)
_Z1fPM1Ai | f(int  :: A::**)
_Z1fPDv4_f | f(float __attribute((vector_size(4*sizeof(float))))  *)
_Z1fPCf | f(_Complex float *)
_Z1fPDoFvvE | f(void (*)() noexcept)
_ZNK2ns1S1mEi | ns::S::m(int) const
_ZNO1A1fEv | A::f() &&
_ZN1AplERKS_ | A::operator +(const A&)
_ZN1AnaEm | A::operator new[] (unsigned long)
_ZN1AcvPT_IiEEv | A::operator T1 *<int>()
_Zli2_kPKc | operator ""_k(const char *)
_ZN5Base3C2Ev | Base3::Base3() [subobject]
_ZN1SIiED0Ev | S<int>::~S() [deleting]
_Z1fB3abcB2xyv | f[abi:abc,xy]()
_ZN1AB3abcC1Ev | A[abi:abc]::A[abi:abc]()
"""

TEMPLATES = """
_Z3tf7IfLi2EET_S0_ | T1 tf7<float, (int)2>(T1)
_Z1fIJifEEvDpT_ | void f<int, float>(T1...)
_Z1fIJilEEvDpRKT_ | void f<int, long>(const T1 &...)
_Z1fILin3EEvv | void f<(int)-3>()
_Z1fILf40490fdbEEvv | void f<(float)3.14159>()
_Z1fIXadL_ZN1A1fEvEEEvv | void f<&A::f>()
_Z1fIiLi3EEvRAT0__T_ | void f<int, (int)3>(T1 (&)[T2])
_Z1fIiEDTclsr3stdE7declvalIT_EEES0_ | decltype((std::declval<T1>())) f<int>(T1)
_Z1fIiEvNSt9enable_ifIXaasr1AIT_EE5valuelestT_Li8EEvE4typeE | \
void f<int>(std::enable_if<A<T1>::value&&sizeof(T1)<=(int)8, void>::type)
_ZSteqIiEbRKSaIT_ES3_ | bool std::operator ==<int>(const std::allocator<T1>&, \
const std::allocator<T1>&)
_Z1fIiEPFT_S0_ES0_ | T1 (*)(T1) f<int>(T1)
"""

ABBREVIATIONS = """
_Z1fN2ns1AERS_ | f(ns::A, ns&)
_Z1fN2ns1AERS0_ | f(ns::A, ns::A &)
_ZN5outerIiE5innerIfE1fERKS1_PS2_ | \
outer<int>::inner<float>::f(const outer<int>::inner&, outer<int>::inner<float>*)
_Z1fSt6vectorIiSaIiEERS1_ | f(std::vector<int, std::allocator<int>>, \
std::vector<int, std::allocator<int>> &)
_Z1fRKSs | f(const std::basic_string<char, std::char_traits<char>, std::allocator<char>>&)
_Z1fS_ | _Z1fS_
"""

# What no compiler writes, and nvlink reads all the same.
ODD_TYPES = """
_Z1fNK1A1BES0_ | f(A::B, A::B)
_Z1fNO1A1BE | f(A::B)
_Z1fN1A1BC2E | f(A::B::B)
_Z1fN1A1BD0E | f(A::B::~B)
_Z1fN1AcviE | f(A::operator int)
_ZTIN1A1BC2E | Typeinfo for A::B::B
_Z1fNKS_1BE | _Z1fNKS_1BE
"""

LOCAL = """
_ZZ1gvE1x_0 | g()::x (instance 2)
_ZZ1giE1x__10_ | g(int)::x (instance 12)
_ZZ1giEs | g(int)::string
_ZZ1giEd0_NKUlvE_clEv | \
g(int)::[default argument 2 (from end)]::[lambda() (instance 1)]::operator ()() const
_ZZ1giENKUlT_E1_clIiEEDaS_ | auto g(int)::[lambda(T1) (instance 3)]::operator ()<int>(T1) const
_ZN1AUt0_C1Ev | A::[unnamed type (instance 2)]::[unnamed type (instance 2)]()
_ZN12_GLOBAL__N_11fEv | <unnamed>::f()
_ZThn16_N1AD0Ev | Thunk for (offset -16) A::~A() [deleting]
_ZTv0_n24_N1A1fEv | Thunk for (offset 0, virtual offset -24) A::f()
_ZTch0_h8_N1A1fEv | Covariant thunk for (offset 0) (offset 8) A::f()
_ZTV1A | Virtual function table for A
"""

NAMES_OF_THE_COMPILER = """
_ZN35_INTERNAL_b2ba2347_5_m1_cu_337217175same6Ei | same6(int)
_ZN37_GLOBAL__N__4c54643a_5_m1_cu_3c2f0b3e1fEi | <unnamed>::f(int)
__nv_static_26__7ada34aa_5_m0_cu_0f78695b__Z4sk38Pi | sk38(int *)
__nv_static_26__7ada34aa_5_m0_cu_0f78695b_plain | __nv_static_26__7ada34aa_5_m0_cu_0f78695b_plain
_Z1fi$1 | f(int)
_Z2k1Pi$local | [clone k1(int *)] local
_Z1fv$_Z1gi$_Z1hv | [clone [clone f()] g(int)] h()
$_Z1fv | f()
__cuda_sm20_div_rn_f64_full | __cuda_sm20_div_rn_f64_full
foo$bar | foo$bar
"""

REFUSED = [
    "_Z",
    "_Z1",
    "_Z3f",
    "_Zfoo",
    "_ZN",
    "_ZN1A",
    "_Z0",
    "_Z1fQ",
    "_Z1fi_x",
    "_Z1fv1",
    "_Z1f$1i",
    "_Z1fSt",
    "_Z1fv$1a",
    "__Z1fv",
]


def pairs(*tables: str) -> list[tuple[str, str]]:
    lines = [line for table in tables for line in table.strip().splitlines()]
    return [(name, text) for name, _, text in (line.partition(" | ") for line in lines)]


@pytest.mark.parametrize(
    ("name", "text"),
    pairs(FUNCTIONS, TEMPLATES, ABBREVIATIONS, ODD_TYPES, LOCAL, NAMES_OF_THE_COMPILER),
)
def test_names_read_as_in_nvlink(name: str, text: str) -> None:
    assert demangle(name) == text


def test_abbreviations_count_in_base_36() -> None:
    def pointer(stars: int) -> str:
        return "int " + "*" * stars

    name = f"_Z1f{'P' * 40}iS_S9_SA_SZ_S10_S12_"
    stars = [40, 1, 11, 12, 37, 38, 40]
    assert demangle(name) == f"f({', '.join(map(pointer, stars))})"
    assert demangle(f"_Z1f{'P' * 40}iS13_") == f"_Z1f{'P' * 40}iS13_"


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_no_mangled_name_stays(name: str) -> None:
    assert demangle(name) == name


def test_every_beginning_of_a_name_is_taken() -> None:
    for name, _ in pairs(FUNCTIONS, TEMPLATES, ABBREVIATIONS, LOCAL):
        for end in range(len(name)):
            assert isinstance(demangle(name[:end]), str)


def test_deep_nesting_is_no_error() -> None:
    name = "_Z1f" + "P" * 100_000 + "i"
    assert demangle(name) == name


@pytest.mark.parametrize(
    "name",
    [
        f"_Z{'9' * 5000}f",
        f"_Z1fA{'9' * 5000}_i",
        f"__nv_static_{'9' * 5000}_x__Z1fi",
        f"_Z1fS{'Z' * 100_000}_",
        f"_ZN{'1a' * 50_000}E",
    ],
    ids=["length", "array", "static", "abbreviation", "scopes"],
)
def test_numbers_and_names_without_end_are_not_mangled(name: str) -> None:
    assert demangle(name) == name


def test_abbreviations_of_abbreviations_do_not_fill_the_memory() -> None:
    """Each `pair` holds the one before it twice."""
    name = "_Z1f4pairIiiE" + "".join(f"S_IS{digit}_S{digit}_E" for digit in string.digits[:5])
    assert demangle(name).startswith("f(pair<int, int>, pair<pair<int, int>, pair<int, int>>, ")
    name += "".join(f"S_IS{digit}_S{digit}_E" for digit in "56789" + string.ascii_uppercase)
    assert demangle(name) == name
