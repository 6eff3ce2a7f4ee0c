# Compiles several sources as one, which halves a build from nothing: most of it is reading the same headers.
# CMake's own CMAKE_UNITY_BUILD names sources by absolute paths, so that no compiler cache helps a second
# checkout; these name them by the path that an include of theirs would have.
set(UNDERKEEL_JOIN "0" CACHE STRING "How many sources to compile as one; 0: none, for daily work")

# underkeel_join(NAME ROOT LIST): replaces the .cpp files in the variable LIST, all below the include
# folder ROOT, by files that include them. Those in UNDERKEEL_UNJOINED, paths below ROOT, stay as they are.
function(underkeel_join name root list_name)
  if(UNDERKEEL_JOIN LESS 2)
    return()
  endif()
  set(left "")
  set(number 0)
  foreach(source IN LISTS ${list_name})
    cmake_path(RELATIVE_PATH source BASE_DIRECTORY "${root}" OUTPUT_VARIABLE path)
    if(NOT path MATCHES "\\.cpp$" OR path IN_LIST UNDERKEEL_UNJOINED)
      list(APPEND left "${source}")
      continue()
    endif()
    math(EXPR batch "${number} / ${UNDERKEEL_JOIN}")
    string(APPEND text_${batch} "#include \"${path}\"\n")
    math(EXPR number "${number} + 1")
  endforeach()
  if(number GREATER 0)
    foreach(i RANGE ${batch})
      set(joined "${CMAKE_BINARY_DIR}/joined/${name}_${i}.cpp")
      file(CONFIGURE OUTPUT "${joined}" CONTENT "${text_${i}}" @ONLY)
      list(APPEND left "${joined}")
    endforeach()
  endif()
  set(${list_name} "${left}" PARENT_SCOPE)
endfunction()
