#include "check.h"

static int queries = 0, frees = 0, cancels = 0, cancelled_complete = -1, refuse = 0;

static int query(void *extra, MPI_Status *status) {
    CHECK(extra == &queries);
    queries++;
    MPI_Status_set_elements(status, MPI_INT, 3);
    MPI_Status_set_cancelled(status, 0);
    status->MPI_SOURCE = 5;
    status->MPI_TAG = 6;
    return refuse ? MPI_ERR_IO : MPI_SUCCESS;
}

static int free_fn(void *extra) {
    CHECK(extra == &queries);
    frees++;
    return MPI_SUCCESS;
}

static int cancel(void *extra, int complete) {
    CHECK(extra == &queries);
    cancels++;
    cancelled_complete = complete;
    return MPI_SUCCESS;
}

int main(void) {
    begin();
    MPI_Request request, two[2], copy;
    MPI_Status status;
    int flag = 1, count, value = 0;
    MPI_Grequest_start(query, free_fn, cancel, &queries, &request);
    MPI_Test(&request, &flag, &status);
    CHECK(!flag && queries == 0);
    MPI_Cancel(&request);
    CHECK(cancels == 1 && cancelled_complete == 0);
    copy = request;
    CHECK(MPI_Grequest_complete(request) == MPI_SUCCESS);
    MPI_Request_get_status(request, &flag, &status);
    CHECK(flag && status.MPI_TAG == 6 && queries == 1 && frees == 0 && request == copy);
    MPI_Cancel(&request);
    CHECK(cancels == 2 && cancelled_complete == 1);
    CHECK(MPI_Wait(&request, &status) == MPI_SUCCESS);
    MPI_Get_count(&status, MPI_INT, &count);
    CHECK(request == MPI_REQUEST_NULL && queries == 2 && frees == 1);
    CHECK(status.MPI_SOURCE == 5 && status.MPI_TAG == 6 && count == 3);
    REFUSED(MPI_Grequest_complete(copy), MPI_ERR_REQUEST, "freed");

    /* Among other requests. */
    MPI_Grequest_start(query, free_fn, cancel, &queries, &two[0]);
    MPI_Irecv(&value, 1, MPI_INT, 0, 0, MPI_COMM_SELF, &two[1]);
    MPI_Testall(2, two, &flag, MPI_STATUSES_IGNORE);
    CHECK(!flag);
    MPI_Grequest_complete(two[0]);
    REFUSED(MPI_Grequest_complete(two[0]), MPI_ERR_REQUEST, "complete already");
    REFUSED(MPI_Grequest_complete(two[1]), MPI_ERR_REQUEST, "not a generalized request");
    int seven = 7;
    MPI_Send(&seven, 1, MPI_INT, 0, 0, MPI_COMM_SELF);
    MPI_Waitall(2, two, MPI_STATUSES_IGNORE);
    CHECK(value == 7 && frees == 2 && queries == 3);

    /* Freed before it is complete: its own free function runs when it is. */
    MPI_Grequest_start(query, free_fn, cancel, &queries, &request);
    copy = request;
    MPI_Request_free(&request);
    CHECK(request == MPI_REQUEST_NULL && frees == 2);
    CHECK(MPI_Grequest_complete(copy) == MPI_SUCCESS && frees == 3 && queries == 3);

    refuse = 1;
    MPI_Grequest_start(query, free_fn, cancel, &queries, &request);
    MPI_Grequest_complete(request);
    CHECK(MPI_Wait(&request, &status) == MPI_ERR_IO);
    CHECK(frees == 4);
    REFUSED(MPI_Grequest_start(NULL, free_fn, cancel, &queries, &request), MPI_ERR_ARG, "query_fn is NULL");
    return end();
}
