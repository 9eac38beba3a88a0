/* Compiled by relaxir. Every function has the same form:
 *
 *   int64_t f(void *const *tensors, const int64_t *symbols, void *arena, int64_t arena_bytes)
 *
 * tensors:  data pointers of inputs and state, then prepared weights, then outputs; contiguous, row-major, each element at its
 *           natural alignment; a boolean is one byte, 0 or 1.
 * symbols:  values of the symbolic dimensions, in the order below.
 * arena:    scratch memory, 64-byte aligned; may be NULL with arena_bytes 0.
 * returns:  0 when done; n > 0: nothing was done, call again with an arena of n bytes; -(i + 1): check i below failed;
 *           -(i + 1) - 2^32: it failed before anything was done.
 *           Texts of checks have values of expressions in braces.
 *           INT64_MIN: there is no memory for a buffer whose size depends on data.
 *           Of code compiled with checked=True, -(1 << 62): an access was outside of its buffer, and left the memory alone.
 *
 * State is read and updated in place; the caller gives it its first value. The functions keep nothing themselves and may run in
 * several threads at once, with a state each. Prepared weights come from
 * relaxir's `prepare` (a safetensors file whose metadata key relaxir.fingerprint must be the one below).
 */

#pragma once
#include <stdint.h>

#define RELAXIR_FINGERPRINT "6e9da194ffdfdf542acb3f2ef06376c5c07afb8916c4fca664e6dd7f7f26c3a2"

#ifdef __cplusplus
extern "C" {
#endif

/* entry main
 *   symbols[0]: n, from 0 to any
 *   tensors[0]: input x: f32[n, 4]
 *   tensors[1]: input rows: i64[n]
 *   tensors[2]: state count: f32[1]
 *   tensors[3]: weight scale: f32[8]
 *   tensors[4]: weight fc.weight.permute_dims.pack_weight: f32[1, 4, 8]
 *   tensors[5]: output y: f32[n, 8]
 *   check 0: -:12:8: expected indices in [-size, size)
 */
int64_t relaxir_main(void *const *tensors, const int64_t *symbols, void *arena, int64_t arena_bytes);

#ifdef __cplusplus
}
#endif
