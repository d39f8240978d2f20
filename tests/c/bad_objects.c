// ranks: 1 2
// says: correct
//
// Bad input to what makes and asks objects: datatypes, operators, communicators, groups, topologies,
// info, attributes, error handlers, requests, sessions. Each call returns its class and names the
// argument and its value.
#include "bad.h"

#define W MPI_COMM_WORLD
#define RUBBISH(type) ((type)(uintptr_t)0x5a5a5a5a)

static void datatypes(void)
{
    int minus[] = {1, -2}, ones[] = {1, 1}, sizes[] = {4, 4}, subs[] = {2, 5}, at[] = {0, 0}, n;
    MPI_Aint bytes[] = {0, 8}, lb;
    MPI_Datatype types[] = {MPI_INT, MPI_DATATYPE_NULL}, type = MPI_DATATYPE_NULL;
    BAD(COUNT, "MPI_Type_contiguous|count is -1", MPI_Type_contiguous(-1, MPI_INT, &type));
    BAD(TYPE, "MPI_Type_contiguous|oldtype|null", MPI_Type_contiguous(1, MPI_DATATYPE_NULL, &type));
    BAD(TYPE, "MPI_Type_vector|oldtype = 0x5a5a5a5a",
        MPI_Type_vector(1, 1, 1, RUBBISH(MPI_Datatype), &type));
    BAD(ARG, "MPI_Type_contiguous|newtype", MPI_Type_contiguous(1, MPI_INT, NULL));
    BAD(ARG, "MPI_Type_indexed|array_of_blocklengths[1] is -2",
        MPI_Type_indexed(2, minus, ones, MPI_INT, &type));
    BAD(TYPE, "MPI_Type_create_struct|array_of_types[1]",
        MPI_Type_create_struct(2, ones, bytes, types, &type));
    BAD(ARG, "MPI_Type_create_subarray|array_of_subsizes[1] is 5",
        MPI_Type_create_subarray(2, sizes, subs, at, MPI_ORDER_C, MPI_INT, &type));
    BAD(ARG, "MPI_Type_create_subarray|order is 99",
        MPI_Type_create_subarray(2, sizes, sizes, at, 99, MPI_INT, &type));
    BAD(TYPE, "MPI_Type_get_extent|datatype = 0x5a5a5a5a",
        MPI_Type_get_extent(RUBBISH(MPI_Datatype), &lb, &lb));
    BAD(TYPE, "MPI_Type_commit|datatype", MPI_Type_commit(&type));
    BAD(ARG, "MPI_Type_match_size|size = 3", MPI_Type_match_size(MPI_TYPECLASS_REAL, 3, &type));
    BAD(ARG, "MPI_Type_size|size", MPI_Type_size(MPI_INT, NULL));
    CHECK(type == MPI_DATATYPE_NULL);
    MPI_Status status;
    BAD(TYPE, "MPI_Get_count|datatype", MPI_Get_count(&status, MPI_DATATYPE_NULL, &n));
    BAD(ARG, "MPI_Get_count|status", MPI_Get_count(NULL, MPI_INT, &n));
}

static void operators(void)
{
    MPI_Op op = MPI_SUM, null = MPI_OP_NULL;
    int commutes;
    BAD(OP, "MPI_Op_free|op", MPI_Op_free(&op));
    CHECK(op == MPI_SUM);
    BAD(OP, "MPI_Op_free|op", MPI_Op_free(&null));
    BAD(ARG, "MPI_Op_create|user_fn", MPI_Op_create(NULL, 1, &op));
    BAD(OP, "MPI_Op_commutative|op = 0x5a5a5a5a", MPI_Op_commutative(RUBBISH(MPI_Op), &commutes));
}

static void groups(void)
{
    MPI_Group group, made = MPI_GROUP_NULL;
    int ranks[] = {0, 0, 9}, ranges[][3] = {{0, 0, 0}}, n;
    MPI_Comm comm = MPI_COMM_NULL;
    MPI_Comm_group(W, &group);
    BAD(RANK, "MPI_Group_incl|ranks[1]|rank 0|twice", MPI_Group_incl(group, 2, ranks, &made));
    BAD(RANK, "MPI_Group_incl|ranks[0] = 9", MPI_Group_incl(group, 1, ranks + 2, &made));
    BAD(COUNT, "MPI_Group_excl|n = -1", MPI_Group_excl(group, -1, ranks, &made));
    BAD(ARG, "MPI_Group_range_incl|ranges[0]|stride", MPI_Group_range_incl(group, 1, ranges, &made));
    BAD(GROUP, "MPI_Group_union|group2 = 0x5a5a5a5a",
        MPI_Group_union(group, RUBBISH(MPI_Group), &made));
    BAD(GROUP, "MPI_Group_size|group|null", MPI_Group_size(MPI_GROUP_NULL, &n));
    BAD(GROUP, "MPI_Comm_create|group", MPI_Comm_create(MPI_COMM_SELF, MPI_GROUP_NULL, &comm));
    CHECK(made == MPI_GROUP_NULL && comm == MPI_COMM_NULL);
    MPI_Group_free(&group);
}

static void communicators(void)
{
    MPI_Comm comm = W, null = MPI_COMM_NULL, made = MPI_COMM_NULL;
    int result;
    BAD(COMM, "MPI_Comm_free|MPI_COMM_WORLD", MPI_Comm_free(&comm));
    BAD(COMM, "MPI_Comm_free|comm|null", MPI_Comm_free(&null));
    BAD(COMM, "MPI_Comm_compare|comm2 = 0x5a5a5a5a",
        MPI_Comm_compare(W, RUBBISH(MPI_Comm), &result));
    BAD(ARG, "MPI_Comm_split|color = -7", MPI_Comm_split(MPI_COMM_SELF, -7, 0, &made));
    BAD(ARG, "MPI_Comm_split_type|split_type = 12345",
        MPI_Comm_split_type(MPI_COMM_SELF, 12345, 0, MPI_INFO_NULL, &made));
    BAD(COMM, "MPI_Comm_remote_size|MPI_COMM_WORLD", MPI_Comm_remote_size(W, &result));
    BAD(COMM, "MPI_Intercomm_merge|MPI_COMM_WORLD", MPI_Intercomm_merge(W, 0, &made));
    BAD(ARG, "MPI_Comm_dup|newcomm", MPI_Comm_dup(MPI_COMM_SELF, NULL));
    BAD(ARG, "MPI_Comm_set_name|comm_name", MPI_Comm_set_name(W, NULL));
    CHECK(made == MPI_COMM_NULL);
}

static void topologies(void)
{
    int big[] = {99}, below[] = {-1}, zero[] = {0}, periods[] = {0}, n, coords[] = {size + 5}, index[] = {1};
    int edges[] = {7}, dims[] = {-1, 0};
    MPI_Comm comm = MPI_COMM_NULL, grid;
    BAD(TOPOLOGY, "MPI_Cartdim_get|MPI_COMM_WORLD|MPI_Cart_create", MPI_Cartdim_get(W, &n));
    BAD(TOPOLOGY, "MPI_Graph_neighbors_count|MPI_COMM_WORLD", MPI_Graph_neighbors_count(W, 0, &n));
    BAD(DIMS, "MPI_Cart_create|99", MPI_Cart_create(MPI_COMM_SELF, 1, big, periods, 0, &comm));
    BAD(DIMS, "MPI_Cart_create|dims[0] = -1",
        MPI_Cart_create(MPI_COMM_SELF, 1, below, periods, 0, &comm));
    BAD(DIMS, "MPI_Dims_create|dims[0] = -1", MPI_Dims_create(4, 2, dims));
    BAD(ARG, "MPI_Graph_create|edges[0] = 7",
        MPI_Graph_create(MPI_COMM_SELF, 1, index, edges, 0, &comm));
    BAD(INFO, "MPI_Dist_graph_create|info = 0x5a5a5a5a",
        MPI_Dist_graph_create(MPI_COMM_SELF, 1, zero, index, zero, MPI_UNWEIGHTED,
                              RUBBISH(MPI_Info), 0, &comm));
    CHECK(comm == MPI_COMM_NULL);
    MPI_Cart_create(W, 1, &size, periods, 0, &grid);
    MPI_Comm_set_errhandler(grid, MPI_ERRORS_RETURN);
    BAD(RANK, "MPI_Cart_coords|rank = 50", MPI_Cart_coords(grid, 50, 1, coords));
    BAD(ARG, "MPI_Cart_rank|coords[0]", MPI_Cart_rank(grid, coords, &n));
    BAD(ARG, "MPI_Cart_shift|direction = 4", MPI_Cart_shift(grid, 4, 1, &n, &n));
    MPI_Comm_free(&grid);
}

static void infos(void)
{
    MPI_Info info, freed;
    int flag, n;
    static char value[MPI_MAX_INFO_VAL + 2], key[MPI_MAX_INFO_KEY + 2];
    memset(value, 'v', MPI_MAX_INFO_VAL);
    memset(key, 'k', MPI_MAX_INFO_KEY);
    MPI_Info_create(&info);
    BAD(INFO_VALUE, "MPI_Info_set|value", MPI_Info_set(info, "key", value));
    BAD(INFO_KEY, "MPI_Info_set|key", MPI_Info_set(info, key, "value"));
    BAD(INFO_KEY, "MPI_Info_set|key", MPI_Info_set(info, "", "value"));
    BAD(INFO_NOKEY, "MPI_Info_delete|absent", MPI_Info_delete(info, "absent"));
    BAD(ARG, "MPI_Info_get_nthkey|n = 3", MPI_Info_get_nthkey(info, 3, key));
    MPI_Info_get_nkeys(info, &n);
    CHECK(n == 0);
    freed = info;
    MPI_Info_free(&info);
    BAD(INFO, "MPI_Info_set|info = 0x|freed", MPI_Info_set(freed, "key", "value"));
    BAD(INFO, "MPI_Info_get_string|info|null",
        MPI_Info_get_string(MPI_INFO_NULL, "key", &n, value, &flag));
    BAD(INFO, "MPI_Comm_dup_with_info|info = 0x",
        MPI_Comm_dup_with_info(MPI_COMM_SELF, freed, &(MPI_Comm){MPI_COMM_NULL}));
}

static void attributes_and_handlers(void)
{
    int key = 123456, flag, of_types;
    void *value;
    MPI_Errhandler handler = RUBBISH(MPI_Errhandler);
    BAD(KEYVAL, "MPI_Comm_set_attr|keyval = 123456", MPI_Comm_set_attr(W, key, &key));
    BAD(KEYVAL, "MPI_Comm_get_attr|keyval = 123456", MPI_Comm_get_attr(W, key, &value, &flag));
    BAD(KEYVAL, "MPI_Comm_free_keyval|keyval = 123456", MPI_Comm_free_keyval(&key));
    key = MPI_TAG_UB;
    BAD(KEYVAL, "MPI_Comm_set_attr|keyval", MPI_Comm_set_attr(W, MPI_TAG_UB, &key));
    MPI_Type_create_keyval(MPI_TYPE_NULL_COPY_FN, MPI_TYPE_NULL_DELETE_FN, &of_types, NULL);
    BAD(KEYVAL, "MPI_Comm_set_attr|for datatypes", MPI_Comm_set_attr(W, of_types, &key));
    MPI_Type_free_keyval(&of_types);
    BAD(ERRHANDLER, "MPI_Comm_set_errhandler|errhandler = 0x5a5a5a5a",
        MPI_Comm_set_errhandler(W, handler));
    BAD(ERRHANDLER, "MPI_Errhandler_free|errhandler = 0x5a5a5a5a", MPI_Errhandler_free(&handler));
    BAD(ARG, "MPI_Comm_create_errhandler|NULL", MPI_Comm_create_errhandler(NULL, &handler));
}

static void requests(void)
{
    int a = 0, flag, index;
    MPI_Request request, list[2] = {MPI_REQUEST_NULL, RUBBISH(MPI_Request)};
    BAD(REQUEST, "MPI_Testall|array_of_requests[1]|0x5a5a5a5a",
        MPI_Testall(2, list, &flag, MPI_STATUSES_IGNORE));
    BAD(REQUEST, "MPI_Waitany|array_of_requests[1]|0x5a5a5a5a",
        MPI_Waitany(2, list, &index, MPI_STATUS_IGNORE));
    BAD(COUNT, "MPI_Waitall|count = -2", MPI_Waitall(-2, list, MPI_STATUSES_IGNORE));
    BAD(ARG, "MPI_Waitall|array_of_requests", MPI_Waitall(1, NULL, MPI_STATUSES_IGNORE));
    MPI_Isend(&a, 1, MPI_INT, MPI_PROC_NULL, 0, W, &request);
    BAD(REQUEST, "MPI_Start|request", MPI_Start(&request));
    BAD(REQUEST, "MPI_Grequest_complete|request", MPI_Grequest_complete(request));
    BAD(REQUEST, "MPI_Pready|request", MPI_Pready(0, request));
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    BAD(REQUEST, "MPI_Request_free|request", MPI_Request_free(&request));
    BAD(BUFFER, "MPI_Buffer_attach|buffer is NULL|size = 100", MPI_Buffer_attach(NULL, 100));
}

static void sessions(void)
{
    MPI_Session session = RUBBISH(MPI_Session);
    MPI_Group group;
    int n = 0;
    BAD(SESSION, "MPI_Session_finalize|session = 0x5a5a5a5a", MPI_Session_finalize(&session));
    BAD(SESSION, "MPI_Session_get_num_psets|session = 0x5a5a5a5a",
        MPI_Session_get_num_psets(session, MPI_INFO_NULL, &n));
    BAD(SESSION, "MPI_Group_from_session_pset|session|null",
        MPI_Group_from_session_pset(MPI_SESSION_NULL, "mpi://WORLD", &group));
}

int main(int argc, char **argv)
{
    begin_returning(&argc, &argv);
    void (*const families[])(void) = {datatypes, operators,  groups,
                                      communicators, topologies, infos,
                                      attributes_and_handlers, requests, sessions};
    for (size_t i = 0; i < sizeof families / sizeof *families; i++) families[i](), works();
    return end();
}
