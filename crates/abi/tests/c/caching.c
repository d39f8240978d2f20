#include "check.h"

static int copies = 0, deletes = 0, last_deleted = -1, refuse = 0;

static int copy_fn(MPI_Comm comm, int key, void *extra, void *in, void *out, int *flag) {
    CHECK(comm == MPI_COMM_WORLD && key != MPI_KEYVAL_INVALID && extra == &copies);
    copies++;
    *flag = in != NULL;
    *(void **)out = (char *)in + 1;
    return refuse ? MPI_ERR_OTHER : MPI_SUCCESS;
}

static int delete_fn(MPI_Comm comm, int key, void *value, void *extra) {
    CHECK(comm != MPI_COMM_NULL && extra == &copies && value != (void *)-1);
    /* The program may call MPI here. */
    void *found;
    int flag;
    CHECK(MPI_Comm_get_attr(comm, key, &found, &flag) == MPI_SUCCESS && flag && found == value);
    deletes++;
    last_deleted = key;
    return refuse ? MPI_ERR_OTHER : MPI_SUCCESS;
}

static int type_copies = 0, type_deletes = 0;

static int type_copy(MPI_Datatype type, int key, void *extra, void *in, void *out, int *flag) {
    CHECK(type != MPI_DATATYPE_NULL && key != MPI_KEYVAL_INVALID && extra == NULL);
    type_copies++;
    *flag = 1;
    *(void **)out = in;
    return MPI_SUCCESS;
}

static int type_delete(MPI_Datatype type, int key, void *value, void *extra) {
    CHECK(type != MPI_DATATYPE_NULL && key != MPI_KEYVAL_INVALID && value && extra == NULL);
    type_deletes++;
    return MPI_SUCCESS;
}

static int on_self = 0;

static int self_delete(MPI_Comm comm, int key, void *value, void *extra) {
    int finalized = 1;
    (void)key, (void)value, (void)extra;
    MPI_Finalized(&finalized);
    on_self += comm == MPI_COMM_SELF && !finalized;
    return MPI_SUCCESS;
}

static void predefined(void) {
    int *value = NULL, flag = 0;
    CHECK(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &value, &flag) == MPI_SUCCESS);
    CHECK(flag && *value >= 32767);
    MPI_Comm_get_attr(MPI_COMM_SELF, MPI_WTIME_IS_GLOBAL, &value, &flag);
    CHECK(flag && *value == 1);
    MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_UNIVERSE_SIZE, &value, &flag);
    CHECK(flag && *value >= 1);
    MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_IO, &value, &flag);
    CHECK(flag && *value == MPI_ANY_SOURCE);
    MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_HOST, &value, &flag);
    CHECK(flag && *value == MPI_PROC_NULL);
    MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_LASTUSEDCODE, &value, &flag);
    CHECK(flag && *value == MPI_ERR_LASTCODE);
    MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_APPNUM, &value, &flag);
    CHECK(!flag || *value == 0);
    REFUSED(MPI_Comm_set_attr(MPI_COMM_WORLD, MPI_TAG_UB, &flag), MPI_ERR_KEYVAL, "predefined");
    REFUSED(MPI_Comm_delete_attr(MPI_COMM_WORLD, MPI_TAG_UB), MPI_ERR_KEYVAL, "predefined");
    REFUSED(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_WIN_SIZE, &value, &flag), MPI_ERR_KEYVAL,
            "MPI_WIN_SIZE is an attribute of windows");
}

static void datatypes(void) {
    int key, null_key, flag;
    void *value;
    char mark;
    MPI_Datatype type, copy;
    MPI_Type_create_keyval(type_copy, type_delete, &key, NULL);
    MPI_Type_create_keyval(MPI_TYPE_NULL_COPY_FN, MPI_TYPE_NULL_DELETE_FN, &null_key, NULL);
    MPI_Type_contiguous(3, MPI_INT, &type);
    MPI_Type_set_attr(type, key, &mark);
    MPI_Type_set_attr(type, null_key, &mark);
    MPI_Type_dup(type, &copy);
    CHECK(type_copies == 1);
    MPI_Type_get_attr(copy, key, &value, &flag);
    CHECK(flag && value == &mark);
    MPI_Type_get_attr(copy, null_key, &value, &flag);
    CHECK(!flag);
    MPI_Type_delete_attr(copy, key);
    CHECK(type_deletes == 1);
    MPI_Type_free(&copy);
    CHECK(type_deletes == 1);
    MPI_Type_free(&type);
    CHECK(type_deletes == 2);
    REFUSED(MPI_Comm_set_attr(MPI_COMM_WORLD, key, &mark), MPI_ERR_KEYVAL,
            "is a key for datatypes, not for communicators");
    MPI_Type_free_keyval(&key);
    CHECK(key == MPI_KEYVAL_INVALID);
    MPI_Type_free_keyval(&null_key);
}

int main(void) {
    begin();
    predefined();
    datatypes();
    int first, second, dup_key, null_key, old_key, flag;
    void *value;
    char marks[4];
    MPI_Comm_create_keyval(copy_fn, delete_fn, &first, &copies);
    MPI_Comm_create_keyval(copy_fn, delete_fn, &second, &copies);
    MPI_Comm_create_keyval(MPI_COMM_DUP_FN, MPI_COMM_NULL_DELETE_FN, &dup_key, NULL);
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, MPI_COMM_NULL_DELETE_FN, &null_key, NULL);
    MPI_Keyval_create(MPI_DUP_FN, MPI_NULL_DELETE_FN, &old_key, NULL);
    CHECK(first != second && first != MPI_KEYVAL_INVALID);

    MPI_Comm_get_attr(MPI_COMM_WORLD, first, &value, &flag);
    CHECK(!flag);
    MPI_Comm_set_attr(MPI_COMM_WORLD, first, &marks[0]);
    MPI_Comm_set_attr(MPI_COMM_WORLD, second, &marks[1]);
    MPI_Comm_set_attr(MPI_COMM_WORLD, dup_key, &marks[2]);
    MPI_Comm_set_attr(MPI_COMM_WORLD, null_key, &marks[3]);
    MPI_Attr_put(MPI_COMM_WORLD, old_key, &marks[3]);
    MPI_Comm_get_attr(MPI_COMM_WORLD, first, &value, &flag);
    CHECK(flag && value == &marks[0]);

    MPI_Comm copy, none;
    CHECK(MPI_Comm_dup(MPI_COMM_WORLD, &copy) == MPI_SUCCESS && copies == 2 && deletes == 0);
    MPI_Comm_get_attr(copy, first, &value, &flag);
    CHECK(flag && value == &marks[1]);
    MPI_Comm_get_attr(copy, dup_key, &value, &flag);
    CHECK(flag && value == &marks[2]);
    MPI_Comm_get_attr(copy, null_key, &value, &flag);
    CHECK(!flag);
    MPI_Attr_get(copy, old_key, &value, &flag);
    CHECK(flag && value == &marks[3]);
    /* The last one set is deleted first. */
    MPI_Comm_free(&copy);
    CHECK(deletes == 2 && last_deleted == first);

    /* Setting again deletes the former value. */
    MPI_Comm_set_attr(MPI_COMM_WORLD, first, &marks[3]);
    CHECK(deletes == 3);
    refuse = 1;
    CHECK(MPI_Comm_dup(MPI_COMM_WORLD, &none) == MPI_ERR_OTHER);
    CHECK(MPI_Comm_delete_attr(MPI_COMM_WORLD, first) == MPI_ERR_OTHER);
    refuse = 0;
    MPI_Comm_get_attr(MPI_COMM_WORLD, first, &value, &flag);
    CHECK(flag && value == &marks[3]);
    MPI_Comm_delete_attr(MPI_COMM_WORLD, first);
    MPI_Comm_delete_attr(MPI_COMM_WORLD, second);
    MPI_Comm_get_attr(MPI_COMM_WORLD, first, &value, &flag);
    CHECK(!flag && deletes == 6);
    MPI_Attr_delete(MPI_COMM_WORLD, old_key);
    MPI_Attr_get(MPI_COMM_WORLD, old_key, &value, &flag);
    CHECK(!flag);

    int stale = first;
    MPI_Comm_free_keyval(&first);
    CHECK(first == MPI_KEYVAL_INVALID);
    REFUSED(MPI_Comm_set_attr(MPI_COMM_WORLD, stale, NULL), MPI_ERR_KEYVAL, "is a freed key");
    REFUSED(MPI_Comm_free_keyval(&stale), MPI_ERR_KEYVAL, "is a freed key");
    REFUSED(MPI_Comm_set_attr(MPI_COMM_WORLD, 4711, NULL), MPI_ERR_KEYVAL, "= 4711 was never a key");
    REFUSED(MPI_Comm_get_attr(MPI_COMM_WORLD, first, &value, &flag), MPI_ERR_KEYVAL,
            "is MPI_KEYVAL_INVALID");
    REFUSED(MPI_Comm_get_attr(MPI_COMM_NULL, second, &value, &flag), MPI_ERR_COMM, "null communicator");
    REFUSED(MPI_Comm_get_attr(MPI_COMM_WORLD, second, NULL, &flag), MPI_ERR_ARG,
            "argument attribute_val is NULL");
    MPI_Keyval_free(&old_key);
    CHECK(old_key == MPI_KEYVAL_INVALID);

    /* Keys of windows are no keys of communicators. */
    int win_key = MPI_KEYVAL_INVALID;
    MPI_Win_create_keyval(MPI_WIN_NULL_COPY_FN, MPI_WIN_NULL_DELETE_FN, &win_key, NULL);
    CHECK(win_key != MPI_KEYVAL_INVALID && win_key != second);
    CHECK(MPI_Comm_set_attr(MPI_COMM_WORLD, win_key, NULL) != MPI_SUCCESS);
    CHECK(MPI_Win_free_keyval(&win_key) == MPI_SUCCESS && win_key == MPI_KEYVAL_INVALID);

    /* MPI_Finalize begins with the attributes of MPI_COMM_SELF. */
    int key;
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, self_delete, &key, NULL);
    MPI_Comm_set_attr(MPI_COMM_SELF, key, NULL);
    int code = end();
    CHECK(on_self == 1);
    return code || failures;
}
