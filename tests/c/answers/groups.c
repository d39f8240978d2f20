/* All set operations, on groups that are made of each other. */
#include "answers.h"

#define POOL 12
#define MOST 8

static const char *members(MPI_Group group)
{
    int count = -1, mine = -1, from[MOST], to[MOST];
    static MPI_Group world = MPI_GROUP_NULL;
    if (world == MPI_GROUP_NULL)
        MPI_Comm_group(MPI_COMM_WORLD, &world);
    MPI_Group_size(group, &count);
    MPI_Group_rank(group, &mine);
    for (int i = 0; i < count; i++)
        from[i] = i;
    MPI_Group_translate_ranks(group, count, from, world, to);
    static char text[8][200];
    static int next;
    snprintf(text[next % 8], sizeof *text, "%s as %d", list(to, count), mine);
    return text[next++ % 8];
}

/* Chooses different ranks of a group, in random order. */
static int some(int n, int *ranks)
{
    int count = n ? below(n + 1) : 0;
    for (int i = 0; i < count; i++) {
        int again = 1;
        while (again) {
            ranks[i] = below(n);
            again = 0;
            for (int k = 0; k < i; k++)
                again |= ranks[k] == ranks[i];
        }
    }
    return count;
}

static int triples(int n, int ranges[][3])
{
    int low = below(n), high = between(low, n - 1), step = between(1, 3);
    ranges[0][0] = low, ranges[0][1] = high, ranges[0][2] = step;
    if (below(2)) {
        int last = low + (high - low) / step * step;
        ranges[0][0] = last, ranges[0][1] = low, ranges[0][2] = -step;
    }
    return 1;
}

void groups(int rounds)
{
    MPI_Group pool[POOL], world, new = MPI_GROUP_NULL;
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    for (int i = 0; i < POOL; i++)
        MPI_Group_incl(world, 1, &(int){i % size}, &pool[i]);
    for (int n = 0; n < rounds; n++) {
        MPI_Group a = below(4) ? pool[below(POOL)] : world, b = pool[below(POOL)];
        int count, other, ranks[MOST], to[MOST], ranges[2][3], how = -1, code = -1;
        MPI_Group_size(a, &count);
        MPI_Group_size(b, &other);
        say("group %d %s and %s = 1", n, members(a), members(b));
        MPI_Group_compare(a, b, &how);
        say("group %d compared = %d", n, how);
        int k = some(count, ranks);
        MPI_Group_translate_ranks(a, k, ranks, b, to);
        say("group %d translated %s = %s", n, list(ranks, k), list(to, k));
        int form = below(count ? 7 : 5);
        switch (form) {
        case 0: code = MPI_Group_union(a, b, &new); break;
        case 1: code = MPI_Group_intersection(a, b, &new); break;
        case 2: code = MPI_Group_difference(a, b, &new); break;
        case 3: code = MPI_Group_incl(a, k, ranks, &new); break;
        case 4: code = MPI_Group_excl(a, k, ranks, &new); break;
        case 5: code = MPI_Group_range_incl(a, triples(count, ranges), ranges, &new); break;
        default: code = MPI_Group_range_excl(a, triples(count, ranges), ranges, &new); break;
        }
        say("group %d by %d = %d %s, empty %d", n, form, class_of(code), members(new), new == MPI_GROUP_EMPTY);
        int place = below(POOL);
        if (pool[place] != MPI_GROUP_EMPTY)
            MPI_Group_free(&pool[place]);
        pool[place] = new;
    }
    for (int i = 0; i < POOL; i++)
        if (pool[i] != MPI_GROUP_EMPTY)
            MPI_Group_free(&pool[i]);
    MPI_Group_free(&world);
}
