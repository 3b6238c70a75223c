# One library a module: mw_module(NAME SOURCES … DEPENDS …) makes target mw_NAME.
add_library(mw_flags INTERFACE)
target_compile_definitions(mw_flags INTERFACE _GNU_SOURCE)
target_compile_options(mw_flags INTERFACE
  -Wall -Wextra -Wshadow -Wundef -Wformat=2
  $<$<COMPILE_LANGUAGE:C>:-Wconversion>
  $<$<COMPILE_LANGUAGE:C>:-Wstrict-prototypes>
  $<$<COMPILE_LANGUAGE:C>:-Wmissing-prototypes>)
if(MEMWATCH_WERROR)
  target_compile_options(mw_flags INTERFACE -Werror)
endif()
if(MEMWATCH_SANITIZE)
  target_compile_options(mw_flags INTERFACE -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer)
  target_link_options(mw_flags INTERFACE -fsanitize=address,undefined)
endif()
target_include_directories(mw_flags INTERFACE
  ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR})

function(mw_module name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;DEPENDS;PRIVATE_DEPENDS")
  add_library(mw_${name} STATIC ${arg_SOURCES})
  target_link_libraries(mw_${name} PUBLIC mw_flags ${arg_DEPENDS} PRIVATE ${arg_PRIVATE_DEPENDS})
endfunction()
