# find_package(pylink) with -Dpylink_DIR="$(pylink cmake-dir)" is the same as include(PylinkDeviceLink).
include("${CMAKE_CURRENT_LIST_DIR}/PylinkDeviceLink.cmake")
