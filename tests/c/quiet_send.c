// ranks: 2
// says: correct
// env: WEFT_COPY_MODEL=generic | WEFT_COPY_MODEL=generic WEFT_PROGRESS=handover
//
// The short way is quiet: a small send with room in the ring, and a receive whose message has
// arrived, allocate nothing, take no lock and make no system call under MPI_THREAD_SINGLE,
// with a helper thread or without. The model says what is small: a measured one may have 8 KiB fetched.
//
// The allocator is replaced by one that counts. For the rest, the processor stops after every
// instruction of the call (trap flag), and a handler looks for `syscall` and for instructions that
// lock the bus, which every lock needs
// (an `or` of the own stack is no lock but a fence). Between the two sides there is no other MPI: each tells the
// other by a signal that it is out of the library, or that all is sent, so that nobody sleeps in the
// library and no receive comes before its message.
#define _GNU_SOURCE
#include "check.h"
#include <dlfcn.h>
#include <signal.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#if !defined(__x86_64__) || !defined(__GLIBC__)
int main(void)
{
    printf("NOT RUN: quiet_send needs x86-64, whose instructions it reads, and glibc\ncorrect\n");
    return 0;
}
#else

extern void *__libc_malloc(size_t), *__libc_calloc(size_t, size_t), *__libc_realloc(void *, size_t);
extern void *__libc_memalign(size_t, size_t);
extern void __libc_free(void *);

static volatile long allocations, syscalls, locks, steps;
static unsigned char *volatile last_found;

void *malloc(size_t n) { allocations++; return __libc_malloc(n); }
void *calloc(size_t n, size_t m) { allocations++; return __libc_calloc(n, m); }
void *realloc(void *p, size_t n) { allocations++; return __libc_realloc(p, n); }
void free(void *p) { allocations++; __libc_free(p); }
void *memalign(size_t a, size_t n) { allocations++; return __libc_memalign(a, n); }
void *aligned_alloc(size_t a, size_t n) { return memalign(a, n); }
int posix_memalign(void **p, size_t a, size_t n)
{
    *p = memalign(a, n);
    return *p ? 0 : 12;
}

/* Called before each instruction: looks at it. */
static void look(int signal, siginfo_t *info, void *context)
{
    greg_t *r = ((ucontext_t *)context)->uc_mcontext.gregs;
    unsigned char *at = (unsigned char *)r[REG_RIP], *p = at;
    int lock = 0;
    (void)signal, (void)info;
    steps++;
    if (p[0] == 0xf3 && p[1] == 0xa4) { /* rep movsb would stop at each byte: do it here */
        memcpy((void *)r[REG_RDI], (void *)r[REG_RSI], r[REG_RCX]);
        r[REG_RDI] += r[REG_RCX], r[REG_RSI] += r[REG_RCX], r[REG_RCX] = 0, r[REG_RIP] += 2;
        return;
    }
    /* A fence: lock or [stack], 0. */
    if (!memcmp(p, "\xf0\x83\x4c\x24", 4) && p[5] == 0) return;
    while (*p && strchr("\x26\x2e\x36\x3e\x64\x65\x66\x67\xf0\xf2\xf3", *p))
        lock |= *p++ == 0xf0;
    while ((*p & 0xf0) == 0x40) p++;                       /* REX */
    lock |= (*p == 0x86 || *p == 0x87) && p[1] < 0xc0;     /* xchg with memory */
    if (lock) locks++, last_found = at;
    if ((*p == 0x0f && (p[1] == 0x05 || p[1] == 0x34)) || (*p == 0xcd && p[1] == 0x80))
        syscalls++, last_found = at;
}

/* The instruction after popfq runs unseen: nop. */
#define STEPPED(call, on)                                                                \
    do {                                                                                 \
        if (on)                                                                          \
            __asm__ volatile("pushfq; orq $0x100, (%%rsp); popfq; nop" ::: "memory", "cc"); \
        call;                                                                            \
        if (on)                                                                          \
            __asm__ volatile("pushfq; andq $~0x100, (%%rsp); popfq" ::: "memory", "cc"); \
    } while (0)

static void forget(void) { allocations = syscalls = locks = steps = 0; }

static volatile sig_atomic_t nods;
static int peer; /* the process of the other rank */

static void nodded(int signal) { (void)signal, nods++; }

static void nod(void) { kill(peer, SIGRTMIN); }

static void await_nod(void)
{
    static sig_atomic_t had;
    had++;
    while (nods < had) usleep(50);
}

/* Where the last instruction was found: library and offset in it. */
static const char *place(void)
{
    static char text[256];
    Dl_info info = {0};
    if (last_found && dladdr(last_found, &info))
        snprintf(text, sizeof text, "at %s+0x%zx", info.dli_fname,
                 (size_t)(last_found - (unsigned char *)info.dli_fbase));
    return text;
}

static int helped;

/* A receiver that the system stops for a while makes the sender use a part of the ring for the first time, whose pages are then made by a
 * system call. So a round with a system call is repeated, a few times. Nothing excuses an allocation, or a lock without a system call. */
enum { WARM_UP = 2, ATTEMPTS = 4 };
static int last_attempt, noisy;

static void quiet(const char *call, int bytes)
{
    CHECK(steps > 10, "%s of %d bytes: nothing was watched", call, bytes);
    /* A receive that is posted announces the helper, if there is one, and its wait takes that back. */
    long most = helped && !strncmp(call, "MPI_Irecv", 9) ? 8 : 0;
    CHECK(allocations == 0, "%s of %d bytes: %ld", call, bytes, allocations);
    if (!last_attempt && syscalls != 0) {
        noisy = 1;
        return;
    }
    CHECK(syscalls == 0, "%s of %d bytes: %ld, %s", call, bytes, syscalls, place());
    CHECK(locks <= most, "%s of %d bytes: %ld, %s", call, bytes, locks, place());
}

/* What must be noticed: otherwise silence proves nothing. */
static void noticed(void)
{
    static volatile int word;
    forget();
    STEPPED(syscall(SYS_getppid), 1);
    CHECK(syscalls == 1, "%ld", syscalls);
    forget(); /* a first call beside other threads locks in the loader */
    STEPPED(__atomic_fetch_add(&word, 1, __ATOMIC_RELAXED), 1);
    CHECK(locks == 1, "%ld", locks);
    STEPPED(__atomic_exchange_n(&word, 1, __ATOMIC_RELAXED), 1);
    CHECK(locks == 2, "%ld", locks);
    MPI_Comm other;
    forget();
    MPI_Comm_dup(MPI_COMM_SELF, &other);
    CHECK(allocations > 0, "the library does not use our allocator");
    MPI_Comm_free(&other);
}

enum { FEW = 4 }; /* messages at once: 4 of 8 KiB have room in every ring */
static char data[FEW][8192];

static void batch(int bytes, int nonblocking, int stepped)
{
    char what[64];
    MPI_Request request[FEW];
    MPI_Status status;
    MPI_Barrier(MPI_COMM_WORLD);
    nod(), await_nod(); /* both are out of it */
    if (rank == 1) await_nod();
    for (int i = 0; i < FEW; i++) {
        if (rank == 0) memset(data[i], bytes + i, bytes);
        forget();
        if (rank == 0) {
            if (!nonblocking)
                STEPPED(MPI_Send(data[i], bytes, MPI_CHAR, 1, i, MPI_COMM_WORLD), stepped);
            else
                STEPPED(MPI_Isend(data[i], bytes, MPI_CHAR, 1, i, MPI_COMM_WORLD, &request[i]);
                        MPI_Wait(&request[i], MPI_STATUS_IGNORE), stepped);
        } else {
            if (!nonblocking)
                STEPPED(MPI_Recv(data[i], 8192, MPI_CHAR, 0, i, MPI_COMM_WORLD, &status), stepped);
            else
                STEPPED(MPI_Irecv(data[i], 8192, MPI_CHAR, 0, i, MPI_COMM_WORLD, &request[i]);
                        MPI_Wait(&request[i], &status), stepped);
            for (int b = 0; b < bytes; b++) CHECK(data[i][b] == (char)(bytes + i));
        }
        snprintf(what, sizeof what, "MPI_%s%s", nonblocking ? "I" : "", rank ? "recv" : "send");
        if (stepped) quiet(what, bytes);
    }
    if (rank == 0) nod(), await_nod(); /* sent, received */
    else nod();
}

int main(int argc, char **argv)
{
    helped = getenv("WEFT_PROGRESS") != NULL;
    static const int sizes[] = {0, 8, 1024, 8192};
    struct sigaction action = {.sa_sigaction = look, .sa_flags = SA_SIGINFO};
    sigaction(SIGTRAP, &action, NULL);
    signal(SIGRTMIN, nodded);
    begin(&argc, &argv);
    int mine = getpid();
    MPI_Sendrecv(&mine, 1, MPI_INT, 1 - rank, 0, &peer, 1, MPI_INT, 1 - rank, 0, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    noticed();
    for (int round = 0; round < WARM_UP + ATTEMPTS; round++) {
        last_attempt = round == WARM_UP + ATTEMPTS - 1;
        for (int s = 0; s < 4; s++)
            for (int nonblocking = 0; nonblocking < 2; nonblocking++)
                batch(sizes[s], nonblocking, round >= WARM_UP);
        MPI_Allreduce(MPI_IN_PLACE, &noisy, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
        if (round >= WARM_UP && !noisy) break;
        noisy = 0;
    }
    return end();
}
#endif
