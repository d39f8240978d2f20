// More ranks on a node than any fixed number: they start, and meet in the usual operations. Memory and descriptors of a
// rank are bounded.
//
// ranks: 300
// timeout: 300
// says: correct
#include "check.h"
#include <dirent.h>
#include <stdint.h>
#include <unistd.h>

// A line of a file in /proc/self, in KiB.
static long kib(const char *file, const char *name)
{
    char line[256];
    long value = -1;
    FILE *f = fopen(file, "r");
    CHECK(f != NULL);
    while (fgets(line, sizeof line, f) != NULL)
        if (strncmp(line, name, strlen(name)) == 0)
            sscanf(line + strlen(name), " %ld", &value);
    fclose(f);
    return value;
}

static long descriptors(void)
{
    long count = 0;
    DIR *dir = opendir("/proc/self/fd");
    CHECK(dir != NULL);
    while (readdir(dir) != NULL)
        count++;
    closedir(dir);
    return count - 3; // ., .. and the directory itself
}

// KiB that this rank takes: its part of what is shared is the part that it has.
static void bounded(const char *after, long limit)
{
    long mine = kib("/proc/self/smaps_rollup", "Pss:"), all = 0, most = 0;
    MPI_Reduce(&mine, &all, 1, MPI_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
    MPI_Reduce(&mine, &most, 1, MPI_LONG, MPI_MAX, 0, MPI_COMM_WORLD);
    if (rank == 0) {
        printf("after %s: %ld KiB a rank, %ld at most\n", after, all / size, most);
        CHECK(all / size <= limit);
    }
}

int main(int argc, char **argv)
{
    begin(&argc, &argv);

    MPI_Barrier(MPI_COMM_WORLD);
    long one = rank, sum = 0;
    MPI_Allreduce(&one, &sum, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
    CHECK(sum == (long)size * (size - 1) / 2);
    bounded("a barrier and an allreduce", 8 << 10);

    int64_t *out = malloc(sizeof *out * size), *in = malloc(sizeof *in * size);
    for (int i = 0; i < size; i++)
        out[i] = (int64_t)rank * size + i;
    MPI_Alltoall(out, 1, MPI_INT64_T, in, 1, MPI_INT64_T, MPI_COMM_WORLD);
    for (int i = 0; i < size; i++)
        CHECK(in[i] == (int64_t)i * size + rank);
    bounded("an alltoall of 8 B", 12 << 10);

    if (argc > 1) { // and all pairs, each by a message
        MPI_Request *requests = malloc(2 * size * sizeof *requests);
        for (int i = 0; i < size; i++)
            MPI_Irecv(&in[i], 1, MPI_INT64_T, i, 0, MPI_COMM_WORLD, &requests[i]);
        for (int i = 0; i < size; i++)
            MPI_Isend(&out[i], 1, MPI_INT64_T, i, 0, MPI_COMM_WORLD, &requests[size + i]);
        MPI_Waitall(2 * size, requests, MPI_STATUSES_IGNORE);
        for (int i = 0; i < size; i++)
            CHECK(in[i] == (int64_t)i * size + rank);
        free(requests);
        bounded("messages of all pairs", 24 << 10);
    }

    // Standard input, output and error, the launcher's connection, both files of shared memory.
    long open = descriptors(), most = 0;
    MPI_Reduce(&open, &most, 1, MPI_LONG, MPI_MAX, 0, MPI_COMM_WORLD);
    if (rank == 0) {
        printf("%ld descriptors a rank at most\n", most);
        CHECK(most <= 12);
    }
    free(in);
    free(out);
    return end();
}
