// quiet_write.hpp - writes to files without a signal for the caller: one whose size limit is reached raises SIGXFSZ, a
// pipe without a reader SIGPIPE, a terminal of another job SIGTTOU. Each would end or stop the process.
#pragma once

#include <cstddef>

namespace lockstep::lib {

// Writes all bytes. Returns 0, or the system's error code.
int write_quietly(int fd, const char* bytes, size_t count) noexcept;

// Opens a file to append to, creating it if it is missing: a regular file, a terminal, /dev/null or /dev/full. Anything
// else could block or end a call. Returns -1 and the reason if it cannot.
int open_to_append(const char* path, int& code, const char*& reason) noexcept;

}  // namespace lockstep::lib
