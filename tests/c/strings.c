// ranks: 1 2
// says: correct
//
// Strings are bytes: each function of the standard that takes a string gets all bytes from 1 to 255, most of which are not UTF-8.
// A function that returns the string must return the same bytes. Unknown names of the library's own objects are refused without
// any other effect. A test of xtask checks that no function is missing here.
#define _GNU_SOURCE
#include "check.h"
#include <sys/stat.h>
#include <unistd.h>

/* All bytes, and three parts that fit into any kind of name. */
static char all[256], parts[3][101];

static void make(void)
{
    for (int i = 0; i < 255; i++)
        all[i] = (char)(i + 1);
    for (int part = 0; part < 3; part++)
        memcpy(parts[part], all + (part < 2 ? 100 * part : 155), 100);
}

static void names(void)
{
    char found[MPI_MAX_OBJECT_NAME];
    int length;
    MPI_Comm comm;
    MPI_Datatype type;
    MPI_Win win;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Type_contiguous(2, MPI_INT, &type);
    MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    for (int part = 0; part < 4; part++) {
        /* The last name is too long: only the part that fits is kept. */
        const char *name = part < 3 ? parts[part] : all + 127;
        int kept = part < 3 ? 100 : MPI_MAX_OBJECT_NAME - 1;
        MPI_Comm_set_name(comm, name);
        MPI_Comm_get_name(comm, found, &length);
        CHECK(length == kept && memcmp(found, name, kept) == 0 && found[kept] == 0, "part %d", part);
        MPI_Type_set_name(type, name);
        MPI_Type_get_name(type, found, &length);
        CHECK(length == kept && memcmp(found, name, kept) == 0 && found[kept] == 0, "part %d", part);
        MPI_Win_set_name(win, name);
        MPI_Win_get_name(win, found, &length);
        CHECK(length == kept && memcmp(found, name, kept) == 0 && found[kept] == 0, "part %d", part);
    }
    MPI_Win_free(&win);
    MPI_Type_free(&type);
    MPI_Comm_free(&comm);
}

static void errors(void)
{
    char found[MPI_MAX_ERROR_STRING];
    int class, code, length;
    MPI_Add_error_class(&class);
    MPI_Add_error_code(class, &code);
    MPI_Add_error_string(code, all);
    MPI_Error_string(code, found, &length);
    CHECK(length == 255 && strcmp(found, all) == 0);
}

static void infos(void)
{
    MPI_Info info, copy;
    char found[MPI_MAX_INFO_VAL + 1], key[MPI_MAX_INFO_KEY + 1];
    int flag, length, room = sizeof found, count;
    MPI_Info_create(&info);
    MPI_Info_set(info, all, all);
    MPI_Info_set(info, "\xff", "\xfe");
    MPI_Info_set(info, "\xfe", "\xff");
    MPI_Info_dup(info, &copy);
    MPI_Info_get_nkeys(copy, &count);
    CHECK(count == 3, "%d keys", count);
    MPI_Info_get_nthkey(copy, 0, key);
    CHECK(strcmp(key, all) == 0);
    MPI_Info_get_valuelen(copy, all, &length, &flag);
    CHECK(flag && length == 255);
    MPI_Info_get(copy, all, 255, found, &flag);
    CHECK(flag && strcmp(found, all) == 0);
    memset(found, 0, sizeof found);
    MPI_Info_get_string(copy, all, &room, found, &flag);
    CHECK(flag && room == 256 && strcmp(found, all) == 0);
    MPI_Info_get(copy, "\xff", 9, found, &flag);
    CHECK(flag && strcmp(found, "\xfe") == 0);
    MPI_Info_delete(copy, "\xff");
    MPI_Info_get(copy, "\xfe", 9, found, &flag);
    CHECK(flag && strcmp(found, "\xff") == 0);
    MPI_Info_free(&copy);
    MPI_Info_free(&info);
}

static void ports(void)
{
    char service[101], port[MPI_MAX_PORT_NAME], told[MPI_MAX_PORT_NAME];
    MPI_Comm comm;
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    for (int part = 0; part < 3; part++) {
        /* The last bytes make the name unique to this process. */
        memcpy(service, parts[part], sizeof service);
        service[98] = (char)(1 + getpid() % 255);
        service[99] = (char)(1 + getpid() / 255 % 255);
        strcpy(port, all);
        CHECK(MPI_Publish_name(service, MPI_INFO_NULL, port) == MPI_SUCCESS);
        FAILS(MPI_Publish_name(service, MPI_INFO_NULL, "other"), MPI_ERR_SERVICE);
        CHECK(MPI_Lookup_name(service, MPI_INFO_NULL, told) == MPI_SUCCESS && strcmp(told, all) == 0);
        FAILS(MPI_Unpublish_name(service, MPI_INFO_NULL, "other"), MPI_ERR_SERVICE);
        CHECK(MPI_Unpublish_name(service, MPI_INFO_NULL, port) == MPI_SUCCESS);
        FAILS(MPI_Lookup_name(service, MPI_INFO_NULL, told), MPI_ERR_NAME);
    }
    FAILS(MPI_Close_port(all), MPI_ERR_PORT);
    FAILS(MPI_Comm_accept(all, MPI_INFO_NULL, 0, MPI_COMM_SELF, &comm), MPI_ERR_PORT);
    FAILS(MPI_Comm_connect(all, MPI_INFO_NULL, 0, MPI_COMM_SELF, &comm), MPI_ERR_PORT);
}

static void tags(void)
{
    MPI_Group world, mine, theirs;
    MPI_Comm comms[3], inter;
    const char *tag[3] = {all, "\xff", "\xfe"};
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    for (int i = 0; i < 3; i++)
        MPI_Comm_create_from_group(world, tag[i], MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &comms[i]);
    for (int i = 0; i < 3; i++) {
        int sum = -1;
        MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, comms[i]);
        CHECK(sum == size * (size - 1) / 2);
        MPI_Comm_free(&comms[i]);
    }
    if (size == 2) {
        int other = 1 - rank, heard = -1;
        MPI_Group_incl(world, 1, &rank, &mine);
        MPI_Group_incl(world, 1, &other, &theirs);
        MPI_Intercomm_create_from_groups(mine, 0, theirs, 0, all, MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &inter);
        MPI_Sendrecv(&rank, 1, MPI_INT, 0, 1, &heard, 1, MPI_INT, 0, 1, inter, MPI_STATUS_IGNORE);
        CHECK(heard == other);
        MPI_Comm_free(&inter);
        MPI_Group_free(&mine);
        MPI_Group_free(&theirs);
    }
    MPI_Group_free(&world);
}

/* Tests that unknown names of the library's own objects are refused. */
static void unknown(void)
{
    MPI_Session session;
    MPI_Group group;
    MPI_Info info;
    MPI_Aint bytes, at = 0;
    int index, word = 5, provided;
    char packed[64];
    MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session);
    FAILS(MPI_Group_from_session_pset(session, all, &group), MPI_ERR_ARG);
    FAILS(MPI_Session_get_pset_info(session, all, &info), MPI_ERR_ARG);
    MPI_Session_finalize(&session);
    CHECK(MPI_Pack_external_size(all, 1, MPI_INT, &bytes) != MPI_SUCCESS);
    CHECK(MPI_Pack_external(all, &word, 1, MPI_INT, packed, sizeof packed, &at) != MPI_SUCCESS);
    CHECK(MPI_Unpack_external(all, packed, sizeof packed, &at, &word, 1, MPI_INT) != MPI_SUCCESS && at == 0);
    MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
    CHECK(MPI_T_category_get_index(all, &index) == MPI_T_ERR_INVALID_NAME);
    CHECK(MPI_T_cvar_get_index(all, &index) == MPI_T_ERR_INVALID_NAME);
    CHECK(MPI_T_event_get_index(all, &index) == MPI_T_ERR_INVALID_NAME);
    CHECK(MPI_T_pvar_get_index(all, MPI_T_PVAR_CLASS_COUNTER, &index) == MPI_T_ERR_INVALID_NAME);
    MPI_T_finalize();
}

static void files(const char *folder)
{
    char name[512];
    MPI_File file;
    snprintf(name, sizeof name, "%s/\xff\xe4 \xf6%d", folder, rank);
    MPI_File_open(MPI_COMM_SELF, name, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file);
    CHECK(MPI_File_set_view(file, 0, MPI_INT, MPI_INT, all, MPI_INFO_NULL) != MPI_SUCCESS);
    MPI_File_close(&file);
    CHECK(MPI_File_delete(name, MPI_INFO_NULL) == MPI_SUCCESS);
    CHECK(MPI_Register_datarep(all, NULL, NULL, NULL, NULL) != MPI_SUCCESS);
}

/* Spawns children by commands, arguments, variables and folders of any bytes. */
static void spawned(char *self, const char *folder)
{
    char command[512], there[512], value[512], *real = realpath(self, NULL);
    char *argv[] = {"child", all, "\xff", there, NULL}, *commands[] = {command, command}, **argvs[] = {argv, argv};
    int codes[2], ones[] = {1, 1};
    MPI_Comm inter;
    MPI_Info info, infos[2];
    snprintf(there, sizeof there, "%s/\xfc\xff", folder);
    snprintf(command, sizeof command, "%s/\xe9", folder);
    /* In the list of variables a newline ends a variable, so the value contains all other bytes. */
    snprintf(value, sizeof value, "STRINGS=%.9s%s", all, all + 10);
    if (rank == 0)
        CHECK(mkdir(there, 0700) == 0 && symlink(real, command) == 0);
    MPI_Info_create(&info);
    MPI_Info_set(info, "wdir", there);
    MPI_Info_set(info, "env", value);
    infos[0] = infos[1] = info;
    MPI_Comm_spawn(command, argv, 2, info, 0, MPI_COMM_WORLD, &inter, codes);
    MPI_Comm_disconnect(&inter);
    MPI_Comm_spawn_multiple(2, commands, argvs, ones, infos, 0, MPI_COMM_WORLD, &inter, codes);
    MPI_Comm_disconnect(&inter);
    MPI_Info_set(info, "path", folder);
    MPI_Comm_spawn("\xe9", argv, 1, info, 0, MPI_COMM_WORLD, &inter, codes);
    MPI_Comm_disconnect(&inter);
    MPI_Info_free(&info);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0)
        CHECK(unlink(command) == 0 && rmdir(there) == 0);
    free(real);
}

static int child(MPI_Comm parent, int argc, char **argv)
{
    char here[512], found[MPI_MAX_INFO_VAL + 1], *value = getenv("STRINGS");
    int flag;
    make();
    CHECK(argc == 5 && strcmp(argv[2], all) == 0 && strcmp(argv[3], "\xff") == 0);
    CHECK(getcwd(here, sizeof here) && strcmp(here, argv[4]) == 0, "in %s", here);
    CHECK(value && strncmp(value, all, 9) == 0 && strcmp(value + 9, all + 10) == 0);
    MPI_Info_get(MPI_INFO_ENV, "command", MPI_MAX_INFO_VAL, found, &flag);
    CHECK(flag && strcmp(found, argv[0]) == 0);
    MPI_Info_get(MPI_INFO_ENV, "wdir", MPI_MAX_INFO_VAL, found, &flag);
    CHECK(flag && strcmp(found, here) == 0);
    MPI_Comm_disconnect(&parent);
    return end();
}

int main(int argc, char **argv)
{
    char folder[] = "/tmp/weft-strings-XXXXXX";
    MPI_Comm parent;
    begin(&argc, &argv);
    MPI_Comm_get_parent(&parent);
    if (parent != MPI_COMM_NULL)
        return child(parent, argc, argv);
    make();
    if (rank == 0)
        CHECK(mkdtemp(folder));
    MPI_Bcast(folder, sizeof folder, MPI_CHAR, 0, MPI_COMM_WORLD);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
    names();
    errors();
    infos();
    ports();
    tags();
    files(folder);
    spawned(argv[0], folder);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    unknown();
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0)
        CHECK(rmdir(folder) == 0);
    return end();
}
