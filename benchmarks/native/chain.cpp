// The Monte Carlo chain of the benchmarks in C++, written for it: the compiler knows every size.
//
//   u (two-state Markov) -> G, 4 sections -> + noise -> 64 forward and 16 feedback taps, sign -> d
//   sum of (F (u delayed - d))^2, F of one pole
//
// A row is one instant of a bundle of streams, one lane a stream, two vector registers wide. A tile is 6 rows: 12 sums
// in registers, because the CPU starts two multiply-adds in a cycle and each takes four. Passes over a chunk of time
// that stays in the cache; its last rows then move above the next one.
//
// Build: c++ -std=c++20 -O3 -march=native -fno-math-errno -shared -fPIC

#include <cstdint>
#include <cstring>
#include <memory>
#include <type_traits>
#include <utility>

#ifdef __AVX512F__
#include <immintrin.h>
constexpr int REGISTER = 64;
#elif defined(__AVX__)
constexpr int REGISTER = 32;
#else
constexpr int REGISTER = 16;
#endif

#define ALWAYS_INLINE __attribute__((always_inline))

constexpr int N_SECTIONS = 4, N_FORWARD = 64, N_FEEDBACK = 16, LAG = 10;
constexpr int ROWS = 6, GROUP = 8;        // of a tile; taps unrolled together
constexpr int CHUNK = 480, HISTORY = 64;  // rows; what a filter looks back at is above the chunk
constexpr float LEVEL = 0.5f;
constexpr uint32_t FLIP_BELOW = 1u << 30;  // of 32 random bits: probability 1/4

// f(0), ..., f(N - 1), the index a constant.
template <int N, class F>
ALWAYS_INLINE inline void unroll(F f) {
    [&]<int... I>(std::integer_sequence<int, I...>) ALWAYS_INLINE {
        (f(std::integral_constant<int, I>{}), ...);
    }(std::make_integer_sequence<int, N>{});
}

// --- rows and tiles -------------------------------------------------------------------------------

template <class T>
using Vector __attribute__((vector_size(REGISTER))) = T;
using Bits = Vector<uint32_t>;
using Integers = Vector<int32_t>;
using Floats = Vector<float>;

template <class T>
constexpr int LANES = 2 * REGISTER / sizeof(T);

template <class T>
struct Row {
    Vector<T> half[2];
};

template <class T>
using Tile = Row<T>[ROWS];

template <class T>
ALWAYS_INLINE inline Row<T> load(const T *x, long row) {
    return *reinterpret_cast<const Row<T> *>(x + row * LANES<T>);
}

template <class T>
ALWAYS_INLINE inline void store(T *x, long row, Row<T> value) {
    *reinterpret_cast<Row<T> *>(x + row * LANES<T>) = value;
}

template <class T>
ALWAYS_INLINE inline void add_product(Row<T> &sum, T a, Row<T> b) {
    unroll<2>([&](auto h) ALWAYS_INLINE { sum.half[h] += a * b.half[h]; });
}

// LEVEL with the sign of a
template <class T>
ALWAYS_INLINE inline Row<T> decide(Row<T> a) {
    using Integer = Vector<std::conditional_t<sizeof(T) == 8, int64_t, int32_t>>;
    const Vector<T> level = Vector<T>{} + T(LEVEL), sign = -Vector<T>{};
    unroll<2>([&](auto h) ALWAYS_INLINE {
        a.half[h] = (Vector<T>)(((Integer)a.half[h] & (Integer)sign) | (Integer)level);
    });
    return a;
}

// --- random numbers: as many 32-bit lanes as a row has ---------------------------------------------

template <class T>
constexpr int N_WORDS = 8 / sizeof(T);  // registers of 32-bit numbers

ALWAYS_INLINE inline Bits rotate_left(Bits x, int n) { return x << n | x >> (32 - n); }

// xoshiro128++ in every lane
struct Generator {
    Bits s[4];

    ALWAYS_INLINE Bits next() {
        const Bits result = rotate_left(s[0] + s[3], 7) + s[0], t = s[1] << 9;
        s[2] ^= s[0];
        s[3] ^= s[1];
        s[1] ^= s[2];
        s[0] ^= s[3];
        s[2] ^= t;
        s[3] = rotate_left(s[3], 11);
        return result;
    }

    // seeded by splitmix64
    void seed(uint64_t x) {
        for (Bits &word : s)
            for (unsigned lane = 0; lane < REGISTER / 4; lane++) {
                uint64_t z = x += 0x9E3779B97F4A7C15;
                z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9;
                z = (z ^ z >> 27) * 0x94D049BB133111EB;
                word[lane] = uint32_t(z ^ z >> 31);
            }
    }
};

template <int N>
ALWAYS_INLINE inline Floats polynomial(const float (&lowest_first)[N], Floats x) {
    Floats value = Floats{} + lowest_first[N - 1];
    unroll<N - 1>([&](auto i) ALWAYS_INLINE { value = value * x + lowest_first[N - 2 - i]; });
    return value;
}

// -2 log(1 + x) / x on sqrt(1/2) - 1 ... sqrt(2) - 1; sin(pi y) / y and cos(pi y) in y^2, |y| <= 1/2
constexpr float LOG[] = {-1.999999948f,  0.9999997597f, -0.6666837134f, 0.5000414479f, -0.3991366125f,
                         0.3312485787f, -0.2990466516f, 0.2873324229f,  -0.1744380403f};
constexpr float SIN[] = {3.141592637f, -5.167709685f, 2.550069726f, -0.5982421245f, 0.07756038324f};
constexpr float COS[] = {0.9999999998f, -4.934802137f, 4.058709164f, -1.335212057f, 0.2349375585f, -0.02439671581f};

// Box-Muller: two standard normals a lane, from two words
ALWAYS_INLINE inline void normals(Bits a, Bits b, Floats &first, Floats &second) {
    const Integers u = (Integers)(__builtin_convertvector(a, Floats) * 0x1p-32f + 0x1p-33f);
    const Integers exponent = (u - 0x3F3504F3) >> 23;
    const Floats x = (Floats)(u - (exponent << 23)) - 1.0f;
    const Floats square = polynomial(LOG, x) * x + __builtin_convertvector(exponent, Floats) * -1.3862943611f;
    Floats radius;
    for (unsigned lane = 0; lane < REGISTER / 4; lane++) radius[lane] = __builtin_sqrtf(square[lane]);
    radius = (Floats)((Bits)radius ^ b << 31);  // and a random sign
    const Floats y = __builtin_convertvector((Integers)b, Floats) * 0x1p-32f, z = y * y;
    first = radius * polynomial(COS, z);
    second = radius * y * polynomial(SIN, z);
}

// A row from its 32-bit lanes
template <class T>
ALWAYS_INLINE inline Row<T> widen(const Floats *x) {
    if constexpr (sizeof(T) == 4) {
        return {x[0], x[1]};
    } else {
#ifdef __AVX512F__  // what GCC makes of the lines below takes twice as long
        const auto high = _mm512_shuffle_f32x4((__m512)*x, (__m512)*x, 0xEE);
        return {(Vector<T>)_mm512_cvtps_pd(_mm512_castps512_ps256((__m512)*x)),
                (Vector<T>)_mm512_cvtps_pd(_mm512_castps512_ps256(high))};
#else
        typedef float Half __attribute__((vector_size(REGISTER / 2)));
        Half half[2];
        memcpy(half, x, REGISTER);
        return {__builtin_convertvector(half[0], Vector<T>), __builtin_convertvector(half[1], Vector<T>)};
#endif
    }
}

// --- what happens to a chunk ------------------------------------------------------------------------

template <class T>
struct Link {
    const T *sections;  // (N_SECTIONS, 5): b0 b1 b2 a1 a2
    const T *forward, *feedback;
    const T *target;  // b0 b1 a1
    T noise_std;
};

template <class T>
struct Bundle {
    static constexpr int LENGTH = (HISTORY + CHUNK) * LANES<T>;
    alignas(64) T u[LENGTH] = {}, v[LENGTH] = {}, d[LENGTH] = {};
    Row<T> prefilter[N_SECTIONS][2] = {}, target = {}, squared_error = {};
    Generator signal_generator[N_WORDS<T>], noise_generator[N_WORDS<T>];
    Floats sign[N_WORDS<T>];

    explicit Bundle(uint64_t seed) {
        for (int word = 0; word < N_WORDS<T>; word++) {
            signal_generator[word].seed(mix(seed, 2 * word));
            noise_generator[word].seed(mix(seed, 2 * word + 1));
            sign[word] = Floats{} + LEVEL;
        }
    }

    static uint64_t mix(uint64_t seed, uint64_t purpose) { return (seed * 4 + purpose + 1) * 0xD1342543DE82EF95; }
};

template <class T>
ALWAYS_INLINE inline void draw_signal(Tile<T> &tile, Bundle<T> &b) {
    Floats value[ROWS][N_WORDS<T>];
    unroll<N_WORDS<T>>([&](auto word) ALWAYS_INLINE {
        unroll<ROWS>([&](auto r) ALWAYS_INLINE {
            Floats &x = b.sign[word];
            x = b.signal_generator[word].next() < FLIP_BELOW ? -x : x;
            value[r][word] = x;
        });
    });
    unroll<ROWS>([&](auto r) ALWAYS_INLINE { tile[r] = widen<T>(value[r]); });
}

template <class T>
ALWAYS_INLINE inline void add_noise(Tile<T> &tile, Bundle<T> &b, T std) {
    Floats value[ROWS][N_WORDS<T>];
    unroll<N_WORDS<T>>([&](auto word) ALWAYS_INLINE {
        unroll<ROWS / 2>([&](auto pair) ALWAYS_INLINE {
            const Bits first = b.noise_generator[word].next(), second = b.noise_generator[word].next();
            normals(first, second, value[2 * pair][word], value[2 * pair + 1][word]);
        });
    });
    unroll<ROWS>([&](auto r) ALWAYS_INLINE { add_product(tile[r], std, widen<T>(value[r])); });
}

// Transposed direct form II, y = b0 x + s,  s = b1 x + z - a1 y,  z = b2 x - a2 y.
template <class T>
ALWAYS_INLINE inline void section(Tile<T> &tile, const T *c, Row<T> (&state)[2]) {
    unroll<2>([&](auto h) ALWAYS_INLINE {
        Vector<T> s = state[0].half[h], z = state[1].half[h];
        unroll<ROWS>([&](auto r) ALWAYS_INLINE {
            const Vector<T> x = tile[r].half[h], y = c[0] * x + s;
            s = c[1] * x + z - c[3] * y;
            z = c[2] * x - c[4] * y;
            tile[r].half[h] = y;
        });
        state[0].half[h] = s, state[1].half[h] = z;
    });
}

template <class T>
void transmit(const Link<T> &link, Bundle<T> &b) {
    for (int t = HISTORY; t < HISTORY + CHUNK; t += ROWS) {
        Tile<T> tile;
        draw_signal(tile, b);
        unroll<ROWS>([&](auto r) ALWAYS_INLINE { store(b.u, t + r, tile[r]); });
        unroll<N_SECTIONS>([&](auto i) ALWAYS_INLINE { section(tile, link.sections + 5 * i, b.prefilter[i]); });
        add_noise(tile, b, link.noise_std);
        unroll<ROWS>([&](auto r) ALWAYS_INLINE { store(b.v, t + r, tile[r]); });
    }
}

// tile[r] += sum of taps[j] x[t + r - j]; the window of rows slides through registers.
template <class T>
ALWAYS_INLINE inline void convolve(Tile<T> &tile, const T *taps, const T *x, long t) {
    Row<T> window[GROUP + ROWS - 1];
    unroll<ROWS>([&](auto r) ALWAYS_INLINE { window[GROUP - 1 + r] = load(x, t + r); });
    unroll<GROUP>([&](auto j) ALWAYS_INLINE {
        if constexpr (j > 0) window[GROUP - 1 - j] = load(x, t - j);
        unroll<ROWS>([&](auto r) ALWAYS_INLINE { add_product(tile[r], taps[j], window[GROUP - 1 - j + r]); });
    });
}

template <class T>
void decision_feedback(const Link<T> &link, Bundle<T> &b) {
    for (int t = HISTORY; t < HISTORY + CHUNK; t += ROWS) {
        Tile<T> tile = {};
        for (int k = 0; k < N_FORWARD; k += GROUP) convolve(tile, link.forward + k, b.v, t - k);
        unroll<N_FEEDBACK>([&](auto j) ALWAYS_INLINE {  // decisions before the tile
            unroll<ROWS>([&](auto r) ALWAYS_INLINE {
                if constexpr (r <= j) add_product(tile[r], link.feedback[j], load(b.d, t + r - 1 - j));
            });
        });
        unroll<ROWS>([&](auto r) ALWAYS_INLINE {
            const Row<T> d = decide(tile[r]);
            store(b.d, t + r, d);
            unroll<ROWS>([&](auto later) ALWAYS_INLINE {
                if constexpr (later > r) add_product(tile[later], link.feedback[later - r - 1], d);
            });
        });
    }
}

template <class T>
void measure(const Link<T> &link, Bundle<T> &b) {
    // y = b0 x + s,  s = b1 x - a1 y = pole s + c x: one operation from one s to the next
    const T b0 = link.target[0], pole = -link.target[2], c = link.target[1] + pole * b0;
    Row<T> s = b.target, sum = b.squared_error;
    for (int t = HISTORY; t < HISTORY + CHUNK; t++) {
        unroll<2>([&](auto h) ALWAYS_INLINE {
            const Vector<T> x = load(b.u, t - LAG).half[h] - load(b.d, t).half[h], y = b0 * x + s.half[h];
            s.half[h] = pole * s.half[h] + c * x;  // GCC fuses the first product
            sum.half[h] += y * y;
        });
    }
    b.target = s, b.squared_error = sum;
}

template <class T>
void carry(T *x) {
    memcpy(x, x + CHUNK * LANES<T>, sizeof(T) * HISTORY * LANES<T>);
}

// n_streams a multiple of the lanes, n_samples of CHUNK
template <class T>
void simulate(const Link<T> &link, long n_streams, long n_samples, uint64_t seed, double *squared_error) {
    for (long first = 0; first < n_streams; first += LANES<T>) {
        const auto b = std::make_unique<Bundle<T>>(seed + first);
        for (int lane = 0; lane < LANES<T>; lane++) squared_error[first + lane] = 0;
        for (long t = 0; t < n_samples; t += CHUNK) {
            transmit(link, *b);
            decision_feedback(link, *b);
            measure(link, *b);
            carry(b->u), carry(b->v), carry(b->d);
            for (int lane = 0; lane < LANES<T>; lane++)
                squared_error[first + lane] += b->squared_error.half[lane * 2 / LANES<T>][lane % (LANES<T> / 2)];
            b->squared_error = {};
        }
    }
}

#define EXPORT(NAME, T)                                                                                            \
    extern "C" void NAME(const T *sections, const T *forward, const T *feedback, const T *target, T noise_std,     \
                         long n_streams, long n_samples, uint64_t seed, double *squared_error) {                   \
        simulate<T>({sections, forward, feedback, target, noise_std}, n_streams, n_samples, seed, squared_error); \
    }

EXPORT(simulate_float64, double)
EXPORT(simulate_float32, float)
