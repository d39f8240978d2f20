/* Attributes (MPI 5.0, section 19.3.7): C sets and gets addresses, Fortran integers. An integer that Fortran sets lies here, and C
   gets its address; an address that C sets is the integer that Fortran gets. */
#include "weft_fortran.h"

#include <pthread.h>

typedef struct kept_integer {
    /* First member: C gets the address of the whole structure. */
    union {
        MPI_Aint wide;
        int narrow;
    } as;
    MPI_Aint value;
    int keyval;
    int width;
    struct kept_integer *next;
} kept_integer;

enum { LISTS = 256 };
static kept_integer *lists[LISTS];
static int count;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static kept_integer **list_of(const void *address)
{
    return &lists[((uintptr_t)address >> 5) % LISTS];
}

/* Returns the integer at an address, if Fortran has set it for this key. Other addresses may not be readable. */
static kept_integer *find(int keyval, const void *address)
{
    if (__atomic_load_n(&count, __ATOMIC_ACQUIRE) == 0)
        return NULL;
    pthread_mutex_lock(&lock);
    kept_integer *one = *list_of(address);
    while (one && (one != address || one->keyval != keyval))
        one = one->next;
    pthread_mutex_unlock(&lock);
    return one;
}

void *weft_attribute_in(int keyval, MPI_Aint value, int width)
{
    kept_integer *one = malloc(sizeof(kept_integer));
    if (width == WEFT_INT)
        one->as.narrow = (int)value;
    else
        one->as.wide = value;
    one->value = value;
    one->keyval = keyval;
    one->width = width;
    pthread_mutex_lock(&lock);
    kept_integer **list = list_of(one);
    one->next = *list;
    *list = one;
    __atomic_add_fetch(&count, 1, __ATOMIC_RELEASE);
    pthread_mutex_unlock(&lock);
    return one;
}

/* Stores a copied value like its original: as an integer, or as an address. */
void *weft_attribute_like(int keyval, MPI_Aint value, void *original)
{
    kept_integer *from = find(keyval, original);
    return from ? weft_attribute_in(keyval, value, from->width) : (void *)value;
}

void weft_attribute_drop(int keyval, void *attribute)
{
    kept_integer *one = find(keyval, attribute);
    if (!one)
        return;
    pthread_mutex_lock(&lock);
    kept_integer **at = list_of(attribute);
    while (*at && *at != one)
        at = &(*at)->next;
    if (*at) {
        *at = one->next;
        __atomic_sub_fetch(&count, 1, __ATOMIC_RELEASE);
    } else
        one = NULL;
    pthread_mutex_unlock(&lock);
    free(one);
}

/* Returns an attribute's value for Fortran. Predefined attributes are addresses of integers. */
MPI_Aint weft_attribute(int keyval, void *attribute)
{
    switch (keyval) {
    case MPI_TAG_UB:
    case MPI_IO:
    case MPI_HOST:
    case MPI_WTIME_IS_GLOBAL:
    case MPI_APPNUM:
    case MPI_LASTUSEDCODE:
    case MPI_UNIVERSE_SIZE:
    case MPI_WIN_DISP_UNIT:
    case MPI_WIN_CREATE_FLAVOR:
    case MPI_WIN_MODEL:
        return *(int *)attribute;
    case MPI_WIN_SIZE:
        return *(MPI_Aint *)attribute;
    default: {
        kept_integer *one = find(keyval, attribute);
        return one ? one->value : (MPI_Aint)attribute;
    }
    }
}
