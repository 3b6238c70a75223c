# One library in the forms that debug information comes in. Called with LIBRARY, OUT and OBJCOPY, XZ.
function(run)
  execute_process(COMMAND ${ARGV} WORKING_DIRECTORY ${OUT} COMMAND_ERROR_IS_FATAL ANY)
endfunction()

file(MAKE_DIRECTORY ${OUT})
run(${OBJCOPY} --only-keep-debug ${LIBRARY} fixture.debug)
run(${OBJCOPY} --strip-all ${LIBRARY} libbare.so)
run(${OBJCOPY} --strip-all --add-gnu-debuglink=fixture.debug ${LIBRARY} liblinked.so)
run(${OBJCOPY} --strip-debug fixture.debug mini)
run(${XZ} --force --keep mini)
run(${OBJCOPY} --strip-all --add-section .gnu_debugdata=mini.xz ${LIBRARY} libmini.so)
# By zstd, where objcopy knows it. CMake's may be LLVM's.
find_program(GNU_OBJCOPY objcopy)
execute_process(COMMAND ${GNU_OBJCOPY} --help OUTPUT_VARIABLE help)
if(help MATCHES "zstd")
  run(${GNU_OBJCOPY} --compress-debug-sections=zstd fixture.debug fixture.zstd)
  run(${OBJCOPY} --strip-all --add-gnu-debuglink=fixture.zstd ${LIBRARY} libzstdlinked.so)
  run(${GNU_OBJCOPY} --compress-debug-sections=zstd ${LIBRARY} libzstd.so)
  # Without a build-id the checksum counts.
  run(${OBJCOPY} --remove-section=.note.gnu.build-id --strip-all --add-gnu-debuglink=fixture.zstd ${LIBRARY}
      libzstdchecked.so)
endif()
