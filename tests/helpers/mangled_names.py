"""Mangled names, and the readable names that nvlink prints for them in its call graph."""

from __future__ import annotations

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
_Z1fRKA3_i | f(int (&)[3])
_Z1fRA_Ki | f(const int (&)[])
_Z1fPFvRiE | f(void (*)(int &))
_Z1fM1AFvRiRE | f(void ( :: A::*)(int &) &)
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
_ZN1AdsEi | A::operator .*(int)
_ZN1AawEv | A::operator co_await()
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

EXPRESSIONS = """
_Z1fIiEDTpp_fp_ET_ | decltype((++param#1)) f<int>(T1)
_Z1fIiEDTppfp_ET_ | decltype((param#1++)) f<int>(T1)
_Z1fIiEDTmmfp_ET_ | decltype((param#1--)) f<int>(T1)
_Z1fIiEDTmm_fp_ET_ | decltype((--param#1)) f<int>(T1)
_Z1fIiEDTnw_T_EES0_ | decltype((new T1)) f<int>(T1)
_Z1fIiEDTnwfp__T_EES0_ | decltype((new (param#1) T1)) f<int>(T1)
_Z1fIiEDTdlfp_ET_ | decltype((delete param#1)) f<int>(T1)
_Z1fIiEDTdafp_ET_ | decltype((delete[] param#1)) f<int>(T1)
_Z1fIiEDTgsdlfp_ET_ | decltype((::delete param#1)) f<int>(T1)
_Z1fIiEDTatT_ES0_ | decltype((alignof(T1))) f<int>(T1)
_Z1fIiEDTazfp_ET_ | decltype((alignof(param#1))) f<int>(T1)
_Z1fIiEDTtefp_ET_ | decltype((typeid(param#1))) f<int>(T1)
_Z1fIiEDTtiT_ES0_ | decltype((typeid(T1))) f<int>(T1)
_Z1fIiEDTtwfp_ET_ | decltype((throw param#1)) f<int>(T1)
_Z1fIiEDTtrET_ | decltype((throw)) f<int>(T1)
_Z1fIiEDTdsfp_fp_ET_ | decltype((param#1.*param#1)) f<int>(T1)
_Z1fIJiEEDTflplfp_EDpT_ | decltype(((...+param#1))) f<int>(T1...)
_Z1fIJiEEDTfrplfp_EDpT_ | decltype(((param#1+...))) f<int>(T1...)
_Z1fIJiEEDTfLplfp_Li0EEDpT_ | decltype(((param#1+...+(int)0))) f<int>(T1...)
_Z1fIiEDTawfp_ET_ | decltype((co_awaitparam#1)) f<int>(T1)
_Z1fIiEDTfL0p_ET_ | decltype((param#1[up 1 level])) f<int>(T1)
_Z1fIiEDTfpTET_ | decltype((this)) f<int>(T1)
_Z1fIJiEEDTfRplLi0Efp_EDpT_ | decltype((((int)0+...+param#1))) f<int>(T1...)
_Z1fIiEDTnw_T_piEES0_ | decltype((new T1())) f<int>(T1)
_Z1fIiEDTnw_T_pifp_EES0_ | decltype((new T1(param#1))) f<int>(T1)
_Z1fIiEDTna_T_EES0_ | decltype((new[] T1)) f<int>(T1)
_Z1fIiEDTgsnw_T_EES0_ | decltype((::new T1)) f<int>(T1)
_Z1fIiEDTgs1xET_ | decltype((::x)) f<int>(T1)
_Z1fIiEDTfL1p0_ET_ | decltype((param#2[up 2 levels])) f<int>(T1)
_Z1fIiEDTnw_T_ilfp_EES0_ | decltype((new T1{param#1})) f<int>(T1)
_Z1fIiEDTnwfp_fp__T_EES0_ | decltype((new (param#1, param#1) T1)) f<int>(T1)
_Z1fIiEDTgsnwfp__T_pifp_EES0_ | decltype((::new (param#1) T1(param#1))) f<int>(T1)
_Z1fIiEDTfL10p_ET_ | decltype((param#1[up 11 levels])) f<int>(T1)
_Z1fIiEDTfL0pK_ET_ | decltype((const param#1[up 1 level])) f<int>(T1)
_Z1fIiEDTfpK_ET_ | decltype((const param#1)) f<int>(T1)
_Z1fIiEDTfpVK0_ET_ | decltype((const volatile param#2)) f<int>(T1)
_Z1fIiEDTdafpTET_ | decltype((delete[] this)) f<int>(T1)
_Z1fIiEDTmifp_fp0_ET_S1_ | decltype((param#1-param#2)) f<int>(T1, T1)
_Z1fIiEDTngfp_ET_ | decltype((-param#1)) f<int>(T1)
_Z1fIiEDTscT_fp_ES0_ | decltype((static_cast<T1>(param#1))) f<int>(T1)
_Z1fIiEDTdcPT_fp_ES0_ | decltype((dynamic_cast<T1 *>(param#1))) f<int>(T1)
_Z1fIiEDTccRKT_fp_ES0_ | decltype((const_cast<const T1 &>(param#1))) f<int>(T1)
_Z1fIiEDTrcPT_fp_ES0_ | decltype((reinterpret_cast<T1 *>(param#1))) f<int>(T1)
_Z1fIiEDTcvlfp_ET_ | decltype(((long)param#1)) f<int>(T1)
_Z1fIiEDTcvT__fp_fp_EES0_ | decltype((T1(param#1, param#1))) f<int>(T1)
_Z1fIiEDTdtfp_1xET_ | decltype(((param#1.x))) f<int>(T1)
_Z1fIiEDTptfp_1xIiEET_ | decltype(((param#1->x<int>))) f<int>(T1)
_Z1fIiEDTixfp_Li0EET_ | decltype((param#1[(int)0])) f<int>(T1)
_Z1fIiEDTqufp_Li1ELi2EET_ | decltype((param#1?(int)1:(int)2)) f<int>(T1)
_Z1fIiEDTstT_ES0_ | decltype((sizeof(T1))) f<int>(T1)
_Z1fIiEDTszfp_ET_ | decltype((sizeof(param#1))) f<int>(T1)
_Z1fIJiEEDTsZfp_EDpT_ | decltype((sizeof...(param#1))) f<int>(T1...)
_Z1fIiEDTnxfp_ET_ | decltype((noexcept(param#1))) f<int>(T1)
_Z1fIiEDTtlT_fp_Li2EEES0_ | decltype((T1{param#1, (int)2})) f<int>(T1)
_Z1fIiEDTilfp_Li2EEET_ | decltype(({param#1, (int)2})) f<int>(T1)
_Z1fIiEDTsrT_1xES0_ | decltype((T1::x)) f<int>(T1)
_Z1fIiEDTsr3std1aE1xIT_EES0_ | decltype((std::a::x<T1>)) f<int>(T1)
_Z1fIiEDTsrN1AIT_EE1xES1_ | decltype((A<T1>::x)) f<int>(T1)
_Z1fIiEDTclfp_fp_Lb1EEET_ | decltype((param#1(param#1, (bool)1))) f<int>(T1)
_Z1fIiEDTcldtfp_1gEET_ | decltype(((param#1.g)())) f<int>(T1)
_Z1fIiEDTlefp_fp_ET_ | decltype((param#1<=param#1)) f<int>(T1)
_Z1fIiEDtfp_ET_ | decltype(param#1) f<int>(T1)
_Z1fIiEDTspfp_ET_ | decltype((param#1...)) f<int>(T1)
_Z1fILc97EEvv | void f<(char)97>()
_Z1fILd400921fb54442d18EEvv | void f<(double)3.14159265358979>()
_Z1fILdbff0000000000000EEvv | void f<(double)-1.0>()
_Z1fILf7f800000EEvv | void f<(float)inf>()
_Z1fILmn5EEvv | void f<(unsigned long)-5>()
_Z1fILDn0EEvv | void f<(std::nullptr_t)0>()
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

# Names that no compiler writes, but that nvlink reads.
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
_ZGVZ1gvE1x | Initialization guard variable for g()::x
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
    "_ZT_",
    "_ZT_1f",
    "_ZZT_1fvE1x",
    "_Z1fv$1a",
    "__Z1fv",
]

READABLE = (
    *(FUNCTIONS, TEMPLATES, EXPRESSIONS, ABBREVIATIONS, ODD_TYPES, LOCAL),
    NAMES_OF_THE_COMPILER,
)


def pairs(*tables: str) -> list[tuple[str, str]]:
    """Return the mangled and readable names in these tables."""
    lines = [line for table in tables for line in table.strip().splitlines()]
    return [(name, text) for name, _, text in (line.partition(" | ") for line in lines)]
