/* cannon: Cannon's matrix multiplication (cannon.h), one thread a rank. */
#include "cannon.h"

int main(int argc, char **argv) { return cannon_main("cannon", argc, argv); }
