"""All CUDA C++ features with their weights, the commonest first: a level uses the first ones."""

from __future__ import annotations

from helpers import programs_calls as calls
from helpers import programs_data as data
from helpers import programs_kernels as kernels
from helpers import programs_more as more
from helpers.programs_draft import Feature

FEATURES: list[tuple[Feature, int]] = [
    (kernels.plain_kernel, 4),
    (kernels.shared_reduction, 2),
    (kernels.switch_table, 1),
    (kernels.integer_division, 1),
    (calls.device_function, 5),
    (data.global_variable, 4),
    (data.constant_variable, 4),
    (data.static_shared, 3),
    (calls.unused_code, 2),
    (calls.calling_kernel, 4),
    (calls.local_arrays, 2),
    (calls.recursion, 2),
    (calls.function_table, 2),
    (calls.same_named_statics, 2),
    (data.initialised_pointers, 2),
    (kernels.launch_bounds, 2),
    (kernels.double_math, 2),
    (kernels.printf_assert_malloc, 2),
    (calls.templates, 3),
    (data.device_function_shared, 3),
    (data.extern_shared, 2),
    (calls.many_registers, 2),
    (calls.virtual_functions, 2),
    (calls.anonymous_namespace, 2),
    (data.managed_variable, 1),
    (kernels.atomics_and_shuffles, 2),
    (calls.function_pointer_parameter, 2),
    (data.file_scope_shared, 2),
    (kernels.cooperative_groups, 1),
    (kernels.texture_object, 1),
    (kernels.big_parameters, 1),
    (data.const_and_shared_addresses, 2),
    (more.template_kernels, 3),
    (more.inline_variables, 3),
    (more.cluster_kernel, 2),
    (more.asynchronous_copy, 2),
    (more.grid_constant, 1),
    (more.call_chain, 3),
    (more.recursion_through_pointer, 1),
    (more.lookup_tables, 2),
    (more.static_kernels, 1),
    (more.trap_and_clock, 1),
    (more.tensor_instruction, 1),
    (more.many_kernels, 1),
    (more.dynamic_parallelism, 1),
]

# Features for seeds from LATER_SEEDS on. Earlier seeds do not use them, so that the programs that
# pages and tests name by seed do not change.
LATER: list[tuple[Feature, int]] = [
    (more.arrays_of_weak_kernels, 4),
]
