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
