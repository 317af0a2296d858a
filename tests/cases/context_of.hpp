// context_of.hpp - a context of a test's own.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "lockstep/lockstep.h"

namespace lockstep::cases {

struct context_of {
  lockstep_context* self = nullptr;
  explicit context_of(const std::string& backend, int threads = 0) {
    lockstep_context_options o = lockstep_context_defaults();
    o.backend = backend.c_str();
    o.threads = threads;
    EXPECT_EQ(lockstep_context_create(&o, &self), LOCKSTEP_OK) << lockstep_last_error();
  }
  ~context_of() { lockstep_context_destroy(self); }
  context_of(const context_of&) = delete;
  context_of& operator=(const context_of&) = delete;
};

}  // namespace lockstep::cases
