// ranks: 2
// args: 3
// expect: 5
// once: outside of the library for 3 s, and nobody answered
// env: WEFT_PROGRESS=none | WEFT_PROGRESS=auto
//
// The counterpart of helper.c: without a helper, a large message to a rank that computes waits until
// that rank calls MPI.
#define _GNU_SOURCE
#include "helper.h"

static void give_up(int number)
{
    static const char text[] = "outside of the library for 3 s, and nobody answered\n";
    (void)number;
    if (write(2, text, sizeof text - 1) < 0) _exit(4);
    _exit(5);
}

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    share();
    if (rank == 1) {
        signal(SIGALRM, give_up);
        alarm((unsigned)atoi(argv[1]));
    }
    large_to_posted();
    return finish();
}
