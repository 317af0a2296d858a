// fake_module.hpp - what fake_nccl.cpp needs of the devices of fake_module.cpp.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>

namespace fake {

struct ticket {
  bool done = false;
};

std::recursive_mutex& lock();  // held for everything below
int current_device();
int device_of_memory(const void* pointer);
char* memory(const void* pointer);  // that can be read and written
bool is_stream_of(void* stream, int device);
// The stream's next step: it runs once `before` is done, if that is not NULL.
void enqueue(void* stream, std::function<void()> work, std::shared_ptr<ticket> before);
uint64_t drawn();

}  // namespace fake
