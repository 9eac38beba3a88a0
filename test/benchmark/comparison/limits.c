// What one core and the memory can do: multiply-adds from registers, of f32 and of what products of narrower numbers are summed
// by, and bytes read from memory.
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stddef.h>
#include <time.h>
#if defined(__AVX512BF16__) || defined(__AVX512VNNI__)
#include <immintrin.h>
#endif

#ifdef __AVX512F__
typedef float vec __attribute__((vector_size(64)));
#elif defined(__AVX__)
typedef float vec __attribute__((vector_size(32)));
#else
typedef float vec __attribute__((vector_size(16)));
#endif

// 12 independent sums hide the latency (4 or 5 cycles, 2 units); with both factors they fit 16 registers.
// Variables, not an array: gcc keeps an array in memory. The result depends on all of them. Dot products are written as
// instructions: around its functions for them gcc 12 copies each sum twice in every round (0.39 of the speed, Cascade Lake).
#define ALL(f) f(0) f(1) f(2) f(3) f(4) f(5) f(6) f(7) f(8) f(9) f(10) f(11)
#define START(i) vec s##i = (float)i - (vec){};
#define STEP(i) s##i = a * s##i + b;
#define ADD(i) t += s##i;

// 2 * 12 * lanes() operations per round.
float multiply_add(size_t rounds, float seed) {
    vec a = seed - (vec){}, b = 1.0f - (vec){}, t = {};
    ALL(START)
    for (size_t r = 0; r < rounds; r++) {
        ALL(STEP)
    }
    ALL(ADD)
    return t[0];
}

#ifdef __AVX512BF16__
#define DOT(i) __asm__("vdpbf16ps %2, %1, %0" : "+v"(s##i) : "v"(a), "v"(b));

// 4 * 12 * lanes() operations per round: two products in each lane.
float dot_bf16(size_t rounds, float seed) {
    __m512bh a = (__m512bh)(seed - (vec){}), b = (__m512bh)(1.0f - (vec){});
    vec t = {};
    ALL(START)
    for (size_t r = 0; r < rounds; r++) {
        ALL(DOT)
    }
    ALL(ADD)
    return t[0];
}
#endif

#ifdef __AVX512VNNI__
#define START_BYTES(i) __m512i s##i = _mm512_set1_epi32(i);
#define DOT_BYTES(i) __asm__("vpdpbusd %2, %1, %0" : "+v"(s##i) : "v"(a), "v"(b));
#define ADD_BYTES(i) t = _mm512_add_epi32(t, s##i);

// 8 * 12 * lanes() operations per round: four products in each lane.
float dot_int8(size_t rounds, float seed) {
    __m512i a = _mm512_set1_epi8((char)(seed * 2)), b = _mm512_set1_epi8(1), t = _mm512_setzero_si512();
    ALL(START_BYTES)
    for (size_t r = 0; r < rounds; r++) {
        ALL(DOT_BYTES)
    }
    ALL(ADD_BYTES)
    return (float)_mm512_reduce_add_epi32(t);
}
#endif

#ifdef __AMX_TILE__
// Eight registers of 16 rows of 64 bytes. Not a variable of the function: compilers see eight of its bytes read.
static const _Alignas(64) unsigned char shape[64] = {
    [0] = 1,
    [16] = 64, [18] = 64, [20] = 64, [22] = 64, [24] = 64, [26] = 64, [28] = 64, [30] = 64,
    [48] = 16, [49] = 16, [50] = 16, [51] = 16, [52] = 16, [53] = 16, [54] = 16, [55] = 16,
};

// Four registers of sums, as many as two by two of factors have: 4 * 16 * 16 sums of 64 bytes, in every 16th round.
#define TILES(name, multiply)                                                   \
    float name(size_t rounds, float seed) {                                     \
        _Alignas(64) unsigned char out[1024];                                   \
        _tile_loadconfig(shape);                                                \
        for (size_t r = 0; r < rounds; r += 16) {                               \
            multiply(0, 4, 6);                                                  \
            multiply(1, 4, 7);                                                  \
            multiply(2, 5, 6);                                                  \
            multiply(3, 5, 7);                                                  \
        }                                                                       \
        _tile_stored(0, out, 64);                                               \
        _tile_release();                                                        \
        return (float)out[0] + seed;                                            \
    }

// 2 * 64 * 4 * 16 * 16 / 16 operations per round.
#ifdef __AMX_INT8__
TILES(tiles_int8, _tile_dpbssd)
#endif
// Half of these.
#ifdef __AMX_BF16__
TILES(tiles_bf16, _tile_dpbf16ps)
#endif
#endif

int lanes(void) { return sizeof(vec) / sizeof(float); }

#ifdef __linux__
#define TRIPS 20000

static _Alignas(128) atomic_int ball;

static void stay_on(int cpu) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    pthread_setaffinity_np(pthread_self(), sizeof set, &set);
}

static void wait_for(int value) {
    while (atomic_load_explicit(&ball, memory_order_acquire) != value) {}
}

static void *answer(void *cpu) {
    stay_on(*(int *)cpu);
    for (int i = 0; i < TRIPS; i++) {
        wait_for(2 * i + 1);
        atomic_store_explicit(&ball, 2 * i + 2, memory_order_release);
    }
    return NULL;
}

static void *ask(void *cpu) {
    stay_on(*(int *)cpu);
    for (int i = 0; i < TRIPS; i++) {
        atomic_store_explicit(&ball, 2 * i + 1, memory_order_release);
        wait_for(2 * i + 2);
    }
    return NULL;
}

// Seconds that a line takes from one processor to another and back: what they share decides it, a cache or less.
double round_trip(int first, int second) {
    struct timespec begin, end;
    pthread_t threads[2];
    atomic_store(&ball, 0);
    clock_gettime(CLOCK_MONOTONIC, &begin);
    pthread_create(&threads[0], NULL, ask, &first);
    pthread_create(&threads[1], NULL, answer, &second);
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], NULL);
    clock_gettime(CLOCK_MONOTONIC, &end);
    return ((end.tv_sec - begin.tv_sec) + 1e-9 * (end.tv_nsec - begin.tv_nsec)) / TRIPS;
}
#endif

// Sums memory in four streams, as a matrix-vector product reads it.
float read_all(const float *data, size_t count) {
    const vec *p = (const vec *)data;
    size_t n = count / lanes() / 4;
    vec s[4] = {};
    for (size_t i = 0; i < n; i++)
#pragma GCC unroll 4
        for (int j = 0; j < 4; j++) s[j] += p[j * n + i];
    vec t = s[0] + s[1] + s[2] + s[3];
    return t[0];
}
