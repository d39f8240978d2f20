/* Datatypes: predefined ones, and random ones of every constructor. */
#include "answers.h"

/* Properties of a type, by itself or by a type that it contains. */
enum { SETS_BOUNDS = 1, NO_EXTERNAL = 2, PAIRS = 4, DEEP = 8 };

#define NAMED(type) {#type, type, 0}
/* The external form is the same bytes in another order. */
#define PORTABLE(type) {#type, type, 0}
#define MACHINE(type) {#type, type, NO_EXTERNAL}
#define PAIR(type) {#type, type, NO_EXTERNAL | PAIRS}

/* The first types, which all libraries have, serve to make random types. */
static const struct named {
    const char *name;
    MPI_Datatype type;
    int has;
} all[] = {
    PORTABLE(MPI_SIGNED_CHAR), PORTABLE(MPI_UNSIGNED_CHAR), PORTABLE(MPI_BYTE), PORTABLE(MPI_SHORT),
    PORTABLE(MPI_INT), PORTABLE(MPI_UNSIGNED_SHORT), PORTABLE(MPI_UNSIGNED), PORTABLE(MPI_INT8_T),
    PORTABLE(MPI_INT16_T), PORTABLE(MPI_INT32_T), PORTABLE(MPI_INT64_T), PORTABLE(MPI_UINT8_T),
    PORTABLE(MPI_UINT16_T), PORTABLE(MPI_UINT32_T), PORTABLE(MPI_UINT64_T), PORTABLE(MPI_FLOAT),
    PORTABLE(MPI_DOUBLE), PORTABLE(MPI_LONG_LONG_INT), PORTABLE(MPI_UNSIGNED_LONG_LONG),
    MACHINE(MPI_CHAR), MACHINE(MPI_LONG), MACHINE(MPI_UNSIGNED_LONG), MACHINE(MPI_C_COMPLEX),
    MACHINE(MPI_C_DOUBLE_COMPLEX), MACHINE(MPI_C_BOOL), MACHINE(MPI_AINT), MACHINE(MPI_COUNT),
    MACHINE(MPI_OFFSET), PAIR(MPI_FLOAT_INT), PAIR(MPI_DOUBLE_INT),
    PAIR(MPI_LONG_INT), PAIR(MPI_2INT), PAIR(MPI_SHORT_INT),
    /* The padding of these types need not be moved. */
    NAMED(MPI_LONG_DOUBLE),
    NAMED(MPI_WCHAR), NAMED(MPI_LONG_LONG), NAMED(MPI_C_FLOAT_COMPLEX),
    NAMED(MPI_C_LONG_DOUBLE_COMPLEX), NAMED(MPI_LONG_DOUBLE_INT), NAMED(MPI_PACKED),
    NAMED(MPI_CXX_BOOL), NAMED(MPI_CXX_FLOAT_COMPLEX), NAMED(MPI_CXX_DOUBLE_COMPLEX),
    NAMED(MPI_CXX_LONG_DOUBLE_COMPLEX), NAMED(MPI_CHARACTER), NAMED(MPI_LOGICAL),
    NAMED(MPI_INTEGER), NAMED(MPI_REAL), NAMED(MPI_DOUBLE_PRECISION), NAMED(MPI_COMPLEX),
    NAMED(MPI_DOUBLE_COMPLEX), NAMED(MPI_2REAL), NAMED(MPI_2INTEGER),
    NAMED(MPI_2DOUBLE_PRECISION), NAMED(MPI_LOGICAL1), NAMED(MPI_LOGICAL2), NAMED(MPI_LOGICAL4),
    NAMED(MPI_LOGICAL8), NAMED(MPI_LOGICAL16), NAMED(MPI_INTEGER1), NAMED(MPI_INTEGER2),
    NAMED(MPI_INTEGER4), NAMED(MPI_INTEGER8), NAMED(MPI_INTEGER16), NAMED(MPI_REAL2),
    NAMED(MPI_REAL4), NAMED(MPI_REAL8), NAMED(MPI_REAL16), NAMED(MPI_COMPLEX4),
    NAMED(MPI_COMPLEX8), NAMED(MPI_COMPLEX16), NAMED(MPI_COMPLEX32),
};
#define ALL ((int)(sizeof all / sizeof *all))
#define BUILDING 33

/* A type of which other types are made. */
struct made {
    MPI_Datatype type;
    int has;
    int derived; /* no predefined type */
};

#define POOL 24
static struct made pool[POOL];

/* Prints size and bounds of a type. */
static void measures(const char *name, MPI_Datatype type)
{
    MPI_Count bytes = -1, lb = -1, extent = -1, low = -1, length = -1;
    MPI_Type_size_c(type, &bytes);
    MPI_Type_get_extent_c(type, &lb, &extent);
    MPI_Type_get_true_extent_c(type, &low, &length);
    say("%s size = %lld", name, (long long)bytes);
    say("%s bounds = %lld %lld", name, (long long)lb, (long long)extent);
    say("%s true bounds = %lld %lld", name, (long long)low, (long long)length);
}

/* Prints how a type was made. */
static void contents(const char *name, MPI_Datatype type)
{
    int ni = -1, na = -1, nd = -1, combiner = -1, integers[400];
    MPI_Aint addresses[200];
    MPI_Datatype types[100];
    MPI_Type_get_envelope(type, &ni, &na, &nd, &combiner);
    say("%s envelope = %d %d %d %d", name, ni, na, nd, combiner);
    if (combiner == MPI_COMBINER_NAMED || ni > 400 || na > 200 || nd > 100)
        return;
    MPI_Type_get_contents(type, 400, 200, 100, integers, addresses, types);
    say("%s integers = %u %s", name, hash(integers, (size_t)ni * sizeof(int)), list(integers, ni < 12 ? ni : 12));
    say("%s addresses = %u", name, hash(addresses, (size_t)na * sizeof(MPI_Aint)));
    for (int i = 0; i < nd; i++) {
        int inner = -1, n;
        char text[MPI_MAX_OBJECT_NAME] = "";
        MPI_Type_get_envelope(types[i], &n, &n, &n, &inner);
        if (inner == MPI_COMBINER_NAMED)
            MPI_Type_get_name(types[i], text, &n);
        say("%s type %d = %d %s", name, i, inner, text);
        if (inner != MPI_COMBINER_NAMED)
            MPI_Type_free(&types[i]);
    }
}

void named_types(void)
{
    for (int i = 0; i < ALL; i++) {
        char name[MPI_MAX_OBJECT_NAME] = "";
        int length = -1;
        MPI_Type_get_name(all[i].type, name, &length);
        say("%s name = %s %d", all[i].name, name, length);
        if (strcmp(name, "MPI_DATATYPE_NULL") == 0)
            continue;
        measures(all[i].name, all[i].type);
        if (i < BUILDING && !(all[i].has & NO_EXTERNAL)) {
            MPI_Aint external = -1;
            MPI_Pack_external_size("external32", 1, all[i].type, &external);
            say("%s external size = %ld", all[i].name, (long)external);
        }
    }
    const struct match {
        int class, bytes;
    } matches[] = {{MPI_TYPECLASS_INTEGER, 1}, {MPI_TYPECLASS_INTEGER, 2}, {MPI_TYPECLASS_INTEGER, 4},
                   {MPI_TYPECLASS_INTEGER, 8}, {MPI_TYPECLASS_REAL, 4}, {MPI_TYPECLASS_REAL, 8},
                   {MPI_TYPECLASS_COMPLEX, 8}, {MPI_TYPECLASS_COMPLEX, 16}};
    for (int i = 0; i < 8; i++) {
        MPI_Datatype type = MPI_DATATYPE_NULL;
        char name[MPI_MAX_OBJECT_NAME] = "";
        int length, code = MPI_Type_match_size(matches[i].class, matches[i].bytes, &type);
        MPI_Type_get_name(type, name, &length);
        say("match size %d of class %d = %d %s", matches[i].bytes, matches[i].class, class_of(code), name);
    }
}

static struct made *any(void)
{
    return &pool[below(POOL)];
}

/* Makes a random box of an array. */
static int box(char *text, MPI_Datatype old, MPI_Datatype *new)
{
    int n = between(1, 3), sizes[3], parts[3], starts[3];
    int order = below(2) ? MPI_ORDER_C : MPI_ORDER_FORTRAN;
    for (int i = 0; i < n; i++) {
        sizes[i] = between(1, 5);
        parts[i] = between(1, sizes[i]);
        starts[i] = below(sizes[i] - parts[i] + 1);
    }
    sprintf(text, "subarray %s %s %s %d", list(sizes, n), list(parts, n), list(starts, n), order);
    return MPI_Type_create_subarray(n, sizes, parts, starts, order, old, new);
}

/* Makes a random process's share of an array. */
static int share(char *text, MPI_Datatype old, MPI_Datatype *new)
{
    const int kinds[] = {MPI_DISTRIBUTE_NONE, MPI_DISTRIBUTE_BLOCK, MPI_DISTRIBUTE_CYCLIC};
    int n = between(1, 3), global[3], kind[3], blocks[3], grid[3], all_of = 1;
    int order = below(2) ? MPI_ORDER_C : MPI_ORDER_FORTRAN;
    for (int i = 0; i < n; i++) {
        kind[i] = kinds[below(3)];
        grid[i] = kind[i] == MPI_DISTRIBUTE_NONE ? 1 : between(1, 3);
        global[i] = between(grid[i], 7);
        int most = (global[i] + grid[i] - 1) / grid[i];
        blocks[i] = MPI_DISTRIBUTE_DFLT_DARG;
        if (kind[i] == MPI_DISTRIBUTE_BLOCK && below(2))
            blocks[i] = most;
        if (kind[i] == MPI_DISTRIBUTE_CYCLIC && below(2))
            blocks[i] = between(1, most);
        all_of *= grid[i];
    }
    int mine = below(all_of);
    sprintf(text, "darray %d of %d %s %s %s %s %d", mine, all_of, list(global, n), list(kind, n),
            list(blocks, n), list(grid, n), order);
    return MPI_Type_create_darray(all_of, mine, n, global, kind, blocks, grid, order, old, new);
}

/* Makes random blocks, by one of the constructors that take a list. `old` is the type of the first block. */
static int blocks(int form, char *text, const struct made *old, struct made *new)
{
    int n = between(1, 5), lengths[5], places[5];
    MPI_Aint far[5];
    MPI_Datatype of[5], first = old->type;
    int kinds = 1, one, other;
    for (int i = 0; i < n; i++) {
        const struct made *member = any();
        lengths[i] = below(4);
        far[i] = places[i] = between(-20, 60);
        of[i] = member->type;
        /* Types with different names may be the same inside a library. */
        MPI_Type_size(first, &one);
        MPI_Type_size(of[i], &other);
        kinds += i > 0 && lengths[i] > 0 && one != other;
        if (form == 4)
            new->has |= member->has | NO_EXTERNAL | DEEP;
    }
    lengths[0] += lengths[0] == 0;
    if (form == 4) {
        of[0] = old->type;
        sprintf(text, "%s %s %s", new->has & SETS_BOUNDS ? "struct of resized" : kinds == 1 ? "struct of one" : "struct", list(lengths, n), list(places, n));
        return MPI_Type_create_struct(n, lengths, far, of, &new->type);
    }
    const char *names[] = {"indexed", "hindexed", "indexed block", "hindexed block"};
    sprintf(text, "%s %s %s", names[form], list(lengths, form < 2 ? n : 1), list(places, n));
    switch (form) {
    case 0: return MPI_Type_indexed(n, lengths, places, old->type, &new->type);
    case 1: return MPI_Type_create_hindexed(n, lengths, far, old->type, &new->type);
    case 2: return MPI_Type_create_indexed_block(n, lengths[0], places, old->type, &new->type);
    default: return MPI_Type_create_hindexed_block(n, lengths[0], far, old->type, &new->type);
    }
}

/* Makes a random type, and describes it in `text`. */
static int construct(char *text, struct made *new)
{
    const struct made *old = any();
    int count = between(1, 4), length = between(1, 4), stride = between(-6, 9);
    *new = (struct made){MPI_DATATYPE_NULL, old->has | (old->derived ? DEEP : 0), 1};
    switch (below(12)) {
    case 0:
        sprintf(text, "contiguous %d", count);
        return MPI_Type_contiguous(count, old->type, &new->type);
    case 1:
        sprintf(text, "vector %d %d %d", count, length, stride);
        return MPI_Type_vector(count, length, stride, old->type, &new->type);
    case 2:
        stride = between(-70, 130);
        sprintf(text, "hvector %d %d %d", count, length, stride);
        return MPI_Type_create_hvector(count, length, stride, old->type, &new->type);
    case 3: case 4: case 5: case 6:
        return blocks(below(4), text, old, new);
    case 7: case 8:
        return blocks(4, text, old, new);
    case 9:
        new->has |= SETS_BOUNDS | DEEP;
        return box(text, old->type, &new->type);
    case 10:
        new->has |= SETS_BOUNDS | NO_EXTERNAL | DEEP;
        return share(text, old->type, &new->type);
    default:
        if (below(2) && old->derived) {
            sprintf(text, "dup");
            return MPI_Type_dup(old->type, &new->type);
        }
        new->has |= SETS_BOUNDS | DEEP;
        sprintf(text, "resized %d %d", stride, 8 * length);
        return MPI_Type_create_resized(old->type, stride, 8 * length, &new->type);
    }
}

void random_types(int count)
{
    for (int i = 0; i < POOL; i++) {
        const struct named *basic = &all[below(BUILDING)];
        pool[i] = (struct made){basic->type, basic->has, 0};
    }
    for (int i = 0; i < count; i++) {
        char text[1000] = "", name[1100];
        struct made new;
        int code = construct(text, &new);
        snprintf(name, sizeof name, "type %d %s", i, text);
        say("%s made = %d", name, class_of(code));
        if (code != MPI_SUCCESS)
            continue;
        measures(name, new.type);
        contents(name, new.type);
        /* Libraries differ in the bounds of such structs. So further types are made of a copy with set bounds. */
        if (strncmp(text, "struct of", 9) == 0) {
            MPI_Datatype raw = new.type;
            MPI_Type_create_resized(raw, 0, between(1, 20) * 8, &new.type);
            MPI_Type_free(&raw);
            new.has |= SETS_BOUNDS;
        }
        packed(name, new.type, !(new.has & NO_EXTERNAL), !(new.has & (PAIRS | DEEP)));
        MPI_Count bytes, lb, extent;
        MPI_Type_size_c(new.type, &bytes);
        MPI_Type_get_extent_c(new.type, &lb, &extent);
        struct made *place = any();
        /* Libraries differ in the true bounds of such shares. */
        if (strncmp(text, "darray", 6) == 0 || bytes > 2000 || bytes == 0 || extent > 4000 || extent < -4000) {
            MPI_Type_free(&new.type);
            continue;
        }
        if (place->derived)
            MPI_Type_free(&place->type);
        *place = new;
    }
    for (int i = 0; i < POOL; i++)
        if (pool[i].derived)
            MPI_Type_free(&pool[i].type);
}
