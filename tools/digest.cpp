// digest.cpp - lockstep digest FILE.npy ...: 128 bits of each array that tell apart what has other bits.
#include <memory>

#include "call.hpp"

namespace lockstep::tool {

void digest_command(command root, action& chosen) {
  struct options {
    std::vector<std::string> inputs;
    bool bf16 = false;
  };
  auto of = std::make_shared<options>();
  auto command = root.add_command("digest", "Print 128 bits of each array, which are the same if its bits are");
  command.add("input", of->inputs, "the arrays, - for stdin").required().type_name("FILE.npy");
  command.add("--bf16", of->bf16, "2-byte integers in the files are bfloat16 bits");
  command.when_called([&chosen, of] {
    chosen = [of] {
      const context cpu({.backend = "cpu", .variant = {}, .isa = {}});
      for (const std::string& name : of->inputs) {
        const array in = in_c_order(cpu, read_npy(name));
        uint64_t words[2];
        check(lockstep_digest(cpu, dtype_of(in.header, of->bf16), in.header.elements(), in.data, words));
        print("{:016x}{:016x}  {} {}  {}\n", words[0], words[1], in.header.descr, shape_text(in.header.shape), name);
      }
      return 0;
    };
  });
}

}  // namespace lockstep::tool
