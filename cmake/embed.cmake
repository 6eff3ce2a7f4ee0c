# Puts text files into the program as string constants. Included, it gives underkeel_embed(); as a script
# (cmake -P) it writes the source of one call.
if(CMAKE_SCRIPT_MODE_FILE)
  set(text "// Written by cmake/embed.cmake.\n#include \"${HEADER}\"\n\nnamespace ${NAMESPACE} {\n\n")
  foreach(file IN LISTS FILES)
    get_filename_component(name "${file}" NAME)
    string(REPLACE ".min.js" ".js" name "${name}")
    string(REPLACE "." "_" name "${name}")
    file(READ "${file}" content)
    string(FIND "${content}" ")underkeel\"" end)
    if(NOT end EQUAL -1)
      message(FATAL_ERROR "${file} holds the end mark of its own string constant")
    endif()
    string(APPEND text "const std::string_view ${name} = R\"underkeel(${content})underkeel\";\n")
  endforeach()
  file(WRITE "${OUTPUT}" "${text}\n}  // namespace ${NAMESPACE}\n")
  return()
endif()

# underkeel_embed(TARGET HEADER NAMESPACE FILES...): a constant NAME_EXT for each file NAME.EXT (d3_js for
# d3.min.js), as HEADER declares them.
function(underkeel_embed target header namespace)
  set(output "${CMAKE_BINARY_DIR}/embedded/${target}.cpp")
  add_custom_command(
    OUTPUT "${output}"
    COMMAND "${CMAKE_COMMAND}" "-DHEADER=${header}" "-DNAMESPACE=${namespace}" "-DFILES=${ARGN}"
            "-DOUTPUT=${output}" -P "${CMAKE_SOURCE_DIR}/cmake/embed.cmake"
    DEPENDS ${ARGN} "${CMAKE_SOURCE_DIR}/cmake/embed.cmake"
    COMMENT "Embedding files of ${target}"
    VERBATIM)
  target_sources(${target} PRIVATE "${output}")
endfunction()
