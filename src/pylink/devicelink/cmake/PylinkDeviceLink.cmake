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
# With PYLINK_SHARED_LIBRARIES ON, set before this file is included by the project itself, device code of shared
# libraries is linked into the programs that use them. Targets are ordinary ones:
#
#   set(PYLINK_SHARED_LIBRARIES ON)
#   include(PylinkDeviceLink)
#   add_library(noise SHARED noise.cu)
#   add_executable(terrain main.cu)
#   target_link_libraries(terrain PRIVATE noise)
#
# A shared library with CUDA sources stays open, unless its CUDA_RESOLVE_DEVICE_SYMBOLS was set; users of it learn of
# that as they learn of its include directories, also those of another project (include this file in Config.cmake).
#
# PYLINK_EXECUTABLE names the program if it is not in PATH. Targets of this folder and of those that are
# added after it get the rules.

get_property(_pylink_languages GLOBAL PROPERTY ENABLED_LANGUAGES)
if(NOT "CUDA" IN_LIST _pylink_languages)
  return() # project() without CUDA, which may come later
endif()
if(NOT CMAKE_CUDA_COMPILER_ID MATCHES "^(NVIDIA|Clang)$")
  message(WARNING "PylinkDeviceLink needs nvcc or clang; the CUDA compiler is ${CMAKE_CUDA_COMPILER_ID}")
  return()
endif()
find_program(PYLINK_EXECUTABLE pylink DOC "The program that does device-link steps")
if(NOT PYLINK_EXECUTABLE)
  message(FATAL_ERROR "PylinkDeviceLink: pylink was not found; set PYLINK_EXECUTABLE")
endif()

if(CMAKE_CUDA_COMPILER_ID STREQUAL "Clang")
  # CMake itself starts nvlink and fatbinary, the latter in words that CUDA 13 does not know. Those of an overlay
  # take them.
  set(_pylink_overlay "${CMAKE_BINARY_DIR}/CMakeFiles/pylink-toolkit")
  if(NOT CMAKE_CUDA_FATBINARY STREQUAL "${_pylink_overlay}/bin/fatbinary")
    execute_process(
      COMMAND "${PYLINK_EXECUTABLE}" toolkit-overlay "${_pylink_overlay}"
              --cuda "${CMAKE_CUDA_COMPILER_LIBRARY_ROOT}"
      OUTPUT_QUIET ERROR_VARIABLE _pylink_said RESULT_VARIABLE _pylink_status)
    if(NOT _pylink_status EQUAL 0)
      message(FATAL_ERROR "PylinkDeviceLink: ${_pylink_said}")
    endif()
    set(CMAKE_CUDA_DEVICE_LINKER "${_pylink_overlay}/bin/nvlink")
    set(CMAKE_CUDA_FATBINARY "${_pylink_overlay}/bin/fatbinary")
  endif()
  return()
endif()

# What is left to nvcc goes to that of the project.
get_filename_component(_pylink_toolkit "${CMAKE_CUDA_COMPILER}" DIRECTORY)
get_filename_component(_pylink_toolkit "${_pylink_toolkit}" DIRECTORY)
foreach(_pylink_kind EXECUTABLE LIBRARY)
  string(REPLACE
    "<CMAKE_CUDA_COMPILER>" "\"${PYLINK_EXECUTABLE}\" dlink --cuda \"${_pylink_toolkit}\""
    CMAKE_CUDA_DEVICE_LINK_${_pylink_kind} "${CMAKE_CUDA_DEVICE_LINK_${_pylink_kind}}")
endforeach()
unset(_pylink_languages)
unset(_pylink_toolkit)
unset(_pylink_kind)

if(NOT PYLINK_SHARED_LIBRARIES)
  return()
endif()
if(CMAKE_VERSION VERSION_LESS 3.19)
  message(FATAL_ERROR "PylinkDeviceLink: PYLINK_SHARED_LIBRARIES needs CMake 3.19")
endif()
# What the user set stays.
if(NOT DEFINED CMAKE_CUDA_SEPARABLE_COMPILATION)
  set(CMAKE_CUDA_SEPARABLE_COMPILATION ON)
endif()
if(NOT DEFINED CMAKE_POSITION_INDEPENDENT_CODE)
  set(CMAKE_POSITION_INDEPENDENT_CODE ON)
endif()
# One CUDA runtime for all of the process: each static one would know its own kernels only.
if(NOT DEFINED CMAKE_CUDA_RUNTIME_LIBRARY)
  set(CMAKE_CUDA_RUNTIME_LIBRARY Shared)
endif()
find_package(CUDAToolkit REQUIRED)

get_property(_pylink_deferred GLOBAL PROPERTY PYLINK_DEFERRED)
if(_pylink_deferred)
  return()
endif()
set_property(GLOBAL PROPERTY PYLINK_DEFERRED ON)
define_property(TARGET PROPERTY PYLINK_OPEN
  BRIEF_DOCS "Whether the users of a shared library link its device code" FULL_DOCS "Set by PylinkDeviceLink")

# All targets of a folder and below it.
function(_pylink_targets folder result)
  get_property(targets DIRECTORY "${folder}" PROPERTY BUILDSYSTEM_TARGETS)
  get_property(folders DIRECTORY "${folder}" PROPERTY SUBDIRECTORIES)
  foreach(below IN LISTS folders)
    _pylink_targets("${below}" more)
    list(APPEND targets ${more})
  endforeach()
  set(${result} ${targets} PARENT_SCOPE)
endfunction()

# The targets that a target links, at any depth, without itself; names in generator expressions count.
function(_pylink_reach target result)
  set(found)
  set(todo ${target})
  while(todo)
    list(POP_FRONT todo name)
    if(NOT TARGET ${name})
      continue()
    endif()
    get_target_property(aliased ${name} ALIASED_TARGET)
    if(aliased)
      set(name ${aliased})
    endif()
    if(name IN_LIST found)
      continue()
    endif()
    list(APPEND found ${name})
    foreach(property LINK_LIBRARIES INTERFACE_LINK_LIBRARIES)
      get_target_property(names ${name} ${property})
      if(names)
        string(REGEX REPLACE "\\$<[A-Z_]+:|>|::@[^;]*" "" names "${names}")
        list(APPEND todo ${names})
      endif()
    endforeach()
  endwhile()
  list(REMOVE_ITEM found ${target})
  set(${result} ${found} PARENT_SCOPE)
endfunction()

# Whether a target has CUDA sources, its own or those of object libraries.
function(_pylink_has_cuda target result)
  set(${result} OFF PARENT_SCOPE)
  get_target_property(sources ${target} SOURCES)
  get_target_property(linked ${target} LINK_LIBRARIES)
  string(REGEX MATCHALL "TARGET_OBJECTS:[^>]+" objects "${sources}")
  list(TRANSFORM objects REPLACE "TARGET_OBJECTS:" "")
  foreach(name IN LISTS linked objects)
    if(TARGET ${name})
      get_target_property(type ${name} TYPE)
      if(type STREQUAL OBJECT_LIBRARY)
        get_target_property(more ${name} SOURCES)
        list(APPEND sources ${more})
      endif()
    endif()
  endforeach()
  if(sources MATCHES "\\.cu(;|$)")
    set(${result} ON PARENT_SCOPE)
  endif()
endfunction()

function(_pylink_finish)
  _pylink_targets("${CMAKE_SOURCE_DIR}" targets)
  foreach(target IN LISTS targets)
    get_target_property(type ${target} TYPE)
    get_target_property(chosen ${target} CUDA_RESOLVE_DEVICE_SYMBOLS)
    _pylink_has_cuda(${target} has_cuda)
    if(NOT type STREQUAL SHARED_LIBRARY OR NOT has_cuda OR chosen)
      continue()
    endif()
    set_target_properties(${target} PROPERTIES CUDA_RESOLVE_DEVICE_SYMBOLS OFF PYLINK_OPEN ON)
    set_property(TARGET ${target} APPEND PROPERTY EXPORT_PROPERTIES PYLINK_OPEN)
    set(name "$<TARGET_NAME:${target}>") # in an exported file the name with its namespace
    target_link_options(${target} INTERFACE
      "$<DEVICE_LINK:SHELL:-L$<TARGET_FILE_DIR:${name}> -l:$<TARGET_FILE_NAME:${name}>>")
  endforeach()
  foreach(target IN LISTS targets)
    get_target_property(type ${target} TYPE)
    if(NOT type MATCHES "^(EXECUTABLE|SHARED_LIBRARY|MODULE_LIBRARY|STATIC_LIBRARY)$")
      continue()
    endif()
    get_target_property(is_open ${target} PYLINK_OPEN)
    get_target_property(chosen ${target} CUDA_RESOLVE_DEVICE_SYMBOLS)
    _pylink_reach(${target} reached)
    set(open)
    foreach(name IN LISTS reached)
      get_target_property(one ${name} PYLINK_OPEN)
      if(one)
        list(APPEND open ${name})
      endif()
    endforeach()
    if(is_open AND open)
      # What it links privately its users have to register as well.
      set_property(TARGET ${target} APPEND PROPERTY INTERFACE_LINK_LIBRARIES ${open})
    elseif(open AND type STREQUAL EXECUTABLE AND chosen MATCHES "NOTFOUND$")
      set_target_properties(${target} PROPERTIES CUDA_RESOLVE_DEVICE_SYMBOLS ON)
      target_link_libraries(${target} PRIVATE CUDA::cudart) # the code that registers calls it
    endif()
  endforeach()
endfunction()
cmake_language(DEFER DIRECTORY "${CMAKE_SOURCE_DIR}" CALL _pylink_finish)
