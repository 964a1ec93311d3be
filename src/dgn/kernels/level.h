/* The level of the processor that a file is compiled for: the names of its functions, its registers. */
#ifndef DGN_LEVEL_H
#define DGN_LEVEL_H

#ifndef DGN_LEVEL
#define DGN_LEVEL baseline
#endif
#define DGN_JOIN(name, level) name##_##level
#define DGN_NAMED(name, level) DGN_JOIN(name, level)

/* The size of a register in bytes. */
#if defined(__AVX512F__)
#define REGISTER 64
#elif defined(__AVX2__)
#define REGISTER 32
#else
#define REGISTER 16
#endif

#endif
