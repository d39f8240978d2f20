/* Sections of arrays with gaps: as datatypes made of the descriptor, or as copies where a datatype cannot say it. */
#define _DEFAULT_SOURCE
#include "weft_fortran.h"

#include <pthread.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

/* Dimensions whose elements stand at equal distances are one. */
typedef struct {
    int rank;
    CFI_index_t extent[CFI_MAX_RANK];
    CFI_index_t stride[CFI_MAX_RANK];
} shape;

/* Whether there is memory at the other end of a section of `length` bytes. */
static int mapped(const char *from, CFI_index_t length)
{
    unsigned char state;
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    const uintptr_t last = (uintptr_t)from + (uintptr_t)length - (length > 0 ? 1 : 0);
    return mincore((void *)(last / page * page), 1, &state) == 0;
}

/* gfortran leaves the distance of elements unset in an array that an assignment from PACK or RESHAPE allocated, until 12 at least;
 * such an array has no gaps. A distance that no section can have tells it. */
static int unset(const CFI_cdesc_t *section)
{
    const CFI_index_t distance = section->dim[0].sm, size = (CFI_index_t)section->elem_len;
    const CFI_index_t away = distance < 0 ? -distance : distance;
    const int numbers = section->type != CFI_type_struct && section->type != CFI_type_other
        && section->type != CFI_type_char;
    CFI_index_t expected = distance;
    for (int i = 0; i < section->rank; i++) {
        if (section->dim[i].sm != expected)
            return 0;
        expected *= section->dim[i].extent;
    }
    return away < size || (away > 1 << 20 && !mapped(section->base_addr, expected))
        || (numbers && away % (size % 8 ? size % 8 & -(size % 8) : 8) != 0);
}

/* A section of assumed size ends nowhere, and has no gaps. */
int weft_has_gaps(const CFI_cdesc_t *section)
{
    CFI_index_t expected = (CFI_index_t)section->elem_len;
    int gaps = 0;
    for (int i = 0; i < section->rank; i++) {
        const CFI_dim_t *dim = &section->dim[i];
        if (dim->extent == 0)
            return 0;
        gaps |= dim->extent != 1 && dim->sm != expected;
        expected *= dim->extent;
    }
    return gaps && !unset(section);
}

static shape merged(const CFI_cdesc_t *section)
{
    shape out = { 0 };
    for (int i = 0; i < section->rank; i++) {
        const CFI_dim_t *dim = &section->dim[i];
        int last = out.rank - 1;
        if (dim->extent == 1)
            continue;
        if (last >= 0 && dim->sm == out.extent[last] * out.stride[last]) {
            out.extent[last] *= dim->extent;
            continue;
        }
        out.extent[out.rank] = dim->extent;
        out.stride[out.rank++] = dim->sm;
    }
    return out;
}

static size_t elements(const CFI_cdesc_t *section)
{
    size_t n = 1;
    for (int i = 0; i < section->rank; i++)
        n *= (size_t)section->dim[i].extent;
    return n;
}

size_t weft_bytes(const CFI_cdesc_t *section)
{
    return elements(section) * section->elem_len;
}

/* Copies between a section and memory without gaps, either way. */
static void move(const CFI_cdesc_t *section, char *flat, int in)
{
    const shape s = merged(section);
    const size_t size = section->elem_len;
    CFI_index_t at[CFI_MAX_RANK] = { 0 };
    char *element = section->base_addr;
    for (size_t n = elements(section); n > 0; n--, flat += size) {
        if (in)
            memcpy(flat, element, size);
        else
            memcpy(element, flat, size);
        for (int i = 0; i < s.rank; i++) {
            element += s.stride[i];
            if (++at[i] < s.extent[i])
                break;
            element -= s.stride[i] * s.extent[i];
            at[i] = 0;
        }
    }
}

void weft_pack(const CFI_cdesc_t *section, void *to)
{
    move(section, to, 1);
}

void weft_unpack(const CFI_cdesc_t *section, const void *from)
{
    move(section, (char *)from, 0);
}

/* The view of a section that cannot be taken. */
weft_view weft_no_gaps(void)
{
    weft_view view = { 0 };
    view.use = -1;
    return view;
}

/* What C would get for a section without gaps. */
static weft_view plain(const CFI_cdesc_t *section, MPI_Count count, MPI_Datatype type)
{
    weft_view view = { section->base_addr, count, type, 0, NULL, NULL, 0 };
    return view;
}

/* An error code of class MPI_ERR_BUFFER whose text names the argument. */
int weft_refused(int owner, int handle, const char *argument)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static int own;
    char text[MPI_MAX_ERROR_STRING];
    int code;
    snprintf(text, sizeof(text), "%s must be contiguous: this section has gaps", argument);
    pthread_mutex_lock(&lock);
    if (own == 0 && PMPI_Add_error_code(MPI_ERR_BUFFER, &own) != MPI_SUCCESS)
        own = MPI_ERR_BUFFER;
    if (own != MPI_ERR_BUFFER)
        PMPI_Add_error_string(own, text);
    code = own;
    pthread_mutex_unlock(&lock);
    switch (owner) {
    case WEFT_WIN:
        PMPI_Win_call_errhandler(weft_Win_in(handle), code);
        break;
    case WEFT_FILE:
        PMPI_File_call_errhandler(weft_File_in(handle), code);
        break;
    case WEFT_SESSION:
        PMPI_Session_call_errhandler(weft_Session_in(handle), code);
        break;
    default:
        PMPI_Comm_call_errhandler(handle ? weft_Comm_in(handle) : MPI_COMM_SELF, code);
    }
    return code;
}

static weft_view copied(const CFI_cdesc_t *section, MPI_Count count, MPI_Datatype type, int use)
{
    weft_view view = { NULL, count, type, 0, NULL, section, use };
    if (use & WEFT_NO_COPY)
        return weft_no_gaps();
    view.at = view.copy = malloc(weft_bytes(section));
    weft_pack(section, view.copy);
    return view;
}

weft_view weft_packed_gaps(const CFI_cdesc_t *section, int use)
{
    return copied(section, 0, 0, use);
}

/* Whether `type` is `n` times a named datatype without gaps. */
static int dense(MPI_Datatype type, MPI_Datatype *named, MPI_Count *n)
{
    MPI_Count size, lower, extent;
    int integers, addresses, types, combiner, repeat[2];
    MPI_Aint no_address;
    MPI_Datatype inner;
    int owned = 0;
    *n = 1;
    for (;;) {
        if (PMPI_Type_get_envelope(type, &integers, &addresses, &types, &combiner))
            return 0;
        if (combiner != MPI_COMBINER_CONTIGUOUS && combiner != MPI_COMBINER_DUP)
            break;
        if (PMPI_Type_get_contents(type, integers, 0, 1, repeat, &no_address, &inner))
            return 0;
        *n *= combiner == MPI_COMBINER_DUP ? 1 : repeat[0];
        if (owned)
            PMPI_Type_free(&type);
        owned = 1;
        type = inner;
    }
    int named_kind = combiner == MPI_COMBINER_NAMED || combiner == MPI_COMBINER_F90_REAL
        || combiner == MPI_COMBINER_F90_COMPLEX || combiner == MPI_COMBINER_F90_INTEGER;
    if (owned && !named_kind)
        PMPI_Type_free(&type);
    *named = type;
    return named_kind && !PMPI_Type_size_c(type, &size)
        && !PMPI_Type_get_extent_c(type, &lower, &extent) && size == extent && lower == 0;
}

static MPI_Datatype hvector(MPI_Count n, MPI_Count stride, MPI_Datatype old)
{
    MPI_Datatype made = MPI_DATATYPE_NULL;
    PMPI_Type_create_hvector_c(n, 1, stride, old, &made);
    return made;
}

/* The first `n` elements of the section. */
static MPI_Datatype first(const shape *s, MPI_Count n, MPI_Datatype element)
{
    MPI_Datatype slabs[CFI_MAX_RANK + 1], parts[CFI_MAX_RANK + 1], made;
    MPI_Count sizes[CFI_MAX_RANK + 1], ones[CFI_MAX_RANK + 1], places[CFI_MAX_RANK + 1];
    int count = 0;
    MPI_Count at = 0;
    slabs[0] = element;
    sizes[0] = 1;
    for (int i = 1; i < s->rank; i++) {
        slabs[i] = hvector(s->extent[i - 1], s->stride[i - 1], slabs[i - 1]);
        sizes[i] = sizes[i - 1] * s->extent[i - 1];
    }
    for (int i = s->rank - 1; i >= 0 && n > 0; i--) {
        MPI_Count whole = n / sizes[i];
        n -= whole * sizes[i];
        if (whole > 0) {
            parts[count] = hvector(whole, s->stride[i], slabs[i]);
            ones[count] = 1;
            places[count++] = at;
        }
        at += whole * s->stride[i];
    }
    made = parts[0];
    if (count != 1) {
        PMPI_Type_create_struct_c(count, ones, places, parts, &made);
        for (int i = 0; i < count; i++)
            PMPI_Type_free(&parts[i]);
    }
    for (int i = 1; i < s->rank; i++)
        PMPI_Type_free(&slabs[i]);
    return made;
}

/* One element of the section as a datatype: some of the named ones. */
static int element_of(const CFI_cdesc_t *section, MPI_Datatype named, MPI_Datatype *element)
{
    MPI_Count size;
    const MPI_Count length = (MPI_Count)section->elem_len;
    if (PMPI_Type_size_c(named, &size) || size == 0 || length % size != 0)
        return 0;
    return !PMPI_Type_contiguous_c(length / size, named, element);
}

weft_view weft_whole_gaps(const CFI_cdesc_t *section, MPI_Count count, MPI_Datatype type, int use)
{
    weft_view view = { section->base_addr, 1, MPI_DATATYPE_NULL, 0, NULL, section, use };
    MPI_Datatype named, element;
    MPI_Count n, size;
    const MPI_Count length = (MPI_Count)section->elem_len;
    /* What is wrong is for the library to say. */
    if (count <= 0 || type == MPI_DATATYPE_NULL)
        return plain(section, count, type);
    if (!dense(type, &named, &n) || !element_of(section, named, &element))
        return copied(section, count, type, use);
    PMPI_Type_size_c(named, &size);
    if (n * size * count % length != 0 || n * size * count > (MPI_Count)weft_bytes(section)) {
        PMPI_Type_free(&element);
        return copied(section, count, type, use);
    }
    const shape s = merged(section);
    view.made = first(&s, n * size * count / length, element);
    PMPI_Type_free(&element);
    PMPI_Type_commit(&view.made);
    view.type = view.made;
    return view;
}

/* Blocks of a section whose elements stand at equal distances are a datatype with the blocks' distance. */
weft_view weft_blocks_gaps(const CFI_cdesc_t *section, MPI_Datatype type, int use)
{
    weft_view view = { section->base_addr, 0, MPI_DATATYPE_NULL, 0, NULL, section, use };
    MPI_Datatype named, element, block;
    MPI_Count n, size;
    const MPI_Count length = (MPI_Count)section->elem_len;
    const shape s = merged(section);
    if (type == MPI_DATATYPE_NULL)
        return plain(section, 0, type);
    if (s.rank != 1 || s.stride[0] < 0 || !dense(type, &named, &n)
        || !element_of(section, named, &element))
        return copied(section, 0, type, use);
    PMPI_Type_size_c(named, &size);
    if (n * size % length != 0) {
        PMPI_Type_free(&element);
        return copied(section, 0, type, use);
    }
    const MPI_Count many = n * size / length;
    block = hvector(many, s.stride[0], element);
    PMPI_Type_create_resized_c(block, 0, many * s.stride[0], &view.made);
    PMPI_Type_free(&block);
    PMPI_Type_free(&element);
    PMPI_Type_commit(&view.made);
    view.type = view.made;
    return view;
}

/* Behind the call: what was made is freed, or kept for the request. */
void weft_view_close(weft_view *view, int rc, const int *request)
{
    if (view->made)
        PMPI_Type_free(&view->made);
    if (!view->copy)
        return;
    if (request && rc == MPI_SUCCESS && *request != (int)(intptr_t)MPI_REQUEST_NULL) {
        weft_keep_copy(request, view);
        return;
    }
    if (view->use & WEFT_WRITE)
        weft_unpack(view->section, view->copy);
    free(view->copy);
}
