/* Infos, and statuses that no message has filled. */
#include "answers.h"

static void text(char *to, int length, int from)
{
    for (int i = 0; i < length; i++)
        to[i] = "abcdefgh_ ="[below(from)];
    to[length] = 0;
}

void infos(int rounds)
{
    char key[MPI_MAX_INFO_KEY + 10], value[MPI_MAX_INFO_VAL + 10], found[MPI_MAX_INFO_VAL + 10];
    for (int n = 0; n < rounds; n++) {
        MPI_Info info, copy;
        int count = -1, flag = -1, length;
        MPI_Info_create(&info);
        for (int i = 0; i < 12; i++) {
            text(key, between(1, 2), 4);
            switch (below(5)) {
            case 0: case 1:
                text(value, between(1, 30), 11);
                value[0] = 'v', value[strlen(value) - 1] = 'w';
                say("info %d.%d set %s = %d", n, i, key, class_of(MPI_Info_set(info, key, value)));
                break;
            case 2:
                MPI_Info_get_string(info, key, &(int){0}, NULL, &flag);
                if (flag)
                    say("info %d.%d delete %s = %d", n, i, key, class_of(MPI_Info_delete(info, key)));
                break;
            case 3:
                length = below(20);
                strcpy(found, "none");
                MPI_Info_get_string(info, key, &length, found, &flag);
                say("info %d.%d string %s = %d %d %s", n, i, key, flag, flag ? length : 0, found);
                break;
            default:
                MPI_Info_get_nkeys(info, &count);
                say("info %d.%d keys = %d", n, i, count);
            }
        }
        MPI_Info_dup(info, &copy);
        MPI_Info_get_nkeys(copy, &count);
        unsigned sum = 0;
        for (int i = 0; i < count; i++) {
            MPI_Info_get_nthkey(copy, i, key);
            length = (int)sizeof found;
            MPI_Info_get_string(copy, key, &length, found, &flag);
            sum += hash(key, strlen(key)) * 3 + hash(found, strlen(found));
        }
        say("info %d copy = %d %u", n, count, sum);
        MPI_Info_free(&info);
        MPI_Info_free(&copy);
    }
}

static void told(const char *name, int code, const MPI_Status *status, int flag)
{
    int source = -1, tag = -1, error = -1, count = -1, elements = -1, cancelled = -1;
    MPI_Status_get_source(status, &source);
    MPI_Status_get_tag(status, &tag);
    MPI_Status_get_error(status, &error);
    MPI_Get_count(status, MPI_INT, &count);
    MPI_Get_elements(status, MPI_2INT, &elements);
    MPI_Test_cancelled(status, &cancelled);
    say("status %s = %d %d, %d %d %d, %d %d, %d", name, class_of(code), flag, source, tag, error, count, elements, cancelled != 0);
}

static void cleared(MPI_Status *status)
{
    memset(status, 0, sizeof *status);
    MPI_Status_set_source(status, 5);
    MPI_Status_set_tag(status, 6);
    MPI_Status_set_error(status, MPI_SUCCESS);
}

void statuses(void)
{
    MPI_Status status;
    MPI_Request none = MPI_REQUEST_NULL, list_of[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
    int flag = 1, at = 7, in[4] = {0}, out[4] = {1, 2, 3, 4};
    cleared(&status);
    told("set", 0, &status, 0);
    told("of no request", MPI_Wait(&none, &status), &status, flag);
    cleared(&status);
    told("tested of no request", MPI_Test(&none, &flag, &status), &status, flag);
    cleared(&status);
    told("of any of none", MPI_Waitany(2, list_of, &at, &status), &status, at);
    cleared(&status);
    told("tested of any of none", MPI_Testany(2, list_of, &at, &flag, &status), &status, at * 10 + flag);
    cleared(&status);
    told("of nobody", MPI_Recv(in, 4, MPI_INT, MPI_PROC_NULL, 3, MPI_COMM_SELF, &status), &status, 0);
    cleared(&status);
    told("probed of nobody", MPI_Probe(MPI_PROC_NULL, 3, MPI_COMM_SELF, &status), &status, 0);
    for (int n = 0; n <= 4; n++) {
        MPI_Request send;
        char name[50];
        snprintf(name, sizeof name, "of %d numbers", n);
        cleared(&status);
        MPI_Isend(out, n, MPI_INT, 0, n, MPI_COMM_SELF, &send);
        MPI_Recv(in, 4, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_SELF, &status);
        told(name, 0, &status, in[0]);
        MPI_Wait(&send, MPI_STATUS_IGNORE);
        MPI_Isend(out, 3 * n + 1, MPI_BYTE, 0, n, MPI_COMM_SELF, &send);
        MPI_Recv(in, 16, MPI_BYTE, 0, n, MPI_COMM_SELF, &status);
        told("of a part", 0, &status, n);
        MPI_Wait(&send, MPI_STATUS_IGNORE);
        for (int cancel = 0; cancel < 2; cancel++) {
            MPI_Status_set_cancelled(&status, cancel);
            MPI_Status_set_elements(&status, MPI_DOUBLE_INT, n);
            MPI_Get_elements(&status, MPI_DOUBLE_INT, &at);
            MPI_Get_count(&status, MPI_DOUBLE_INT, &flag);
            MPI_Test_cancelled(&status, in);
            say("status set to %d pairs = %d %d %d", n, at, flag, in[0] != 0);
        }
    }
}
