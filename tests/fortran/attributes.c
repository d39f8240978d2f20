/* C's part of attributes.F90: sets and gets values by keys of both languages. Each function returns 0, or the number of the
   error. */
#include <mpi.h>
#include <stddef.h>

static int of_c = 3;
static int copied, deleted;

static int copy(MPI_Comm comm, int keyval, void *extra, void *in, void *out, int *flag)
{
    (void)comm, (void)keyval, (void)extra;
    copied++;
    *(void **)out = in;
    *flag = 1;
    return MPI_SUCCESS;
}

static int delete(MPI_Comm comm, int keyval, void *attribute, void *extra)
{
    (void)comm, (void)keyval, (void)attribute, (void)extra;
    deleted++;
    return MPI_SUCCESS;
}

int c_create_key(MPI_Fint *key)
{
    return MPI_Comm_create_keyval(copy, delete, key, NULL);
}

/* Sets an address in C. */
int c_set(const MPI_Fint *comm, const MPI_Fint *key)
{
    return MPI_Comm_set_attr(MPI_Comm_f2c(*comm), *key, &of_c);
}

/* Checks that C gets the value that C has set. */
int c_got_address(const MPI_Fint *comm, const MPI_Fint *key)
{
    int *value, flag;
    MPI_Comm_get_attr(MPI_Comm_f2c(*comm), *key, &value, &flag);
    return !flag ? 1 : value != &of_c ? 2 : *value != 3 ? 3 : 0;
}

MPI_Aint c_address(void)
{
    return (MPI_Aint)&of_c;
}

/* Checks that C gets the address of an MPI_Aint that Fortran has set. */
int c_got_aint(const MPI_Fint *comm, const MPI_Fint *key, const MPI_Aint *expected)
{
    MPI_Aint *value;
    int flag;
    MPI_Comm_get_attr(MPI_Comm_f2c(*comm), *key, &value, &flag);
    return !flag ? 1 : *value != *expected ? 2 : 0;
}

/* Checks that C gets the address of an int that Fortran has set by MPI_ATTR_PUT. */
int c_got_int(const MPI_Fint *comm, const MPI_Fint *key, const MPI_Fint *expected)
{
    int *value, flag;
    MPI_Comm_get_attr(MPI_Comm_f2c(*comm), *key, &value, &flag);
    return !flag ? 1 : *value != *expected ? 2 : 0;
}

int c_win_got_aint(const MPI_Fint *win, const MPI_Fint *key, const MPI_Aint *expected)
{
    MPI_Aint *value;
    int flag;
    MPI_Win_get_attr(MPI_Win_f2c(*win), *key, &value, &flag);
    return !flag ? 1 : *value != *expected ? 2 : 0;
}

int c_type_got_aint(const MPI_Fint *type, const MPI_Fint *key, const MPI_Aint *expected)
{
    MPI_Aint *value;
    int flag;
    MPI_Type_get_attr(MPI_Type_f2c(*type), *key, &value, &flag);
    return !flag ? 1 : *value != *expected ? 2 : 0;
}

/* Returns the number of calls of C's own functions: 100 for each copy, 1 for each deletion. */
int c_calls(void)
{
    return 100 * copied + deleted;
}

/* Checks that C gets predefined attributes as addresses of integers, and a window's base as the address itself. */
int c_predefined(const MPI_Fint *win, const MPI_Fint *upper, const MPI_Aint *base, const MPI_Aint *size)
{
    int *tag, flag;
    void *at;
    MPI_Aint *length;
    MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &tag, &flag);
    if (!flag || *tag != *upper)
        return 1;
    MPI_Win_get_attr(MPI_Win_f2c(*win), MPI_WIN_BASE, &at, &flag);
    if (!flag || (MPI_Aint)at != *base)
        return 2;
    MPI_Win_get_attr(MPI_Win_f2c(*win), MPI_WIN_SIZE, &length, &flag);
    return !flag || *length != *size ? 3 : 0;
}
