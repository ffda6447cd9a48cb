# refrain_library(<folder> [LINKS target...] [PRIVATE_LINKS target...])
#
# Makes the library of the folder it is called from: target refrain_<folder>, used as
# refrain::<folder>. LINKS are the targets that its headers may include, PRIVATE_LINKS those that
# only its sources may. Each folder has its own include directory, so a header outside these lists
# is not found: the compiler keeps the architecture.
function(refrain_library folder)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "LINKS;PRIVATE_LINKS")
  file(GLOB_RECURSE headers CONFIGURE_DEPENDS include/*.hpp)
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS src/*.cpp)

  set(target refrain_${folder})
  if(sources)
    add_library(${target} STATIC ${sources})
    set(public PUBLIC)
    target_link_libraries(${target} PRIVATE ${arg_PRIVATE_LINKS})
    set_target_properties(${target} PROPERTIES
      POSITION_INDEPENDENT_CODE ON
      CXX_VISIBILITY_PRESET hidden
      VISIBILITY_INLINES_HIDDEN ON)
  else()
    add_library(${target} INTERFACE)
    set(public INTERFACE)
  endif()
  add_library(refrain::${folder} ALIAS ${target})
  target_compile_features(${target} ${public} cxx_std_20)
  target_link_libraries(${target} ${public} ${arg_LINKS})
  target_sources(${target} ${public} FILE_SET HEADERS BASE_DIRS include FILES ${headers})

  set_target_properties(${target} PROPERTIES EXPORT_NAME ${folder})
  if(PROJECT_IS_TOP_LEVEL)
    install(TARGETS ${target} EXPORT refrain
      ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}"
      FILE_SET HEADERS DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}")
  endif()
endfunction()
