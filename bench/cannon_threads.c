/* cannon_threads: Cannon's matrix multiplication (cannon.h), the local products by OpenMP; compile it with -fopenmp. */
#ifndef _OPENMP
#error "cannon_threads needs OpenMP: compile it with -fopenmp"
#endif
#include "cannon.h"

int main(int argc, char **argv) { return cannon_main("cannon_threads", argc, argv); }
