// few_rows.hpp - the row of reduce for sums of few long rows, element by element.
#pragma once

#include "../device/queue.hpp"

namespace lockstep::cuda {

const char* refuses_few_rows(const lockstep_queue*, const lockstep_call* call);
int yields_few_rows(const lockstep_queue* queue, const lockstep_call* call);
lockstep_status launch_few_rows(lockstep_queue& queue, const lockstep_call& call);

inline constexpr lockstep_variant few_rows_row = {
    "few_rows",
    "sums of 2 to 16 rows of floats, element by element: a thread takes 16 bytes of each row",
    0,
    refuses_few_rows,
    yields_few_rows,
    nullptr,
    on_device<launch_few_rows>};

}  // namespace lockstep::cuda
