# What memwatch links to, found by pkg-config; what is missing is named with its Debian package.
find_package(PkgConfig QUIET)
if(NOT PKG_CONFIG_FOUND)
  message(FATAL_ERROR "pkg-config is missing. On Debian: apt-get install pkg-config")
endif()

function(mw_dependency target module package)
  pkg_check_modules(${target} QUIET IMPORTED_TARGET ${module})
  if(NOT ${target}_FOUND)
    message(FATAL_ERROR "${module} is missing (pkg-config does not find it). On Debian: apt-get install ${package}")
  endif()
  add_library(dep_${target} INTERFACE)
  target_link_libraries(dep_${target} INTERFACE PkgConfig::${target})
endfunction()

mw_dependency(unwind_ptrace libunwind-ptrace libunwind-dev)
mw_dependency(unwind_generic libunwind-generic libunwind-dev)
mw_dependency(dw libdw libdw-dev)
mw_dependency(elf libelf libelf-dev)
mw_dependency(capstone capstone libcapstone-dev)
mw_dependency(jansson jansson libjansson-dev)
mw_dependency(xxhash libxxhash libxxhash-dev)

# libiberty comes without a pkg-config file.
find_path(LIBIBERTY_INCLUDE demangle.h PATH_SUFFIXES libiberty)
find_library(LIBIBERTY_LIBRARY iberty)
if(NOT LIBIBERTY_INCLUDE OR NOT LIBIBERTY_LIBRARY)
  message(FATAL_ERROR "libiberty (demangle.h, libiberty.a) is missing. On Debian: apt-get install libiberty-dev")
endif()
add_library(dep_iberty INTERFACE)
target_include_directories(dep_iberty SYSTEM INTERFACE ${LIBIBERTY_INCLUDE})
target_link_libraries(dep_iberty INTERFACE ${LIBIBERTY_LIBRARY})

find_package(Threads REQUIRED)
