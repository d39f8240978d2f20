// ranks: 2
// says: correct
// says: cannot be used
// env: WEFT_PROGRESS=signal HOW=before | WEFT_PROGRESS=signal HOW=after | WEFT_PROGRESS=signal HOW=blocked | WEFT_PROGRESS=signal HOW=later
//
// A program that has the signal of WEFT_PROGRESS=signal for itself: a handler set before MPI_Init or after it, a mask
// set before or after. One line says so, messages move all the same while it computes, and its handler stays its own.
#define _GNU_SOURCE
#include "helper.h"

static int is(const char *how) { return strcmp(getenv("HOW"), how) == 0; }

static void own_handler(void)
{
    struct sigaction action = {.sa_handler = count_signal};
    CHECK(sigaction(SIGURG, &action, NULL) == 0);
}

static void block(void)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGURG);
    CHECK(sigprocmask(SIG_BLOCK, &set, NULL) == 0);
}

int main(int argc, char **argv)
{
    if (is("before")) own_handler();
    if (is("blocked")) block();
    begin(&argc, &argv);
    share();
    if (is("after")) own_handler();
    if (is("later")) block();
    for (int round = 0; round < 5; round++) large_to_posted(), synchronous();
    if (is("before") || is("after")) {
        CHECK(signals_seen == 0, "%d", (int)signals_seen);
        raise(SIGURG);
        CHECK(signals_seen == 1);
    }
    return finish();
}
