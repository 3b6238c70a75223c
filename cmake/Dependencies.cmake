# What memwatch links to, found by pkg-config; what is missing is named with its Debian package.
find_package(PkgConfig QUIET)
if(NOT PKG_CONFIG_FOUND)
  message(FATAL_ERROR "pkg-config is missing. On Debian: apt-get install pkg-config")
endif()

# MODULE may name the oldest version that will do, as in libdw>=0.188.
function(mw_dependency target module package)
  pkg_check_modules(${target} QUIET IMPORTED_TARGET ${module})
  if(NOT ${target}_FOUND)
    message(FATAL_ERROR "${module} is missing or too old (pkg-config does not find it). On Debian 12 or later: \
apt-get install ${package}")
  endif()
  add_library(dep_${target} INTERFACE)
  if(MEMWATCH_STATIC) # by name, with what a static library itself needs behind it
    target_include_directories(dep_${target} SYSTEM INTERFACE ${${target}_STATIC_INCLUDE_DIRS})
    target_link_libraries(dep_${target} INTERFACE ${${target}_STATIC_LDFLAGS})
  else()
    target_link_libraries(dep_${target} INTERFACE PkgConfig::${target})
  endif()
endfunction()

mw_dependency(unwind_ptrace libunwind-ptrace>=1.6 libunwind-dev)
mw_dependency(unwind_generic libunwind-generic>=1.6 libunwind-dev)
mw_dependency(dw libdw>=0.188 libdw-dev)
mw_dependency(elf libelf>=0.188 libelf-dev)
mw_dependency(capstone capstone>=4 libcapstone-dev)
mw_dependency(jansson jansson libjansson-dev)
mw_dependency(xxhash libxxhash libxxhash-dev)
mw_dependency(zstd libzstd libzstd-dev)
mw_dependency(zlib zlib zlib1g-dev)
mw_dependency(lzma liblzma liblzma-dev)
mw_dependency(ncursesw ncursesw libncurses-dev)
if(MEMWATCH_NETWORK)
  mw_dependency(microhttpd libmicrohttpd>=0.9.70 libmicrohttpd-dev)
  mw_dependency(curl libcurl>=7.85 libcurl4-openssl-dev)
endif()

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
