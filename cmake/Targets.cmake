# One static library per folder of src/, made of its *.cpp; one test program of its *_test.cpp.
include(GoogleTest)

function(pleat_folder name)
    cmake_parse_arguments(ARG "" "" "LINK" ${ARGN})
    file(GLOB sources CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/${name}/*.cpp")
    set(tests ${sources})
    list(FILTER tests INCLUDE REGEX "_test\\.cpp$")
    list(FILTER sources EXCLUDE REGEX "_test\\.cpp$|_main\\.cpp$")
    if(NOT sources)
        add_library(pleat_${name} INTERFACE)
        target_link_libraries(pleat_${name} INTERFACE ${ARG_LINK})
        return()
    endif()
    add_library(pleat_${name} STATIC ${sources})
    target_include_directories(pleat_${name} PUBLIC "${CMAKE_CURRENT_SOURCE_DIR}")
    target_link_libraries(pleat_${name} PUBLIC ${ARG_LINK})
    if(tests)
        pleat_test(pleat_${name}_test SOURCES ${tests} LINK pleat_${name} LABEL unit)
    endif()
endfunction()

# Tests that compute on two threads say so to ctest, and their OpenMP teams must not spin.
function(pleat_test name)
    cmake_parse_arguments(ARG "" "LABEL;PROCESSORS" "SOURCES;LINK;DEFINE" ${ARGN})
    add_executable(${name} ${ARG_SOURCES})
    target_link_libraries(${name} PRIVATE ${ARG_LINK} GTest::gmock GTest::gtest_main)
    target_compile_options(${name} PRIVATE -O1)
    target_include_directories(${name} PRIVATE "${PROJECT_SOURCE_DIR}/tests")  # support/*.h
    target_compile_definitions(${name} PRIVATE PLEAT_MODELS_DIR="${CMAKE_SOURCE_DIR}/models" ${ARG_DEFINE})
    if(NOT ARG_PROCESSORS)
        set(ARG_PROCESSORS 1)
    endif()
    # `make asan-test` builds no more than it runs.
    if(NOT TARGET tests_${ARG_LABEL})
        add_custom_target(tests_${ARG_LABEL})
    endif()
    add_dependencies(tests_${ARG_LABEL} ${name})
    gtest_discover_tests(${name} DISCOVERY_TIMEOUT 60
        PROPERTIES LABELS "${ARG_LABEL}" PROCESSORS ${ARG_PROCESSORS} TIMEOUT 300
                   ENVIRONMENT "OMP_WAIT_POLICY=passive")
endfunction()
