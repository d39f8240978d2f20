/* Asks one library all questions: `main SEED FOLDER [legal]`; rank R writes FOLDER/R. `legal` leaves out bad calls, for a library
 * that ends the program at an error without a communicator, whatever the error handlers are. */
#include "answers.h"

int rank, size;
static FILE *out;
static uint64_t state;

void say(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vfprintf(out, format, arguments);
    va_end(arguments);
    fputc('\n', out);
    fflush(out);
}

void seed(uint64_t from)
{
    state = from * 0x9e3779b97f4a7c15u + 1;
}

int below(int n)
{
    uint64_t x = state += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return (int)((x ^ (x >> 31)) % (uint64_t)n);
}

int between(int low, int high)
{
    return low + below(high - low + 1);
}

int class_of(int code)
{
    int class = -1;
    MPI_Error_class(code, &class);
    return class;
}

const char *list(const int *numbers, int count)
{
    static char texts[8][400];
    static int next;
    char *text = texts[next++ % 8], *end = text;
    end += sprintf(end, "(");
    for (int i = 0; i < count && end < text + 380; i++)
        end += sprintf(end, i ? " %d" : "%d", numbers[i]);
    sprintf(end, ")");
    return text;
}

unsigned hash(const void *bytes, size_t count)
{
    unsigned sum = 2166136261u;
    for (size_t i = 0; i < count; i++)
        sum = (sum ^ ((const unsigned char *)bytes)[i]) * 16777619u;
    return sum;
}

int main(int argc, char **argv)
{
    if (argc < 3)
        return fprintf(stderr, "main SEED FOLDER\n"), 2;
    uint64_t first = strtoull(argv[1], NULL, 0);
    char path[1024];
    MPI_Init(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    snprintf(path, sizeof path, "%s/%d", argv[2], rank);
    if (!(out = fopen(path, "w")))
        MPI_Abort(MPI_COMM_WORLD, 3);
    /* Local questions differ between ranks, so that all ranks together ask more. */
    seed(first + 1000u * (unsigned)rank);
    if (rank == 0)
        named_types();
    random_types(300);
    groups(150);
    infos(30);
    statuses();
    if (argc < 4)
        errors();
    seed(first);
    topologies(60);
    say("all is asked = 1");
    fclose(out);
    return MPI_Finalize() != MPI_SUCCESS;
}
