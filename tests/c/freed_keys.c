// ranks: 1
// says: correct
//
// A key that was freed while attributes are under it (MPI 5.0, section 7.7.2): they are read, copied and
// deleted by its old number, with its functions, until the last one is gone. Of all kinds of objects.
#include "check.h"

enum { KINDS = 4, OBJECTS = 3, MANY = 20000 };
static const char *const kinds[KINDS] = {"communicators", "old names", "datatypes", "windows"};
enum { COMM, OLD, TYPE, WIN };

static int copies, deletes, frees_itself;
static void *last_value;

static int copied(void *in, void *out, int *flag)
{
    copies++;
    *flag = 1;
    *(void **)out = in;
    return MPI_SUCCESS;
}
static int deleted(void *value)
{
    deletes++;
    last_value = value;
    return MPI_SUCCESS;
}
static int comm_copy(MPI_Comm c, int k, void *extra, void *in, void *out, int *flag)
{
    (void)c, (void)k, (void)extra;
    return copied(in, out, flag);
}
static int comm_delete(MPI_Comm c, int k, void *value, void *extra)
{
    (void)c, (void)extra;
    if (frees_itself) MPI_Comm_free_keyval(&k);
    return deleted(value);
}
static int type_copy(MPI_Datatype t, int k, void *extra, void *in, void *out, int *flag)
{
    (void)t, (void)k, (void)extra;
    return copied(in, out, flag);
}
static int type_delete(MPI_Datatype t, int k, void *value, void *extra)
{
    (void)t, (void)extra;
    if (frees_itself) MPI_Type_free_keyval(&k);
    return deleted(value);
}
static int win_delete(MPI_Win w, int k, void *value, void *extra)
{
    (void)w, (void)extra;
    if (frees_itself) MPI_Win_free_keyval(&k);
    return deleted(value);
}

static MPI_Comm comms[OBJECTS];
static MPI_Datatype types[OBJECTS];
static MPI_Win wins[OBJECTS];

static int make_key(int kind)
{
    int key = MPI_KEYVAL_INVALID;
    switch (kind) {
    case COMM: MPI_Comm_create_keyval(comm_copy, comm_delete, &key, NULL); break;
    case OLD: MPI_Keyval_create(comm_copy, comm_delete, &key, NULL); break;
    case TYPE: MPI_Type_create_keyval(type_copy, type_delete, &key, NULL); break;
    default: MPI_Win_create_keyval(MPI_WIN_DUP_FN, win_delete, &key, NULL);
    }
    return key;
}
static int free_key(int kind, int key)
{
    int code = kind == COMM   ? MPI_Comm_free_keyval(&key)
               : kind == OLD  ? MPI_Keyval_free(&key)
               : kind == TYPE ? MPI_Type_free_keyval(&key)
                              : MPI_Win_free_keyval(&key);
    CHECK(code || key == MPI_KEYVAL_INVALID);
    return code;
}
static int set(int kind, int i, int key, void *value)
{
    return kind == COMM   ? MPI_Comm_set_attr(comms[i], key, value)
           : kind == OLD  ? MPI_Attr_put(comms[i], key, value)
           : kind == TYPE ? MPI_Type_set_attr(types[i], key, value)
                          : MPI_Win_set_attr(wins[i], key, value);
}
static int delete(int kind, int i, int key)
{
    return kind == COMM   ? MPI_Comm_delete_attr(comms[i], key)
           : kind == OLD  ? MPI_Attr_delete(comms[i], key)
           : kind == TYPE ? MPI_Type_delete_attr(types[i], key)
                          : MPI_Win_delete_attr(wins[i], key);
}
static void *get(int kind, int i, int key)
{
    void *value = NULL;
    int flag = -1, code = kind == COMM   ? MPI_Comm_get_attr(comms[i], key, &value, &flag)
                          : kind == OLD  ? MPI_Attr_get(comms[i], key, &value, &flag)
                          : kind == TYPE ? MPI_Type_get_attr(types[i], key, &value, &flag)
                                         : MPI_Win_get_attr(wins[i], key, &value, &flag);
    return code == MPI_SUCCESS && flag ? value : NULL;
}
static void make(int kind, int i)
{
    if (kind == TYPE) {
        MPI_Type_contiguous(i + 1, MPI_INT, &types[i]);
    } else if (kind == WIN) {
        MPI_Win_create(NULL, 0, 1, MPI_INFO_NULL, MPI_COMM_SELF, &wins[i]);
        MPI_Win_set_errhandler(wins[i], MPI_ERRORS_RETURN);
    } else {
        MPI_Comm_dup(MPI_COMM_SELF, &comms[i]);
    }
}
static void unmake(int kind, int i)
{
    if (kind == TYPE) MPI_Type_free(&types[i]);
    else if (kind == WIN) MPI_Win_free(&wins[i]);
    else MPI_Comm_free(&comms[i]);
}

static void one(int kind)
{
    int marks[OBJECTS], key = make_key(kind), other = make_key(kind);
    const char *name = kinds[kind];
    for (int i = 0; i < OBJECTS; i++) {
        make(kind, i);
        set(kind, i, key, &marks[i]);
    }
    copies = deletes = 0;
    CHECK(free_key(kind, key) == MPI_SUCCESS, "%s", name);
    for (int i = 0; i < OBJECTS; i++) CHECK(get(kind, i, key) == &marks[i], "%s", name);
    FAILS(free_key(kind, key), MPI_ERR_KEYVAL);
    /* An attribute that is there may change its value; there are no new ones. */
    CHECK(set(kind, 0, key, &marks[1]) == MPI_SUCCESS && deletes == 1 && last_value == &marks[0]);
    CHECK(delete(kind, 0, key) == MPI_SUCCESS && deletes == 2 && last_value == &marks[1], "%s", name);
    CHECK(!get(kind, 0, key), "%s", name);
    FAILS(set(kind, 0, key, marks), MPI_ERR_KEYVAL);
    /* It is copied, and the copy counts. */
    int left = 2;
    MPI_Comm comm;
    MPI_Datatype type;
    if (kind == TYPE) MPI_Type_dup(types[1], &type);
    else if (kind != WIN) MPI_Comm_dup(comms[1], &comm);
    if (kind != WIN) CHECK(copies == 1, "%s", name);
    unmake(kind, 1);
    CHECK(deletes == 3 && last_value == &marks[1], "%s", name);
    CHECK(delete(kind, 2, key) == MPI_SUCCESS && deletes == 4 && last_value == &marks[2], "%s", name);
    if (kind == TYPE) types[1] = type;
    else if (kind == WIN) make(kind, 1), left--;
    else comms[1] = comm;
    if (kind != WIN) {
        CHECK(get(kind, 1, key) == &marks[1], "%s", name);
        CHECK(delete(kind, 1, key) == MPI_SUCCESS && deletes == 5, "%s", name);
    }
    /* Now it is gone. */
    FAILS(delete(kind, 1, key), MPI_ERR_KEYVAL);
    FAILS(set(kind, 1, key, marks), MPI_ERR_KEYVAL);
    FAILS(free_key(kind, key), MPI_ERR_KEYVAL);
    CHECK(make_key(kind) != key, "numbers do not come back at once");

    /* A delete function that frees its own key. */
    set(kind, 0, other, &marks[0]);
    set(kind, 1, other, &marks[1]);
    frees_itself = 1;
    deletes = 0;
    CHECK(delete(kind, 0, other) == MPI_SUCCESS && deletes == 1);
    frees_itself = 0;
    CHECK(get(kind, 1, other) == &marks[1], "%s", name);
    for (int i = 0; i < OBJECTS; i++) unmake(kind, i);
    CHECK(deletes == 2 && last_value == &marks[1], "%s: %d", name, deletes);
    FAILS(free_key(kind, other), MPI_ERR_KEYVAL);

    /* Many, each freed while it is used. */
    make(kind, 0);
    deletes = 0;
    for (int i = 0; i < MANY; i++) {
        int k = make_key(kind);
        CHECK(set(kind, 0, k, marks) == MPI_SUCCESS && free_key(kind, k) == MPI_SUCCESS);
        CHECK(i % 16 == 15 || delete(kind, 0, k) == MPI_SUCCESS);
        if (i % 1024 == 1023) unmake(kind, 0), make(kind, 0);
    }
    unmake(kind, 0);
    CHECK(deletes == MANY, "%s: %d", name, deletes);
}

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    for (int kind = 0; kind < KINDS; kind++) one(kind);
    return end();
}
