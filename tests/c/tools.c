// ranks: 1
// says: correct
//
// The tool interface, what it tells: every variable, enumeration and category by index and by name,
// events and sources, before MPI_Init, between and after MPI_Finalize; strings that are cut; and the
// error of every call for a bad index, a bad name, a freed handle, and without MPI_T_init_thread.
#include "tools.h"

enum { LONG = 1000 };

/* The first name must be cut to 3 characters, and NULL be a fine place for anything. */
static void strings(void)
{
    char text[LONG];
    int room = 4, whole = 0, desc = 0;
    memset(text, '?', LONG);
    OK(MPI_T_cvar_get_info(0, text, &room, NULL, NULL, NULL, NULL, &desc, NULL, NULL));
    CHECK(!strcmp(text, "WEF") && text[4] == '?', "%.9s", text);
    OK(MPI_T_cvar_get_info(0, NULL, &whole, NULL, NULL, NULL, NULL, NULL, NULL, NULL));
    CHECK(room == whole && whole == (int)strlen("WEFT_EAGER") + 1, "%d %d", room, whole);
    CHECK(desc > 10);
    strcpy(text, "?");
    OK(MPI_T_cvar_get_info(0, text, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL));
    CHECK(!strcmp(text, "?"));
    room = 0;
    OK(MPI_T_cvar_get_info(0, text, &room, NULL, NULL, NULL, NULL, NULL, NULL, NULL));
    CHECK(!strcmp(text, "?") && room == whole);
}

/* How many items; each has a name, its number as value, and they differ. */
static int items(MPI_T_enum type)
{
    int num = 0, value, length = LONG;
    char name[LONG], last[LONG] = "";
    OK(MPI_T_enum_get_info(type, &num, name, &length));
    CHECK(num >= 2 && (int)strlen(name) + 1 == length);
    for (int i = 0; i < num; i++) {
        length = LONG;
        OK(MPI_T_enum_get_item(type, i, &value, name, &length));
        CHECK(value == i && (int)strlen(name) + 1 == length && strcmp(name, last));
        strcpy(last, name);
    }
    IS(MPI_T_ERR_INVALID_INDEX, MPI_T_enum_get_item(type, num, &value, name, &length));
    IS(MPI_T_ERR_INVALID_INDEX, MPI_T_enum_get_item(type, -1, &value, name, &length));
    OK(MPI_T_enum_get_info(type, NULL, NULL, NULL));
    return num;
}

static int verbose(int level)
{
    return level >= MPI_T_VERBOSITY_USER_BASIC && level <= MPI_T_VERBOSITY_MPIDEV_ALL;
}

static int controls(void)
{
    int num = 0, words = 0, texts = 0;
    OK(MPI_T_cvar_get_num(&num));
    CHECK(num > 20);
    for (int i = 0; i < num; i++) {
        char name[LONG], desc[LONG], text[8192];
        int n = LONG, d = LONG, level, bind, scope, count;
        MPI_Datatype type;
        MPI_T_enum enumeration;
        MPI_T_cvar_handle handle;
        OK(MPI_T_cvar_get_info(i, name, &n, &level, &type, &enumeration, desc, &d, &bind, &scope));
        CHECK(cvar(name) == i && !strncmp(name, "WEFT_", 5), "%s", name);
        CHECK(verbose(level) && bind == MPI_T_BIND_NO_OBJECT && d > 10, "%s", name);
        CHECK(scope == MPI_T_SCOPE_LOCAL || scope == MPI_T_SCOPE_ALL_EQ, "%s", name);
        OK(MPI_T_cvar_handle_alloc(i, NULL, &handle, &count));
        CHECK(count == 1 || (type == MPI_CHAR && count >= 4096 && count <= 8192), "%s", name);
        memset(text, '?', sizeof text);
        OK(MPI_T_cvar_read(handle, text));
        int first = *(int *)text;
        if (enumeration != MPI_T_ENUM_NULL) {
            CHECK(type == MPI_INT && first >= 0 && first < items(enumeration), "%s", name);
            words++;
        } else if (type == MPI_CHAR) {
            CHECK(strlen(text) < (size_t)count, "%s", name);
            texts++;
        } else {
            CHECK(type == MPI_INT || type == MPI_UNSIGNED_LONG_LONG, "%s", name);
        }
        OK(MPI_T_cvar_handle_free(&handle));
        CHECK(handle == MPI_T_CVAR_HANDLE_NULL);
    }
    CHECK(words >= 5 && texts >= 3, "%d %d", words, texts);
    return num;
}

static int measures(void)
{
    int num = 0, bound = 0, states = 0;
    OK(MPI_T_pvar_get_num(&num));
    CHECK(num > 20);
    for (int i = 0; i < num; i++) {
        char name[LONG], desc[LONG];
        int n = LONG, d = LONG, level, class_, bind, readonly, continuous, atomic, index = -1;
        MPI_Datatype type;
        MPI_T_enum enumeration;
        OK(MPI_T_pvar_get_info(i, name, &n, &level, &class_, &type, &enumeration, desc, &d, &bind,
                               &readonly, &continuous, &atomic));
        OK(MPI_T_pvar_get_index(name, class_, &index));
        CHECK(index == i && verbose(level) && !strncmp(name, "weft.", 5) && d > 10, "%s", name);
        CHECK(bind == MPI_T_BIND_NO_OBJECT || bind == MPI_T_BIND_MPI_COMM, "%s", name);
        bound += bind == MPI_T_BIND_MPI_COMM;
        int shows = class_ == MPI_T_PVAR_CLASS_STATE || class_ == MPI_T_PVAR_CLASS_LEVEL;
        CHECK(readonly == shows && continuous == shows && atomic == !shows, "%s", name);
        if (class_ == MPI_T_PVAR_CLASS_STATE) {
            CHECK(type == MPI_INT && items(enumeration) > 1, "%s", name);
            states++;
        } else {
            CHECK(type == MPI_UNSIGNED_LONG_LONG && enumeration == MPI_T_ENUM_NULL, "%s", name);
        }
        OK(MPI_T_pvar_get_info(i, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL,
                               NULL));
    }
    CHECK(bound >= 2 && states >= 1);
    return num;
}

/* Variables found in a category and those below it; each must lie where its name says. */
static void walk(int category, int *cvars, int *pvars, int *seen)
{
    char name[LONG], desc[LONG], member[LONG];
    int n = LONG, d = LONG, c, p, below, index, events = -1, list[LONG];
    OK(MPI_T_category_get_info(category, name, &n, desc, &d, &c, &p, &below));
    OK(MPI_T_category_get_index(name, &index));
    OK(MPI_T_category_get_num_events(category, &events));
    CHECK(index == category && d > 5 && events == 0);
    ++*seen, *cvars += c, *pvars += p;
    memset(list, 0xff, sizeof list);
    OK(MPI_T_category_get_cvars(category, LONG, list));
    CHECK(list[c] == -1 && (c == 0 || list[c - 1] >= 0), "%s", name);
    memset(list, 0xff, sizeof list);
    OK(MPI_T_category_get_pvars(category, LONG, list));
    CHECK(list[p] == -1, "%s", name);
    for (int i = 0; i < p; i++) {
        int length = LONG;
        OK(MPI_T_pvar_get_info(list[i], member, &length, NULL, NULL, NULL, NULL, NULL, NULL, NULL,
                               NULL, NULL, NULL));
        CHECK(!strncmp(member, name, strlen(name)) && member[strlen(name)] == '.', "%s", member);
    }
    if (p > 1) { /* only so many as there is room for */
        int two[2] = {-1, -1};
        OK(MPI_T_category_get_pvars(category, 1, two));
        CHECK(two[0] == list[0] && two[1] == -1);
    }
    list[0] = -1;
    OK(MPI_T_category_get_events(category, LONG, list));
    CHECK(list[0] == -1);
    OK(MPI_T_category_get_events(category, 0, NULL));
    OK(MPI_T_category_get_categories(category, LONG, list));
    for (int i = 0; i < below; i++) walk(list[i], cvars, pvars, seen);
}

static void categories(int cvars, int pvars)
{
    int num = 0, root = -1, found_c = 0, found_p = 0, seen = 0, before = -1, after = -2, list[1];
    OK(MPI_T_category_get_num(&num));
    OK(MPI_T_category_changed(&before));
    OK(MPI_T_category_get_index("weft", &root));
    walk(root, &found_c, &found_p, &seen);
    CHECK(seen == num && num > 4, "%d of %d", seen, num);
    CHECK(found_c == cvars && found_p == pvars, "%d %d", found_c, found_p);
    OK(MPI_T_category_changed(&after));
    CHECK(before == after);
    for (int bad = -1; bad <= num; bad += num + 1) {
        IS(MPI_T_ERR_INVALID_INDEX, MPI_T_category_get_num_events(bad, list));
        IS(MPI_T_ERR_INVALID_INDEX, MPI_T_category_get_cvars(bad, 1, list));
        IS(MPI_T_ERR_INVALID_INDEX, MPI_T_category_get_pvars(bad, 1, list));
        IS(MPI_T_ERR_INVALID_INDEX, MPI_T_category_get_events(bad, 1, list));
        IS(MPI_T_ERR_INVALID_INDEX, MPI_T_category_get_categories(bad, 1, list));
        IS(MPI_T_ERR_INVALID_INDEX,
           MPI_T_category_get_info(bad, NULL, NULL, NULL, NULL, NULL, NULL, NULL));
    }
    IS(MPI_T_ERR_INVALID, MPI_T_category_get_cvars(root, -1, list));
    IS(MPI_T_ERR_INVALID, MPI_T_category_get_categories(root, 1, NULL));
    IS(MPI_T_ERR_INVALID_NAME, MPI_T_category_get_index("weft.nothing", &root));
}

static void no_callback(MPI_T_event_instance i, MPI_T_event_registration r, MPI_T_cb_safety s,
                        void *data)
{
    (void)i, (void)r, (void)s, (void)data;
}

static void no_free(MPI_T_event_registration r, MPI_T_cb_safety s, void *data)
{
    (void)r, (void)s, (void)data;
}

static void no_drop(MPI_Count n, MPI_T_event_registration r, int source, MPI_T_cb_safety s,
                    void *data)
{
    (void)n, (void)r, (void)source, (void)s, (void)data;
}

/* There are none: every index and every handle is wrong. */
static void events(void)
{
    int num = -1, index, word;
    MPI_Count stamp;
    MPI_Info info;
    MPI_T_event_registration r = (MPI_T_event_registration)&num;
    MPI_T_event_instance i = (MPI_T_event_instance)&num;
    OK(MPI_T_event_get_num(&num));
    CHECK(num == 0);
    IS(MPI_T_ERR_INVALID_INDEX, MPI_T_event_get_info(0, NULL, NULL, NULL, NULL, NULL, NULL, NULL,
                                                     NULL, NULL, NULL, NULL));
    IS(MPI_T_ERR_INVALID_NAME, MPI_T_event_get_index("weft.event", &index));
    IS(MPI_T_ERR_INVALID_INDEX, MPI_T_event_handle_alloc(0, NULL, MPI_INFO_NULL, &r));
    IS(MPI_T_ERR_INVALID_HANDLE, MPI_T_event_handle_set_info(r, MPI_INFO_NULL));
    IS(MPI_T_ERR_INVALID_HANDLE, MPI_T_event_handle_get_info(r, &info));
    IS(MPI_T_ERR_INVALID_HANDLE, MPI_T_event_register_callback(r, MPI_T_CB_REQUIRE_NONE,
                                                               MPI_INFO_NULL, NULL, no_callback));
    IS(MPI_T_ERR_INVALID_HANDLE,
       MPI_T_event_callback_set_info(r, MPI_T_CB_REQUIRE_NONE, MPI_INFO_NULL));
    IS(MPI_T_ERR_INVALID_HANDLE, MPI_T_event_callback_get_info(r, MPI_T_CB_REQUIRE_NONE, &info));
    IS(MPI_T_ERR_INVALID_HANDLE, MPI_T_event_handle_free(r, NULL, no_free));
    IS(MPI_T_ERR_INVALID_HANDLE, MPI_T_event_set_dropped_handler(r, no_drop));
    IS(MPI_T_ERR_INVALID_HANDLE, MPI_T_event_read(i, 0, &word));
    IS(MPI_T_ERR_INVALID_HANDLE, MPI_T_event_copy(i, &word));
    IS(MPI_T_ERR_INVALID_HANDLE, MPI_T_event_get_timestamp(i, &stamp));
    IS(MPI_T_ERR_INVALID_HANDLE, MPI_T_event_get_source(i, &index));
}

static void sources(void)
{
    int num = 0, n = LONG, d = LONG, keys = -1;
    char name[LONG], desc[LONG];
    MPI_Count ticks = 0, most = 0, first = -1, second = -1;
    MPI_T_source_order order = MPI_T_SOURCE_UNORDERED;
    MPI_Info info = MPI_INFO_NULL;
    OK(MPI_T_source_get_num(&num));
    CHECK(num == 1);
    OK(MPI_T_source_get_info(0, name, &n, desc, &d, &order, &ticks, &most, &info));
    CHECK(!strcmp(name, "weft.clock") && d > 5 && ticks == 1000000000 && most > ticks);
    CHECK(order == MPI_T_SOURCE_ORDERED && info != MPI_INFO_NULL);
    OK(MPI_Info_get_nkeys(info, &keys));
    CHECK(keys == 0);
    MPI_Info_free(&info);
    OK(MPI_T_source_get_timestamp(0, &first));
    OK(MPI_T_source_get_timestamp(0, &second));
    double now = MPI_Wtime();
    CHECK(first > 0 && second >= first && second < most);
    CHECK(now >= second * 1e-9 && now - second * 1e-9 < 60, "the clock of MPI_Wtime");
    IS(MPI_T_ERR_INVALID_INDEX, MPI_T_source_get_timestamp(1, &first));
    IS(MPI_T_ERR_INVALID_INDEX,
       MPI_T_source_get_info(-1, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL));
}

static void bad_input(int cvars, int pvars)
{
    int index = 7, count = 7, num;
    char text[MPI_MAX_ERROR_STRING];
    MPI_T_cvar_handle handle = MPI_T_CVAR_HANDLE_NULL, old;
    IS(MPI_T_ERR_INVALID_INDEX, MPI_T_cvar_get_info(cvars, NULL, NULL, NULL, NULL, NULL, NULL, NULL,
                                                    NULL, NULL));
    MPI_Error_string(MPI_T_ERR_INVALID_INDEX, text, &num);
    CHECK(!strcmp(text, "MPI_T_ERR_INVALID_INDEX: invalid index"), "%s", text);
    IS(MPI_T_ERR_INVALID_INDEX, MPI_T_cvar_handle_alloc(-1, NULL, &handle, &count));
    IS(MPI_T_ERR_INVALID_INDEX, MPI_T_pvar_get_info(pvars, NULL, NULL, NULL, NULL, NULL, NULL, NULL,
                                                    NULL, NULL, NULL, NULL, NULL));
    IS(MPI_T_ERR_INVALID_NAME, MPI_T_cvar_get_index("WEFT_EAGAR", &index));
    IS(MPI_T_ERR_INVALID_NAME,
       MPI_T_pvar_get_index("weft.p2p.peers", MPI_T_PVAR_CLASS_COUNTER, &index));
    CHECK(index == 7 && count == 7);
    IS(MPI_T_ERR_INVALID, MPI_T_cvar_get_index(NULL, &index));
    IS(MPI_T_ERR_INVALID, MPI_T_cvar_get_index("WEFT_EAGER", NULL));
    IS(MPI_T_ERR_INVALID, MPI_T_cvar_get_num(NULL));
    IS(MPI_T_ERR_INVALID, MPI_T_init_thread(MPI_THREAD_SINGLE, NULL));
    IS(MPI_T_ERR_INVALID_HANDLE, MPI_T_cvar_read(handle, text));
    IS(MPI_T_ERR_INVALID_HANDLE, MPI_T_cvar_handle_free(&handle));
    OK(MPI_T_cvar_handle_alloc(0, NULL, &handle, &count));
    IS(MPI_T_ERR_INVALID, MPI_T_cvar_read(handle, NULL));
    IS(MPI_T_ERR_INVALID, MPI_T_cvar_write(handle, NULL));
    old = handle;
    OK(MPI_T_cvar_handle_free(&handle));
    IS(MPI_T_ERR_INVALID_HANDLE, MPI_T_cvar_read(old, text));
    IS(MPI_T_ERR_INVALID_HANDLE, MPI_T_cvar_write(old, text));
    IS(MPI_T_ERR_INVALID_HANDLE, MPI_T_cvar_handle_free(&old));
    IS(MPI_T_ERR_INVALID_HANDLE, MPI_T_enum_get_info(MPI_T_ENUM_NULL, &num, NULL, NULL));
    IS(MPI_T_ERR_INVALID_HANDLE, MPI_T_enum_get_item((MPI_T_enum)text, 0, &num, NULL, NULL));
}

static void everything(void)
{
    strings();
    int cvars = controls(), pvars = measures();
    categories(cvars, pvars);
    events();
    sources();
    bad_input(cvars, pvars);
}

static void too_early_or_late(void)
{
    int n;
    MPI_T_pvar_session session;
    MPI_Count stamp;
    IS(MPI_T_ERR_NOT_INITIALIZED, MPI_T_finalize());
    IS(MPI_T_ERR_NOT_INITIALIZED, MPI_T_cvar_get_num(&n));
    IS(MPI_T_ERR_NOT_INITIALIZED, MPI_T_cvar_read(MPI_T_CVAR_HANDLE_NULL, &n));
    IS(MPI_T_ERR_NOT_INITIALIZED, MPI_T_pvar_get_num(&n));
    IS(MPI_T_ERR_NOT_INITIALIZED, MPI_T_pvar_session_create(&session));
    IS(MPI_T_ERR_NOT_INITIALIZED, MPI_T_category_get_num(&n));
    IS(MPI_T_ERR_NOT_INITIALIZED, MPI_T_enum_get_info(MPI_T_ENUM_NULL, &n, NULL, NULL));
    IS(MPI_T_ERR_NOT_INITIALIZED, MPI_T_event_get_num(&n));
    IS(MPI_T_ERR_NOT_INITIALIZED, MPI_T_source_get_timestamp(0, &stamp));
}

/* Handles end with the last MPI_T_finalize, and only with that. */
static void counted(void)
{
    int count, provided;
    number n;
    tool_begin();
    MPI_T_cvar_handle handle = control("WEFT_EAGER", &count);
    MPI_T_pvar_session session;
    OK(MPI_T_pvar_session_create(&session));
    OK(MPI_T_init_thread(MPI_THREAD_SERIALIZED, &provided));
    CHECK(provided == MPI_THREAD_SERIALIZED);
    OK(MPI_T_finalize());
    OK(MPI_T_cvar_read(handle, &n));
    CHECK(n == 16384);
    OK(MPI_T_finalize());
    too_early_or_late();
    tool_begin();
    IS(MPI_T_ERR_INVALID_HANDLE, MPI_T_cvar_read(handle, &n));
    IS(MPI_T_ERR_INVALID_SESSION, MPI_T_pvar_session_free(&session));
    OK(MPI_T_finalize());
}

int main(int argc, char **argv)
{
    too_early_or_late();
    counted();
    CHECK(tool_begin() == MPI_THREAD_SINGLE);
    everything();
    begin(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
    everything(); /* errors call no handler */
    MPI_Finalize();
    everything();
    OK(MPI_T_finalize());
    too_early_or_late();
    counted();
    printf("correct\n");
    return 0;
}
