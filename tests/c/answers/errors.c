/* Error classes of bad calls. No message is sent, and no call is collective over several ranks. */
#include "answers.h"

#define W MPI_COMM_SELF
#define BAD(call) say("bad %s = %d", #call, class_of(call))

static void messages(void)
{
    int buffer[4] = {0}, flag;
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Status status;
    MPI_Datatype raw;
    MPI_Type_contiguous(2, MPI_INT, &raw);
    BAD(MPI_Send(buffer, -1, MPI_INT, 0, 1, W));
    BAD(MPI_Send(buffer, 1, MPI_DATATYPE_NULL, 0, 1, W));
    BAD(MPI_Send(buffer, 1, raw, 0, 1, W));
    BAD(MPI_Send(buffer, 1, MPI_INT, 1, 1, W));
    BAD(MPI_Send(buffer, 1, MPI_INT, -50, 1, W));
    BAD(MPI_Send(buffer, 1, MPI_INT, MPI_ANY_SOURCE, 1, W));
    BAD(MPI_Send(buffer, 1, MPI_INT, 0, -1, W));
    BAD(MPI_Send(buffer, 1, MPI_INT, 0, MPI_ANY_TAG, W));
    BAD(MPI_Send(buffer, 1, MPI_INT, 0, 1, MPI_COMM_NULL));
    BAD(MPI_Recv(buffer, -1, MPI_INT, 0, 1, W, &status));
    BAD(MPI_Recv(buffer, 1, MPI_INT, 9, 1, W, &status));
    BAD(MPI_Recv(buffer, 1, MPI_INT, 0, -5, W, &status));
    BAD(MPI_Isend(buffer, -1, MPI_INT, 0, 1, W, &request));
    BAD(MPI_Irecv(buffer, 1, MPI_INT, 7, 1, W, &request));
    BAD(MPI_Send_init(buffer, 1, MPI_INT, 3, 1, W, &request));
    BAD(MPI_Probe(4, 1, W, &status));
    BAD(MPI_Iprobe(0, -9, W, &flag, &status));
    BAD(MPI_Bcast(buffer, 1, MPI_INT, 1, W));
    BAD(MPI_Bcast(buffer, -1, MPI_INT, 0, W));
    BAD(MPI_Bcast(buffer, 1, MPI_INT, -1, W));
    BAD(MPI_Reduce(buffer, buffer + 1, 1, MPI_INT, MPI_OP_NULL, 0, W));
    BAD(MPI_Reduce(buffer, buffer + 1, 1, MPI_INT, MPI_SUM, 5, W));
    BAD(MPI_Allreduce(buffer, buffer + 1, 1, MPI_BYTE, MPI_SUM, W));
    BAD(MPI_Allreduce(buffer, buffer + 2, 1, MPI_FLOAT, MPI_BAND, W));
    BAD(MPI_Allreduce(buffer, buffer + 1, 1, MPI_2INT, MPI_SUM, W));
    BAD(MPI_Barrier(MPI_COMM_NULL));
    BAD(MPI_Start(&request));
    BAD(MPI_Request_free(&request));
    BAD(MPI_Cancel(&request));
    MPI_Type_free(&raw);
}

static void types(void)
{
    MPI_Datatype type = MPI_DATATYPE_NULL, same = MPI_INT;
    int one = 1, negative = -1, zero = 0, n, big = 9, buffer[4];
    MPI_Aint place = 0;
    BAD(MPI_Type_contiguous(-1, MPI_INT, &type));
    BAD(MPI_Type_contiguous(1, MPI_DATATYPE_NULL, &type));
    BAD(MPI_Type_vector(-1, 1, 1, MPI_INT, &type));
    BAD(MPI_Type_vector(1, -1, 1, MPI_INT, &type));
    BAD(MPI_Type_indexed(-1, &one, &one, MPI_INT, &type));
    BAD(MPI_Type_indexed(1, &negative, &one, MPI_INT, &type));
    BAD(MPI_Type_create_struct(1, &negative, &place, &same, &type));
    BAD(MPI_Type_create_struct(1, &one, &place, &type, &type));
    BAD(MPI_Type_create_hindexed_block(1, -1, &place, MPI_INT, &type));
    BAD(MPI_Type_create_subarray(0, &one, &one, &zero, MPI_ORDER_C, MPI_INT, &type));
    BAD(MPI_Type_create_subarray(1, &one, &big, &zero, MPI_ORDER_C, MPI_INT, &type));
    BAD(MPI_Type_create_subarray(1, &one, &zero, &zero, MPI_ORDER_C, MPI_INT, &type));
    BAD(MPI_Type_create_subarray(1, &one, &one, &negative, MPI_ORDER_C, MPI_INT, &type));
    BAD(MPI_Type_create_subarray(1, &one, &one, &zero, 77, MPI_INT, &type));
    BAD(MPI_Type_create_resized(MPI_DATATYPE_NULL, 0, 1, &type));
    BAD(MPI_Type_dup(MPI_DATATYPE_NULL, &type));
    BAD(MPI_Type_commit(&type));
    BAD(MPI_Type_free(&type));
    BAD(MPI_Type_free(&same));
    BAD(MPI_Type_size(MPI_DATATYPE_NULL, &n));
    BAD(MPI_Type_get_contents(MPI_INT, 0, 0, 0, &n, &place, &type));
    BAD(MPI_Pack_external_size("internal", 1, MPI_INT, &place));
    BAD(MPI_Pack_size(-1, MPI_INT, W, &n));
    n = 0;
    BAD(MPI_Pack(buffer, 2, MPI_INT, buffer + 3, 4, &n, W));
    n = 0;
    BAD(MPI_Unpack(buffer, 4, &n, buffer + 2, 2, MPI_INT, W));
}

static void topology(void)
{
    int one = 1, two = 2, negative = -1, zero = 0, n, dims[2] = {2, 0}, index[1] = {1}, edge[1] = {4};
    MPI_Comm comm = MPI_COMM_NULL;
    BAD(MPI_Cart_create(W, 1, &two, &one, 0, &comm));
    BAD(MPI_Cart_create(W, 1, &negative, &one, 0, &comm));
    BAD(MPI_Cart_create(W, -1, &one, &one, 0, &comm));
    BAD(MPI_Cart_map(W, 1, &two, &one, &n));
    BAD(MPI_Cartdim_get(W, &n));
    BAD(MPI_Cart_coords(W, 0, 1, &n));
    BAD(MPI_Graphdims_get(W, &n, &n));
    BAD(MPI_Dist_graph_neighbors_count(W, &n, &n, &n));
    BAD(MPI_Graph_create(W, 2, index, &zero, 0, &comm));
    BAD(MPI_Graph_create(W, 1, index, edge, 0, &comm));
    BAD(MPI_Graph_create(W, -1, index, edge, 0, &comm));
    BAD(MPI_Dims_create(3, 2, dims));
    dims[0] = -1;
    BAD(MPI_Dims_create(4, 2, dims));
    BAD(MPI_Dims_create(0, 1, &zero));
    MPI_Cart_create(W, 1, &one, &zero, 0, &comm);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    BAD(MPI_Cart_coords(comm, 1, 1, &n));
    BAD(MPI_Cart_coords(comm, -1, 1, &n));
    BAD(MPI_Cart_shift(comm, 1, 1, &n, &n));
    BAD(MPI_Cart_shift(comm, -1, 1, &n, &n));
    BAD(MPI_Cart_rank(comm, &two, &n));
    BAD(MPI_Cart_get(comm, 0, &n, &n, &n));
    BAD(MPI_Graph_neighbors_count(comm, 0, &n));
    MPI_Comm_free(&comm);
}

static void others(void)
{
    int ranks[2] = {0, 0}, out[1] = {99}, range[1][3] = {{0, 3, 0}}, n, flag;
    MPI_Group world, group = MPI_GROUP_NULL;
    MPI_Info info;
    MPI_Comm comm;
    MPI_Errhandler handler = MPI_ERRHANDLER_NULL;
    char key[MPI_MAX_INFO_KEY + 50];
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    MPI_Info_create(&info);
    BAD(MPI_Group_incl(world, 2, ranks, &group));
    BAD(MPI_Group_incl(world, 1, out, &group));
    BAD(MPI_Group_incl(world, -1, out, &group));
    BAD(MPI_Group_excl(world, 1, out, &group));
    BAD(MPI_Group_range_incl(world, 1, range, &group));
    BAD(MPI_Group_translate_ranks(world, 1, out, world, &n));
    BAD(MPI_Group_size(MPI_GROUP_NULL, &n));
    BAD(MPI_Group_free(&group));
    memset(key, 'k', sizeof key);
    key[sizeof key - 1] = 0;
    BAD(MPI_Info_set(info, key, "v"));
    BAD(MPI_Info_set(info, "", "v"));
    BAD(MPI_Info_delete(info, "none"));
    BAD(MPI_Info_get_nthkey(info, 0, key));
    BAD(MPI_Info_set(MPI_INFO_NULL, "k", "v"));
    BAD(MPI_Comm_split(W, -5, 0, &comm));
    BAD(MPI_Comm_dup(MPI_COMM_NULL, &comm));
    BAD(MPI_Comm_rank(MPI_COMM_NULL, &n));
    BAD(MPI_Comm_remote_size(W, &n));
    BAD(MPI_Comm_test_inter(W, &flag));
    BAD(MPI_Comm_compare(W, MPI_COMM_NULL, &n));
    BAD(MPI_Comm_get_attr(W, MPI_KEYVAL_INVALID, &handler, &flag));
    BAD(MPI_Comm_set_attr(W, MPI_TAG_UB, NULL));
    BAD(MPI_Comm_free_keyval(&(int){MPI_KEYVAL_INVALID}));
    BAD(MPI_Comm_free_keyval(&(int){MPI_TAG_UB}));
    BAD(MPI_Errhandler_free(&handler));
    BAD(MPI_Op_free(&(MPI_Op){MPI_SUM}));
    BAD(MPI_Add_error_code(-1, &n));
    BAD(MPI_Buffer_detach(key, &n));
    BAD(MPI_Alloc_mem(-1, MPI_INFO_NULL, key));
    MPI_Info_free(&info);
    MPI_Group_free(&world);
}

void errors(void)
{
    messages();
    types();
    topology();
    others();
}
