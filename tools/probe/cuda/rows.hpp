// rows.hpp - the rows that each file of probes measures.
#pragma once

namespace lockstep::probe {
class bench;

void device_facts(bench& b);       // entry.cu
void e1_local(bench& b);           // registers.cu
void e13_occupancy(bench& b);      //
void e2_static_dynamic(bench& b);  // shared.cu
void e3_banks(bench& b);           //
void e12_elements(bench& b);       //
void e4_constant(bench& b);        // cached.cu
void e5_read_only(bench& b);       //
void e6_texture(bench& b);         // texture.cu
void e7_global(bench& b);          // static.cu
void e8_coalescing(bench& b);      // global.cu
void e9_host(bench& b);            // host.cu
void e10_ladder(bench& b);         // ladder.cu
void e11_shuffle(bench& b);        // shuffle.cu
void e14_limits(bench& b);         // limits.cu

}  // namespace lockstep::probe
