// shown.hpp - texts that a caller, a module or the environment may have made, as they may be shown on a terminal.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace lockstep {

// Control characters become '?', and a byte that is not UTF-8 becomes \xE9. The character `kept` stays.
std::string shown(std::string_view text, char kept = '\0');
// The same into a buffer: cuts between characters what does not fit, ends with '\0' and returns the length. to and from
// may be the same.
size_t copy_shown(char* to, size_t size, std::string_view from, char kept = '\0') noexcept;
// The most bytes, up to `most`, that do not end within a UTF-8 character.
size_t whole_characters(std::string_view text, size_t most) noexcept;

}  // namespace lockstep
