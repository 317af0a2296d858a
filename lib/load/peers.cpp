// peers.cpp - lockstep_peers_get and lockstep_peers_locate: what liblockstep_ranks asks of backends (backend_peer.h).
#include "../call/run.hpp"
#include "lockstep/backend_peer.h"

using namespace lockstep::lib;
extern "C" {
lockstep_status lockstep_peers_get(const char* backend, const lockstep_peer_table** table, int32_t* device) {
  return guarded([&] {
    if (backend == nullptr || table == nullptr || device == nullptr)
      fail(LOCKSTEP_INVALID_ARGUMENT, "backend, table or device is NULL; pass a name and the places for the answers");
    backend_name named = parse_backend(backend, "backend");
    if (named.is_auto()) fail(LOCKSTEP_INVALID_ARGUMENT, "backend is \"auto\"; name the one that a rank computes on");
    *table = named.entry->peers();
    *device = named.device;
  });
}
lockstep_status lockstep_peers_locate(const void* pointer, lockstep_memory* kind, const lockstep_peer_table** table,
                                      int32_t* device) {
  return guarded([&] {
    if (pointer == nullptr || kind == nullptr || table == nullptr || device == nullptr)
      fail(LOCKSTEP_INVALID_ARGUMENT, "pointer, kind, table or device is NULL; pass an address and the places");
    const array_place at = place_of(pointer);
    *kind = at.kind;
    *table = at.owner != nullptr ? at.owner->peers() : nullptr;
    *device = at.device;
  });
}
}
