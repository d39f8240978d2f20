#include "check.h"

int main(void) {
    begin();
    MPI_Info info, copy;
    char key[MPI_MAX_INFO_KEY], value[MPI_MAX_INFO_VAL], small[4];
    int n, flag, length;
    MPI_Info_create(&info);
    MPI_Info_get_nkeys(info, &n);
    CHECK(n == 0);
    CHECK(MPI_Info_set(info, "colour", "green") == MPI_SUCCESS);
    MPI_Info_set(info, "size", "7");
    MPI_Info_set(info, "colour", "blue");
    MPI_Info_get_nkeys(info, &n);
    CHECK(n == 2);
    MPI_Info_get_nthkey(info, 0, key);
    CHECK(strcmp(key, "colour") == 0);
    MPI_Info_get_nthkey(info, 1, key);
    CHECK(strcmp(key, "size") == 0);
    MPI_Info_get(info, "colour", MPI_MAX_INFO_VAL - 1, value, &flag);
    CHECK(flag && strcmp(value, "blue") == 0);
    /* valuelen does not count the NUL, buflen does. */
    MPI_Info_get(info, "colour", 3, small, &flag);
    CHECK(flag && strcmp(small, "blu") == 0);
    length = 4;
    MPI_Info_get_string(info, "colour", &length, small, &flag);
    CHECK(flag && length == 5 && strcmp(small, "blu") == 0);
    length = 0;
    MPI_Info_get_string(info, "colour", &length, NULL, &flag);
    CHECK(flag && length == 5);
    MPI_Info_get_valuelen(info, "colour", &length, &flag);
    CHECK(flag && length == 4);
    strcpy(value, "untouched");
    length = -5;
    MPI_Info_get(info, "none", 10, value, &flag);
    CHECK(!flag && strcmp(value, "untouched") == 0);
    MPI_Info_get_valuelen(info, "none", &length, &flag);
    CHECK(!flag && length == -5);

    MPI_Info_dup(info, &copy);
    CHECK(MPI_Info_delete(info, "colour") == MPI_SUCCESS);
    MPI_Info_get_nkeys(info, &n);
    CHECK(n == 1);
    MPI_Info_get_nkeys(copy, &n);
    CHECK(n == 2);

    char long_key[MPI_MAX_INFO_KEY + 1], long_value[MPI_MAX_INFO_VAL + 1];
    memset(long_key, 'k', sizeof long_key);
    long_key[MPI_MAX_INFO_KEY] = 0;
    memset(long_value, 'v', sizeof long_value);
    long_value[MPI_MAX_INFO_VAL] = 0;
    REFUSED(MPI_Info_set(info, long_key, "1"), MPI_ERR_INFO_KEY, "has 256 bytes: keys have 1 to 255");
    REFUSED(MPI_Info_set(info, "", "1"), MPI_ERR_INFO_KEY, "has 0 bytes");
    REFUSED(MPI_Info_set(info, "long", long_value), MPI_ERR_INFO_VALUE, "key long) has 1024 bytes");
    REFUSED(MPI_Info_set(info, "key", NULL), MPI_ERR_ARG, "argument value is NULL");
    REFUSED(MPI_Info_delete(info, "colour"), MPI_ERR_INFO_NOKEY, "\"colour\"");
    REFUSED(MPI_Info_get_nthkey(info, 1, key), MPI_ERR_ARG, "n = 1: the info object has 1 keys");
    REFUSED(MPI_Info_get_nkeys(MPI_INFO_NULL, &n), MPI_ERR_INFO, "the null info object");
    long_key[MPI_MAX_INFO_KEY - 1] = 0;
    long_value[MPI_MAX_INFO_VAL - 1] = 0;
    CHECK(MPI_Info_set(info, long_key, long_value) == MPI_SUCCESS);
    MPI_Info_get(info, long_key, MPI_MAX_INFO_VAL - 1, value, &flag);
    CHECK(flag && strcmp(value, long_value) == 0);

    MPI_Info_get(MPI_INFO_ENV, "command", MPI_MAX_INFO_VAL - 1, value, &flag);
    CHECK(flag && strstr(value, "info") != NULL);
    MPI_Info_get(MPI_INFO_ENV, "maxprocs", MPI_MAX_INFO_VAL - 1, value, &flag);
    CHECK(flag && strcmp(value, "1") == 0);
    REFUSED(MPI_Info_set(MPI_INFO_ENV, "a", "b"), MPI_ERR_INFO, "MPI_INFO_ENV, which is only read");
    MPI_Info environment = MPI_INFO_ENV;
    REFUSED(MPI_Info_free(&environment), MPI_ERR_INFO, "only read");
    MPI_Info_dup(MPI_INFO_ENV, &environment);
    CHECK(MPI_Info_set(environment, "a", "b") == MPI_SUCCESS);
    MPI_Info_free(&environment);
    MPI_Info_create_env(0, NULL, &environment);
    MPI_Info_get(environment, "wdir", MPI_MAX_INFO_VAL - 1, value, &flag);
    CHECK(flag && value[0] == '/');
    MPI_Info_free(&environment);

    CHECK(MPI_Info_fromint(MPI_Info_toint(copy)) == copy);
    MPI_Info_free(&copy);
    CHECK(copy == MPI_INFO_NULL);
    MPI_Info stale = info;
    MPI_Info_free(&info);
    REFUSED(MPI_Info_set(stale, "a", "b"), MPI_ERR_INFO, "freed");
    return end();
}
