// ranks: 1 2
// says: correct
//
// What a function of the program returns is the error code that the program gets from the call that ran
// it, with its string: the program's own codes, codes of the standard, numbers that are none.
#include "check.h"

static int codes[4]; /* to return; 0 is success */
static int returns;  /* now */
static int copies, deletes;
static int freed_within;
enum { UNKNOWN = 4711 };

static int copy_it(int *flag, void *in, void *out)
{
    copies++;
    *flag = 1;
    *(void **)out = in;
    return returns;
}

static int comm_copy(MPI_Comm c, int key, void *extra, void *in, void *out, int *flag)
{
    (void)c, (void)key, (void)extra;
    return copy_it(flag, in, out);
}

static int comm_delete(MPI_Comm c, int key, void *value, void *extra)
{
    (void)c, (void)key, (void)value, (void)extra;
    deletes++;
    return returns;
}

static int type_copy(MPI_Datatype t, int key, void *extra, void *in, void *out, int *flag)
{
    (void)t, (void)key, (void)extra;
    return copy_it(flag, in, out);
}

static int type_delete(MPI_Datatype t, int key, void *value, void *extra)
{
    (void)t, (void)key, (void)value, (void)extra;
    deletes++;
    return returns;
}

static int win_delete(MPI_Win w, int key, void *value, void *extra)
{
    (void)w, (void)key, (void)value, (void)extra;
    deletes++;
    return returns;
}

static int heard;
static void hear(MPI_Comm *comm, int *code, ...)
{
    (void)comm;
    heard = *code;
}

static void change(MPI_Comm *comm, int *code, ...)
{
    (void)comm;
    *code = returns;
}

/* The call returned this very code, whose string is what it was. */
static void is(int line, int code, const char *string)
{
    char text[MPI_MAX_ERROR_STRING];
    int length;
    CHECK(code == returns, "line %d: %d, not %d", line, code, returns);
    if (code == UNKNOWN) return;
    MPI_Error_string(code, text, &length);
    CHECK(!strcmp(text, string), "line %d: %s", line, text);
}
#define IS(call) is(__LINE__, call, string)

static void attributes(const char *string)
{
    int key, old, other, flag;
    MPI_Comm comm, copy = MPI_COMM_NULL;
    MPI_Datatype type, type_2 = MPI_DATATYPE_NULL;
    MPI_Request request;
    MPI_Win win;
    void *value;
    int failing = returns;

    MPI_Comm_create_keyval(comm_copy, comm_delete, &key, NULL);
    MPI_Keyval_create(comm_copy, comm_delete, &old, NULL);
    MPI_Comm_create_keyval(MPI_COMM_DUP_FN, comm_delete, &other, NULL);
    MPI_Comm_dup(MPI_COMM_SELF, &comm);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    returns = 0;
    MPI_Comm_set_attr(comm, other, &key);
    MPI_Comm_set_attr(comm, key, &key);
    copies = deletes = 0;
    returns = failing;
    IS(MPI_Comm_dup(comm, &copy));
    CHECK(copy == MPI_COMM_NULL && copies == 1 && deletes == 1, "%d copies, %d deleted", copies, deletes);
    IS(MPI_Comm_dup_with_info(comm, MPI_INFO_NULL, &copy));
    IS(MPI_Comm_idup(comm, &copy, &request));
    IS(MPI_Comm_set_attr(comm, key, &old)); /* deletes the former value */
    IS(MPI_Comm_delete_attr(comm, key));
    IS(MPI_Attr_delete(comm, key));
    copy = comm;
    IS(MPI_Comm_free(&copy));
    IS(MPI_Comm_disconnect(&copy));
    CHECK(copy == comm, "it is there still");
    MPI_Comm_get_attr(comm, key, &value, &flag);
    CHECK(flag && value == &key);
    returns = 0;
    MPI_Comm_free(&comm);
    MPI_Comm_free_keyval(&key);
    MPI_Keyval_free(&old);
    MPI_Comm_free_keyval(&other);

    MPI_Type_create_keyval(type_copy, type_delete, &key, NULL);
    MPI_Type_contiguous(3, MPI_INT, &type);
    MPI_Type_set_attr(type, key, &key);
    returns = failing;
    IS(MPI_Type_dup(type, &type_2));
    IS(MPI_Type_delete_attr(type, key));
    IS(MPI_Type_set_attr(type, key, &old));
    type_2 = type;
    IS(MPI_Type_free(&type_2));
    returns = 0;
    MPI_Type_free(&type);
    MPI_Type_free_keyval(&key);

    MPI_Win_create_keyval(MPI_WIN_NULL_COPY_FN, win_delete, &key, NULL);
    MPI_Win_create(NULL, 0, 1, MPI_INFO_NULL, MPI_COMM_SELF, &win);
    MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
    MPI_Win_set_attr(win, key, &key);
    returns = failing;
    IS(MPI_Win_delete_attr(win, key));
    IS(MPI_Win_set_attr(win, key, &old));
    MPI_Win same = win;
    IS(MPI_Win_free(&same));
    returns = 0;
    MPI_Win_free(&win);
    MPI_Win_free_keyval(&key);
    returns = failing;
}

/* What the functions of generalized requests return. */
static int of_query, of_free, of_cancel;
static int query(void *extra, MPI_Status *status)
{
    (void)extra;
    MPI_Status_set_elements(status, MPI_BYTE, 5);
    MPI_Status_set_cancelled(status, 0);
    status->MPI_SOURCE = status->MPI_TAG = 3;
    return of_query;
}
static int release(void *extra)
{
    (void)extra;
    freed_within++;
    return of_free;
}
static int cancel(void *extra, int complete)
{
    (void)extra, (void)complete;
    return of_cancel;
}

static MPI_Request begun(int complete)
{
    MPI_Request request;
    MPI_Grequest_start(query, release, cancel, NULL, &request);
    if (complete) MPI_Grequest_complete(request);
    return request;
}

static void generalized(const char *string)
{
    int flag, index, n, bytes;
    for (int which = 0; which < 3; which++) {
        /* query fails, free fails, both do: the last one counts. */
        of_query = which == 1 ? 0 : which == 2 ? MPI_ERR_IO : returns;
        of_free = which == 0 ? 0 : returns;
        MPI_Status status, two[2];
        MPI_Request request = begun(1), pair[2];
        freed_within = 0;
        IS(MPI_Wait(&request, &status));
        CHECK(request == MPI_REQUEST_NULL && freed_within == 1);
        MPI_Get_count(&status, MPI_BYTE, &bytes);
        CHECK(bytes == 5 && status.MPI_SOURCE == 3);
        request = begun(1);
        IS(MPI_Test(&request, &flag, &status));
        CHECK(flag && request == MPI_REQUEST_NULL);
        request = begun(1);
        IS(MPI_Waitany(1, &request, &index, &status));
        request = begun(1);
        IS(MPI_Testany(1, &request, &index, &flag, &status));
        for (int way = 0; way < 4; way++) {
            pair[0] = MPI_REQUEST_NULL, pair[1] = begun(1);
            memset(two, 0xff, sizeof two);
            int places[2], code = way == 0   ? MPI_Waitall(2, pair, two)
                                  : way == 1 ? MPI_Testall(2, pair, &flag, two)
                                  : way == 2 ? MPI_Waitsome(2, pair, &n, places, two)
                                             : MPI_Testsome(2, pair, &n, places, two);
            CHECK(code == MPI_ERR_IN_STATUS && heard == returns, "way %d: %d, %d", way, code, heard);
            IS(two[way < 2].MPI_ERROR);
            CHECK(pair[1] == MPI_REQUEST_NULL);
        }
        if (of_free) {
            request = begun(1);
            IS(MPI_Request_free(&request));
            CHECK(request == MPI_REQUEST_NULL);
            request = begun(0);
            MPI_Request again = request;
            MPI_Request_free(&request);
            IS(MPI_Grequest_complete(again));
        }
    }
    of_free = 0;
    of_query = returns;
    MPI_Status status, two[1];
    MPI_Request request = begun(1);
    IS(MPI_Request_get_status(request, &flag, &status));
    CHECK(flag);
    IS(MPI_Request_get_status_any(1, &request, &index, &flag, &status));
    CHECK(MPI_Request_get_status_all(1, &request, &flag, two) == MPI_ERR_IN_STATUS);
    IS(two[0].MPI_ERROR);
    of_query = 0;
    of_cancel = returns;
    IS(MPI_Cancel(&request));
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

int main(int argc, char **argv)
{
    MPI_Errhandler handler, changes;
    int class, key;
    begin(&argc, &argv);
    MPI_Comm_create_errhandler(hear, &handler);
    MPI_Comm_create_errhandler(change, &changes);
    MPI_Add_error_class(&class);
    MPI_Add_error_code(MPI_ERR_OTHER, &codes[1]);
    MPI_Add_error_string(class, "a class of mine");
    MPI_Add_error_string(codes[1], "a code of mine");
    codes[0] = class, codes[2] = MPI_ERR_INTERN, codes[3] = UNKNOWN;
    const char *strings[4] = {"a class of mine", "a code of mine",
                              "MPI_ERR_INTERN: internal error of the library", NULL};
    for (int i = 0; i < 4; i++) {
        MPI_Comm_set_errhandler(MPI_COMM_WORLD, handler);
        MPI_Comm_set_errhandler(MPI_COMM_SELF, handler);
        returns = codes[i];
        attributes(strings[i]);
        CHECK(heard == returns);
        generalized(strings[i]);
        /* A handler that changes the code. */
        MPI_Comm_set_errhandler(MPI_COMM_WORLD, changes);
        const char *string = strings[i];
        IS(MPI_Send(NULL, -1, MPI_INT, 0, 0, MPI_COMM_WORLD));
    }
    MPI_Errhandler_free(&handler);
    MPI_Errhandler_free(&changes);
    /* At the end, too. */
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, comm_delete, &key, NULL);
    MPI_Comm_set_attr(MPI_COMM_SELF, key, &key);
    returns = class;
    const char *string = strings[0];
    IS(MPI_Finalize());
    returns = 0;
    return end();
}
