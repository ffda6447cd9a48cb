# What find_package(refrain CONFIG) finds after an install.

include(CMakePackageConfigHelpers)
set(package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/refrain")

configure_package_config_file(cmake/refrain-config.cmake.in
  "${CMAKE_CURRENT_BINARY_DIR}/refrain-config.cmake"
  INSTALL_DESTINATION "${package_dir}"
  NO_SET_AND_CHECK_MACRO NO_CHECK_REQUIRED_COMPONENTS_MACRO)
# Before 1.0 a minor version may break its users.
write_basic_package_version_file("${CMAKE_CURRENT_BINARY_DIR}/refrain-config-version.cmake"
  COMPATIBILITY SameMinorVersion)

install(EXPORT refrain NAMESPACE refrain:: FILE refrain-targets.cmake DESTINATION "${package_dir}")
install(FILES
  "${CMAKE_CURRENT_BINARY_DIR}/refrain-config.cmake"
  "${CMAKE_CURRENT_BINARY_DIR}/refrain-config-version.cmake"
  DESTINATION "${package_dir}")
install(FILES LICENSE NOTICE DESTINATION "${CMAKE_INSTALL_DOCDIR}")
