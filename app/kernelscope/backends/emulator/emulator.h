// CUDA's additions to C++, for the host: the kernels of kernels/*.cu compile with this header unchanged.
//
// A block runs on one thread of the host. Its CUDA threads are fibres: each has a stack, runs until it
// waits at a barrier or ends, and the next one continues. So a barrier costs a switch of stacks, some
// nanoseconds, and the order of threads is always the same. Threads of a warp meet in the same way
// wherever they exchange values. A block whose threads all wait, but not for the same barrier, is
// reported instead of hanging.
//
// Memories: global memory is that of the process; __constant__ data are globals of the library;
// __shared__ data belong to the thread of the host, hence to the block it runs.
#if __has_include(<bits/c++config.h>)
// Reading Bessel functions and the like with <math.h> is a third of the time that g++ takes for a kernel.
#include <bits/c++config.h>
#undef _GLIBCXX_USE_STD_SPEC_FUNCS
#endif
#include <math.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <type_traits>
#include <utility>

#define __device__
#define __host__
#define __global__ static __attribute__((unused))
#define EXPORTED __attribute__((visibility("default")))
#define __constant__ EXPORTED
#ifdef CHECKED  // checks.h finds them by their symbols, and one thread of the host runs all blocks
#ifdef __clang__
#define __shared__ static
#else  // an array of vectors would have a guard, although nothing is done to initialise it
#define __shared__ static __constinit
#endif
#define UNCHECKED __attribute__((no_sanitize("thread"), noinline))
#else
#define __shared__ static thread_local
#define UNCHECKED inline
#endif
#if defined(CHECKED) && !defined(__clang__)  // its branches are none of the kernel's
#define UNBRANCHED __attribute__((no_sanitize_coverage))
#define INSTRUCTION UNBRANCHED __attribute__((noinline))  // nor are its loops, which take long to unroll
#else
#define UNBRANCHED
#define INSTRUCTION
#endif
// Into any function: its branches are those of the kernel, or none.
#define ALWAYS_INLINE inline __attribute__((always_inline))
#define __noinline__ __attribute__((noinline))
#define __align__(n) __attribute__((aligned(n)))
#define __launch_bounds__(...)

namespace emulator {

constexpr int WARP = 32, MOST_THREADS = 1024, MOST_GATES = 64;
constexpr size_t STACK = 256 * 1024;

struct Dim {
    unsigned x, y, z;
};

// A barrier. Threads that wait remember its turn; the last one to come begins the next turn.
struct Gate {
    uint64_t key;  // which barrier of the block, or which lanes of the warp
    unsigned arrived, turn;
};

enum State : uint8_t { NEW, READY, WAITING, DONE };

struct Thread {
    Dim place;  // threadIdx
    Dim block;  // blockIdx
    void* stack_pointer;
    const Gate* gate;
    unsigned turn;
    State state;
    unsigned number;
};

// Values that the lanes of a warp give each other.
struct Warp {
    Gate gates[MOST_GATES];
    int gate_count;
    unsigned live;  // lanes that have not ended
    alignas(16) unsigned char values[WARP][128];
};

typedef void (*Body)(void*);

struct Block {
    Thread threads[MOST_THREADS];
    Warp warps[MOST_THREADS / WARP];
    Gate gates[16];  // bar.sync 0 to 15; __syncthreads is 0
    unsigned count, live;
    void* scheduler;  // its stack pointer while a fibre runs
    unsigned char* stacks;
    unsigned char* shared;  // dynamic shared memory
    Body body;
    void* argument;
    const char* fault;
    unsigned (*known)[MOST_THREADS];  // of checks.h: how far a thread knows another to be
};

EXPORTED inline thread_local Thread* current;
EXPORTED inline thread_local Block* block;  // one for all libraries, because of its size
inline Dim block_size, grid_size;  // of this kernel: others may run meanwhile

// What checks.h watches; in other libraries these do nothing.
namespace checks {
void begin_block(unsigned number);
void dynamic_memory(void* memory, size_t bytes);
void arrive(const Gate& gate);  // the current thread has come to a barrier
void opened(const Gate& gate);
void touch(const void* at, size_t bytes);  // a read by something that is no instruction
#ifndef CHECKED
inline void begin_block(unsigned) {}
inline void dynamic_memory(void*, size_t) {}
inline void arrive(const Gate&) {}
inline void opened(const Gate&) {}
inline void touch(const void*, size_t) {}
#endif
}  // namespace checks

// Save the registers that a function has to preserve, keep the stack pointer in *from, continue on `to`.
extern "C" void emulator_switch(void** from, void* to) __attribute__((visibility("hidden")));
#if defined(__x86_64__)
asm(R"(
.text
.p2align 4
.weak emulator_switch
.hidden emulator_switch
.type emulator_switch,@function
emulator_switch:
    pushq %rbp
    pushq %rbx
    pushq %r12
    pushq %r13
    pushq %r14
    pushq %r15
    movq %rsp, (%rdi)
    movq %rsi, %rsp
    popq %r15
    popq %r14
    popq %r13
    popq %r12
    popq %rbx
    popq %rbp
    ret
.size emulator_switch,.-emulator_switch
)");
constexpr int SAVED = 6;  // registers below the return address
#elif defined(__aarch64__)
asm(R"(
.text
.p2align 4
.weak emulator_switch
.hidden emulator_switch
.type emulator_switch,@function
emulator_switch:
    stp x29, x30, [sp, #-160]!
    stp x19, x20, [sp, #16]
    stp x21, x22, [sp, #32]
    stp x23, x24, [sp, #48]
    stp x25, x26, [sp, #64]
    stp x27, x28, [sp, #80]
    stp d8, d9, [sp, #96]
    stp d10, d11, [sp, #112]
    stp d12, d13, [sp, #128]
    stp d14, d15, [sp, #144]
    mov x9, sp
    str x9, [x0]
    mov sp, x1
    ldp x19, x20, [sp, #16]
    ldp x21, x22, [sp, #32]
    ldp x23, x24, [sp, #48]
    ldp x25, x26, [sp, #64]
    ldp x27, x28, [sp, #80]
    ldp d8, d9, [sp, #96]
    ldp d10, d11, [sp, #112]
    ldp d12, d13, [sp, #128]
    ldp d14, d15, [sp, #144]
    ldp x29, x30, [sp], #160
    ret
.size emulator_switch,.-emulator_switch
)");
#else
#error "Kernels are emulated on x86-64 and AArch64 only"
#endif

ALWAYS_INLINE void leave(State state)
{
    Thread* const self = current;
    self->state = state;
    emulator_switch(&self->stack_pointer, block->scheduler);
}

ALWAYS_INLINE void open(Gate& gate, bool ordered)
{
    gate.arrived = 0;
    ++gate.turn;
    if (ordered) checks::opened(gate);
}

// Wait until `expected` threads have come to a gate.
// ordered: what they did to memory before is then seen by all of them.
ALWAYS_INLINE void meet(Gate& gate, unsigned expected, bool ordered = true)
{
    if (ordered) checks::arrive(gate);
    if (++gate.arrived >= expected) {
        open(gate, ordered);
        return;
    }
    current->gate = &gate;
    current->turn = gate.turn;
    leave(WAITING);
}

inline void end_thread()
{
    Thread* const self = current;
    Block* const own = block;
    --own->live;
    Warp& warp = own->warps[self->number / WARP];
    warp.live &= ~(1u << self->number % WARP);
    // Those that have ended are not waited for.
    if (own->gates[0].arrived && own->gates[0].arrived >= own->live) open(own->gates[0], true);
    leave(DONE);
}

inline void fibre()
{
    block->body(block->argument);
    end_thread();
}

// Let a fibre begin or continue.
inline void resume(Block* own, Thread& thread)
{
    if (thread.state == NEW) {
        unsigned char* const top = own->stacks + (size_t)(thread.number + 1) * STACK;
#if defined(__x86_64__)
        void** at = (void**)top - 1;  // a return address there would leave the stack aligned as after a call
        *--at = (void*)fibre;
        for (int i = 0; i < SAVED; ++i) *--at = nullptr;
        thread.stack_pointer = at;
#else
        void** at = (void**)(top - 160);
        memset((void*)at, 0, 160);
        at[1] = (void*)fibre;  // x30
        thread.stack_pointer = at;
#endif
    }
    thread.state = READY;
    current = &thread;
    emulator_switch(&own->scheduler, thread.stack_pointer);
}

// Run the block that is prepared; false if its threads wait for each other for ever.
inline bool run_block(Block* own)
{
    for (unsigned ended = 0; ended < own->count;) {
        bool moved = false;
        for (unsigned i = 0; i < own->count; ++i) {
            Thread& thread = own->threads[i];
            if (thread.state == DONE || (thread.state == WAITING && thread.gate->turn == thread.turn))
                continue;
            moved = true;
            resume(own, thread);
            ended += thread.state == DONE;
        }
        if (!moved) {
            own->fault = "the threads of a block wait at different barriers, and would for ever";
            return false;
        }
        if (own->fault) return false;
    }
    return true;
}

inline void free_block(void* own)
{
    munmap(((Block*)own)->stacks, (size_t)MOST_THREADS * STACK);
    free(((Block*)own)->known);
    free(own);
}

// A thread of the host gives back its stacks when it ends, unless the library was unloaded before.
struct Ending {
    pthread_key_t key = 0;
    bool exists = !pthread_key_create(&key, free_block);  // up to 1024 in a process
    ~Ending()
    {
        if (exists) pthread_key_delete(key);
    }
    void at_end_of_thread(Block* own) const
    {
        if (exists) pthread_setspecific(key, own);
    }
};
EXPORTED inline const Ending ending;  // one for all libraries, as `block` is

inline Block* own_block()
{
    if (!block) {
        block = (Block*)calloc(1, sizeof(Block));
        const size_t size = (size_t)MOST_THREADS * STACK;
        void* const stacks = block ? mmap(nullptr, size, PROT_READ | PROT_WRITE,
                                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)
                                   : MAP_FAILED;
        if (stacks == MAP_FAILED) {
            free(block);
            return block = nullptr;
        }
        block->stacks = (unsigned char*)stacks;
        ending.at_end_of_thread(block);
    }
    return block;
}

// Give back the stacks that this thread of the host has for this library.
inline void release_block()
{
    if (!block) return;
    ending.at_end_of_thread(nullptr);
    free_block(block);
    block = nullptr;
}

inline void prepare_block(Block* own, unsigned number)
{
    const Dim where = {number % grid_size.x, number / grid_size.x % grid_size.y,
        number / grid_size.x / grid_size.y};
    own->live = own->count;
    checks::begin_block(number);
    memset(own->gates, 0, sizeof own->gates);
    for (unsigned i = 0; i < own->count; ++i) {
        Thread& thread = own->threads[i];
        thread.place = {i % block_size.x, i / block_size.x % block_size.y,
            i / block_size.x / block_size.y};
        thread.block = where;
        thread.state = NEW;
        thread.number = i;
    }
    for (unsigned i = 0; i < own->count; i += WARP) {
        Warp& warp = own->warps[i / WARP];
        const unsigned lanes = own->count - i < WARP ? own->count - i : WARP;
        warp.gate_count = 0;
        warp.live = lanes == WARP ? ~0u : (1u << lanes) - 1;
    }
}

// Run blocks first <= n < last of a launch. 0 if all is well, 1 after a fault, 2 without memory.
inline int run_blocks(
    Body body, void* argument, const unsigned* sizes, size_t shared_bytes, unsigned first, unsigned last)
{
    Block* const own = own_block();
    if (!own) return 2;
    own->count = sizes[3] * sizes[4] * sizes[5];
    own->body = body;
    own->argument = argument;
    own->fault = nullptr;
    own->shared = (unsigned char*)aligned_alloc(256, (shared_bytes / 256 + 1) * 256);
    if (!own->shared) return 2;
    checks::dynamic_memory(own->shared, shared_bytes);
    bool good = true;
    for (unsigned n = first; good && n < last; ++n) {
        prepare_block(own, n);
        good = run_block(own);
    }
    free(own->shared);
    return good ? 0 : 1;
}

UNBRANCHED inline Warp& own_warp() { return block->warps[current->number / WARP]; }
UNBRANCHED inline unsigned own_lane() { return current->number % WARP; }

// Wait for the lanes of `mask` that have not ended.
INSTRUCTION inline void meet_lanes(unsigned mask, bool ordered = true)
{
    Warp& warp = own_warp();
    int i = 0;
    while (i < warp.gate_count && warp.gates[i].key != mask) ++i;
    if (i == warp.gate_count) {
        if (i == MOST_GATES) {
            block->fault = "the lanes of a warp meet in too many different groups";
            leave(WAITING);
        }
        warp.gates[warp.gate_count++] = {mask, 0, 0};
    }
    meet(warp.gates[i], __builtin_popcount(mask & warp.live), ordered);
}

// Give the other lanes a value; `use` gets those of all lanes once each has given its own.
template <typename T, typename Use>
UNBRANCHED inline auto exchange(unsigned mask, const T& value, Use use)
{
    static_assert(sizeof(T) <= sizeof Warp::values[0], "too large for an exchange");
    Warp& warp = own_warp();
    memcpy(warp.values[own_lane()], &value, sizeof value);
    meet_lanes(mask, false);
    const auto result = use([&warp](unsigned lane) UNBRANCHED {
        T given;
        memcpy(&given, warp.values[lane], sizeof given);
        return given;
    });
    meet_lanes(mask, false);  // a value is not replaced before all have read it
    return result;
}

template <typename... Arguments, size_t... N>
UNCHECKED void call(void (*kernel)(Arguments...), void** values, std::index_sequence<N...>)
{
    kernel(*(std::remove_reference_t<Arguments>*)values[N]...);
}
template <typename... Arguments>
inline void call(void (*kernel)(Arguments...), void** values)
{
    call(kernel, values, std::index_sequence_for<Arguments...>());
}

}  // namespace emulator

// sizes: blocks of the grid and threads of a block, in x, y and z.
#define EMULATE(KERNEL)                                                                            \
    extern "C" EXPORTED int emulator_run(                                                          \
        const unsigned* sizes, size_t shared_bytes, unsigned first, unsigned last, void** values)  \
    {                                                                                              \
        emulator::grid_size = {sizes[0], sizes[1], sizes[2]};                                      \
        emulator::block_size = {sizes[3], sizes[4], sizes[5]};                                     \
        const auto body = [](void* values) { emulator::call(KERNEL, (void**)values); };            \
        return emulator::run_blocks(body, values, sizes, shared_bytes, first, last);               \
    }                                                                                              \
    extern "C" EXPORTED const char* emulator_fault() { return emulator::block->fault; }

#define threadIdx (emulator::current->place)
#define blockIdx (emulator::current->block)
#define blockDim (emulator::block_size)
#define gridDim (emulator::grid_size)
#define DYNAMIC_SHARED_MEMORY (emulator::block->shared)

inline void __syncthreads() { emulator::meet(emulator::block->gates[0], emulator::block->live); }
inline void __syncwarp(unsigned mask = ~0u) { emulator::meet_lanes(mask); }
inline void bar_sync(unsigned number, unsigned threads)
{
    emulator::meet(emulator::block->gates[number % 16], threads);
}
inline void prefetch_global_L2(const void*) {}  // there is no cache

template <typename T>
inline T __shfl_sync(unsigned mask, T value, int lane, int width = 32)
{
    const int group = emulator::own_lane() / width * width;
    return emulator::exchange(mask, value, [=](auto of) { return of(group + (lane & (width - 1))); });
}
template <typename T>
inline T __shfl_down_sync(unsigned mask, T value, unsigned by, int width = 32)
{
    const unsigned lane = emulator::own_lane();
    const unsigned from = lane % width + by < (unsigned)width ? lane + by : lane;
    return emulator::exchange(mask, value, [=](auto of) { return of(from); });
}
template <typename T>
inline T __shfl_up_sync(unsigned mask, T value, unsigned by, int width = 32)
{
    const unsigned lane = emulator::own_lane(), from = lane % width >= by ? lane - by : lane;
    return emulator::exchange(mask, value, [=](auto of) { return of(from); });
}
template <typename T>
inline T __shfl_xor_sync(unsigned mask, T value, int bits, int width = 32)
{
    const unsigned lane = emulator::own_lane(), from = lane ^ bits;
    const unsigned end = (lane / width + 1) * width;
    return emulator::exchange(mask, value, [=](auto of) { return of(from < end ? from : lane); });
}
inline unsigned __ballot_sync(unsigned mask, int predicate)
{
    return emulator::exchange(mask, predicate != 0, [=](auto of) UNBRANCHED {
        unsigned votes = 0;
        for (int lane = 0; lane < emulator::WARP; ++lane)
            if (mask >> lane & 1 && of(lane)) votes |= 1u << lane;
        return votes;
    });
}

#ifdef CHECKED
// A GPU copies a vector in one access. The host's compiler would do so member by member, and be seen to.
#define COPIED_WHOLE(NAME)                                                           \
    NAME(const NAME& other) { __builtin_memcpy((void*)this, &other, sizeof other); } \
    NAME& operator=(const NAME& other)                                               \
    {                                                                                \
        __builtin_memcpy((void*)this, &other, sizeof other);                         \
        return *this;                                                                \
    }
#define VECTOR_OF_2(NAME, TYPE)                             \
    struct alignas(2 * sizeof(TYPE)) NAME {                 \
        TYPE x, y;                                          \
        NAME() = default;                                   \
        constexpr NAME(TYPE x, TYPE y) : x(x), y(y) {}      \
        COPIED_WHOLE(NAME)                                  \
    };
#define VECTOR_OF_4(NAME, TYPE)                                                             \
    struct alignas(4 * sizeof(TYPE)) NAME {                                                 \
        TYPE x, y, z, w;                                                                    \
        NAME() = default;                                                                   \
        constexpr NAME(TYPE x, TYPE y, TYPE z, TYPE w) : x(x), y(y), z(z), w(w) {}          \
        COPIED_WHOLE(NAME)                                                                  \
    };
#else
#define VECTOR_OF_2(NAME, TYPE) \
    struct alignas(2 * sizeof(TYPE)) NAME { TYPE x, y; };
#define VECTOR_OF_4(NAME, TYPE) \
    struct alignas(4 * sizeof(TYPE)) NAME { TYPE x, y, z, w; };
#endif
VECTOR_OF_2(uchar2, unsigned char)
VECTOR_OF_4(uchar4, unsigned char)
VECTOR_OF_2(int2, int)
VECTOR_OF_4(int4, int)
VECTOR_OF_2(uint2, unsigned)
VECTOR_OF_4(uint4, unsigned)
VECTOR_OF_2(float2, float)
VECTOR_OF_4(float4, float)
inline int2 make_int2(int x, int y) { return {x, y}; }
inline int4 make_int4(int x, int y, int z, int w) { return {x, y, z, w}; }
inline uint2 make_uint2(unsigned x, unsigned y) { return {x, y}; }
inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) { return {x, y, z, w}; }
inline float2 make_float2(float x, float y) { return {x, y}; }
inline float4 make_float4(float x, float y, float z, float w) { return {x, y, z, w}; }

template <typename A, typename B>
constexpr std::common_type_t<A, B> min(A a, B b)
{
    typedef std::common_type_t<A, B> C;
    return (C)b < (C)a ? (C)b : (C)a;
}
template <typename A, typename B>
constexpr std::common_type_t<A, B> max(A a, B b)
{
    typedef std::common_type_t<A, B> C;
    return (C)a < (C)b ? (C)b : (C)a;
}

namespace emulator {
template <typename To, typename From>
UNBRANCHED inline To bits_as(From from)
{
    static_assert(sizeof(To) == sizeof(From), "as many bits as before");
    To to;
    memcpy(&to, &from, sizeof to);
    return to;
}
}  // namespace emulator
inline unsigned __float_as_uint(float f) { return emulator::bits_as<unsigned>(f); }
inline int __float_as_int(float f) { return emulator::bits_as<int>(f); }
inline float __uint_as_float(unsigned u) { return emulator::bits_as<float>(u); }
inline float __int_as_float(int i) { return emulator::bits_as<float>(i); }
inline float __fadd_rn(float a, float b) { return a + b; }
inline float __fsub_rn(float a, float b) { return a - b; }
inline float __fmul_rn(float a, float b) { return a * b; }
inline float __fdiv_rn(float a, float b) { return a / b; }
inline float __fsqrt_rn(float f) { return sqrtf(f); }
inline float __fmaf_rn(float a, float b, float c) { return fmaf(a, b, c); }
inline float __saturatef(float a) { return a > 0 ? a < 1 ? a : 1 : 0; }
inline double __dadd_rn(double a, double b) { return a + b; }
inline double __dmul_rn(double a, double b) { return a * b; }
inline float __expf(float f) { return expf(f); }
inline float __fdividef(float a, float b) { return a / b; }
template <typename T>
inline T __ldg(const T* at) { return *at; }
template <typename T>
inline T __ldcs(const T* at) { return *at; }
template <typename T>
inline void __stcs(T* at, T value) { *at = value; }
inline int __ffs(int n) { return __builtin_ffs(n); }
inline int __ffsll(long long n) { return __builtin_ffsll(n); }
inline int __clz(int n) { return n ? __builtin_clz(n) : 32; }
inline int __popc(unsigned n) { return __builtin_popcount(n); }
inline int __popcll(unsigned long long n) { return __builtin_popcountll(n); }
inline unsigned __umulhi(unsigned a, unsigned b) { return (unsigned long long)a * b >> 32; }
inline unsigned __funnelshift_r(unsigned low, unsigned high, unsigned shift)
{
    return ((unsigned long long)high << 32 | low) >> (shift & 31);
}
inline unsigned __funnelshift_l(unsigned low, unsigned high, unsigned shift)
{
    return ((unsigned long long)high << 32 | low) << (shift & 31) >> 32;
}
inline unsigned __byte_perm(unsigned a, unsigned b, unsigned selector)
{
    const unsigned long long bytes = (unsigned long long)b << 32 | a;
    unsigned result = 0;
    for (int i = 0; i < 4; ++i) {
        const unsigned choice = selector >> 4 * i & 15;
        unsigned byte = bytes >> 8 * (choice & 7) & 255;
        if (choice & 8) byte = byte & 128 ? 255 : 0;
        result |= byte << 8 * i;
    }
    return result;
}
inline unsigned __vminu2(unsigned a, unsigned b)
{
    return min(a & 0xffff, b & 0xffff) | min(a >> 16, b >> 16) << 16;
}
inline unsigned __vmaxu2(unsigned a, unsigned b)
{
    return max(a & 0xffff, b & 0xffff) | max(a >> 16, b >> 16) << 16;
}
inline unsigned __dp4a(unsigned a, unsigned b, unsigned sum)
{
    for (int i = 0; i < 32; i += 8) sum += (a >> i & 255) * (b >> i & 255);
    return sum;
}
inline int __dp2a_lo(int a, int b, int sum)
{
    return sum + (short)a * (signed char)b + (a >> 16) * (signed char)(b >> 8);
}

// --- atomic functions: blocks may run side by side ---

namespace emulator {
template <typename T, typename Operation>
UNCHECKED T replace_atomically(T* at, Operation operation)
{
    checks::touch(at, sizeof(T));
    T old, next;
    __atomic_load(at, &old, __ATOMIC_SEQ_CST);
    do
        next = operation(old);
    while (!__atomic_compare_exchange(at, &old, &next, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST));
    return old;
}
}  // namespace emulator
template <typename T>
inline T atomicAdd(T* at, T value)
{
    return emulator::replace_atomically(at, [=](T old) { return old + value; });
}
template <typename T>
inline T atomicMax(T* at, T value)
{
    return emulator::replace_atomically(at, [=](T old) { return old < value ? value : old; });
}
inline void __threadfence() {}  // the functions above order all accesses

// --- textures: 2-D arrays, point sampling ---

namespace emulator {
// How coordinates outside [0, n) are treated; those of REPEATED and MIRRORED go from 0 to 1.
enum Addressing { CLAMPED, ZERO, REPEATED, MIRRORED };
struct Texture {
    const void* texels;
    int columns, rows;
    int addressing;
};
// The texel at a coordinate, or -1 for none.
UNBRANCHED inline int texel(float at, int n, int addressing)
{
    const int i = (int)floor(addressing == REPEATED || addressing == MIRRORED ? (double)at * n : (double)at);
    if ((unsigned)i < (unsigned)n) return i;
    switch (addressing) {
    case ZERO: return -1;
    case REPEATED: return ((i % n) + n) % n;
    case MIRRORED: {
        const int j = ((i % (2 * n)) + 2 * n) % (2 * n);
        return j < n ? j : 2 * n - 1 - j;
    }
    default: return i < 0 ? 0 : n - 1;
    }
}
}  // namespace emulator
typedef const emulator::Texture* cudaTextureObject_t;
template <typename T>
UNCHECKED T tex2D(cudaTextureObject_t texture, float x, float y)
{
    const int column = emulator::texel(x, texture->columns, texture->addressing);
    const int row = emulator::texel(y, texture->rows, texture->addressing);
    if (column < 0 || row < 0) return T();
    const T* const at = (const T*)texture->texels + (size_t)row * texture->columns + column;
    emulator::checks::touch(at, sizeof(T));
    return *at;
}

// --- instructions of PTX, named as there; the results come first ---

inline void sqrt_approx_ftz_f32(float& result, float f) { result = sqrtf(f); }
inline void ex2_approx_ftz_f32(float& result, float f) { result = exp2f(f); }
inline void dp4a_u32_s32(int& result, unsigned samples, int weights, int sum)
{
    for (int i = 0; i < 32; i += 8) sum += (int)(samples >> i & 255) * (signed char)(weights >> i);
    result = sum;
}

// 16-bit floats, two to a word. Doubles hold their sums and products, so they are rounded once.
namespace emulator {
INSTRUCTION inline double half_of(unsigned bits)
{
    const unsigned size = (bits & 0x7fff) << 13;  // as a float's, whose exponent is 112 too small
    const float value = size < 0x0f800000 ? bits_as<float>(size) * 0x1p112f : bits_as<float>(size | 0x7f800000);
    return bits & 0x8000 ? -value : value;
}
// Rounded to the nearest half, ties to even.
INSTRUCTION inline unsigned to_half(double value)
{
    const unsigned sign = bits_as<uint64_t>(value) >> 63 << 15;
    const double size = fabs(value);
    if (size != size) return 0x7fff;
    if (size >= 65520) return sign | 0x7c00;
    // A number whose last digit is that of the half: sums with it are rounded there.
    const uint64_t exponent = bits_as<uint64_t>(size) >> 52, least = 1023 - 14;
    const double large = bits_as<double>((exponent < least ? least : exponent) + 42 << 52);
    const double rounded = size + large - large;
    if (rounded < 0x1p-14) return sign | (unsigned)(rounded * 0x1p24);
    return sign | ((bits_as<unsigned>((float)rounded) >> 13) - (112 << 10));
}
template <typename Operation>
inline void in_halves(unsigned& result, Operation operation)
{
    result = to_half(operation(0)) | to_half(operation(16)) << 16;
}
inline double saturated(double value) { return value > 0 ? value < 1 ? value : 1 : 0; }
}  // namespace emulator
inline void add_rn_f16x2(unsigned& result, unsigned a, unsigned b)
{
    using namespace emulator;
    in_halves(result, [=](int at) { return half_of(a >> at) + half_of(b >> at); });
}
inline void sub_rn_f16x2(unsigned& result, unsigned a, unsigned b)
{
    using namespace emulator;
    in_halves(result, [=](int at) { return half_of(a >> at) - half_of(b >> at); });
}
inline void sub_rn_sat_f16x2(unsigned& result, unsigned a, unsigned b)
{
    using namespace emulator;
    in_halves(result, [=](int at) { return saturated(half_of(a >> at) - half_of(b >> at)); });
}
inline void fma_rn_f16x2(unsigned& result, unsigned a, unsigned b, unsigned c)
{
    using namespace emulator;
    in_halves(result, [=](int at) { return half_of(a >> at) * half_of(b >> at) + half_of(c >> at); });
}
inline void fma_rn_sat_f16x2(unsigned& result, unsigned a, unsigned b, unsigned c)
{
    using namespace emulator;
    in_halves(result, [=](int at) {
        return saturated(half_of(a >> at) * half_of(b >> at) + half_of(c >> at));
    });
}
inline void abs_f16x2(unsigned& result, unsigned a) { result = a & 0x7fff7fff; }
inline void cvt_f32_f16(float& low, float& high, unsigned a)
{
    low = emulator::half_of(a);
    high = emulator::half_of(a >> 16);
}
inline void cvt_f32_f16(float& result, unsigned short bits) { result = emulator::half_of(bits); }
inline void cvt_rn_f16_f32(unsigned& result, float low, float high)
{
    result = emulator::to_half(low) | emulator::to_half(high) << 16;
}
inline void cvt_rn_f16_f32(unsigned short& bits, float value) { bits = emulator::to_half(value); }

// Matrix products of a warp: D = A B + C, A of 16 x K halves, B of K x 8, C and D of 16 x 8 floats. The lane
// 4 g + t has rows g and g + 8 of A and C, column g of B, and every fourth pair of columns of A or rows of B.
namespace emulator {
template <int K>
struct Fragments {
    float a[K / 2], b[K / 4];
};
template <int K>
INSTRUCTION inline void multiply(float* const (&d)[4], const unsigned (&a)[K / 4], const unsigned (&b)[K / 8])
{
    const unsigned row = own_lane() / 4, pair = own_lane() % 4;
    struct Four {
        double of[4];
    };
    Fragments<K> own;
    for (int n = 0; n < K / 2; ++n) own.a[n] = half_of(a[n / 2] >> 16 * (n % 2));
    for (int n = 0; n < K / 4; ++n) own.b[n] = half_of(b[n / 2] >> 16 * (n % 2));
    const Four sums = exchange(~0u, own, [=](auto of) UNBRANCHED {
        Four sums = {};
        for (unsigned t = 0; t < 4; ++t) {
            const Fragments<K> left = of(4 * row + t);
            for (int n = 0; n < 2; ++n) {
                const Fragments<K> right = of(4 * (2 * pair + n) + t);
                for (int k = 0; k < K / 4; ++k)
                    for (int m = 0; m < 2; ++m)
                        sums.of[2 * m + n] += (double)left.a[2 * (k & ~1) + 2 * m + (k & 1)] * right.b[k];
            }
        }
        return sums;
    });
    for (int i = 0; i < 4; ++i) *d[i] = (float)(*d[i] + sums.of[i]);
}
}  // namespace emulator
inline void mma_sync_aligned_m16n8k16_row_col_f32_f16_f16_f32(float& d0, float& d1, float& d2, float& d3,
    unsigned a0, unsigned a1, unsigned a2, unsigned a3, unsigned b0, unsigned b1)
{
    emulator::multiply<16>({&d0, &d1, &d2, &d3}, {a0, a1, a2, a3}, {b0, b1});
}
inline void mma_sync_aligned_m16n8k8_row_col_f32_f16_f16_f32(
    float& d0, float& d1, float& d2, float& d3, unsigned a0, unsigned a1, unsigned b0)
{
    emulator::multiply<8>({&d0, &d1, &d2, &d3}, {a0, a1}, {b0});
}

// The same of floats, whose 13 lowest bits do not count: A of 16 x 8, B of 8 x 8. The lane 4 g + t has every fourth
// column of A or row of B.
namespace emulator {
struct FloatFragments {
    unsigned a[4], b[2];
};
struct FloatSums {
    double of[4];
};
inline double of_11_bits(unsigned bits) { return __uint_as_float(bits & ~0x1fffu); }
}  // namespace emulator
INSTRUCTION inline void mma_sync_aligned_m16n8k8_row_col_f32_tf32_tf32_f32(float& d0, float& d1, float& d2, float& d3,
    unsigned a0, unsigned a1, unsigned a2, unsigned a3, unsigned b0, unsigned b1)
{
    using namespace emulator;
    const unsigned row = own_lane() / 4, pair = own_lane() % 4;
    const FloatFragments own = {{a0, a1, a2, a3}, {b0, b1}};
    const FloatSums sums = exchange(~0u, own, [=](auto of) UNBRANCHED {
        FloatSums sums = {};
        for (unsigned t = 0; t < 4; ++t) {
            const FloatFragments left = of(4 * row + t);
            for (int n = 0; n < 2; ++n) {
                const FloatFragments right = of(4 * (2 * pair + n) + t);
                for (int half = 0; half < 2; ++half)
                    for (int m = 0; m < 2; ++m)
                        sums.of[2 * m + n] += of_11_bits(left.a[2 * half + m]) * of_11_bits(right.b[half]);
            }
        }
        return sums;
    });
    float* const d[] = {&d0, &d1, &d2, &d3};
    for (int i = 0; i < 4; ++i) *d[i] = (float)(*d[i] + sums.of[i]);
}

// The same of bytes: A of 16 x 32 signed ones, B of 32 x 8 unsigned ones, C and D of whole numbers. The lane 4 g + t
// has rows g and g + 8 of A and C, column g of B, and every fourth four columns of A or rows of B.
namespace emulator {
struct ByteFragments {
    unsigned a[4], b[2];
};
struct ByteSums {
    unsigned of[4];  // they wrap around
};
}  // namespace emulator
INSTRUCTION inline void mma_sync_aligned_m16n8k32_row_col_s32_s8_u8_s32(int& d0, int& d1, int& d2, int& d3,
    unsigned a0, unsigned a1, unsigned a2, unsigned a3, unsigned b0, unsigned b1)
{
    using namespace emulator;
    const unsigned row = own_lane() / 4, pair = own_lane() % 4;
    const ByteFragments own = {{a0, a1, a2, a3}, {b0, b1}};
    const ByteSums sums = exchange(~0u, own, [=](auto of) UNBRANCHED {
        ByteSums sums = {};
        for (unsigned t = 0; t < 4; ++t) {
            const ByteFragments left = of(4 * row + t);
            for (int n = 0; n < 2; ++n) {
                const ByteFragments right = of(4 * (2 * pair + n) + t);
                for (int half = 0; half < 2; ++half)
                    for (int m = 0; m < 2; ++m)
                        for (int i = 0; i < 32; i += 8)
                            sums.of[2 * m + n] += (signed char)(left.a[2 * half + m] >> i)
                                * (int)(right.b[half] >> i & 255);
            }
        }
        return sums;
    });
    int* const d[] = {&d0, &d1, &d2, &d3};
    for (int i = 0; i < 4; ++i) *d[i] = (int)((unsigned)*d[i] + sums.of[i]);
}

// The same of 64 rows of B, of which A has weights for two of each four: 16 x 32, and two bits for each of them, which
// row of the four. The first and third lane of a row have the bits of its first and second half, the others those of
// the row 8 below, as an H100 showed. The name of the instruction begins with a macro.
namespace emulator {
struct SparseFragments {
    unsigned a[4], b[4], places;
};
}  // namespace emulator
INSTRUCTION inline void sync_aligned_m16n8k64_row_col_s32_s8_u8_s32(int& d0, int& d1, int& d2, int& d3,
    unsigned a0, unsigned a1, unsigned a2, unsigned a3, unsigned b0, unsigned b1, unsigned b2, unsigned b3,
    unsigned places)
{
    using namespace emulator;
    const unsigned row = own_lane() / 4, pair = own_lane() % 4;
    const SparseFragments own = {{a0, a1, a2, a3}, {b0, b1, b2, b3}, places};
    const ByteSums sums = exchange(~0u, own, [=](auto of) UNBRANCHED {
        ByteSums sums = {};
        for (unsigned k = 0; k < 32; ++k) {
            const unsigned four = k / 2;  // of the rows of B
            const SparseFragments left = of(4 * row + k % 16 / 4);
            const SparseFragments right[] = {of(4 * (2 * pair) + four % 4), of(4 * (2 * pair + 1) + four % 4)};
            for (unsigned m = 0; m < 2; ++m) {
                const unsigned place = of(4 * row + four / 8 * 2 + m).places >> 2 * (k % 16) & 3;
                const int weight = (signed char)(left.a[k / 16 * 2 + m] >> 8 * (k % 4));
                for (unsigned n = 0; n < 2; ++n)
                    sums.of[2 * m + n] += weight * (int)(right[n].b[four / 4] >> 8 * place & 255);
            }
        }
        return sums;
    });
    int* const d[] = {&d0, &d1, &d2, &d3};
    for (int i = 0; i < 4; ++i) *d[i] = (int)((unsigned)*d[i] + sums.of[i]);
}
inline void cvt_pack_sat_u8_s32_b32(unsigned& result, int high, int low, unsigned above)
{
    result = min(max(low, 0), 255) | min(max(high, 0), 255) << 8 | above << 16;
}
