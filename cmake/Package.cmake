# The unit for systemd, and CPack's .deb. What scripts/package makes.

# With the prefix of this installation, which need not be the configured one.
set(packaging ${CMAKE_CURRENT_LIST_DIR}/package)
install(CODE "set(bindir \${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_BINDIR})")
install(CODE "configure_file(${packaging}/memwatch@.service.in ${PROJECT_BINARY_DIR}/memwatch@.service @ONLY)")
install(FILES ${PROJECT_BINARY_DIR}/memwatch@.service DESTINATION lib/systemd/system)

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME memwatch)
set(CPACK_PACKAGE_VERSION ${PROJECT_VERSION})
set(CPACK_PACKAGE_CONTACT "The memwatch authors <memwatch@packages.invalid>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "find memory leaks in running processes")
set(CPACK_PACKAGE_DESCRIPTION "\
Attaches to a process, watches its allocations for a while, detaches, and
reports which stacks allocated memory in that time and never freed it. The
process needs no restart, no recompilation and no preloaded library, and
goes on as it was.")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_RELEASE 1)
set(CPACK_DEBIAN_PACKAGE_SECTION devel)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_DEPENDS "libcap2-bin, passwd") # for postinst
set(CPACK_DEBIAN_PACKAGE_SUGGESTS "libdebuginfod1")
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_DEBIAN_PACKAGE_CONTROL_EXTRA ${packaging}/postinst ${packaging}/prerm ${packaging}/postrm)
set(CPACK_PRE_BUILD_SCRIPTS ${packaging}/complete.cmake)
include(CPack)
