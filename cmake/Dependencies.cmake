# What memwatch links to, found by pkg-config; what is missing is named with its Debian package.
find_package(PkgConfig QUIET)
if(NOT PKG_CONFIG_FOUND)
  message(FATAL_ERROR "pkg-config is missing. On Debian: apt-get install pkg-config")
endif()

# MODULE may name the oldest version that will do, as in libdw>=0.188. A program with the property MEMWATCH_STATIC is linked to
# the static library, by name, with what that itself needs behind it. MEMWATCH_LIBRARIES: all of them, for --version.
function(mw_dependency target module package)
  pkg_check_modules(${target} QUIET IMPORTED_TARGET ${module})
  if(NOT ${target}_FOUND)
    message(FATAL_ERROR "${module} is missing or too old (pkg-config does not find it). On Debian 12 or later: \
apt-get install ${package}")
  endif()
  add_library(dep_${target} INTERFACE)
  set(static $<BOOL:$<TARGET_PROPERTY:MEMWATCH_STATIC>>)
  target_link_libraries(dep_${target} INTERFACE $<$<NOT:${static}>:PkgConfig::${target}>)
  foreach(flag ${${target}_STATIC_LDFLAGS})
    target_link_libraries(dep_${target} INTERFACE $<${static}:${flag}>)
  endforeach()
  string(REGEX REPLACE "[<>=].*" "" name ${module})
  set(MEMWATCH_LIBRARIES "${MEMWATCH_LIBRARIES}${name} ${${target}_VERSION}, " PARENT_SCOPE)
endfunction()

mw_dependency(unwind_ptrace libunwind-ptrace>=1.6 libunwind-dev)
mw_dependency(unwind_generic libunwind-generic>=1.6 libunwind-dev)
mw_dependency(dw libdw>=0.188 libdw-dev)
mw_dependency(elf libelf>=0.188 libelf-dev)
mw_dependency(capstone capstone>=4 libcapstone-dev)
mw_dependency(jansson jansson libjansson-dev)
mw_dependency(xxhash libxxhash libxxhash-dev)
mw_dependency(zstd libzstd libzstd-dev)
mw_dependency(sqlite3 sqlite3>=3.36 libsqlite3-dev)
mw_dependency(zlib zlib zlib1g-dev)
mw_dependency(lzma liblzma liblzma-dev)
mw_dependency(ncursesw ncursesw libncurses-dev)

# libiberty comes without a pkg-config file.
find_path(LIBIBERTY_INCLUDE demangle.h PATH_SUFFIXES libiberty)
find_library(LIBIBERTY_LIBRARY iberty)
if(NOT LIBIBERTY_INCLUDE OR NOT LIBIBERTY_LIBRARY)
  message(FATAL_ERROR "libiberty (demangle.h, libiberty.a) is missing. On Debian: apt-get install libiberty-dev")
endif()
add_library(dep_iberty INTERFACE)
target_include_directories(dep_iberty SYSTEM INTERFACE ${LIBIBERTY_INCLUDE})
target_link_libraries(dep_iberty INTERFACE ${LIBIBERTY_LIBRARY})
string(APPEND MEMWATCH_LIBRARIES libiberty)

# What not every memwatch has.
if(MEMWATCH_NETWORK)
  set(all ${MEMWATCH_LIBRARIES})
  set(MEMWATCH_LIBRARIES "")
  mw_dependency(microhttpd libmicrohttpd>=0.9.70 libmicrohttpd-dev)
  mw_dependency(curl libcurl>=7.85 libcurl4-openssl-dev)
  set(MEMWATCH_NETWORK_LIBRARIES ${MEMWATCH_LIBRARIES})
  set(MEMWATCH_LIBRARIES ${all})
endif()

find_package(Threads REQUIRED)
