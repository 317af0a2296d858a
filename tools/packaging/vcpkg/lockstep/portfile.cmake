# An overlay port that builds the tree it lies in: vcpkg install lockstep --overlay-ports=tools/packaging/vcpkg
get_filename_component(SOURCE_PATH "${CURRENT_PORT_DIR}/../../../.." ABSOLUTE)

set(cuda disabled)
if("cuda" IN_LIST FEATURES)
  set(cuda enabled)
  # A static library looks for the module where it was installed first, which is not where vcpkg moves it.
  vcpkg_check_linkage(ONLY_DYNAMIC_LIBRARY)
endif()
vcpkg_configure_meson(
  SOURCE_PATH "${SOURCE_PATH}"
  OPTIONS -Dcuda=${cuda} -Dtools=disabled -Dtests=disabled -Dpython=disabled -Dranks=disabled
)
vcpkg_install_meson()
vcpkg_fixup_pkgconfig()
# The file is moved to a folder that is one nearer to the prefix, which it finds relative to itself.
vcpkg_cmake_config_fixup(CONFIG_PATH lib/cmake/lockstep)
vcpkg_replace_string("${CURRENT_PACKAGES_DIR}/share/lockstep/lockstepConfig.cmake" "/../../.." "/../..")
file(REMOVE_RECURSE "${CURRENT_PACKAGES_DIR}/debug/include" "${CURRENT_PACKAGES_DIR}/debug/share")
vcpkg_install_copyright(FILE_LIST "${SOURCE_PATH}/LICENSE" "${SOURCE_PATH}/tools/NOTICES.md")
