/* What a call leaves behind until its request is complete: copies of sections, and arrays that the library may still read. */
#include "weft_fortran.h"

#include <pthread.h>

typedef struct kept {
    struct kept *next;
    int request;
    int use;
    /* Memory to be freed. */
    void *memory;
    /* Where a copy belongs; no copy without a base address. */
    CFI_CDESC_T(CFI_MAX_RANK) section;
} kept;

enum { LISTS = 256 };
static kept *lists[LISTS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
int weft_kept;

static kept *add(int request, void *memory, int use)
{
    kept *one = calloc(1, sizeof(kept));
    one->request = request;
    one->memory = memory;
    one->use = use;
    pthread_mutex_lock(&lock);
    one->next = lists[(unsigned)request % LISTS];
    lists[(unsigned)request % LISTS] = one;
    __atomic_add_fetch(&weft_kept, 1, __ATOMIC_RELAXED);
    pthread_mutex_unlock(&lock);
    return one;
}

/* An array of handles that the library may still read. */
void weft_keep(const int *request, int rc, void *memory, int use)
{
    if (rc != MPI_SUCCESS || *request == (int)(intptr_t)MPI_REQUEST_NULL)
        free(memory);
    else
        add(*request, memory, use);
}

void weft_keep_copy(const int *request, weft_view *view)
{
    kept *one = add(*request, view->copy, view->use);
    memcpy(&one->section, view->section,
           sizeof(CFI_cdesc_t) + (size_t)view->section->rank * sizeof(CFI_dim_t));
}

enum action { COMPLETE, START, WRITE_BACK, FORGET };

/* Whether the entry stays. */
static int step(kept *one, enum action action)
{
    const CFI_cdesc_t *section = (CFI_cdesc_t *)&one->section;
    int persistent = one->use & WEFT_PERSISTENT;
    if (section->base_addr && action == START && (one->use & WEFT_READ))
        weft_pack(section, one->memory);
    if (section->base_addr && (action == COMPLETE || action == WRITE_BACK)
        && (one->use & WEFT_WRITE))
        weft_unpack(section, one->memory);
    if (action == START || action == WRITE_BACK || (action == COMPLETE && persistent))
        return 1;
    /* A request that is freed while it is active goes on: nothing will say when it is done with the memory. */
    if (action == COMPLETE || persistent)
        free(one->memory);
    return 0;
}

static void act(int request, enum action action)
{
    if (request == (int)(intptr_t)MPI_REQUEST_NULL)
        return;
    pthread_mutex_lock(&lock);
    kept **at = &lists[(unsigned)request % LISTS];
    while (*at) {
        kept *one = *at;
        if (one->request != request || step(one, action)) {
            at = &one->next;
            continue;
        }
        *at = one->next;
        free(one);
        __atomic_sub_fetch(&weft_kept, 1, __ATOMIC_RELAXED);
    }
    pthread_mutex_unlock(&lock);
}

void weft_write_back(int request)
{
    act(request, WRITE_BACK);
}

void weft_forget(int request)
{
    act(request, FORGET);
}

void weft_complete(int n, const int *requests, int index)
{
    for (int i = index < 0 ? 0 : index; i < n; i++)
        act(requests[i], COMPLETE);
}

void weft_start(int n, const int *requests)
{
    for (int i = 0; i < n; i++)
        act(requests[i], START);
}

void weft_completed_some(int n, const int *places, const int *requests)
{
    if (!__atomic_load_n(&weft_kept, __ATOMIC_RELAXED))
        return;
    for (int i = 0; i < n; i++)
        act(requests[places[i]], COMPLETE);
}
