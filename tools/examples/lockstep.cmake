# lockstep.cmake - include(lockstep.cmake) in a CMake project fetches lockstep, lets Meson build it while CMake configures and
# gives lockstep::lockstep. Copy this file alone; Meson, ninja and git must be installed. Inside a clone it builds that clone.
include_guard(GLOBAL)
cmake_minimum_required(VERSION 3.18)
if(POLICY CMP0135)
  cmake_policy(SET CMP0135 NEW)  # an archive's files are as new as their extraction
endif()
set(LOCKSTEP_ADDRESS "" CACHE STRING "The repository of lockstep, or a release's archive (.tar.gz); empty: the clone that lockstep.cmake lies in")
set(LOCKSTEP_TAG v0.2.0 CACHE STRING "Which release, branch or commit of the repository")

include(FetchContent)
set(way GIT_REPOSITORY "${LOCKSTEP_ADDRESS}" GIT_TAG "${LOCKSTEP_TAG}")
if(LOCKSTEP_ADDRESS MATCHES "[.]tar[.]gz$")
  set(way URL "${LOCKSTEP_ADDRESS}")
elseif(LOCKSTEP_ADDRESS STREQUAL "" AND NOT FETCHCONTENT_SOURCE_DIR_LOCKSTEP)
  get_filename_component(clone "${CMAKE_CURRENT_LIST_DIR}/../.." ABSOLUTE)
  if(NOT EXISTS "${clone}/tools/packaging/cmake/CMakeLists.txt")
    message(FATAL_ERROR "LOCKSTEP_ADDRESS is empty and ${clone} is no clone of lockstep; give -DLOCKSTEP_ADDRESS=ADDRESS, "
                        "or -DFETCHCONTENT_SOURCE_DIR_LOCKSTEP=FOLDER for sources that are there already")
  endif()
  set(FETCHCONTENT_SOURCE_DIR_LOCKSTEP "${clone}")
endif()
FetchContent_Declare(lockstep ${way} SOURCE_SUBDIR tools/packaging/cmake)
FetchContent_MakeAvailable(lockstep)
