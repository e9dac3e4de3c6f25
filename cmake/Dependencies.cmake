# The one list of what Pleat builds against, with the oldest versions it takes. scripts/deps.sh
# configures cmake/probe with it to learn whether the system's own packages will do.

get_filename_component(PLEAT_TOP "${CMAKE_CURRENT_LIST_DIR}/.." ABSOLUTE)
set(PLEAT_PRIVATE_ROOT "${PLEAT_TOP}/.deps/root")
if(PLEAT_PROBE_SYSTEM OR NOT EXISTS "${PLEAT_PRIVATE_ROOT}")
    set(PLEAT_PRIVATE_ROOT "")
endif()
if(PLEAT_PRIVATE_ROOT)
    list(PREPEND CMAKE_PREFIX_PATH "${PLEAT_PRIVATE_ROOT}/usr")
endif()

set(THREADS_PREFER_PTHREAD_FLAG ON)
find_package(Threads REQUIRED)
find_package(ggml 0.27 REQUIRED)
find_package(llama REQUIRED)
find_package(fmt 9 REQUIRED)
find_package(nlohmann_json 3.10 REQUIRED)
find_package(yaml-cpp REQUIRED)
find_package(GTest 1.12 REQUIRED)

find_path(CLI11_INCLUDE_DIR CLI/CLI.hpp REQUIRED)
add_library(pleat_cli11 INTERFACE)
target_include_directories(pleat_cli11 SYSTEM INTERFACE "${CLI11_INCLUDE_DIR}")

find_path(MINJA_INCLUDE_DIR minja/minja.hpp REQUIRED)
add_library(pleat_minja INTERFACE)
target_include_directories(pleat_minja SYSTEM INTERFACE "${MINJA_INCLUDE_DIR}" "${MINJA_INCLUDE_DIR}/minja")
target_link_libraries(pleat_minja INTERFACE nlohmann_json::nlohmann_json)

# Some distributions split the library: then its header must see the options it was built with.
find_package(httplib 0.15 CONFIG QUIET)
if(TARGET httplib::httplib)
    add_library(pleat_httplib ALIAS httplib::httplib)
else()
    find_path(HTTPLIB_INCLUDE_DIR httplib.h REQUIRED)
    find_library(HTTPLIB_LIBRARY cpp-httplib)
    add_library(pleat_httplib INTERFACE)
    target_include_directories(pleat_httplib SYSTEM INTERFACE "${HTTPLIB_INCLUDE_DIR}")
    if(HTTPLIB_LIBRARY)
        get_filename_component(HTTPLIB_LIBRARY_DIR "${HTTPLIB_LIBRARY}" DIRECTORY)
        file(STRINGS "${HTTPLIB_LIBRARY_DIR}/pkgconfig/cpp-httplib.pc" HTTPLIB_FLAGS REGEX "^Cflags:")
        string(REGEX MATCHALL "CPPHTTPLIB_[A-Z_]+" HTTPLIB_OPTIONS "${HTTPLIB_FLAGS}")
        target_compile_definitions(pleat_httplib INTERFACE ${HTTPLIB_OPTIONS})
        target_include_directories(pleat_httplib SYSTEM INTERFACE
            "${HTTPLIB_INCLUDE_DIR}/${CMAKE_LIBRARY_ARCHITECTURE}")
        target_link_libraries(pleat_httplib INTERFACE "${HTTPLIB_LIBRARY}" Threads::Threads)
    endif()
endif()

find_path(EDIT_INCLUDE_DIR histedit.h REQUIRED)
find_library(EDIT_LIBRARY edit REQUIRED)
add_library(pleat_edit INTERFACE)
target_include_directories(pleat_edit SYSTEM INTERFACE "${EDIT_INCLUDE_DIR}")
target_link_libraries(pleat_edit INTERFACE "${EDIT_LIBRARY}")

# ggml's CPU kernels come as plug-ins that are loaded at run time, or are linked in (no directory).
set(PLEAT_BACKEND_DIR "")
if(GGML_BACKEND_DL AND GGML_BACKEND_DIR)
    set(PLEAT_BACKEND_DIR "${PLEAT_PRIVATE_ROOT}${GGML_BACKEND_DIR}")
endif()

# The programs of the same release: oracles of tests and benchmarks.
find_program(PLEAT_STOCK_BENCH llama-bench)
if(PLEAT_STOCK_BENCH)
    get_filename_component(PLEAT_STOCK_BIN "${PLEAT_STOCK_BENCH}" DIRECTORY)
endif()

# Libraries of a newer suite need that suite's C and C++ runtimes too. The programs therefore run
# under the private root's own dynamic loader, and everything is found through an old-style rpath
# (which, unlike a runpath, also serves the libraries' own dependencies).
if(PLEAT_PRIVATE_ROOT)
    file(GLOB PLEAT_LOADER "${PLEAT_PRIVATE_ROOT}/usr/lib/${CMAKE_LIBRARY_ARCHITECTURE}/ld-linux*.so.*")
    set(PLEAT_PRIVATE_LIB "${PLEAT_PRIVATE_ROOT}/usr/lib/${CMAKE_LIBRARY_ARCHITECTURE}")
    if(NOT PLEAT_LOADER)
        message(FATAL_ERROR "${PLEAT_PRIVATE_LIB} holds no dynamic loader; remove .deps and run make deps")
    endif()
    set(CMAKE_SKIP_BUILD_RPATH ON)
    add_link_options(
        "-Wl,--dynamic-linker=${PLEAT_LOADER}"
        "-Wl,--disable-new-dtags,-rpath,${PLEAT_PRIVATE_LIB}"
        "-Wl,--allow-shlib-undefined,--no-as-needed")
    link_libraries(
        "${PLEAT_PRIVATE_LIB}/libstdc++.so.6" "${PLEAT_PRIVATE_LIB}/libm.so.6"
        "${PLEAT_PRIVATE_LIB}/libgcc_s.so.1" "${PLEAT_PRIVATE_LIB}/libc.so.6")
endif()
