// The C++ bindings that MPI 3.0 removed, through the header of Open MPI 4: objects, virtual functions, datatypes, windows and operators.
#include <mpi.h>
#include <cstdio>
#include <cstdlib>

static void check(bool right, const char *what)
{
    if (right)
        return;
    std::printf("WRONG: %s\n", what);
    std::exit(1);
}

// Calls the functions of the object's own class.
static int size_of(const MPI::Comm &comm)
{
    return comm.Get_size();
}

static void largest(const void *in, void *inout, int count, const MPI::Datatype &datatype)
{
    const int *a = static_cast<const int *>(in);
    int *b = static_cast<int *>(inout);
    check(datatype == MPI::INT && datatype.Get_size() == sizeof(int), "datatype of the operator");
    for (int i = 0; i < count; i++)
        if (a[i] > b[i])
            b[i] = a[i];
}

static void operators(int rank, int ranks)
{
    int sum = 0, most[2] = {rank, -rank}, got[2] = {-1, -1};
    MPI::COMM_WORLD.Allreduce(&rank, &sum, 1, MPI::INT, MPI::SUM);
    check(sum == ranks * (ranks - 1) / 2, "sum");
    MPI::Op op;
    op.Init(largest, true);
    MPI::COMM_WORLD.Allreduce(most, got, 2, MPI::INT, op);
    check(got[0] == ranks - 1 && got[1] == 0, "operator");
    op.Free();
    check(op == MPI::OP_NULL, "freed operator");
}

int main(int argc, char **argv)
{
    MPI::Init(argc, argv);
    int rank = MPI::COMM_WORLD.Get_rank(), ranks = MPI::COMM_WORLD.Get_size();
    check(size_of(MPI::COMM_WORLD) == ranks && size_of(MPI::COMM_SELF) == 1, "sizes");
    operators(rank, ranks);
    MPI::Intracomm half = MPI::COMM_WORLD.Split(rank % 2, rank);
    check(size_of(half) == (ranks + 1 - rank % 2) / 2, "split");
    half.Free();
    check(half == MPI::COMM_NULL, "freed communicator");
    MPI::Datatype pair = MPI::INT.Create_contiguous(2);
    pair.Commit();
    int from[2] = {rank, rank + 1}, to[2] = {-1, -1};
    MPI::Status status;
    MPI::COMM_WORLD.Sendrecv(from, 1, pair, (rank + 1) % ranks, 3, to, 1, pair, (rank + ranks - 1) % ranks, 3, status);
    check(to[0] == (rank + ranks - 1) % ranks && to[1] == to[0] + 1 && status.Get_tag() == 3, "message");
    pair.Free();
    check(pair == MPI::DATATYPE_NULL, "freed datatype");
    int shared = -1;
    MPI::Win win = MPI::Win::Create(&shared, sizeof shared, sizeof shared, MPI::INFO_NULL, MPI::COMM_WORLD);
    win.Fence(0);
    win.Put(&rank, 1, MPI::INT, (rank + 1) % ranks, 0, 1, MPI::INT);
    win.Fence(0);
    check(shared == (rank + ranks - 1) % ranks, "window");
    win.Free();
    check(win == MPI::WIN_NULL, "freed window");
    int place = rank;
    MPI::COMM_WORLD.Allreduce(MPI::IN_PLACE, &place, 1, MPI::INT, MPI::MAX);
    check(place == ranks - 1, "in place");
    MPI::File file = MPI::File::Open(MPI::COMM_SELF, "/dev/null", MPI::MODE_RDONLY, MPI::INFO_NULL);
    file.Close();
    check(file == MPI::FILE_NULL, "closed file");
    MPI::Finalize();
    if (rank == 0)
        std::printf("bindings: all checks passed\n");
}
