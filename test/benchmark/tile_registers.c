// What multiplying tile registers takes, with as many registers in use as a function's name says, and as many reads as that needs.
#include <immintrin.h>
#include <stddef.h>

static _Alignas(64) char data[8192];

// Eight registers of 16 rows of 64 bytes. Not a variable of the function: compilers see eight of its bytes read.
static const _Alignas(64) unsigned char shape[64] = {
    [0] = 1,
    [16] = 64, [18] = 64, [20] = 64, [22] = 64, [24] = 64, [26] = 64, [28] = 64, [30] = 64,
    [48] = 16, [49] = 16, [50] = 16, [51] = 16, [52] = 16, [53] = 16, [54] = 16, [55] = 16,
};

#define READ(tile, place) _tile_loadd(tile, data + 1024 * place, 64);
#define MULTIPLY(sum, left, right) _tile_dpbf16ps(sum, left, right);

#define LOOP(name, body)                      \
    void name(size_t rounds) {                \
        _tile_loadconfig(shape);              \
        for (size_t r = 0; r < rounds; r++) { \
            body                              \
        }                                     \
        _tile_release();                      \
    }

// Two rows of two sums; each factor has two registers, the left one has one, both have one.
LOOP(use_8, READ(4, 0) READ(6, 2) MULTIPLY(0, 4, 6) READ(7, 3) MULTIPLY(1, 4, 7) READ(5, 1) MULTIPLY(3, 5, 7) MULTIPLY(2, 5, 6))
LOOP(use_7, READ(4, 0) READ(6, 2) MULTIPLY(0, 4, 6) READ(7, 3) MULTIPLY(1, 4, 7) READ(4, 1) MULTIPLY(3, 4, 7) MULTIPLY(2, 4, 6))
LOOP(use_6, READ(4, 0) READ(5, 2) MULTIPLY(0, 4, 5) READ(5, 3) MULTIPLY(1, 4, 5) READ(4, 1) MULTIPLY(3, 4, 5) READ(5, 2) MULTIPLY(2, 4, 5))
// One row of two sums, twice; the right factor has two registers, or one.
LOOP(use_5, READ(4, 0) READ(5, 2) MULTIPLY(0, 4, 5) READ(6, 3) MULTIPLY(1, 4, 6) READ(4, 1) READ(5, 2) MULTIPLY(0, 4, 5) READ(6, 3) MULTIPLY(1, 4, 6))
LOOP(use_4, READ(4, 0) READ(5, 2) MULTIPLY(0, 4, 5) READ(5, 3) MULTIPLY(1, 4, 5) READ(4, 1) READ(5, 2) MULTIPLY(0, 4, 5) READ(5, 3) MULTIPLY(1, 4, 5))
