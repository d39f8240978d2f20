// Poison in buffers that are not received yet: `mpiexec -check-poison`. Programs whose head has "// early" read such a buffer too early, and must
// see the pattern. The others are correct: they must see their own data, and never the pattern.
#include "catalogue.h"
#include <math.h>
#include <sys/mman.h>

static int poisoned, wrong;
static int other(void) { return 1 - rank; }

static int is_poison(const volatile int *at) { return *at == 0x7ff4dead; }

static void expect(const volatile int *at, int value) {
    poisoned += is_poison(at);
    wrong += *at != value;
}
static void fill(int *all, int n) {
    for (int i = 0; i < n; i++) all[i] = 100 + i;
}
static void finish(void) {
    int all[2], own[2] = {poisoned, wrong};
    MPI_Allreduce(own, all, 2, MPI_INT, MPI_SUM, world);
    if (rank == 0) printf("poison %s, content %s\n", all[0] ? "seen" : "not seen", all[1] ? "wrong" : "right");
}

CORRECT(receive_read_early, 2) {  // early
    MPI_Request request;
    double sum = 0;
    MPI_Irecv(doubles, 200, MPI_DOUBLE, other(), 1, world, &request);
    for (int i = 0; i < 200; i++) sum += ((volatile double *)doubles)[i];
    poisoned += isnan(sum);
    double ones[200] = {1};
    MPI_Send(ones, 200, MPI_DOUBLE, other(), 1, world);
    MPI_Wait(&request, no_status);
    wrong += doubles[0] != 1 || doubles[199] != 0;
    finish();
}
CORRECT(persistent_receive_read_early, 2) {  // early
    MPI_Request request;
    MPI_Recv_init(ints, 100, MPI_INT, other(), 1, world, &request);
    expect(ints, 0);
    for (int i = 0; i < 2; i++) {
        MPI_Start(&request);
        poisoned += is_poison(&ints[99]);
        MPI_Send(more, 100, MPI_INT, other(), 1, world);
        MPI_Wait(&request, no_status);
        expect(&ints[99], 0);
    }
    MPI_Request_free(&request);
    finish();
}
CORRECT(reduction_read_early, 2) {  // early
    MPI_Request request;
    if (rank == 0) {
        MPI_Iallreduce(ints, more, 10, MPI_INT, MPI_SUM, world, &request);
        poisoned += is_poison(more);
        MPI_Send(ints, 1, MPI_INT, 1, 1, world);
    }
    if (rank == 1) MPI_Recv(ints, 1, MPI_INT, 0, 1, world, no_status);
    if (rank == 1) MPI_Iallreduce(ints, more, 10, MPI_INT, MPI_SUM, world, &request);
    MPI_Wait(&request, no_status);
    expect(more, 0);
    finish();
}
CORRECT(short_message, 2) {
    MPI_Request request;
    MPI_Status status;
    fill(ints, 100), fill(more, 100);
    MPI_Irecv(ints, 100, MPI_INT, other(), 1, world, &request);
    more[0] = more[2] = 7;
    MPI_Send(more, 3, MPI_INT, other(), 1, world);
    MPI_Wait(&request, &status);
    expect(&ints[0], 7), expect(&ints[1], 101), expect(&ints[2], 7);
    for (int i = 3; i < 100; i++) expect(&ints[i], 100 + i);
    finish();
}
CORRECT(odd_bytes, 2) {
    char *bytes = (char *)ints, data[200];
    MPI_Request request;
    fill(ints, 100);
    memset(data, 3, sizeof data);
    MPI_Irecv(bytes + 3, 190, MPI_CHAR, other(), 1, world, &request);
    MPI_Send(data, 6, MPI_CHAR, other(), 1, world);
    MPI_Wait(&request, no_status);
    wrong += bytes[2] != 0 || bytes[3] != 3 || bytes[8] != 3 || bytes[9] != 0;
    for (int i = 3; i < 100; i++) expect(&ints[i], 100 + i);
    finish();
}
CORRECT(cancelled_receives, 2) {
    MPI_Request request;
    fill(ints, 100);
    for (int i = 0; i < 2; i++) {
        MPI_Irecv(ints, 100, MPI_INT, i ? MPI_ANY_SOURCE : other(), 1, world, &request);
        MPI_Cancel(&request);
        MPI_Wait(&request, no_status);
        for (int j = 0; j < 100; j++) expect(&ints[j], 100 + j);
    }
    finish();
}
CORRECT(receives_from_nobody, 2) {
    MPI_Request requests[2];
    fill(ints, 100);
    MPI_Irecv(ints, 50, MPI_INT, MPI_PROC_NULL, 1, world, &requests[0]);
    MPI_Recv_init(ints + 50, 50, MPI_INT, MPI_PROC_NULL, 1, world, &requests[1]);
    MPI_Start(&requests[1]);
    MPI_Waitall(2, requests, no_statuses);
    MPI_Request_free(&requests[1]);
    for (int i = 0; i < 100; i++) expect(&ints[i], 100 + i);
    finish();
}
CORRECT(gaps_of_a_type, 2) {
    MPI_Datatype column;
    MPI_Request request;
    MPI_Type_vector(100, 2, 4, MPI_INT, &column);
    MPI_Type_commit(&column);
    fill(ints, 400);
    MPI_Irecv(ints, 1, column, other(), 1, world, &request);
    for (int i = 0; i < 100; i++) expect(&ints[4 * i + 2], 102 + 4 * i), expect(&ints[4 * i + 3], 103 + 4 * i);
    MPI_Send(more, 6, MPI_INT, other(), 1, world);
    MPI_Wait(&request, no_status);
    for (int i = 0; i < 398; i++) expect(&ints[i], i % 4 < 2 && i < 12 ? 0 : 100 + i);
    MPI_Type_free(&column);
    finish();
}
CORRECT(in_place, 2) {
    MPI_Request requests[4];
    int own[4] = {1, 2, 3, 4}, all[8] = {0}, parts[2] = {5, 6}, scattered[2] = {8, 9};
    all[4 * rank] = 7;
    MPI_Iallreduce(MPI_IN_PLACE, own, 4, MPI_INT, MPI_SUM, world, &requests[0]);
    MPI_Iallgather(MPI_IN_PLACE, 0, MPI_INT, all, 4, MPI_INT, world, &requests[1]);
    MPI_Ialltoall(MPI_IN_PLACE, 0, MPI_INT, parts, 1, MPI_INT, world, &requests[2]);
    if (rank == 0) MPI_Iscatter(scattered, 1, MPI_INT, MPI_IN_PLACE, 1, MPI_INT, 0, world, &requests[3]);
    if (rank == 1) MPI_Iscatter(NULL, 1, MPI_INT, scattered, 1, MPI_INT, 0, world, &requests[3]);
    MPI_Waitall(4, requests, no_statuses);
    for (int i = 0; i < 4; i++) expect(&own[i], 2 * (i + 1));
    expect(&all[0], 7), expect(&all[4], 7), expect(&parts[0], 5 + rank), expect(&parts[1], 5 + rank);
    expect(&scattered[0], 8 + rank);
    MPI_Request request;
    if (rank == 0) MPI_Igather(MPI_IN_PLACE, 0, MPI_INT, all, 4, MPI_INT, 0, world, &request);
    if (rank == 1) MPI_Igather(own, 4, MPI_INT, NULL, 0, MPI_INT, 0, world, &request);
    MPI_Wait(&request, no_status);
    expect(&all[0], 7), expect(&all[4], rank == 0 ? 2 : 7);
    finish();
}
CORRECT(results_of_collectives, 3) {
    MPI_Request requests[6];
    int one = rank + 1, counts[3] = {1, 1, 1}, places[3] = {2, 0, 4};
    fill(ints, 100);
    MPI_Ibcast(more, 50, MPI_INT, 1, world, &requests[0]);
    MPI_Iexscan(&one, ints, 1, MPI_INT, MPI_SUM, world, &requests[1]);
    MPI_Iscan(&one, ints + 1, 1, MPI_INT, MPI_SUM, world, &requests[2]);
    MPI_Iallgatherv(&one, 1, MPI_INT, ints + 10, counts, places, MPI_INT, world, &requests[3]);
    MPI_Ireduce(&one, ints + 20, 1, MPI_INT, MPI_MAX, 2, world, &requests[4]);
    MPI_Ireduce_scatter(more + 50, ints + 30, counts, MPI_INT, MPI_SUM, world, &requests[5]);
    MPI_Waitall(6, requests, no_statuses);
    expect(more, 0), expect(&ints[0], rank == 0 ? 100 : rank == 1 ? 1 : 3), expect(&ints[1], (rank + 1) * (rank + 2) / 2);
    expect(&ints[10], 2), expect(&ints[11], 111), expect(&ints[12], 1), expect(&ints[13], 113), expect(&ints[14], 3);
    expect(&ints[20], rank == 2 ? 3 : 120), expect(&ints[30], 0), expect(&ints[31], 131);
    finish();
}
CORRECT(replaced_in_place, 2) {
    MPI_Request request;
    ints[0] = 5 + rank;
    MPI_Isendrecv_replace(ints, 1, MPI_INT, other(), 1, other(), 1, world, &request);
    MPI_Wait(&request, no_status);
    expect(&ints[0], 5 + other());
    fill(ints, 100);
    MPI_Isendrecv(more, 2, MPI_INT, other(), 1, ints, 100, MPI_INT, other(), 1, world, &request);
    MPI_Wait(&request, no_status);
    for (int i = 2; i < 100; i++) expect(&ints[i], 100 + i);
    finish();
}
CORRECT(refused_receives, 2) {
    MPI_Request request;
    fill(ints, 100);
    MPI_Comm_set_errhandler(world, MPI_ERRORS_RETURN);
    wrong += MPI_Irecv(ints, 100, MPI_INT, 17, 1, world, &request) == MPI_SUCCESS;
    for (int i = 0; i < 100; i++) expect(&ints[i], 100 + i);
    MPI_Irecv(ints, 2, MPI_INT, other(), 1, world, &request);
    MPI_Send(more, 4, MPI_INT, other(), 1, world);
    wrong += MPI_Wait(&request, no_status) == MPI_SUCCESS;
    for (int i = 2; i < 100; i++) expect(&ints[i], 100 + i);
    MPI_Comm_set_errhandler(world, MPI_ERRORS_ARE_FATAL);
    finish();
}
CORRECT(freed_receive, 2) {
    MPI_Request request;
    fill(ints, 100);
    MPI_Irecv(ints, 100, MPI_INT, other(), 1, world, &request);
    MPI_Request_free(&request);
    MPI_Send(more, 4, MPI_INT, other(), 1, world);
    MPI_Sendrecv(more, 1, MPI_INT, other(), 2, more + 9, 1, MPI_INT, other(), 2, world, no_status);
    for (int i = 0; i < 100; i++) expect(&ints[i], i < 4 ? 0 : 100 + i);
    finish();
}
CORRECT(status_of_a_request, 2) {
    MPI_Request request;
    fill(ints, 100);
    MPI_Irecv(ints, 100, MPI_INT, other(), 1, world, &request);
    MPI_Send(more, 4, MPI_INT, other(), 1, world);
    for (int flag = 0; !flag;) MPI_Request_get_status(request, &flag, no_status);
    for (int i = 0; i < 100; i++) expect(&ints[i], i < 4 ? 0 : 100 + i);
    MPI_Wait(&request, no_status);
    finish();
}
CORRECT(matched_receive, 2) {
    MPI_Message message;
    MPI_Request request;
    fill(ints, 100);
    MPI_Send(more, 4, MPI_INT, other(), 1, world);
    MPI_Mprobe(other(), 1, world, &message, no_status);
    MPI_Imrecv(ints, 100, MPI_INT, &message, &request);
    MPI_Wait(&request, no_status);
    for (int i = 0; i < 100; i++) expect(&ints[i], i < 4 ? 0 : 100 + i);
    finish();
}
CORRECT(memory_that_cannot_be_written, 2) {
    int *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    MPI_Request request;
    fill(page, 100);
    mprotect(page, 4096, PROT_READ);
    MPI_Irecv(page, 100, MPI_INT, other(), 1, world, &request);
    MPI_Send(NULL, 0, MPI_INT, other(), 1, world);
    MPI_Wait(&request, no_status);
    for (int i = 0; i < 100; i++) expect(&page[i], 100 + i);
    finish();
}
CORRECT(groups_of_an_intercommunicator, 3) {
    MPI_Comm half, both;
    MPI_Request requests[2];
    int first = rank == 0, one = rank + 1, roots[3] = {MPI_ROOT, 0, 0};
    MPI_Comm_split(world, first, rank, &half);
    MPI_Intercomm_create(half, 0, world, first, 5, &both);
    fill(ints, 100);
    MPI_Ireduce(&one, ints, 1, MPI_INT, MPI_SUM, roots[rank], both, &requests[0]);
    MPI_Iallgather(&one, 1, MPI_INT, ints + 10, 1, MPI_INT, both, &requests[1]);
    MPI_Waitall(2, requests, no_statuses);
    expect(&ints[0], rank == 0 ? 5 : 100), expect(&ints[10], rank == 0 ? 2 : 1), expect(&ints[11], rank == 0 ? 3 : 111);
    MPI_Comm_free(&half), MPI_Comm_free(&both);
    finish();
}
CORRECT(partitions_read_as_they_come, 2) {
    MPI_Request request;
    fill(ints, 100);
    if (rank == 0) MPI_Psend_init(more, 2, 4, MPI_INT, 1, 1, world, MPI_INFO_NULL, &request);
    if (rank == 1) MPI_Precv_init(ints, 2, 4, MPI_INT, 0, 1, world, MPI_INFO_NULL, &request);
    MPI_Start(&request);
    if (rank == 0) MPI_Pready(0, request);
    if (rank == 1) {
        for (int flag = 0; !flag;) MPI_Parrived(request, 0, &flag);
        for (int i = 0; i < 4; i++) expect(&ints[i], 0);
    }
    if (rank == 0) MPI_Pready(1, request);
    MPI_Wait(&request, no_status);
    MPI_Request_free(&request);
    finish();
}
CORRECT(gets_and_short_files, 2) {
    MPI_Win win;
    MPI_File file;
    MPI_Status status;
    MPI_Request request;
    fill(ints, 100);
    MPI_Win_create(ints, sizeof ints, 4, MPI_INFO_NULL, world, &win);
    MPI_Win_fence(0, win);
    MPI_Get(more, 50, MPI_INT, other(), 0, 50, MPI_INT, win);
    MPI_Get(more + 50, 50, MPI_INT, MPI_PROC_NULL, 0, 50, MPI_INT, win);
    MPI_Win_fence(0, win);
    for (int i = 0; i < 100; i++) expect(&more[i], i < 50 ? 100 + i : 0);
    MPI_Win_free(&win);
    char name[64];
    snprintf(name, sizeof name, "/tmp/weft-poison-%d", (int)getpid());
    MPI_File_open(MPI_COMM_SELF, name, MPI_MODE_RDWR | MPI_MODE_CREATE | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL, &file);
    MPI_File_write_at(file, 0, more, 2, MPI_INT, &status);
    MPI_File_iread_at_all(file, 0, ints, 100, MPI_INT, &request);
    MPI_Wait(&request, no_status);
    for (int i = 0; i < 100; i++) expect(&ints[i], 100 + i);
    MPI_File_close(&file);
    finish();
}
