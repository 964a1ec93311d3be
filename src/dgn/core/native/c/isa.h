/* The instruction set that a file is compiled for: the names of its functions, its registers. */
#ifndef DGN_ISA_H
#define DGN_ISA_H

#ifndef DGN_ISA
#define DGN_ISA baseline
#endif
#define DGN_JOIN(name, isa) name##_##isa
#define DGN_NAMED(name, isa) DGN_JOIN(name, isa)

/* The size of a register in bytes. */
#if defined(__AVX2__)
#include <immintrin.h>
#endif
#if defined(__AVX512F__)
#define REGISTER 64
#elif defined(__AVX2__)
#define REGISTER 32
#else
#define REGISTER 16
#endif

#endif
