# Device-link steps by `pylink dlink` instead of `nvcc -dlink`, or by pylink as nvlink where clang is the CUDA
# compiler. Needs CMake 3.18.
#
#   cmake -DCMAKE_PROJECT_INCLUDE="$(pylink cmake-dir)/PylinkDeviceLink.cmake" ...
#
# does it for a project as it is; a project itself includes this file after it enabled CUDA:
#
#   list(APPEND CMAKE_MODULE_PATH "...")   # what `pylink cmake-dir` prints
#   include(PylinkDeviceLink)
#
# or finds the package in that directory:
#
#   find_package(pylink REQUIRED)   # with -Dpylink_DIR="$(pylink cmake-dir)"
#
# With PYLINK_SHARED_LIBRARIES ON, set before this file is included by the project itself, device code of shared
# libraries is linked into the programs and plugins that use them: see PylinkSharedLibraries.cmake.
#
# PYLINK_EXECUTABLE names the program if it is not in PATH. Targets of this directory and of those that are
# added after it get the rules.

get_property(_pylink_languages GLOBAL PROPERTY ENABLED_LANGUAGES)
if(NOT "CUDA" IN_LIST _pylink_languages AND NOT PYLINK_SHARED_LIBRARIES)
  return() # project() without CUDA, which may come later
endif()
if("CUDA" IN_LIST _pylink_languages AND NOT CMAKE_CUDA_COMPILER_ID MATCHES "^(NVIDIA|Clang)$")
  message(WARNING "PylinkDeviceLink needs nvcc or clang; the CUDA compiler is ${CMAKE_CUDA_COMPILER_ID}")
  return()
endif()
find_program(PYLINK_EXECUTABLE pylink DOC "The program that does device-link steps")
if(NOT PYLINK_EXECUTABLE)
  message(FATAL_ERROR "PylinkDeviceLink: pylink was not found; set PYLINK_EXECUTABLE")
endif()

if(CMAKE_CUDA_COMPILER_ID STREQUAL "Clang")
  # CMake itself starts nvlink and fatbinary, the latter with options that CUDA 13 does not know. The programs of an
  # overlay know them.
  set(_pylink_overlay "${CMAKE_BINARY_DIR}/CMakeFiles/pylink-toolkit")
  if(NOT CMAKE_CUDA_FATBINARY STREQUAL "${_pylink_overlay}/bin/fatbinary")
    execute_process(
      COMMAND "${PYLINK_EXECUTABLE}" toolkit-overlay "${_pylink_overlay}"
              --cuda "${CMAKE_CUDA_COMPILER_LIBRARY_ROOT}"
      OUTPUT_QUIET ERROR_VARIABLE _pylink_message RESULT_VARIABLE _pylink_status)
    if(NOT _pylink_status EQUAL 0)
      message(FATAL_ERROR "PylinkDeviceLink: ${_pylink_message}")
    endif()
    set(CMAKE_CUDA_DEVICE_LINKER "${_pylink_overlay}/bin/nvlink")
    set(CMAKE_CUDA_FATBINARY "${_pylink_overlay}/bin/fatbinary")
  endif()
  return()
endif()

if("CUDA" IN_LIST _pylink_languages)
  # Steps that pylink leaves to nvcc are done by the nvcc of the project.
  get_filename_component(_pylink_toolkit "${CMAKE_CUDA_COMPILER}" DIRECTORY)
  get_filename_component(_pylink_toolkit "${_pylink_toolkit}" DIRECTORY)
  foreach(_pylink_kind EXECUTABLE LIBRARY)
    string(REPLACE
      "<CMAKE_CUDA_COMPILER>" "\"${PYLINK_EXECUTABLE}\" dlink --cuda \"${_pylink_toolkit}\""
      CMAKE_CUDA_DEVICE_LINK_${_pylink_kind} "${CMAKE_CUDA_DEVICE_LINK_${_pylink_kind}}")
  endforeach()
endif()
unset(_pylink_languages)
unset(_pylink_toolkit)
unset(_pylink_kind)

if(PYLINK_SHARED_LIBRARIES)
  include("${CMAKE_CURRENT_LIST_DIR}/PylinkSharedLibraries.cmake")
endif()
